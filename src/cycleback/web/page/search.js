// Search: the same moment in all videos, as thumbnails that play when one points at them.

import * as api from "./api.js";
import {frameAt} from "./clock.js";
import {button, clockTime, make} from "./elements.js";
import {FrameSource} from "./frames.js";

export const title = "Search";

const PLAY_AROUND_S = 0.7; // before and after the moment
const STEP_MS = 40;        // between two frames of a thumbnail that plays

export function mount(element, studio) {
  const canvas = make("canvas", {class: "query", role: "img", "aria-label": "The moment to search for"});
  const slider = make("input", {type: "range", min: 0, value: 0, id: "query-frame", "aria-label": "Frame"});
  const caption = make("p", {class: "dim"});
  const hits = make("ol", {class: "hits"});
  element.append(
    make("div", {class: "search"}, [
      make("section", {class: "card query-card"}, [
        make("h2", {}, "This moment"), canvas, slider, caption,
        button("Find it everywhere", () => find(), {class: "accent"}),
      ]),
      make("section", {}, [make("h2", {}, "In the other videos"), hits]),
    ]),
  );
  let source = null;
  let frame = studio.clock.frame;
  let request = null;

  async function show() {
    const id = studio.reference;
    if (!id) return;
    source?.close();
    source = new FrameSource(studio, id);
    const {times} = await studio.detail(id);
    slider.max = times.length - 1;
    step(Math.min(studio.clock.frame, times.length - 1));
    find();
  }

  async function step(to) {
    frame = to;
    slider.value = to;
    const {times, name} = await studio.detail(studio.reference);
    caption.textContent = `${name}, frame ${to}, ${clockTime(times[to], 2)}`;
    await source.draw(canvas, to);
  }

  async function find() {
    request?.abort();
    request = new AbortController();
    const asked = {id: studio.reference, frame};
    try {
      const found = await api.get(`search?video=${asked.id}&frame=${asked.frame}`, {signal: request.signal});
      hits.dataset.frame = asked.frame;
      hits.replaceChildren(...found.map((hit) => showHit(studio, hit, asked)));
      if (!found.length) hits.replaceChildren(make("li", {class: "dim"}, "There is no other video to search."));
    } catch (error) {
      if (error.name !== "AbortError") hits.replaceChildren(make("li", {class: "dim"}, error.message));
    }
  }

  slider.addEventListener("input", () => step(Number(slider.value)));
  slider.addEventListener("change", find);
  const stop = studio.listen("reference", show);
  const stopEmbeddings = studio.listen("embeddings", find);
  show();
  return () => { stop?.(); stopEmbeddings?.(); request?.abort(); source?.close(); };
}

function showHit(studio, hit, asked) {
  const name = studio.byId.get(hit.id)?.name ?? hit.id;
  const canvas = make("canvas", {role: "img", "aria-label": `${name}, frame ${hit.frame}`});
  const open = button([
    canvas,
    make("span", {class: "hit-name"}, name),
    make("span", {class: "dim"}, `${clockTime(hit.seconds, 2)} · ${Math.round(100 * hit.similarity)} %`),
  ], () => {
    studio.choose([...new Set([asked.id, hit.id, ...studio.shown])]);
    studio.follow(asked.id, asked.frame);
    studio.open("play");
  }, {class: "hit", "data-video": hit.id, "data-frame": hit.frame, title: "Play beside the searched video"});
  drawThumbnail(canvas, hit.id, hit.frame);
  playWhilePointedAt(studio, open, canvas, hit);
  return make("li", {}, open);
}

function drawThumbnail(canvas, id, frame) {
  const image = new Image();
  image.onload = () => {
    [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
    canvas.getContext("2d").drawImage(image, 0, 0);
  };
  image.src = api.address(`videos/${id}/frames/${frame}.jpg?height=120`);
}

function playWhilePointedAt(studio, element, canvas, hit) {
  let source = null;
  let timer = null;
  const stop = () => {
    clearTimeout(timer);
    source?.close();
    source = timer = null;
    drawThumbnail(canvas, hit.id, hit.frame);
  };
  const start = async () => {
    if (source) return;
    const own = source = new FrameSource(studio, hit.id);
    const {times} = await studio.detail(hit.id);
    const [first, last] = [-PLAY_AROUND_S, PLAY_AROUND_S].map((shift) => frameAt(times, hit.seconds + shift));
    let frame = first;
    const next = async () => {
      if (source !== own) return;
      await own.draw(canvas, frame);
      frame = frame >= last ? first : frame + 1;
      if (source === own) timer = setTimeout(next, STEP_MS);
    };
    next();
  };
  element.addEventListener("pointerenter", start);
  element.addEventListener("focus", start);
  element.addEventListener("pointerleave", stop);
  element.addEventListener("blur", stop);
}
