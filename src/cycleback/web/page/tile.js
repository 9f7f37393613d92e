// One video in the player: its picture, its place in the alignment, and its buttons.

import * as api from "./api.js";
import {make} from "./elements.js";
import {FrameSource} from "./frames.js";
import {iconButton, relabel} from "./icons.js";

/** Colours of confidence, from a guess to a clear match. */
const COLOURS = [[156, 60, 48], [214, 158, 46], [74, 190, 110]];
const UNMATCHED = [58, 68, 63];

/** The colour [r, g, b] of a confidence in 0..1. */
export function colourOf(confidence) {
  const place = Math.max(0, Math.min(1, confidence)) * (COLOURS.length - 1);
  const low = Math.min(COLOURS.length - 2, Math.floor(place));
  return COLOURS[low].map((value, index) => Math.round(value + (place - low) * (COLOURS[low + 1][index] - value)));
}

/** Paint one pixel per frame of the reference: how sure its match is, grey where it has none. */
export function paintConfidence(canvas, {confidence, matched}) {
  [canvas.width, canvas.height] = [Math.max(1, confidence.length), 1];
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, 1);
  confidence.forEach((value, index) => {
    const colour = matched?.[index] === false ? UNMATCHED : colourOf(value);
    image.data.set([...colour, 255], index * 4);
  });
  context.putImageData(image, 0, 0);
}

export class Tile {
  #target = -1;      // the frame that is being decoded
  #loading = null;   // promise, while a frame is being decoded

  /** `actions`: follow(id), nudge(id, frames), pin(id), hear(id), and changed() when it can show more. */
  constructor(studio, id, actions) {
    this.studio = studio;
    this.id = id;
    this.name = studio.byId.get(id).name;
    this.shown = -1;   // the frame on the screen
    this.isReady = false;
    this.ratio = 4 / 3;
    this.#build(actions);
    this.source = new FrameSource(studio, id, {onprogress: (share) => this.#showProgress(share)});
    this.source.opening.then(() => this.#open(actions), (error) => this.#fail(error));
    studio.detail(id).then(({has_audio: hasAudio}) => { this.hearButton.hidden = !hasAudio; }, () => {});
  }

  #build(actions) {
    const {id, name} = this;
    this.canvas = make("canvas", {width: 160, height: 120, "aria-hidden": "true"});
    this.note = make("span", {class: "note"}, "Loading…");
    this.picture = make("button", {type: "button", class: "picture", onclick: () => actions.follow(id)}, this.canvas, this.note);
    const still = api.address(`videos/${id}/frames/0.jpg?height=240`); // until the first picture is decoded
    this.picture.style.backgroundImage = `url("${still}")`;
    this.badge = make("span", {class: "badge"}, "Reference");
    this.number = make("span", {class: "number"});
    this.rest = make("span", {class: "rest"});
    this.strip = make("canvas", {class: "strip", width: 1, height: 1, "aria-hidden": "true"});
    this.head = make("span", {class: "head", "aria-hidden": "true"});
    this.hearButton = iconButton("mute", `Hear ${name}`, () => actions.hear(id), {hidden: true, "aria-pressed": "false"});
    this.offset = make("output", {class: "offset", "aria-label": `Shift of ${name} in frames`}, "0");
    this.nudges = make("span", {class: "nudges"},
      iconButton("left", `Show ${name} one frame earlier (N)`, () => actions.nudge(id, -1)), this.offset,
      iconButton("right", `Show ${name} one frame later (M)`, () => actions.nudge(id, 1)));
    this.pinButton = make("button", {type: "button", class: "small accent", hidden: true, onclick: () => actions.pin(id),
      title: "Keep this match: these two frames belong together (P)"}, "Pin this");
    this.element = make("article", {class: "tile", "data-id": id, "aria-label": name},
      this.picture, make("div", {class: "bar"}, this.strip, this.head),
      make("footer", {}, make("span", {class: "name", title: name}, name), this.badge,
        make("span", {class: "readout"}, this.number, this.rest),
        make("span", {class: "tools"}, this.pinButton, this.nudges, this.hearButton)));
  }

  #open(actions) {
    if (!this.source.width) return; // closed meanwhile
    this.isReady = true;
    this.ratio = this.source.width / this.source.height;
    this.note.hidden = true;
    actions.changed();
  }

  #fail(error) {
    this.isReady = false;
    this.note.hidden = false;
    this.note.textContent = error.message;
    this.element.classList.add("is-broken");
  }

  #showProgress(share) {
    this.note.hidden = false;
    this.note.textContent = share < 1 ? `Preparing the video: ${Math.round(100 * share)} %` : "Loading…";
  }

  /** Decode a frame. While an earlier one is still being decoded, wait for that one instead. */
  load(frame) {
    if (!this.#loading) {
      this.#target = frame;
      this.#loading = this.source.load(frame).catch((error) => this.#fail(error)).finally(() => { this.#loading = null; });
    }
    return this.#loading;
  }

  /** Paint a frame if it is decoded; a slow decoder shows the last one it was asked for. */
  paint(frame) {
    const ready = this.source.has(frame) ? frame : this.#target;
    if (ready === this.shown || !this.source.paint(this.canvas, ready)) return;
    if (this.shown < 0) this.picture.style.backgroundImage = "none";
    this.shown = ready;
    this.canvas.dataset.frame = ready;
    this.number.textContent = ready;
    this.rest.textContent = ` / ${this.source.frames - 1} · ${this.source.times[ready].toFixed(2)} s`;
  }

  /** Follow reference, alignment, shift and sound. */
  update({isHeard}) {
    const {studio, id, name} = this;
    const isReference = id === studio.reference;
    const match = studio.isAligned ? studio.alignment.get(id) : null;
    this.element.classList.toggle("is-reference", isReference);
    this.badge.hidden = !isReference;
    const label = isReference ? `${name}, the reference` : `Follow the pace of ${name}`;
    this.picture.setAttribute("aria-label", label);
    this.picture.title = isReference ? "All videos follow the pace of this one" : "Click: all videos follow the pace of this one";
    this.picture.setAttribute("aria-pressed", String(isReference));
    this.strip.hidden = !match;
    if (match) paintConfidence(this.strip, match);
    this.#updateShift(isReference, Boolean(match));
    this.hearButton.setAttribute("aria-pressed", String(isHeard));
    relabel(this.hearButton, isHeard ? "sound" : "mute", `Hear ${name}`);
  }

  #updateShift(isReference, isMatched) {
    const shift = this.studio.offsets.get(this.id) ?? 0;
    this.nudges.hidden = isReference;
    this.offset.textContent = shift > 0 ? `+${shift}` : String(shift).replace("-", "−");
    this.element.classList.toggle("is-shifted", shift !== 0);
    this.pinButton.hidden = isReference || !isMatched || shift === 0;
  }

  /** Move the playhead of the thin bar. */
  point(frame, last) {
    this.head.style.left = `${last ? 100 * frame / last : 0}%`;
  }

  close() {
    this.source.close();
    this.element.remove();
  }
}
