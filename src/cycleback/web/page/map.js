// Map: every frame as a point, every video as a trajectory; similar moments lie close together.

import * as api from "./api.js";
import {make} from "./elements.js";
import {colourOf} from "./plots.js";

export const title = "Map";

const MARGIN = 24;
const REACH = 16; // pixels within which a point is pointed at

export function mount(element, studio) {
  const by = make("select", {id: "map-by"}, [
    make("option", {value: "pca"}, "main directions (PCA)"),
    make("option", {value: "tsne"}, "neighbourhoods (t-SNE)"),
  ]);
  const colour = make("select", {id: "map-colour"}, [
    make("option", {value: "time"}, "time"),
    make("option", {value: "video"}, "video"),
  ]);
  const canvas = make("canvas", {class: "map", tabindex: 0, role: "img", "aria-label": "Map of all frames"});
  const bubble = make("figure", {class: "bubble", hidden: true}, [make("img", {alt: ""}), make("figcaption")]);
  const note = make("p", {class: "dim", role: "status"});
  element.append(
    make("div", {class: "toolbar"}, [
      make("label", {for: "map-by"}, ["Arrange by ", by]), make("label", {for: "map-colour"}, ["Colour by ", colour]),
      note,
    ]),
    make("div", {class: "map-area"}, [canvas, bubble]),
  );
  let videos = [];
  let pointed = null; // {id, frame, x, y}

  async function load() {
    note.textContent = by.value === "tsne" ? "Arranging the frames, this takes a moment …" : "";
    try {
      videos = await api.get(`map?by=${by.value}`);
      note.textContent = `${videos.length} videos, ${videos.reduce((sum, each) => sum + each.frames.length, 0)} frames`;
    } catch (error) {
      note.textContent = error.message;
    }
    draw();
  }

  function place([x, y]) {
    const size = Math.min(canvas.width, canvas.height) - 2 * MARGIN * devicePixelRatio;
    return [(canvas.width - size) / 2 + x * size, (canvas.height - size) / 2 + y * size];
  }

  function draw() {
    const {width, height} = canvas.getBoundingClientRect();
    [canvas.width, canvas.height] = [width * devicePixelRatio, height * devicePixelRatio];
    const context = canvas.getContext("2d");
    videos.forEach((video, number) => {
      const isReference = video.id === studio.reference;
      drawTrail(context, video.points.map(place), isReference, number);
      video.points.forEach((point, index) => {
        const share = index / Math.max(1, video.points.length - 1);
        context.fillStyle = colour.value === "video" ? colourOf(number) : timeColour(share);
        dot(context, place(point), (isReference ? 4 : 2.5) * devicePixelRatio);
      });
    });
    drawPlayheads(context);
  }

  function drawTrail(context, points, isReference, number) {
    context.strokeStyle = isReference ? "rgb(255 255 255 / 0.8)" : colourOf(number, 0.3);
    context.lineWidth = (isReference ? 2 : 1) * devicePixelRatio;
    context.beginPath();
    for (const point of points) context.lineTo(...point);
    context.stroke();
  }

  function drawPlayheads(context) {
    for (const video of videos) {
      const frame = video.id === studio.reference ? studio.clock.frame : studio.alignment?.get(video.id)?.frames[studio.clock.frame];
      if (frame === undefined || !studio.shown.includes(video.id)) continue;
      const index = video.frames.findIndex((each) => each >= frame);
      context.fillStyle = "white";
      dot(context, place(video.points.at(index)), 6 * devicePixelRatio);
    }
  }

  function point(event) {
    const box = canvas.getBoundingClientRect();
    const [x, y] = [(event.clientX - box.left) * devicePixelRatio, (event.clientY - box.top) * devicePixelRatio];
    let best = REACH * devicePixelRatio;
    pointed = null;
    for (const video of videos) video.points.forEach((each, index) => {
      const [px, py] = place(each);
      const distance = Math.hypot(px - x, py - y);
      if (distance < best) [best, pointed] = [distance, {id: video.id, frame: video.frames[index], x: px, y: py}];
    });
    showBubble();
  }

  function showBubble() {
    bubble.hidden = !pointed;
    if (!pointed) return;
    const name = studio.byId.get(pointed.id)?.name ?? "";
    const [image, caption] = bubble.children;
    image.src = api.address(`videos/${pointed.id}/frames/${pointed.frame}.jpg?height=120`);
    caption.textContent = `${name}, frame ${pointed.frame}`;
    bubble.style.left = `${pointed.x / devicePixelRatio}px`;
    bubble.style.top = `${pointed.y / devicePixelRatio}px`;
    bubble.dataset.video = pointed.id;
    bubble.dataset.frame = pointed.frame;
  }

  function jump() {
    if (!pointed) return;
    studio.follow(pointed.id, pointed.frame);
    studio.open("play");
  }

  canvas.addEventListener("pointermove", point);
  canvas.addEventListener("pointerleave", () => { pointed = null; showBubble(); });
  canvas.addEventListener("click", (event) => { point(event); jump(); });
  by.addEventListener("change", load);
  colour.addEventListener("change", draw);
  const observer = new ResizeObserver(draw);
  observer.observe(canvas);
  studio.clock.listeners.add(draw);
  const stops = ["embeddings", "reference", "alignment"].map((what) => studio.listen(what, what === "embeddings" ? load : draw));
  load();
  return () => {
    observer.disconnect();
    studio.clock.listeners.delete(draw);
    for (const stop of stops) stop?.();
  };
}

function dot(context, [x, y], radius) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fill();
}

/** From blue at the start to yellow at the end of a video. */
function timeColour(share) {
  return `hsl(${Math.round(230 - 175 * share)} 80% ${Math.round(58 + 6 * share)}%)`;
}
