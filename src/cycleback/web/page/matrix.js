// The similarity of two videos as a picture to zoom and pan, with the path of their alignment on it.
//
// A frame of video a lies to the right, a frame of video b downwards. Cell (i, j) covers the square from
// (i, j) to (i + 1, j + 1) in units of frames; `view` says which part of that plane the canvas shows.

import * as api from "./api.js";

export const TILE = 256;
const MAX_CELL = 48;       // pixels of a cell at the largest zoom
const MAX_TILES = 64;      // drawn at once
const KEPT_TILES = 256;
const GRAB = {mouse: 10, pen: 12, touch: 22}; // pixels around path and pins that take hold of them
const CLICK = 4;           // pixels that a press may move and still be a click
const RAMP = [[9, 13, 18], [25, 43, 61], [58, 92, 120], [142, 170, 190], [244, 248, 250]]; // far to near

/** Grey levels to colours: 256 packed RGBA values. */
const COLOURS = Uint32Array.from({length: 256}, (_, grey) => {
  const place = (grey / 255) * (RAMP.length - 1);
  const low = Math.min(RAMP.length - 2, Math.floor(place));
  const [red, green, blue] = RAMP[low].map((value, c) => Math.round(value + (place - low) * (RAMP[low + 1][c] - value)));
  return (255 << 24) | (blue << 16) | (green << 8) | red;
});

/** Confidence 0..1 to one of a few colours: red, amber, green. */
export function confidenceColour(confidence) {
  return `hsl(${Math.round(Math.max(0, Math.min(1, confidence)) * 8) * 15} 90% 58%)`;
}

/** The tiles of one pair, loaded when they are first drawn. */
class Tiles {
  #kept = new Map(); // "level/x/y" -> canvas, or null while it loads

  constructor(pair, onload) {
    this.pair = pair;
    this.onload = onload;
  }

  get(level, x, y) {
    const key = `${level}/${x}/${y}`;
    if (!this.#kept.has(key)) this.#load(key);
    return this.#kept.get(key);
  }

  async #load(key) {
    this.#kept.set(key, null);
    if (this.#kept.size > KEPT_TILES) this.#kept.delete(this.#kept.keys().next().value);
    const {a, b, version} = this.pair;
    const image = new Image();
    image.src = api.address(`pairs/${a}/${b}/tiles/${key}.png?version=${version}`);
    try {
      await image.decode();
    } catch {
      return; // the embeddings changed meanwhile: a new pair is on its way
    }
    this.#kept.set(key, colour(image));
    this.onload();
  }
}

function colour(image) {
  const canvas = new OffscreenCanvas(image.naturalWidth, image.naturalHeight);
  const context = canvas.getContext("2d", {willReadFrequently: true});
  context.drawImage(image, 0, 0);
  const pixels = context.getImageData(0, 0, canvas.width, canvas.height);
  const packed = new Uint32Array(pixels.data.buffer);
  for (let n = 0; n < packed.length; n += 1) packed[n] = COLOURS[packed[n] & 255];
  context.putImageData(pixels, 0, 0);
  return canvas;
}

/**
 * One zoomable matrix on a canvas.
 *
 * `actions`: hover(cell or null), jump(cell), pin(cell, moved pin or null), change() after a change of the view.
 */
export class Matrix {
  #tiles = null;
  #request = 0;
  #pointers = new Map(); // id -> {x, y}
  #press = null;         // what a press took hold of: {kind: "pan" | "pin", ...}

  constructor(canvas, actions) {
    this.canvas = canvas;
    this.actions = actions;
    this.pair = null;
    this.pins = [];      // [i, j]
    this.playhead = 0;   // frame of a
    this.cell = null;    // [i, j] under the pointer
    this.chosen = null;  // [i, j] that was clicked or moved to by keys
    this.view = {x: 0, y: 0, width: 1, height: 1}; // in frames
    this.#listen();
    this.observer = new ResizeObserver(() => this.#resize());
    this.observer.observe(canvas);
  }

  /** Show a pair; the part in view stays if the videos are the same. */
  show(pair) {
    const isSame = this.pair?.a === pair.a && this.pair?.b === pair.b;
    if (!isSame || this.pair.version !== pair.version) this.#tiles = new Tiles(pair, () => this.draw());
    this.pair = pair;
    if (isSame) this.draw();
    else this.fit();
  }

  close() {
    this.observer.disconnect();
    cancelAnimationFrame(this.#request);
  }

  fit() {
    if (!this.pair) return;
    const [width, height] = this.pair.size;
    this.view = {x: 0, y: 0, width, height};
    this.#changed();
  }

  /** Zoom by a factor around a point of the canvas, in pixels; by default around its middle. */
  zoom(factor, at = {x: this.width / 2, y: this.height / 2}) {
    if (!this.pair) return;
    const before = this.place(at);
    const [frames, others] = this.pair.size;
    const width = Math.min(frames, Math.max(this.view.width / factor, this.width / MAX_CELL));
    const height = Math.min(others, Math.max(this.view.height / factor, this.height / MAX_CELL));
    this.view = {
      width, height, x: before.i - (at.x / this.width) * width, y: before.j - (at.y / this.height) * height,
    };
    this.#changed();
  }

  pan(dx, dy) {
    this.view.x -= (dx / this.width) * this.view.width;
    this.view.y -= (dy / this.height) * this.view.height;
    this.#changed();
  }

  /** Move the view so that a cell is in it. */
  reveal([i, j]) {
    const {view} = this;
    if (i < view.x || i + 1 > view.x + view.width) view.x = i + 0.5 - view.width / 2;
    if (j < view.y || j + 1 > view.y + view.height) view.y = j + 0.5 - view.height / 2;
    this.#changed();
  }

  /** Where a point of the canvas lies, in frames. */
  place({x, y}) {
    return {
      i: this.view.x + (x / this.width) * this.view.width,
      j: this.view.y + (y / this.height) * this.view.height,
    };
  }

  /** Where a point of the plane lies on the canvas, in pixels. */
  point(i, j) {
    return [
      ((i - this.view.x) / this.view.width) * this.width,
      ((j - this.view.y) / this.view.height) * this.height,
    ];
  }

  cellAt(at) {
    const {i, j} = this.place(at);
    const [frames, others] = this.pair.size;
    return [Math.max(0, Math.min(frames - 1, Math.floor(i))), Math.max(0, Math.min(others - 1, Math.floor(j)))];
  }

  draw() {
    if (this.#request) return;
    this.#request = requestAnimationFrame(() => {
      this.#request = 0;
      this.#paint();
    });
  }

  #resize() {
    const {clientWidth, clientHeight} = this.canvas;
    if (!clientWidth || !clientHeight) return;
    this.width = clientWidth;
    this.height = clientHeight;
    this.ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(clientWidth * this.ratio);
    this.canvas.height = Math.round(clientHeight * this.ratio);
    this.#changed();
  }

  /** Keep the view inside the matrix, draw it and tell. */
  #changed() {
    if (!this.pair) return;
    const {view} = this;
    const [frames, others] = this.pair.size;
    view.x = Math.max(0, Math.min(frames - view.width, view.x));
    view.y = Math.max(0, Math.min(others - view.height, view.y));
    this.draw();
    this.actions.change();
  }

  // Painting

  #paint() {
    if (!this.pair || !this.width) return;
    const context = this.canvas.getContext("2d");
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    this.#paintTiles(context);
    if (this.pair.path.length) {
      this.#paintEnds(context);
      this.#paintPlayhead(context);
      this.#paintPath(context);
    }
    this.#paintCell(context, this.chosen);
    if (this.cell !== this.chosen) this.#paintCell(context, this.cell);
    this.#paintPins(context);
  }

  /** The level whose pixels are about as large as those of the screen, with few enough tiles. */
  #level() {
    const {view} = this;
    const cell = Math.max(this.width / view.width, this.height / view.height) * this.ratio;
    let level = Math.max(0, Math.min(this.pair.levels - 1, Math.floor(Math.log2(1 / cell))));
    const across = (length) => length / (TILE << level) + 2;
    while (level < this.pair.levels - 1 && across(view.width) * across(view.height) > MAX_TILES) level += 1;
    return level;
  }

  #paintTiles(context) {
    const wanted = this.#level();
    const top = this.pair.levels - 1;
    const cell = Math.min(this.width / this.view.width, this.height / this.view.height);
    context.imageSmoothingEnabled = cell * this.ratio < 1;
    if (wanted !== top) this.#paintLevel(context, top); // a coarse picture until the fine one is there
    this.#paintLevel(context, wanted);
  }

  #paintLevel(context, level) {
    const {view, pair} = this;
    const step = 1 << level;
    const span = TILE * step;
    const last = pair.size.map((frames) => Math.ceil(Math.ceil(frames / step) / TILE) - 1);
    const [right, bottom] = [Math.min(last[0], Math.floor((view.x + view.width) / span)),
      Math.min(last[1], Math.floor((view.y + view.height) / span))];
    for (let y = Math.floor(view.y / span); y <= bottom; y += 1) {
      for (let x = Math.floor(view.x / span); x <= right; x += 1) {
        const tile = this.#tiles.get(level, x, y);
        if (!tile) continue;
        const [left, upper] = this.point(x * span, y * span);
        const [end, lower] = this.point(x * span + tile.width * step, y * span + tile.height * step);
        context.drawImage(tile, left, upper, end - left, lower - upper);
      }
    }
  }

  /** Shade what only one of the videos shows. */
  #paintEnds(context) {
    const {path, size} = this.pair;
    if (this.pair.method === "nearest") return;
    const [[i, j], [k, m]] = [path[0], path[path.length - 1]];
    context.fillStyle = "rgb(9 13 18 / 62%)";
    const shade = (left, upper, right, lower) => {
      const [x, y] = this.point(left, upper);
      const [end, bottom] = this.point(right, lower);
      if (end - x > 0.5 && bottom - y > 0.5) context.fillRect(x, y, end - x, bottom - y);
    };
    shade(0, 0, i, size[1]);
    shade(k + 1, 0, size[0], size[1]);
    shade(i, 0, k + 1, j);
    shade(i, m + 1, k + 1, size[1]);
    this.#nameEnds(context, [i, j], [k, m]);
  }

  #nameEnds(context, [i, j], [k, m]) {
    const {size} = this.pair;
    context.fillStyle = "#c9d6cf";
    context.font = "12px system-ui, sans-serif";
    const name = (text, left, upper, right, lower) => {
      const [x, y] = this.point(left, upper);
      const [end, bottom] = this.point(right, lower);
      const [from, to] = [Math.max(0, x), Math.min(this.width, end)];
      if (to - from < 60 || Math.min(this.height, bottom) - Math.max(0, y) < 20) return;
      context.fillText(text, from + 6, Math.max(0, y) + 15);
    };
    name("lead-in", 0, 0, i, size[1]);
    name("lead-out", k + 1, 0, size[0], size[1]);
    name("lead-in", i, 0, k + 1, j);
    name("lead-out", i, m + 1, k + 1, size[1]);
  }

  #paintPlayhead(context) {
    const [x, y] = this.point(this.playhead + 0.5, this.pair.frames[this.playhead] + 0.5);
    context.strokeStyle = "rgb(255 255 255 / 55%)";
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x, this.height);
    context.moveTo(0, y);
    context.lineTo(this.width, y);
    context.stroke();
  }

  #paintPath(context) {
    const {path, confidence, method} = this.pair;
    const [first, last] = this.#visible();
    const step = Math.max(1, Math.floor((last - first) / (4 * this.width)));
    context.lineJoin = context.lineCap = "round";
    if (method === "nearest") {
      this.#paintDots(context, first, last, step);
      return;
    }
    for (const [width, shadow] of [[5, "rgb(0 0 0 / 70%)"], [2.5, null]]) {
      context.lineWidth = width;
      let colour = null;
      for (let n = first; n < last; n = Math.min(last, n + step)) {
        const next = shadow ?? confidenceColour(confidence[path[n][0]]);
        const from = this.point(path[n][0] + 0.5, path[n][1] + 0.5);
        if (next !== colour) {
          if (colour !== null) context.stroke();
          context.strokeStyle = colour = next;
          context.beginPath();
          context.moveTo(...from);
        }
        const to = path[Math.min(last, n + step)];
        context.lineTo(...this.point(to[0] + 0.5, to[1] + 0.5));
      }
      if (colour !== null) context.stroke();
    }
    this.#paintShown(context);
  }

  #paintDots(context, first, last, step) {
    const {path, confidence} = this.pair;
    for (let n = first; n <= last; n += step) {
      const [x, y] = this.point(path[n][0] + 0.5, path[n][1] + 0.5);
      context.fillStyle = confidenceColour(confidence[path[n][0]]);
      context.fillRect(x - 1.5, y - 1.5, 3, 3);
    }
  }

  /** Where cells are large, mark the one that is played with each frame of a. */
  #paintShown(context) {
    const cell = this.width / this.view.width;
    if (cell < 7) return;
    const [first, last] = [Math.floor(this.view.x), Math.ceil(this.view.x + this.view.width)];
    for (let i = Math.max(0, first); i < Math.min(this.pair.size[0], last); i += 1) {
      const [x, y] = this.point(i + 0.5, this.pair.frames[i] + 0.5);
      context.fillStyle = this.pair.matched[i] ? confidenceColour(this.pair.confidence[i]) : "#c9d6cf";
      context.beginPath();
      context.arc(x, y, this.pair.matched[i] ? 3.5 : 2, 0, 7);
      context.fill();
    }
  }

  /** The first and the last step of the path in view. */
  #visible() {
    const {path} = this.pair;
    const find = (frame) => {
      let [low, high] = [0, path.length - 1];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (path[middle][0] < frame) low = middle + 1;
        else high = middle;
      }
      return low;
    };
    return [Math.max(0, find(this.view.x - 1) - 1), Math.min(path.length - 1, find(this.view.x + this.view.width + 1))];
  }

  #paintPins(context) {
    const moved = this.#press?.kind === "pin" ? this.#press.pin : null;
    for (const pin of this.pins) {
      if (pin !== moved) this.#paintPin(context, pin, 1);
    }
    if (this.#press?.kind === "pin" && this.cell) {
      this.#paintBand(context);
      this.#paintPin(context, this.cell, 0.9);
    }
  }

  #paintPin(context, [i, j], alpha) {
    const [x, y] = this.point(i + 0.5, j + 0.5);
    context.globalAlpha = alpha;
    context.beginPath();
    context.arc(x, y, 6, 0, 7);
    context.fillStyle = "#38bdf8";
    context.strokeStyle = "#062033";
    context.lineWidth = 2;
    context.fill();
    context.stroke();
    context.globalAlpha = 1;
  }

  /** While a pin is dragged: straight lines to the pins, or ends of the path, beside it. */
  #paintBand(context) {
    const {path} = this.pair;
    const others = this.pins.filter((pin) => pin !== this.#press.pin);
    const before = others.filter((pin) => pin[0] < this.cell[0]).at(-1) ?? path[0] ?? this.cell;
    const after = others.find((pin) => pin[0] > this.cell[0]) ?? path.at(-1) ?? this.cell;
    context.setLineDash([5, 4]);
    context.strokeStyle = "#38bdf8";
    context.lineWidth = 1.5;
    context.beginPath();
    [before, this.cell, after].forEach(([i, j], n) => {
      context[n ? "lineTo" : "moveTo"](...this.point(i + 0.5, j + 0.5));
    });
    context.stroke();
    context.setLineDash([]);
  }

  #paintCell(context, cell) {
    if (!cell) return;
    const [x, y] = this.point(...cell);
    const [end, bottom] = this.point(cell[0] + 1, cell[1] + 1);
    const [width, height] = [Math.max(9, end - x), Math.max(9, bottom - y)];
    context.strokeStyle = "#38bdf8";
    context.lineWidth = 1.5;
    context.strokeRect((x + end - width) / 2, (y + bottom - height) / 2, width, height);
  }

  // Pointers

  #listen() {
    const {canvas} = this;
    canvas.addEventListener("wheel", (event) => this.#wheel(event), {passive: false});
    canvas.addEventListener("pointerdown", (event) => this.#down(event));
    canvas.addEventListener("pointermove", (event) => this.#move(event));
    canvas.addEventListener("pointerup", (event) => this.#up(event));
    canvas.addEventListener("pointercancel", (event) => this.#cancel(event));
    canvas.addEventListener("pointerleave", () => { if (!this.#press) this.hover(null); });
  }

  hover(cell) {
    this.cell = cell;
    this.draw();
    this.actions.hover(cell);
  }

  /** Give up a drag. */
  cancel() {
    this.#press = null;
    this.draw();
  }

  get isDragging() {
    return this.#press?.kind === "pin";
  }

  #at(event) {
    const box = this.canvas.getBoundingClientRect();
    return {x: event.clientX - box.left, y: event.clientY - box.top};
  }

  #wheel(event) {
    if (!this.pair) return;
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    if (event.shiftKey) this.pan(-(event.deltaX || event.deltaY) * lines, 0);
    else this.zoom(Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.002)), this.#at(event));
  }

  #down(event) {
    if (!this.pair || event.button) return;
    const at = this.#at(event);
    this.canvas.setPointerCapture(event.pointerId);
    this.#pointers.set(event.pointerId, at);
    if (this.#pointers.size === 2) {
      this.#press = {kind: "pinch", ...this.#span()};
      return;
    }
    const held = this.#take(at, GRAB[event.pointerType] ?? GRAB.mouse);
    this.#press = {kind: held ? "pin" : "pan", pin: held?.pin ?? null, start: at, last: at, isMoved: false};
    this.cell = this.cellAt(at);
    this.actions.hover(this.cell);
    this.draw();
  }

  #move(event) {
    if (!this.pair) return;
    const at = this.#at(event);
    if (this.#pointers.has(event.pointerId)) this.#pointers.set(event.pointerId, at);
    const press = this.#press;
    if (press?.kind === "pinch") {
      this.#pinch();
      return;
    }
    if (press && Math.hypot(at.x - press.start.x, at.y - press.start.y) > CLICK) press.isMoved = true;
    if (press?.kind === "pan" && press.isMoved) {
      this.pan(at.x - press.last.x, at.y - press.last.y);
      press.last = at;
    }
    this.#point(at);
    this.hover(this.cellAt(at));
  }

  /** Show by the pointer what a press would take hold of. */
  #point(at) {
    const isHeld = this.#press?.kind === "pin" || (!this.#press && this.#take(at, GRAB.mouse));
    this.canvas.style.cursor = isHeld ? "grab" : this.#press?.isMoved ? "move" : "crosshair";
  }

  #up(event) {
    this.#pointers.delete(event.pointerId);
    const press = this.#press;
    this.#press = null;
    if (!press || press.kind === "pinch" || !this.pair) return;
    const cell = this.cellAt(this.#at(event));
    if (!press.isMoved) this.actions.jump(cell);
    else if (press.kind === "pin") this.actions.pin(cell, press.pin);
    this.draw();
  }

  #cancel(event) {
    this.#pointers.delete(event.pointerId);
    this.cancel();
  }

  #span() {
    const [one, other] = [...this.#pointers.values()];
    return {distance: Math.hypot(one.x - other.x, one.y - other.y), middle: {x: (one.x + other.x) / 2, y: (one.y + other.y) / 2}};
  }

  #pinch() {
    const before = this.#press;
    const now = this.#span();
    this.zoom(now.distance / Math.max(1, before.distance), now.middle);
    this.pan(now.middle.x - before.middle.x, now.middle.y - before.middle.y);
    this.#press = {kind: "pinch", ...now};
  }

  /** What lies within `reach` pixels: {pin} for a pin, {pin: null} for the path, or null. */
  #take(at, reach) {
    const distance = ([i, j]) => {
      const [x, y] = this.point(i + 0.5, j + 0.5);
      return Math.hypot(x - at.x, y - at.y);
    };
    const pin = this.pins.filter((each) => distance(each) <= reach)
      .sort((one, other) => distance(one) - distance(other))[0];
    if (pin) return {pin};
    if (!this.pair.path.length) return null; // it is not aligned yet
    const [first, last] = this.#visible();
    const margin = (reach / this.width) * this.view.width + 1;
    const {i} = this.place(at);
    for (let n = first; n <= last; n += 1) {
      const step = this.pair.path[n];
      if (Math.abs(step[0] + 0.5 - i) <= margin && distance(step) <= reach) return {pin: null};
    }
    return null;
  }
}
