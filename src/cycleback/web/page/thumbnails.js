// Thumbnails and frame numbers along one axis of a plot. They follow its zoom.

import * as api from "./api.js";

const COUNT = 40;        // thumbnails of the whole video, in one picture
const HEIGHT = 60;       // pixels of a thumbnail
const TICKS = 20;        // pixels for numbers beside the thumbnails
const PAUSE_MS = 150;    // before single frames are asked for while the user still zooms
const MAX_KEPT = 200;
const STEPS = [1, 2, 5];

export class Strip {
  #sheet = null;          // the picture of all thumbnails
  #singles = new Map();   // frame -> picture, or null while it loads
  #waiting = 0;
  #range = null;          // what draw() was called with

  /** `axis` is "x" for a strip above a plot, "y" for one at its left. */
  constructor(canvas, studio, axis) {
    this.canvas = canvas;
    this.studio = studio;
    this.axis = axis;
    this.id = null;
    this.frames = 0;
    this.observer = new ResizeObserver(() => this.#redraw());
    this.observer.observe(canvas);
  }

  close() {
    this.observer.disconnect();
    clearTimeout(this.#waiting);
    this.id = null;
  }

  /** Load the thumbnails of a video. */
  async show(id) {
    Object.assign(this, {id, frames: 0});
    this.#sheet = this.#range = null;
    this.#singles.clear();
    const {frames} = await this.studio.detail(id);
    const sheet = await load(`videos/${id}/strip.jpg?count=${COUNT}&height=${HEIGHT}`);
    if (this.id !== id) return;
    this.frames = frames;
    this.#sheet = sheet;
    this.#redraw();
  }

  /** Draw the frames from `start` on, `length` of them. */
  draw(start, length, {unit, times}) {
    this.#range = {start, length, unit, times};
    this.#redraw();
    clearTimeout(this.#waiting);
    this.#waiting = setTimeout(() => this.#refine(), PAUSE_MS);
  }

  /** Paint the thumbnail nearest to a frame over a whole canvas. */
  paint(canvas, frame) {
    if (!this.#sheet) return;
    const {picture, x, width, height} = this.#find(frame);
    if (canvas.width / canvas.height !== width / height) canvas.width = Math.round((canvas.height * width) / height);
    delete canvas.dataset.frame;
    canvas.getContext("2d", {alpha: false}).drawImage(picture, x, 0, width, height, 0, 0, canvas.width, canvas.height);
  }

  /** The best picture there is of a frame: its own, or the nearest on the sheet. */
  #find(frame) {
    const single = this.#singles.get(frame);
    if (single) return {picture: single, x: 0, width: single.naturalWidth, height: single.naturalHeight};
    const width = this.#sheet.naturalWidth / COUNT;
    const place = Math.round((frame / Math.max(1, this.frames - 1)) * (COUNT - 1));
    return {picture: this.#sheet, x: Math.round(place * width), width, height: this.#sheet.naturalHeight};
  }

  #redraw() {
    const {canvas} = this;
    if (!canvas.clientWidth || !canvas.clientHeight) return;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(canvas.clientWidth * ratio);
    canvas.height = Math.round(canvas.clientHeight * ratio);
    if (!this.#range) return;
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (this.#sheet) this.#slots().forEach((slot) => this.#paintSlot(context, slot));
    this.#paintTicks(context);
  }

  get #length() {
    return this.axis === "x" ? this.canvas.clientWidth : this.canvas.clientHeight;
  }

  /** Where thumbnails go, and the frame in the middle of each. */
  #slots() {
    const across = (this.axis === "x" ? this.canvas.clientHeight : this.canvas.clientWidth) - TICKS;
    const shape = this.#sheet.naturalWidth / COUNT / this.#sheet.naturalHeight;
    const size = this.axis === "x" ? across * shape : across / shape;
    const count = Math.max(1, Math.round(this.#length / size));
    const {start, length} = this.#range;
    return Array.from({length: count}, (_, n) => ({
      place: (n / count) * this.#length,
      size: this.#length / count,
      across,
      frame: Math.max(0, Math.min(this.frames - 1, Math.floor(start + ((n + 0.5) / count) * length))),
    }));
  }

  #paintSlot(context, {place, size, across, frame}) {
    const {picture, x, width, height} = this.#find(frame);
    const box = this.axis === "x" ? [place, 0, size, across] : [0, place, across, size];
    const scale = Math.max(box[2] / width, box[3] / height); // fill the slot, cut what is over
    const [cutWidth, cutHeight] = [box[2] / scale, box[3] / scale];
    context.drawImage(picture, x + (width - cutWidth) / 2, (height - cutHeight) / 2, cutWidth, cutHeight, ...box);
  }

  #paintTicks(context) {
    const {start, length, unit, times} = this.#range;
    const style = getComputedStyle(this.canvas);
    context.fillStyle = style.color;
    context.font = `11px ${style.fontFamily}`;
    const isAcross = this.axis === "x";
    const edge = isAcross ? this.canvas.clientHeight : this.canvas.clientWidth;
    context.textBaseline = "middle";
    context.textAlign = isAcross ? "center" : "right";
    for (const {place, text} of ticks(start, length, {unit, times, room: this.#length})) {
      if (place < 8 || place > this.#length - 12) continue;
      if (isAcross) context.fillText(text, place, edge - TICKS / 2 - 1);
      else this.#paintTurned(context, text, edge - TICKS / 2 + 1, place);
      if (isAcross) context.fillRect(place - 0.5, edge - 4, 1, 4);
      else context.fillRect(edge - 4, place - 0.5, 4, 1);
    }
  }

  #paintTurned(context, text, x, y) {
    context.save();
    context.translate(x - 2, y);
    context.rotate(-Math.PI / 2);
    context.textAlign = "center";
    context.fillText(text, 0, 0);
    context.restore();
  }

  /** Where the sheet is too coarse for the zoom, ask for single frames. */
  async #refine() {
    if (!this.#sheet || !this.#range) return;
    const spacing = (this.frames - 1) / (COUNT - 1);
    const slots = this.#slots();
    if (this.#range.length / slots.length >= spacing) return;
    const {id} = this;
    for (const {frame} of slots) {
      if (this.#singles.has(frame)) continue;
      this.#singles.set(frame, null);
      if (this.#singles.size > MAX_KEPT) this.#singles.delete(this.#singles.keys().next().value);
      load(`videos/${id}/frames/${frame}.jpg?height=${HEIGHT}`).then((picture) => {
        if (this.id !== id) return;
        this.#singles.set(frame, picture);
        this.#redraw();
      }, () => this.#singles.delete(frame));
    }
  }
}

async function load(path) {
  const image = new Image();
  image.src = api.address(path);
  await image.decode();
  return image;
}

/** Round numbers about 70 pixels apart, with where they lie. */
function ticks(start, length, {unit, times, room}) {
  const last = Math.min(times.length - 1, Math.ceil(start + length));
  const first = Math.max(0, Math.floor(start));
  const isSeconds = unit === "seconds";
  const [low, high] = isSeconds ? [times[first], times[last]] : [first, last];
  const step = roundUp(((high - low) * 70) / Math.max(room, 70), isSeconds ? 0 : 1);
  const marks = [];
  for (let value = Math.ceil(low / step) * step; value <= high; value += step) {
    const frame = isSeconds ? nearest(times, value) : value;
    const text = isSeconds ? `${value.toFixed(step < 1 ? Math.ceil(-Math.log10(step)) : 0)} s` : `${Math.round(value)}`;
    marks.push({place: ((frame + 0.5 - start) / length) * room, text});
  }
  return marks;
}

/** The next of 1, 2, 5, 10, 20, ... that is at least `value` and `least`. */
function roundUp(value, least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1e-3)));
  const step = [...STEPS, 10].map((digit) => digit * power).find((each) => each >= value) ?? 10 * power;
  return Math.max(step, least);
}

/** The place of a second among the frames, with fractions. */
function nearest(times, second) {
  let [low, high] = [0, times.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (times[middle] <= second) low = middle;
    else high = middle;
  }
  const span = times[high] - times[low];
  return span > 0 ? low + (second - times[low]) / span : low;
}
