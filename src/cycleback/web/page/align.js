// The view "Align": the similarity of two videos, the path through it, and pins that correct the path.

import * as api from "./api.js";
import {button, make} from "./elements.js";
import {FrameSource} from "./frames.js";
import {Matrix, confidenceColour} from "./matrix.js";
import {pinsOf} from "./pins.js";
import {Strip} from "./thumbnails.js";

export const title = "Align";

const REST_MS = 80; // of the pointer, before exact frames are decoded
const ZOOM = 1.5;
const METHODS = [
  ["auto", "Auto", "leaves out what only one video shows before and after the action"],
  ["dtw", "Whole videos", "joins both first and both last frames"],
  ["nearest", "Nearest frames", "ignores the order of time"],
  ["subsequence", "A inside B", "finds all of the reference somewhere in the other video"],
  ["overlap", "Overlap", "joins the part that both show"],
];

export function mount(element, studio) {
  const view = new AlignView(element, studio);
  return () => view.close();
}

class AlignView {
  #removers = [];
  #asking = null; // AbortController of the pair in flight

  constructor(element, studio) {
    this.studio = studio;
    this.pins = pinsOf(studio);
    this.other = null;
    this.pair = null;
    this.sides = [];
    this.hovered = null; // cell [i, j] under the pointer
    this.chosen = null;  // cell that was clicked or moved to by keys: i is the frame of the clock
    this.#build(element);
    this.#listen();
    this.pins.load().catch((error) => studio.say(error.message));
    this.#choose();
  }

  close() {
    this.#removers.forEach((remove) => remove());
    this.#asking?.abort();
    clearTimeout(this.resting);
    this.matrix.close();
    this.sides.forEach((side) => side.close());
    this.strips.forEach((strip) => strip.close());
  }

  // Building

  #build(element) {
    this.#buildChoices();
    this.#buildPlot();
    this.#buildSide();
    this.root = make("section", {class: "align"}, [this.choices, this.plot, this.side]);
    element.append(this.root);
    this.strips = [new Strip(this.across, this.studio, "x"), new Strip(this.down, this.studio, "y")];
    this.matrix = new Matrix(this.canvas, {
      hover: (cell) => this.#hover(cell),
      jump: (cell) => this.#jump(cell),
      pin: (cell, moved) => this.#pin(cell, moved),
      change: () => this.#drawStrips(),
    });
  }

  #buildChoices() {
    const select = (name, options, act) => {
      const field = make("select", {name}, options);
      field.addEventListener("change", () => act(field.value));
      return field;
    };
    this.referenceField = select("reference", [], (id) => this.studio.follow(id));
    this.otherField = select("other", [], (id) => this.#compare(id));
    this.methodField = select("method", METHODS.map(([value, text]) => make("option", {value}, text)), () => this.#changeMethod());
    this.unitField = select("unit", [make("option", {value: "frames"}, "Frames"), make("option", {value: "seconds"}, "Seconds")],
      () => { this.#drawStrips(); this.#listPins(); });
    this.methodField.value = this.studio.method;
    const label = (text, field) => make("label", {}, [make("span", {}, text), field]);
    const zoom = make("div", {class: "zoom", role: "group", "aria-label": "Zoom"}, [
      button("+", () => this.matrix.zoom(ZOOM), {"aria-label": "Zoom in", title: "Zoom in (+)"}),
      button("−", () => this.matrix.zoom(1 / ZOOM), {"aria-label": "Zoom out", title: "Zoom out (−)"}),
      button("Fit", () => this.matrix.fit(), {title: "Show everything (0)"}),
    ]);
    this.note = make("span");
    const scale = make("span", {class: "scale"}, ["unsure", make("i", {}), "sure"]);
    this.choices = make("div", {class: "choices"}, [
      label("Reference", this.referenceField), label("Compare with", this.otherField),
      label("Method", this.methodField), label("Axes", this.unitField), zoom, make("p", {class: "note"}, [this.note, scale]),
    ]);
  }

  #buildPlot() {
    this.canvas = make("canvas", {
      class: "matrix", tabindex: "0", role: "application", "aria-describedby": "align-help",
      "aria-label": "Similarity of both videos. Arrow keys move the cell, P pins it.",
    });
    this.across = make("canvas", {class: "across", "aria-hidden": "true"});
    this.down = make("canvas", {class: "down", "aria-hidden": "true"});
    this.empty = make("p", {class: "empty", hidden: true});
    const frame = make("div", {class: "frame"}, [this.canvas, this.empty]);
    this.plot = make("div", {class: "plot"}, [make("div", {class: "corner"}), this.across, this.down, frame]);
  }

  #buildSide() {
    const preview = () => {
      const canvas = make("canvas", {width: "160", height: "120"});
      const caption = make("figcaption");
      return {canvas, caption, figure: make("figure", {}, [canvas, caption])};
    };
    this.previews = [preview(), preview()];
    this.here = make("p", {class: "here", "aria-live": "polite"});
    this.play = button("Play", () => this.studio.clock.toggle(), {title: "Space"});
    this.pinHere = button("Pin", () => this.#pin(this.#cell(), null), {title: "P", class: "accent"});
    this.undo = button("Undo", () => this.pins.undo(), {title: "Undo the last change of pins"});
    this.rows = make("ul", {class: "pins"});
    const download = make("a", {href: api.address("pins.csv"), download: "pins.csv"}, "pins.csv");
    const help = make("p", {id: "align-help", class: "note"},
      "Drag the path to where it belongs: the alignment then runs through that pin. Click to go to a moment. "
      + "Drag elsewhere to move the picture, scroll or pinch to zoom. With the keyboard: arrows move the cell "
      + "(Shift: by ten), P pins it, Delete takes its pin away, Escape returns to the path.");
    this.side = make("div", {class: "side"}, [
      make("div", {class: "previews"}, this.previews.map(({figure}) => figure)),
      make("div", {class: "facts"}, [this.here, make("div", {class: "row"}, [this.play, this.pinHere])]),
      make("div", {class: "list"}, [make("div", {class: "row"}, [make("h2", {}, "Pins"), this.undo, download]), this.rows, help]),
    ]);
  }

  #listen() {
    const {studio} = this;
    const {clock} = studio;
    const tick = () => this.#tick();
    const watch = () => { this.play.textContent = clock.playing ? "Pause" : "Play"; };
    clock.listeners.add(tick);
    clock.watchers.add(watch);
    watch();
    this.canvas.addEventListener("keydown", (event) => this.#key(event));
    this.#removers.push(
      () => clock.listeners.delete(tick),
      () => clock.watchers.delete(watch),
      ...["project", "shown", "reference"].map((what) => studio.listen(what, () => this.#choose())),
      studio.listen("pins", () => this.#load()),
      studio.listen("alignment", () => { if (this.pair?.revision && studio.revision !== this.pair.revision) this.#load(); }),
      studio.keys.addAll([
        [" ", "Play or pause", () => clock.toggle()],
        ["ArrowLeft", "One frame back or forward", () => clock.step(-1)],
        ["ArrowRight", "One frame back or forward", () => clock.step(1)],
        ["Shift+ArrowLeft", "Ten frames back or forward", () => clock.step(-10)],
        ["Shift+ArrowRight", "Ten frames back or forward", () => clock.step(10)],
        ["p", "Pin the cell under the pointer, or the chosen one", () => this.#pin(this.#cell(), null)],
        ["+", "Zoom in", () => this.matrix.zoom(ZOOM)],
        ["-", "Zoom out", () => this.matrix.zoom(1 / ZOOM)],
        ["0", "Show the whole matrix", () => this.matrix.fit()],
      ]),
    );
  }

  // The pair

  /** Offer the videos of the project and keep the choice where it still makes sense. */
  #choose() {
    const {studio} = this;
    const videos = studio.project.videos;
    const {reference} = studio;
    const others = videos.filter((video) => video.id !== reference);
    const known = others.some((video) => video.id === this.other);
    if (!known) this.other = studio.shown.find((id) => id !== reference) ?? others[0]?.id ?? null;
    const options = (list) => list.map((video) => make("option", {value: video.id}, video.name));
    this.referenceField.replaceChildren(...options(videos));
    this.otherField.replaceChildren(...options(others));
    this.referenceField.value = reference ?? "";
    this.otherField.value = this.other ?? "";
    this.#open();
  }

  #compare(id) {
    this.other = id;
    if (!this.studio.shown.includes(id)) this.studio.choose([...this.studio.shown, id]);
    this.#open();
  }

  #changeMethod() {
    this.studio.method = this.methodField.value; // the player follows it
    this.studio.realign();
    this.#load();
  }

  /** Decode two other videos, then ask for their alignment. */
  #open() {
    const ids = [this.studio.reference, this.other];
    if (ids.includes(null)) {
      this.#explain("Add a second video to compare with the reference.");
      return;
    }
    if (this.sides.map((side) => side.id).join() !== ids.join()) {
      this.sides.forEach((side) => side.close());
      this.sides = ids.map((id) => new FrameSource(this.studio, id));
      this.strips.forEach((strip, n) => strip.show(ids[n]).catch((error) => this.studio.say(error.message)));
      this.chosen = this.pair = null;
    }
    this.#load();
  }

  async #load() {
    const [a, b] = [this.studio.reference, this.other];
    if (a === null || b === null) return;
    this.#asking?.abort();
    const request = this.#asking = new AbortController();
    this.note.textContent = "Aligning…";
    this.#loadMatrix(a, b, request.signal).catch(() => {}); // what is wrong is told below
    try {
      const pair = await api.get(`pairs/${a}/${b}?method=${this.methodField.value}`, {signal: request.signal});
      await this.#adopt(pair, request.signal);
    } catch (error) {
      if (request.signal.aborted) return;
      this.pair = null;
      this.#explain(error.message);
      this.#listPins();
    }
  }

  /** Show the similarity of two videos until their alignment is there: that of long ones takes a while. */
  async #loadMatrix(a, b, signal) {
    if (this.pair) return; // the path before stays until the new one is there
    const matrix = await api.get(`pairs/${a}/${b}/matrix`, {signal});
    if (!this.pair) await this.#adopt({...matrix, frames: [], confidence: [], matched: [], path: []}, signal, () => !this.pair);
  }

  async #adopt(pair, signal, isWanted = () => true) {
    const details = await Promise.all([this.studio.detail(pair.a), this.studio.detail(pair.b)]);
    if (signal.aborted || !isWanted()) return;
    this.pair = {...pair, times: details.map(({times}) => times)};
    this.#explain("");
    this.#show();
  }

  #explain(text) {
    this.empty.textContent = text;
    this.empty.hidden = !text;
    this.plot.classList.toggle("is-empty", Boolean(text));
  }

  #show() {
    this.matrix.pins = this.pins.between(this.pair.a, this.pair.b);
    this.matrix.playhead = this.#playhead();
    this.matrix.show(this.pair);
    if (this.pair.frames.length) this.note.textContent = this.#summarize();
    this.#listPins();
    this.#drawStrips();
    this.#tick();
    this.#look(this.#cell());
  }

  #summarize() {
    const {cost, confidence, matched} = this.pair;
    const used = confidence.filter((_, i) => matched[i]);
    const mean = used.reduce((sum, value) => sum + value, 0) / Math.max(1, used.length);
    const [, name, about] = METHODS.find(([value]) => value === this.methodField.value);
    const verdict = this.pair.verdict.replace(/^v/, "V");
    return `${verdict}. ${name} ${about}. Mean confidence ${mean.toFixed(2)}, mean cost ${cost.toPrecision(3)}.`;
  }

  #playhead() {
    return Math.min(this.studio.clock.frame, (this.pair?.size[0] ?? 1) - 1);
  }

  // Pins

  async #pin(cell, moved) {
    if (!this.pair || !cell) return;
    const {a, b} = this.pair;
    const isSaved = await this.pins.add(a, cell[0], b, cell[1], {instead: moved});
    if (isSaved) this.#jump(cell);
    else this.#load(); // show the path as it is
  }

  #removePin([i, j]) {
    return this.pins.remove(this.studio.reference, i, this.other, j);
  }

  #listPins() {
    const rows = this.pins.between(this.studio.reference, this.other).map((pin) => make("li", {}, [
      button(`${this.#tell(0, pin[0])} ↔ ${this.#tell(1, pin[1])}`, () => this.#visit(pin), {class: "quiet"}),
      button("Delete", () => this.#removePin(pin), {"aria-label": `Delete pin ${pin[0]} to ${pin[1]}`}),
    ]));
    const elsewhere = this.pins.list.length - rows.length;
    if (elsewhere) rows.push(make("li", {class: "note"}, `${elsewhere} more between other videos`));
    if (!rows.length) rows.push(make("li", {class: "note"}, "None yet."));
    this.rows.replaceChildren(...rows);
    this.undo.disabled = !this.pins.canUndo;
  }

  #visit(pin) {
    if (!this.pair) return;
    this.matrix.reveal(pin);
    this.#jump(pin);
  }

  /** A frame of a video in the chosen unit. */
  #tell(side, frame) {
    if (this.unitField.value === "seconds" && this.pair) return `${this.pair.times[side][frame].toFixed(2)} s`;
    return `frame ${frame}`;
  }

  // Looking

  /** The cell that is looked at: under the pointer, chosen, or the one the player shows. */
  #cell() {
    return this.hovered ?? this.chosen ?? this.#playing();
  }

  #hover(cell) {
    this.hovered = cell;
    this.#look(this.#cell());
  }

  /** Choose a cell; the player goes to its moment. */
  #jump(cell) {
    this.chosen = cell;
    this.studio.clock.pause();
    this.studio.clock.seek(cell[0]);
    this.#look(this.#cell());
  }

  /** The pair of frames that the player shows now. */
  #playing() {
    if (!this.pair) return null;
    const frame = this.#playhead();
    return [frame, this.pair.frames[frame] ?? 0];
  }

  #tick() {
    if (!this.pair) return;
    if (this.chosen?.[0] !== this.studio.clock.frame) this.chosen = null; // the player moved on
    this.matrix.playhead = this.#playhead();
    this.matrix.chosen = this.chosen;
    this.matrix.draw();
    if (!this.hovered) this.#look(this.#cell());
  }

  /** Show both frames of a cell: thumbnails at once, the exact frames when the pointer rests. */
  #look(cell) {
    if (!this.pair || !cell) return;
    clearTimeout(this.resting);
    const isExact = this.studio.clock.playing;
    cell.forEach((frame, side) => {
      const {canvas, caption} = this.previews[side];
      if (!isExact && !this.sides[side].has(frame)) this.strips[side].paint(canvas, frame);
      const {name} = this.studio.byId.get(side ? this.pair.b : this.pair.a) ?? {name: ""};
      caption.textContent = `${name} · frame ${frame} · ${this.pair.times[side][frame].toFixed(2)} s`;
    });
    this.resting = setTimeout(() => this.#drawExact(cell), isExact ? 0 : REST_MS);
    this.#describe(cell);
    this.pinHere.textContent = `Pin ${cell[0]} ↔ ${cell[1]}`;
  }

  #drawExact(cell) {
    cell.forEach((frame, side) => {
      this.sides[side].draw(this.previews[side].canvas, frame).then(
        (isDrawn) => { if (isDrawn) this.previews[side].canvas.dataset.frame = frame; },
        (error) => this.studio.say(error.message),
      );
    });
  }

  #describe([i, j]) {
    const {confidence, matched, frames} = this.pair;
    if (!frames.length) {
      this.here.textContent = "Aligning…";
      return;
    }
    const place = j === frames[i] ? "On the path" : `Off the path, which shows frame ${frames[i]} here`;
    const trust = matched[i] ? `confidence ${confidence[i].toFixed(2)}` : "left out, since only one video shows this";
    this.here.textContent = `${place}; ${trust}.`;
    this.here.style.borderColor = matched[i] ? confidenceColour(confidence[i]) : "";
  }

  #drawStrips() {
    if (!this.matrix?.pair || !this.pair) return;
    const {view} = this.matrix;
    const unit = this.unitField.value;
    this.strips[0].draw(view.x, view.width, {unit, times: this.pair.times[0]});
    this.strips[1].draw(view.y, view.height, {unit, times: this.pair.times[1]});
  }

  // Keys

  #key(event) {
    if (!this.pair || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = event.shiftKey ? 10 : 1;
    const moves = {ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step]};
    const acts = {Delete: () => this.#deleteHere(), Backspace: () => this.#deleteHere(), Escape: () => this.#release()};
    const act = moves[event.key] ? () => this.#move(...moves[event.key]) : acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  #move(di, dj) {
    const [i, j] = this.chosen ?? this.#playing();
    const [frames, others] = this.pair.size;
    const cell = [Math.max(0, Math.min(frames - 1, i + di)), Math.max(0, Math.min(others - 1, j + dj))];
    this.hovered = this.matrix.cell = null;
    this.matrix.reveal(cell);
    this.#jump(cell);
  }

  /** Give up a drag, or the chosen cell. */
  #release() {
    if (!this.matrix.isDragging) this.chosen = null;
    this.matrix.cancel();
    this.#tick();
  }

  #deleteHere() {
    const [i, j] = this.#cell();
    const pin = this.pins.between(this.pair.a, this.pair.b).find((each) => each[0] === i && each[1] === j);
    if (pin) this.#removePin(pin);
    else this.studio.say(`no pin at ${i} ↔ ${j}; choose one in the list first`);
  }
}
