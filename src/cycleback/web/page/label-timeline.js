// The timeline of one video: thumbnails, key events as ticks, segments as bars, and the playhead.
//
// A tick, an edge or the playhead is dragged with the pointer. The wheel zooms at the pointer, with shift it
// scrolls. Whoever uses it draws again by `show`, and is told of changes by callbacks.

import * as api from "./api.js";
import {make} from "./elements.js";

const GRIP_PX = 7;     // how near the pointer must be to a tick or an edge
const STRIP_PX = 44;   // height of the thumbnails
const LANE_PX = 20;    // height of a lane of segments
const TICK_PX = 26;    // height of the ticks
const MIN_FRAMES = 8;  // shown at the highest zoom
const MAX_THUMBNAILS = 40;
const MAX_KEPT = 200;  // pictures of single frames
const [ZOOM_STEP, SCROLL_STEP] = [1.25, 0.15];

export class LabelTimeline {
  #view = [0, 1];  // first and last edge shown, in frames
  #grip = null;    // what is being dragged: {kind: "event"|"start"|"end"|"playhead", label, frame}
  #strip = null;   // the picture of evenly spread thumbnails
  #count = 1;      // how many it holds
  #kept = new Map(); // frame -> its own picture, fetched when the timeline is zoomed
  #content = {id: null, frames: 1, aspect: 1, events: [], segments: [], playhead: 0, selected: null, loop: null, draft: null};

  /** `onseek(frame)`, `onmove(grip, frame, isDone)`, `onselect(label)`; `colour(kind, name)` gives colours. */
  constructor({onseek, onmove, onselect, colour}) {
    Object.assign(this, {onseek, onmove, onselect, colour});
    this.canvas = make("canvas", {class: "marks-canvas"});
    this.element = make("div", {
      class: "marks", role: "slider", tabindex: "0", "data-timeline": true, "aria-label": "Timeline",
      "aria-valuemin": 0,
    }, this.canvas);
    this.canvas.addEventListener("pointerdown", (event) => this.#press(event));
    this.canvas.addEventListener("pointermove", (event) => this.#drag(event));
    this.canvas.addEventListener("pointerup", (event) => this.#release(event));
    this.canvas.addEventListener("pointercancel", (event) => this.#release(event));
    this.canvas.addEventListener("wheel", (event) => this.#wheel(event), {passive: false});
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.element);
  }

  close() {
    this.observer.disconnect();
  }

  show(content) {
    const isOther = content.id !== this.#content.id || content.frames !== this.#content.frames;
    this.#content = {...this.#content, ...content};
    if (isOther) this.#begin();
    this.element.setAttribute("aria-valuemax", this.#content.frames - 1);
    this.element.setAttribute("aria-valuenow", this.#content.playhead);
    this.element.setAttribute("aria-valuetext", `frame ${this.#content.playhead}`);
    this.#followPlayhead();
    this.draw();
  }

  get isZoomed() {
    return this.#view[1] - this.#view[0] < this.#content.frames;
  }

  /** Zoom in (a factor above 1) or out at a frame; by default at the playhead. */
  zoom(factor, frame = this.#content.playhead + 0.5) {
    const {frames} = this.#content;
    const [first, last] = this.#view;
    const width = Math.min(frames, Math.max(Math.min(MIN_FRAMES, frames), (last - first) / factor));
    const share = (frame - first) / (last - first);
    this.#look(frame - share * width, width);
  }

  fit() {
    this.#look(0, this.#content.frames);
  }

  #begin() {
    this.#view = [0, this.#content.frames];
    this.#strip = null;
    this.#kept.clear();
    const {id, frames, aspect} = this.#content;
    if (id === null || frames < 2) return; // not known yet
    const count = Math.max(1, Math.min(MAX_THUMBNAILS, frames, Math.round(this.#width / (STRIP_PX * aspect))));
    this.#count = count;
    const image = new Image();
    image.addEventListener("load", () => { if (this.#content.id === id) { this.#strip = image; this.draw(); } });
    image.src = api.address(`videos/${id}/strip.jpg?count=${count}&height=${STRIP_PX}`);
  }

  #look(first, width) {
    const start = Math.max(0, Math.min(this.#content.frames - width, first));
    this.#view = [start, start + width];
    this.draw();
  }

  #followPlayhead() {
    const [first, last] = this.#view;
    const {playhead} = this.#content;
    if (playhead < first || playhead + 1 > last) this.#look(playhead - (last - first) / 2, last - first);
  }

  get #width() {
    return this.element.clientWidth;
  }

  #x(edge) {
    const [first, last] = this.#view;
    return ((edge - first) / (last - first)) * this.#width;
  }

  /** The position of the pointer in frames: 2.5 is the middle of frame 2. */
  #position(event) {
    const [first, last] = this.#view;
    return first + (event.offsetX / Math.max(1, this.#width)) * (last - first);
  }

  get #lanes() {
    return assignLanes(this.#content.segments);
  }

  draw() {
    const lanes = this.#lanes;
    const count = Math.max(1, ...[...lanes.values()].map((lane) => lane + 1));
    const height = TICK_PX + STRIP_PX + count * LANE_PX + 4;
    const ratio = devicePixelRatio || 1;
    const [width, tall] = [Math.round(this.#width * ratio), Math.round(height * ratio)];
    if (this.canvas.width !== width || this.canvas.height !== tall) {
      [this.canvas.width, this.canvas.height] = [width, tall];
      this.canvas.style.height = `${height}px`;
    }
    if (!width) return;
    const context = this.canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.#width, height);
    this.#drawStrip(context);
    for (const [segment, lane] of lanes) this.#drawSegment(context, segment, lane);
    if (this.#content.draft) this.#drawDraft(context, this.#content.draft);
    for (const event of this.#content.events) this.#drawEvent(context, event, height);
    this.#drawPlayhead(context, height);
  }

  #drawStrip(context) {
    const {loop} = this.#content;
    const style = getComputedStyle(this.element);
    context.fillStyle = style.getPropertyValue("--raised");
    context.fillRect(0, TICK_PX, this.#width, STRIP_PX);
    if (this.#strip) this.#drawThumbnails(context);
    if (!loop) return;
    context.fillStyle = "rgba(163, 230, 53, 0.25)";
    context.fillRect(this.#x(loop.first), TICK_PX, this.#x(loop.last + 1) - this.#x(loop.first), STRIP_PX);
  }

  /** Fill the width with thumbnails of the frames there; zoomed in, with pictures of those very frames. */
  #drawThumbnails(context) {
    const {frames} = this.#content;
    const [first, last] = this.#view;
    const width = this.#strip.naturalWidth / this.#count;
    const slots = Math.max(1, Math.round(this.#width / width));
    context.globalAlpha = 0.75;
    for (let slot = 0; slot < slots; slot += 1) {
      const frame = Math.min(frames - 1, Math.floor(first + ((slot + 0.5) / slots) * (last - first)));
      const picture = this.isZoomed ? this.#fetch(frame) : null;
      const place = [(slot * this.#width) / slots, TICK_PX, this.#width / slots, STRIP_PX];
      if (picture) context.drawImage(picture, ...place);
      else context.drawImage(this.#strip, Math.floor((frame * this.#count) / frames) * width, 0, width, STRIP_PX, ...place);
    }
    context.globalAlpha = 1;
  }

  /** The picture of one frame; null until it is there. */
  #fetch(frame) {
    if (!this.#kept.has(frame)) {
      const image = new Image();
      image.addEventListener("load", () => this.draw(), {once: true});
      image.src = api.address(`videos/${this.#content.id}/frames/${frame}.jpg?height=${STRIP_PX}`);
      this.#kept.set(frame, image);
      if (this.#kept.size > MAX_KEPT) this.#kept.delete(this.#kept.keys().next().value);
    }
    const image = this.#kept.get(frame);
    return image.complete && image.naturalWidth ? image : null;
  }

  #drawSegment(context, segment, lane) {
    const [left, right] = [this.#x(segment.start), this.#x(segment.end)];
    const top = TICK_PX + STRIP_PX + 3 + lane * LANE_PX;
    const isSelected = this.#content.selected === segment.id;
    context.fillStyle = this.colour("segment", segment.name);
    context.globalAlpha = isSelected ? 0.95 : 0.35 + 0.4 * segment.certainty;
    context.fillRect(left, top, Math.max(2, right - left), LANE_PX - 4);
    context.globalAlpha = 1;
    if (isSelected) outline(context, left, top, Math.max(2, right - left), LANE_PX - 4);
    context.save();
    context.beginPath();
    context.rect(left, top, Math.max(2, right - left), LANE_PX - 4);
    context.clip();
    write(context, segment.name, Math.max(left, 0) + 5, top + 12, "#0f1412");
    context.restore();
  }

  #drawDraft(context, start) {
    const [left, right] = [this.#x(start), this.#x(this.#content.playhead + 1)];
    context.strokeStyle = "#eef4f0";
    context.setLineDash([4, 3]);
    context.strokeRect(Math.min(left, right), TICK_PX + STRIP_PX + 3, Math.abs(right - left), LANE_PX - 4);
    context.setLineDash([]);
  }

  #drawEvent(context, event, height) {
    const x = this.#x(event.frame + 0.5);
    const isSelected = this.#content.selected === event.name;
    context.strokeStyle = context.fillStyle = this.colour("event", event.name);
    context.lineWidth = isSelected ? 4 : 2;
    context.setLineDash(!event.is_by_hand ? [5, 3] : []);
    context.beginPath();
    context.moveTo(x, 6);
    context.lineTo(x, TICK_PX + STRIP_PX);
    context.stroke();
    context.setLineDash([]);
    context.lineWidth = 1;
    context.beginPath();
    context.arc(x, 7, isSelected ? 6 : 4.5, 0, 7);
    context.fill();
    const text = !event.is_by_hand ? `${event.name} ${Math.round(100 * event.certainty)} %` : event.name;
    const isRight = x + 12 + context.measureText(text).width > this.#width;
    write(context, text, isRight ? x - 10 : x + 10, 12, context.fillStyle, isRight ? "right" : "left");
  }

  #drawPlayhead(context, height) {
    const [left, right] = [this.#x(this.#content.playhead), this.#x(this.#content.playhead + 1)];
    context.fillStyle = "rgba(238, 244, 240, 0.25)";
    context.fillRect(left, TICK_PX, Math.max(1, right - left), height - TICK_PX);
    context.fillStyle = "#eef4f0";
    context.fillRect((left + right) / 2 - 1, TICK_PX - 4, 2, height - TICK_PX + 4);
  }

  /** What lies under the pointer. */
  #find(event) {
    const {events, segments} = this.#content;
    if (event.offsetY > TICK_PX + STRIP_PX) return this.#findSegment(event, segments);
    const near = events
      .map((label) => ({kind: "event", label, away: Math.abs(this.#x(label.frame + 0.5) - event.offsetX)}))
      .filter(({away}) => away <= GRIP_PX)
      .sort((one, other) => one.away - other.away);
    return near[0] ?? null;
  }

  #findSegment(event, segments) {
    const lanes = this.#lanes;
    const lane = Math.floor((event.offsetY - TICK_PX - STRIP_PX - 3) / LANE_PX);
    for (const label of segments.filter((each) => lanes.get(each) === lane)) {
      const [left, right] = [this.#x(label.start), this.#x(label.end)];
      if (event.offsetX < left - GRIP_PX || event.offsetX > right + GRIP_PX) continue;
      if (Math.abs(event.offsetX - right) <= GRIP_PX) return {kind: "end", label};
      if (Math.abs(event.offsetX - left) <= GRIP_PX) return {kind: "start", label};
      return {kind: "bar", label};
    }
    return null;
  }

  #press(event) {
    if (event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.element.focus({preventScroll: true});
    const found = this.#find(event);
    this.#grip = found && found.kind !== "bar" ? found : {kind: "playhead", label: null};
    this.#grip.from = event.offsetX;
    this.onselect(found?.label ?? null);
    if (this.#grip.kind === "playhead") this.onseek(this.#clip(this.#position(event)));
    event.preventDefault();
  }

  #drag(event) {
    if (!this.#grip) {
      const kind = this.#find(event)?.kind;
      this.canvas.style.cursor = !kind ? "pointer" : kind === "bar" ? "default" : "ew-resize";
      return;
    }
    if (this.#grip.kind === "playhead") this.onseek(this.#clip(this.#position(event)));
    else if (this.#grip.frame !== undefined || Math.abs(event.offsetX - this.#grip.from) > 2) this.#move(event, false);
  }

  #release(event) {
    if (this.#grip && this.#grip.frame !== undefined) this.#move(event, true);
    else if (this.#grip?.kind === "event") this.onseek(this.#grip.label.frame);
    else if (this.#grip?.kind === "start") this.onseek(this.#grip.label.start);
    else if (this.#grip?.kind === "end") this.onseek(this.#grip.label.end - 1);
    this.#grip = null;
  }

  /** An event moves to the frame under the pointer, an edge to the nearest edge between frames. */
  #move(event, isDone) {
    const {kind, label} = this.#grip;
    const position = this.#position(event);
    const frame = kind === "event" ? this.#clip(position)
      : kind === "start" ? Math.max(0, Math.min(label.end - 1, Math.round(position)))
        : Math.min(this.#content.frames, Math.max(label.start + 1, Math.round(position)));
    this.#grip.frame = frame;
    this.onmove({kind, label}, frame, isDone);
  }

  #clip(position) {
    return Math.max(0, Math.min(this.#content.frames - 1, Math.floor(position)));
  }

  #wheel(event) {
    const [first, last] = this.#view;
    const steps = Math.sign(event.deltaY || event.deltaX);
    event.preventDefault();
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      this.#look(first + steps * SCROLL_STEP * (last - first), last - first);
    } else {
      this.zoom(ZOOM_STEP ** -steps, this.#position(event));
    }
  }
}

/** Give each segment the first lane in which nothing overlaps it. */
function assignLanes(segments) {
  const ends = [];
  const lanes = new Map();
  for (const segment of [...segments].sort((one, other) => one.start - other.start)) {
    const free = ends.findIndex((end) => end <= segment.start);
    const lane = free < 0 ? ends.length : free;
    ends[lane] = segment.end;
    lanes.set(segment, lane);
  }
  return lanes;
}

function outline(context, left, top, width, height) {
  context.strokeStyle = "#eef4f0";
  context.lineWidth = 2;
  context.strokeRect(left, top, width, height);
  context.lineWidth = 1;
}

function write(context, text, x, y, colour, align = "left") {
  context.fillStyle = colour;
  context.font = "12px system-ui, sans-serif";
  context.textAlign = align;
  context.fillText(text, x, y);
}

/** A small timeline that only shows: ticks and bars, paler the less certain. */
export function miniTimeline(video, colour) {
  const frames = Math.max(1, video.frames ?? 0, ...video.events.map((each) => each.frame + 1),
    ...video.segments.map((each) => each.end));
  const element = make("span", {class: "mini-timeline", "aria-hidden": "true"});
  const place = (label, kind, start, end) => {
    const mark = make("span", {class: `mini-${kind}`});
    mark.style.left = `${(100 * start) / frames}%`;
    if (kind === "segment") mark.style.width = `${(100 * (end - start)) / frames}%`;
    mark.style.backgroundColor = colour(kind, label.name);
    mark.style.opacity = !label.is_by_hand ? 0.25 + 0.75 * label.certainty : 1;
    element.append(mark);
  };
  for (const label of video.segments) place(label, "segment", label.start, label.end);
  for (const label of video.events) place(label, "event", label.frame + 0.5);
  return element;
}
