// Sound: hear the sound of one video on the pictures of another, and keep the result.

import * as api from "./api.js";
import {frameAt} from "./clock.js";
import {button, make} from "./elements.js";
import {FrameSource} from "./frames.js";

export const title = "Sound";

export function mount(element, studio) {
  const source = make("select", {id: "sound-source"});
  const target = make("select", {id: "sound-target"});
  const audio = make("audio", {controls: true, "aria-label": "The borrowed sound"});
  const canvas = make("canvas", {class: "borrowed", role: "img", "aria-label": "The pictures"});
  const note = make("p", {class: "dim", role: "status"});
  const save = make("a", {class: "button", hidden: true}, "Download the video with this sound");
  element.append(
    make("h2", {}, "Borrow a sound"),
    make("div", {class: "toolbar"}, [
      make("label", {for: "sound-source"}, ["Sound of ", source]),
      make("label", {for: "sound-target"}, ["on the pictures of ", target]),
      button("Listen", listen, {class: "accent"}),
    ]),
    note, canvas, audio, save,
  );
  let pictures = null;
  let times = null;
  let animation = 0;

  async function fill() {
    const details = await Promise.all(studio.shown.map((id) => studio.detail(id).catch(() => null)));
    const shown = details.filter(Boolean);
    source.replaceChildren(...shown.filter((each) => each.has_audio).map(option));
    target.replaceChildren(...shown.map(option));
    if (shown.length > 1) target.value = shown.find((each) => each.id !== source.value)?.id ?? shown[0].id;
    note.textContent = source.children.length ? "" : "None of the shown videos has a sound; choose others on the left.";
  }

  async function listen() {
    if (!source.value || !target.value) return;
    note.textContent = "Moving the sound …";
    audio.removeAttribute("src");
    const query = `source=${source.value}&target=${target.value}`;
    try {
      const bytes = await api.getBytes(`sound?${query}`);
      pictures?.close();
      pictures = new FrameSource(studio, target.value);
      ({times} = await studio.detail(target.value));
      audio.src = URL.createObjectURL(new Blob([bytes], {type: "audio/wav"}));
      save.href = api.address(`sound.mp4?${query}`);
      save.hidden = false;
      note.textContent = "";
      await pictures.draw(canvas, 0);
      await audio.play().catch(() => { note.textContent = "Press play to listen."; });
    } catch (error) {
      note.textContent = error.message;
    }
  }

  function follow() {
    if (pictures && times) pictures.draw(canvas, frameAt(times, audio.currentTime));
    animation = audio.paused ? 0 : requestAnimationFrame(follow);
  }

  audio.addEventListener("play", () => { animation ||= requestAnimationFrame(follow); });
  audio.addEventListener("seeked", follow);
  const stop = studio.listen("shown", fill);
  fill();
  return () => { stop?.(); cancelAnimationFrame(animation); audio.pause(); pictures?.close(); };
}

function option(video) {
  return make("option", {value: video.id}, video.name);
}
