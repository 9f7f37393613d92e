// The player: several videos at the pace of one, frame by frame.
//
// The clock says which frame of the reference it is; each video shows the frame that belongs to it. All
// videos are decoded first and painted together, so that what stands side by side is one moment. On a slow
// machine the clock waits for the pictures: playing slows down, but no video runs ahead of another.

import * as api from "./api.js";
import {Voice} from "./audio.js";
import {make} from "./elements.js";
import {icon, iconButton, relabel} from "./icons.js";
import {pinsOf} from "./pins.js";
import {Tile} from "./tile.js";
import {Timeline} from "./timeline.js";

export const title = "Play";

const SPEEDS = [0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 4];
const PATIENCE_MS = 250;  // how long all videos wait for the slowest one
const HOLD_MS = 50;       // the clock waits for pictures that are later than this
const REST_MS = 150;      // after the playhead stops, decode what comes next
const CAPTION = 44;       // pixels below a picture, as in style.css
const GAP = 8;

export function mount(element, studio) {
  const player = new Player(element, studio);
  return () => player.close();
}

class Player {
  #removers = [];
  #isStale = false;   // the screen does not show the clock's frame
  #isPainting = false;
  #since = 0;         // when the decoding of the pictures for the screen began
  #resting = 0;
  #isClosed = false;

  constructor(element, studio) {
    this.studio = studio;
    this.tiles = new Map(); // id -> Tile, in the order of the screen
    this.onion = {isOn: false, top: null, opacity: 0.5};
    this.voice = new Voice(studio);
    this.timeline = new Timeline(studio);
    this.pins = pinsOf(studio);
    this.#build(element);
    this.#listen();
    this.#arrange();
    this.#update();
    this.#loadMarks();
    this.#showPins();
    this.pins.load().catch((error) => studio.say(error.message));
  }

  #build(element) {
    this.notice = make("div", {class: "notice", role: "status", hidden: true});
    this.overlay = make("canvas", {class: "overlay", "aria-hidden": "true", hidden: true});
    this.stage = make("div", {class: "stage"});
    this.element = make("section", {class: "player", "aria-label": "Player"},
      this.notice, this.stage, make("div", {class: "transport"}, this.timeline.element, this.#buildControls()));
    element.replaceChildren(this.element);
    this.sizes = new ResizeObserver(() => this.#fit());
    this.sizes.observe(this.stage);
  }

  #buildControls() {
    const {clock} = this.studio;
    this.playButton = iconButton("play", "Play (space)", () => clock.toggle(), {class: "icon-button primary"});
    this.speed = make("select", {"aria-label": "Speed", title: "Speed", onchange: () => clock.setSpeed(Number(this.speed.value))},
      ...SPEEDS.map((speed) => make("option", {value: speed, selected: speed === clock.speed}, `${speed}×`)));
    this.repeat = iconButton("repeat", "Repeat", () => clock.setRepeating(!clock.isRepeating));
    return make("div", {class: "controls", role: "group", "aria-label": "Controls"},
      make("span", {class: "group"},
        iconButton("back", "One frame back (←)", () => clock.step(-1)), this.playButton,
        iconButton("forward", "One frame forward (→)", () => clock.step(1)), this.speed, this.repeat),
      this.#buildModes(), this.#buildLoop(), this.#buildOnion(), this.#buildScreen());
  }

  #buildModes() {
    const choose = (isAligned) => make("button", {type: "button", onclick: () => this.studio.setAligned(isAligned),
      title: isAligned ? "All videos follow the reference (B)" : "Every video plays at its own pace (B)"},
    isAligned ? "Aligned" : "As filmed");
    [this.asFilmed, this.aligned] = [choose(false), choose(true)];
    return make("span", {class: "group segmented", role: "group", "aria-label": "Pace"}, this.asFilmed, this.aligned);
  }

  #buildLoop() {
    const {clock} = this.studio;
    this.loopChoice = make("select", {"aria-label": "Loop a phase", onchange: () => this.#loopMark(this.loopChoice.value)});
    this.loopOff = make("button", {type: "button", class: "small", "aria-label": "Clear the loop", onclick: () => clock.setLoop(null)}, "Clear");
    return make("span", {class: "group", role: "group", "aria-label": "Loop"},
      make("span", {class: "dim", "aria-hidden": "true"}, "Loop"),
      make("button", {type: "button", class: "small", title: "Loop from here ([)", "aria-label": "Loop in", onclick: () => this.#loopFrom()}, "In"),
      make("button", {type: "button", class: "small", title: "Loop up to here (])", "aria-label": "Loop out", onclick: () => this.#loopTo()}, "Out"),
      this.loopChoice, this.loopOff);
  }

  #buildOnion() {
    this.onionButton = make("button", {type: "button", "aria-pressed": "false", title: "Lay one video over another (O)",
      onclick: () => this.#toggleOnion()}, icon("layers"), " Onion skin");
    this.onionTop = make("select", {"aria-label": "Video on top", onchange: () => this.#setOnion({top: this.onionTop.value})});
    this.onionOpacity = make("input", {type: "range", min: 0, max: 1, step: 0.01, value: this.onion.opacity,
      "aria-label": "Opacity of the video on top", oninput: () => this.#setOnion({opacity: Number(this.onionOpacity.value)})});
    this.onionTools = make("span", {class: "group", hidden: true}, this.onionTop, this.onionOpacity);
    return make("span", {class: "group"}, this.onionButton, this.onionTools);
  }

  #buildScreen() {
    const saved = localStorage.getItem("studio columns") ?? "fit";
    this.columns = make("select", {"aria-label": "Videos per row", title: "Videos per row", onchange: () => {
      localStorage.setItem("studio columns", this.columns.value);
      this.#fit();
    }}, make("option", {value: "fit"}, "Fit"),
    ...[1, 2, 3, 4].map((count) => make("option", {value: count, selected: saved === String(count)}, `${count} / row`)));
    this.full = iconButton("full", "Full screen (F)", () => this.#toggleFullScreen());
    return make("span", {class: "group last"}, this.columns, this.full);
  }

  #listen() {
    const {studio} = this;
    const {clock} = studio;
    const onFrame = () => this.#show();
    const onState = () => this.#updateControls();
    clock.isHeld = () => this.#isPainting && performance.now() - this.#since > HOLD_MS;
    clock.listeners.add(onFrame);
    clock.watchers.add(onState);
    this.#removers.push(
      () => { clock.isHeld = () => false; },
      () => clock.listeners.delete(onFrame),
      () => clock.watchers.delete(onState),
      studio.listen("project", () => this.#arrange()),
      studio.listen("shown", () => this.#arrange()),
      studio.listen("reference", () => { this.#arrange(); this.#loadMarks(); this.#showPins(); }),
      studio.listen("alignment", () => this.#update()),
      studio.listen("offsets", () => this.#update()),
      studio.listen("jobs", () => this.#updateNotice()),
      studio.listen("labels", () => this.#loadMarks()),
      studio.listen("pins", () => this.#showPins()),
      studio.keys.addAll(this.#keys()));
  }

  #keys() {
    const {studio} = this;
    const {clock} = studio;
    const digits = Array.from({length: 9}, (_, index) => [String(index + 1), "Make that video on the screen the reference",
      () => { if (studio.shown[index]) studio.follow(studio.shown[index]); }]);
    return [
      [" ", "Play or pause", () => clock.toggle()],
      ["ArrowLeft", "One frame back or forward", () => clock.step(-1)],
      ["ArrowRight", "One frame back or forward", () => clock.step(1)],
      ["Shift+ArrowLeft", "Ten frames back or forward", () => clock.step(-10)],
      ["Shift+ArrowRight", "Ten frames back or forward", () => clock.step(10)],
      ["Home", "To the first or last frame", () => clock.seek(0)],
      ["End", "To the first or last frame", () => clock.seek(clock.last)],
      ["j", "Play backward, pause, play forward; again: faster", () => this.#shuttle(true)],
      ["k", "Play backward, pause, play forward; again: faster", () => clock.pause()],
      ["l", "Play backward, pause, play forward; again: faster", () => this.#shuttle(false)],
      ...digits,
      ["n", "Show the focused video one frame earlier or later", () => this.#nudgeFocused(-1)],
      ["m", "Show the focused video one frame earlier or later", () => this.#nudgeFocused(1)],
      ["p", "Pin the focused video as it is shown", () => this.#pinFocused()],
      ["b", "As filmed, or aligned", () => studio.setAligned(!studio.isAligned)],
      ["o", "Onion skin: lay one video over another", () => this.#toggleOnion()],
      ["[", "Loop from here, loop up to here", () => this.#loopFrom()],
      ["]", "Loop from here, loop up to here", () => this.#loopTo()],
      ["f", "Full screen", () => this.#toggleFullScreen()],
    ];
  }

  /** J and L: play that way; pressed again, twice as fast. */
  #shuttle(isBackward) {
    const {clock} = this.studio;
    if (clock.playing && clock.isBackward === isBackward) clock.setSpeed(clock.speed * 2);
    else if (clock.playing && clock.speed > 1) clock.setSpeed(1);
    clock.play({backward: isBackward});
  }

  // ---- videos on the screen

  /** Keep one tile per shown video, in their order. */
  #arrange() {
    const {studio} = this;
    for (const [id, tile] of this.tiles) {
      if (studio.shown.includes(id)) continue;
      if (this.voice.id === id) this.voice.choose(null);
      tile.close();
      this.tiles.delete(id);
    }
    this.tiles = new Map(studio.shown.map((id) => [id, this.tiles.get(id) ?? this.#makeTile(id)]));
    this.stage.replaceChildren(...[...this.tiles.values()].map((tile) => tile.element), this.overlay);
    if (!this.tiles.size) this.stage.append(make("p", {class: "empty"}, this.#describeEmptiness()));
    this.#updateOnion();
    this.#fit();
    this.#update();
  }

  #describeEmptiness() {
    return this.studio.project.videos.length ? "Choose videos from the list to see them here."
      : "There are no videos yet. Add some under “Start”.";
  }

  #makeTile(id) {
    return new Tile(this.studio, id, {
      follow: (each) => this.studio.follow(each),
      nudge: (each, frames) => this.#nudge(each, frames),
      pin: (each) => this.#pin(each),
      hear: (each) => this.#hear(each),
      changed: () => { this.#fit(); this.#show(); },
    });
  }

  /** Choose the columns that make the pictures largest. */
  #fit() {
    const tiles = this.#visibleTiles();
    const count = Math.max(1, tiles.length);
    const ratio = tiles.reduce((sum, tile) => sum + tile.ratio, 0) / count || 4 / 3;
    const {clientWidth: width, clientHeight: height} = this.stage;
    if (!width) return;
    const best = this.columns.value === "fit" ? bestColumns(count, ratio, width, height) : Number(this.columns.value);
    const cell = (width - GAP * (best - 1)) / best;
    const rows = Math.ceil(count / best);
    const room = (height - GAP * (rows - 1)) / rows - CAPTION;
    const isFitted = this.columns.value === "fit" && room > 60;
    const pictureHeight = isFitted ? Math.min(cell / ratio, room) : cell / ratio;
    this.stage.style.setProperty("--columns", best);
    this.stage.style.setProperty("--picture-height", `${Math.floor(pictureHeight)}px`);
    this.stage.style.setProperty("--cell", `${Math.floor(Math.min(cell, Math.max(pictureHeight * ratio, 150)))}px`);
  }

  #visibleTiles() {
    const tiles = [...this.tiles.values()];
    return this.onion.isOn ? tiles.filter((tile) => tile.id === this.studio.reference) : tiles;
  }

  /** Bring the clock's frame onto the screen: as soon as what is being painted now is done. */
  #show() {
    this.#isStale = true;
    this.timeline.point(this.studio.clock.frame);
    if (!this.#isPainting) this.#paint();
  }

  async #paint() {
    this.#isPainting = true;
    while (this.#isStale && !this.studio.isSettling && !this.#isClosed) {
      this.#isStale = false;
      this.#since = performance.now();
      const {frame, last, loop} = this.studio.clock;
      const wanted = [...this.tiles.values()].filter((tile) => tile.isReady)
        .map((tile) => [tile, this.studio.frameOf(tile.id, frame)]);
      for (const [tile] of wanted) tile.source.home = this.studio.frameOf(tile.id, loop?.first ?? 0);
      await withPatience(wanted.map(([tile, own]) => tile.load(own)), PATIENCE_MS);
      for (const [tile, own] of wanted) {
        tile.paint(own);
        tile.point(frame, last);
        if (tile.shown !== own) this.#isStale = true; // late: look again
      }
      this.#paintOnion();
    }
    this.#isPainting = false;
    this.#rest();
  }

  #rest() {
    clearTimeout(this.#resting);
    if (this.studio.clock.playing) return;
    this.#resting = setTimeout(() => { for (const tile of this.tiles.values()) tile.source.warm(); }, REST_MS);
  }

  // ---- state

  #update() {
    for (const tile of this.tiles.values()) tile.update({isHeard: this.voice.id === tile.id});
    this.#updateControls();
    this.#updateNotice();
    this.#show();
  }

  #updateControls() {
    const {clock, problem} = this.studio;
    const isAligned = this.studio.isAligned && !problem;
    if (clock.playing) relabel(this.playButton, "pause", "Pause (space)");
    else relabel(this.playButton, "play", "Play (space)");
    if (!SPEEDS.includes(clock.speed)) showOption(this.speed, clock.speed, `${clock.speed.toFixed(2)}×`);
    this.speed.value = clock.speed;
    this.repeat.setAttribute("aria-pressed", String(clock.isRepeating));
    this.aligned.setAttribute("aria-pressed", String(isAligned));
    this.asFilmed.setAttribute("aria-pressed", String(!isAligned));
    this.aligned.disabled = Boolean(problem);
    this.loopOff.hidden = !clock.loop;
    this.loopChoice.hidden = !this.timeline.marks.length;
    if (!clock.loop) this.loopChoice.value = "";
    this.timeline.draw();
    this.#rest();
  }

  /** Before the videos are embedded, offer to do it; meanwhile they play as filmed. */
  #updateNotice() {
    const {studio} = this;
    const isRunning = studio.jobs?.some((job) => job.state === "running");
    const isNeeded = Boolean(studio.problem) && studio.shown.length > 1;
    this.notice.hidden = !isNeeded;
    if (!isNeeded) return;
    const button = make("button", {type: "button", class: "accent", disabled: isRunning, onclick: () => this.#alignNow()},
      isRunning ? "Aligning…" : "Align now");
    this.notice.replaceChildren(
      make("span", {}, "These videos are not aligned yet, so each plays at its own pace. ", make("span", {class: "dim"}, studio.problem)),
      button);
  }

  async #alignNow() {
    try {
      await api.send("POST", "jobs", {kind: "quick"});
      this.studio.lookAtJobs?.();
    } catch (error) {
      this.studio.say(error.message);
    }
  }

  // ---- shifting and pinning one video

  /** The video that the keyboard or the pointer is on. */
  #focused() {
    const element = document.activeElement?.closest(".tile") ?? this.stage.querySelector(".tile:hover");
    const id = element?.dataset.id ?? null;
    if (id === null || id === this.studio.reference) {
      this.studio.say("first point at a video other than the reference, or move the focus to it");
      return null;
    }
    return id;
  }

  #nudgeFocused(frames) {
    const id = this.#focused();
    if (id !== null) this.#nudge(id, frames);
  }

  #nudge(id, frames) {
    this.studio.clock.pause();
    this.studio.shift(id, (this.studio.offsets.get(id) ?? 0) + frames);
  }

  #pinFocused() {
    const id = this.#focused();
    if (id !== null) this.#pin(id);
  }

  /** Turn what is seen now into a pin: these two frames belong together. */
  async #pin(id) {
    const {studio} = this;
    const {reference, clock: {frame}} = studio;
    if (await this.pins.add(reference, frame, id, studio.frameOf(id))) studio.shift(id, 0);
  }

  #showPins() {
    const {reference} = this.studio;
    this.timeline.pins = this.pins.list.flatMap(([a, i, b, j]) => (a === reference ? [i] : b === reference ? [j] : []));
    this.timeline.draw();
  }

  // ---- loop

  #loopFrom() {
    const {clock} = this.studio;
    clock.setLoop(clock.frame, Math.max(clock.frame, clock.loop?.last ?? clock.last));
  }

  #loopTo() {
    const {clock} = this.studio;
    clock.setLoop(Math.min(clock.frame, clock.loop?.first ?? 0), clock.frame);
  }

  #loopMark(index) {
    const mark = this.timeline.marks[Number(index)];
    if (index === "" || !mark) this.studio.clock.setLoop(null);
    else {
      this.studio.clock.setLoop(mark.first, mark.last);
      this.studio.clock.seek(mark.first);
    }
  }

  /** The labels of the reference: segments, and phases between events. */
  async #loadMarks() {
    const {reference} = this.studio;
    let labels = null;
    try {
      labels = await api.get("labels");
    } catch { /* a project without labels has no marks */ }
    if (reference !== this.studio.reference || this.#isClosed) return;
    this.timeline.marks = labels ? marksOf(labels, reference, this.studio.times.get(reference)?.length) : [];
    this.loopChoice.replaceChildren(make("option", {value: ""}, "Phase…"),
      ...this.timeline.marks.map(({name}, index) => make("option", {value: index}, name)));
    this.#updateControls();
  }

  // ---- sound, onion skin, full screen

  #hear(id) {
    this.voice.choose(this.voice.id === id ? null : id);
    this.#update();
  }

  #toggleOnion() {
    this.onion.isOn = !this.onion.isOn && this.tiles.size > 1;
    this.#updateOnion();
    this.#fit();
    this.#paintOnion();
  }

  #setOnion(change) {
    Object.assign(this.onion, change);
    this.#paintOnion();
  }

  #updateOnion() {
    const {studio, onion} = this;
    const others = studio.shown.filter((id) => id !== studio.reference);
    onion.isOn &&= others.length > 0;
    if (!others.includes(onion.top)) onion.top = others[0] ?? null;
    this.onionTop.replaceChildren(...others.map((id) => make("option", {value: id, selected: id === onion.top}, studio.byId.get(id).name)));
    this.onionButton.setAttribute("aria-pressed", String(onion.isOn));
    this.onionButton.disabled = !others.length;
    this.onionTools.hidden = !onion.isOn;
    this.columns.hidden = onion.isOn;
    this.stage.classList.toggle("is-onion", onion.isOn);
  }

  /** Lay the second video over the reference, at the same height and centred. */
  #paintOnion() {
    const {onion, overlay} = this;
    const [under, top] = [this.tiles.get(this.studio.reference), this.tiles.get(onion.top)];
    overlay.hidden = !onion.isOn || !under || !top;
    if (overlay.hidden) return;
    if (overlay.parentElement !== under.picture) under.picture.append(overlay);
    const [width, height] = [under.canvas.width, under.canvas.height];
    if (overlay.width !== width || overlay.height !== height) [overlay.width, overlay.height] = [width, height];
    const context = overlay.getContext("2d");
    context.clearRect(0, 0, width, height);
    const wide = height * top.canvas.width / top.canvas.height;
    context.drawImage(top.canvas, (width - wide) / 2, 0, wide, height);
    overlay.style.opacity = onion.opacity;
  }

  #toggleFullScreen() {
    if (document.fullscreenElement) document.exitFullscreen();
    else this.element.requestFullscreen?.();
  }

  close() {
    this.#isClosed = true;
    this.studio.clock.pause();
    clearTimeout(this.#resting);
    this.sizes.disconnect();
    this.timeline.close();
    this.voice.close();
    for (const remove of this.#removers) remove();
    for (const tile of this.tiles.values()) tile.close();
  }
}

/** Wait for all promises, but not longer than `limit` milliseconds. */
async function withPatience(promises, limit) {
  let timer = 0;
  const tired = new Promise((resolve) => { timer = setTimeout(resolve, limit); });
  await Promise.race([Promise.all(promises), tired]);
  clearTimeout(timer);
}

/** The number of columns with which `count` pictures of a width-to-height ratio become largest. */
export function bestColumns(count, ratio, width, height) {
  let best = {columns: 1, size: 0};
  for (let columns = 1; columns <= count; columns += 1) {
    const rows = Math.ceil(count / columns);
    const size = Math.min((width - GAP * (columns - 1)) / columns, ((height - GAP * (rows - 1)) / rows - CAPTION) * ratio);
    if (size > best.size) best = {columns, size};
  }
  return best.columns;
}

/** What can be looped in a video: its segments, and its phases from one event to the next. */
function marksOf({names, videos}, id, frames = 0) {
  const colours = new Map(names.map(({name, colour}) => [name, colour]));
  const labels = videos.find((video) => video.id === id);
  if (!labels) return [];
  const segments = labels.segments.map(({name, start, end}) => ({name, first: start, last: Math.max(start, end - 1)}));
  const phases = labels.events.map(({name, frame}, index) => {
    const next = labels.events[index + 1];
    return {name: next ? `${name} → ${next.name}` : `${name} → end`, first: frame, last: next ? next.frame : Math.max(frame, frames - 1),
      colour: colours.get(name)};
  });
  return [...segments, ...phases].map((mark) => ({colour: colours.get(mark.name) ?? "#38bdf8", ...mark}));
}

function showOption(select, value, text) {
  if (![...select.options].some((option) => Number(option.value) === value)) select.append(make("option", {value}, text));
}
