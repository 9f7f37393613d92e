// The timeline of the reference: scrub by pointer or keyboard, see confidence, labels, pins and the loop.

import {make} from "./elements.js";
import {colourOf} from "./tile.js";

export class Timeline {
  #wasPlaying = false;

  constructor(studio) {
    this.studio = studio;
    this.canvas = make("canvas", {class: "timeline-picture", "aria-hidden": "true"});
    this.range = make("input", {type: "range", min: 0, max: 0, step: 1, value: 0, "aria-label": "Frame of the reference",
      "data-timeline": "", oninput: () => studio.clock.seek(Number(this.range.value))});
    this.range.addEventListener("pointerdown", () => this.#hold());
    this.range.addEventListener("change", () => this.#release());
    this.readout = make("output", {class: "readout", "aria-live": "off"});
    this.element = make("div", {class: "timeline"}, make("div", {class: "track"}, this.canvas, this.range), this.readout);
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.canvas);
    this.marks = []; // {first, last, name, colour}: labels of the reference
    this.pins = [];  // frames of the reference
  }

  /** A clock that plays waits while the user drags. */
  #hold() {
    this.#wasPlaying = this.studio.clock.playing;
    this.studio.clock.pause();
  }

  #release() {
    if (this.#wasPlaying) this.studio.clock.play();
    this.#wasPlaying = false;
  }

  point(frame) {
    const {clock} = this.studio;
    this.range.max = clock.last;
    this.range.value = frame;
    const end = clock.times[clock.last];
    this.range.setAttribute("aria-valuetext", `frame ${frame} of ${clock.last}, ${clock.times[frame].toFixed(2)} seconds`);
    this.readout.textContent = `${clock.times[frame].toFixed(2)} / ${end.toFixed(2)} s · frame ${frame}`;
  }

  draw() {
    const {canvas} = this;
    const scale = devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (!width) return;
    [canvas.width, canvas.height] = [width * scale, height * scale];
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    this.#drawConfidence(context, width, height);
    this.#drawMarks(context, width, height);
    this.#drawLoop(context, width, height);
    this.#drawPins(context, width, height);
  }

  #placeOf(frame, width) {
    return frame / Math.max(1, this.studio.clock.last) * width;
  }

  /** The mean confidence of all videos, as colour: bright where all are sure. */
  #drawConfidence(context, width, height) {
    const {alignment, isAligned} = this.studio;
    const curves = isAligned ? [...alignment.values()].map(({confidence}) => confidence).filter((each) => each.length) : [];
    context.fillStyle = "#2a3630";
    context.fillRect(0, height / 2 - 3, width, 6);
    if (!curves.length) return;
    for (let x = 0; x < width; x += 1) {
      const frame = Math.min(curves[0].length - 1, Math.round(x / width * (curves[0].length - 1)));
      const mean = curves.reduce((sum, curve) => sum + (curve[frame] ?? 0), 0) / curves.length;
      context.fillStyle = `rgb(${colourOf(mean).join(" ")})`;
      context.fillRect(x, height / 2 - 3, 1, 6);
    }
  }

  #drawMarks(context, width, height) {
    context.font = "11px system-ui, sans-serif";
    for (const {first, last, name, colour} of this.marks) {
      const [left, right] = [this.#placeOf(first, width), this.#placeOf(last, width)];
      context.fillStyle = colour;
      context.fillRect(left, height - 5, Math.max(2, right - left), 4);
      if (context.measureText(name).width < right - left - 6) {
        context.fillStyle = "#a9b8b0";
        context.fillText(name, left + 3, 10);
      }
    }
  }

  #drawLoop(context, width, height) {
    const {loop} = this.studio.clock;
    if (!loop) return;
    const [left, right] = [this.#placeOf(loop.first, width), this.#placeOf(loop.last, width)];
    context.fillStyle = "rgb(163 230 53 / 0.16)";
    context.fillRect(left, 0, right - left, height);
    context.fillStyle = "#a3e635";
    for (const [x, sign] of [[left, 1], [right, -1]]) {
      context.fillRect(x - 1, 0, 2, height);
      context.fillRect(Math.min(x, x + 6 * sign), 0, 6, 2);
      context.fillRect(Math.min(x, x + 6 * sign), height - 2, 6, 2);
    }
  }

  #drawPins(context, width, height) {
    context.fillStyle = "#38bdf8";
    for (const frame of this.pins) {
      const x = this.#placeOf(frame, width);
      context.beginPath();
      context.arc(x, height / 2 - 8, 3, 0, 2 * Math.PI);
      context.fill();
      context.fillRect(x - 0.5, height / 2 - 8, 1, 10);
    }
  }

  close() {
    this.observer.disconnect();
  }
}
