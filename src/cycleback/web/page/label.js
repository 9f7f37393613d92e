// Label: mark moments and segments of one video by hand, see them found in all others, and review those.

import * as api from "./api.js";
import {Clock} from "./clock.js";
import {button, clockTime, make} from "./elements.js";
import {FrameSource} from "./frames.js";
import {iconButton, relabel} from "./icons.js";
import {Review, listMoments, percent} from "./label-review.js";
import {LabelStore, makeKey} from "./label-store.js";
import {LabelTimeline, miniTimeline} from "./label-timeline.js";

export const title = "Label";

const AROUND = 12; // frames on both sides of an event that loop
const SPEEDS = [0.1, 0.25, 0.5, 1, 2];
const STATES = {given: "from the data set", labelled: "by hand", suggested: "suggested", none: "no labels"};

export function mount(element, studio) {
  const view = new LabelView(studio);
  element.append(view.element);
  return () => view.close();
}

class LabelView {
  #source = null;
  #removeKeys = () => {};
  #removeListeners = [];
  #rows = new Map();   // id -> {text, row} of the list of videos
  #dragged = null;     // {kind, label, frame} while an edge moves
  #begun = null;       // first frame of a segment whose end is not marked yet
  #renamed = null;     // {kind, name} while its new name is typed
  #isUndoing = false;  // until the server has answered: the review then shows what was undone

  constructor(studio) {
    Object.assign(this, {studio, id: null, selected: null, mode: "mark", frames: 1, aspect: 1});
    this.store = LabelStore.of(studio);
    this.clock = new Clock();
    this.clock.isRepeating = false;
    this.timeline = new LabelTimeline({
      onseek: (frame) => { this.clock.pause(); this.clock.seek(frame); },
      onmove: (grip, frame, isDone) => this.#drag(grip, frame, isDone),
      onselect: (label) => this.#select(label),
      colour: (kind, name) => this.store.colour(kind, name),
    });
    this.review = new Review(studio, this.store, {onedit: (id, frame) => this.#edit(id, frame)});
    this.#build();
    this.clock.listeners.add((frame) => this.#draw(frame));
    this.clock.watchers.add(() => this.#showPlaying());
    this.#removeListeners = [
      studio.listen("labels", () => this.#show()),
      studio.listen("project", () => this.#show()),
    ];
    this.onkey = (event) => this.#pressWithControl(event);
    document.addEventListener("keydown", this.onkey);
    this.#setMode("mark");
    this.#open(this.#firstVideo());
    this.store.watch();
  }

  close() {
    this.clock.pause();
    this.#source?.close();
    this.store.rest();
    this.review.close();
    this.timeline.close();
    this.#removeKeys();
    this.#removeListeners.forEach((remove) => remove());
    document.removeEventListener("keydown", this.onkey);
  }

  get video() {
    return this.store.video(this.id);
  }

  // ---- what is on the page

  #build() {
    this.canvas = make("canvas", {class: "label-picture"});
    this.modes = {
      mark: button("Mark", () => this.#setMode("mark")),
      review: button("Review", () => this.#setMode("review")),
    };
    this.hint = make("p", {class: "label-hint"});
    this.status = make("span", {class: "label-status", role: "status"});
    this.conflicts = make("div", {class: "label-conflicts"});
    this.progress = make("progress", {max: 1, value: 0, "aria-label": "Reviewed videos"});
    this.progressText = make("span", {class: "label-progress-text"});
    this.videos = make("ul", {class: "label-videos", "aria-label": "All videos"});
    this.mark = this.#buildMark();
    this.element = make("div", {class: "label-view"},
      make("header", {class: "label-head"},
        make("div", {class: "segmented"}, this.modes.mark, this.modes.review), this.hint, this.status),
      this.conflicts,
      make("div", {class: "label-main"}, this.mark, this.review.element),
      make("aside", {class: "label-side", "aria-label": "Labels of all videos"},
        make("div", {class: "label-progress"}, this.progressText, this.progress), this.videos, this.#buildFiles()));
  }

  #buildMark() {
    this.chooser = make("select", {"aria-label": "Video to label", onchange: () => this.#open(this.chooser.value)});
    this.stateText = make("span", {class: "chip"});
    this.acceptButton = button("Accept", () => this.#accept(), {class: "accent", title: "Accept these labels (Enter)"});
    this.clearButton = button("Clear", () => this.#clear(), {title: "Remove all labels of this video"});
    this.readout = make("span", {class: "readout"});
    this.names = make("div", {class: "label-names", role: "group", "aria-label": "Mark at this frame"});
    this.list = make("ul", {class: "label-list", "aria-label": "Labels of this video"});
    return make("section", {class: "label-mark", "aria-label": "Mark"},
      make("div", {class: "label-bar"}, this.chooser, this.stateText, this.acceptButton, this.clearButton, this.readout),
      make("div", {class: "label-stage"}, this.canvas),
      this.timeline.element, this.#buildControls(), this.names, this.list);
  }

  #buildControls() {
    this.playButton = iconButton("play", "Play (Space)", () => this.clock.toggle(), {class: "icon-button accent"});
    this.loopButton = button("Loop", () => this.#toggleLoop(), {class: "small", title: "Loop the chosen label (L)", "aria-pressed": "false"});
    this.undoButton = button("Undo", () => this.#undo(), {class: "small", title: "Undo (U)"});
    this.redoButton = button("Redo", () => this.store.act({type: "redo"}), {class: "small", title: "Redo (Y)"});
    const speed = make("select", {"aria-label": "Speed", class: "small", onchange: () => this.clock.setSpeed(Number(speed.value))},
      SPEEDS.map((each) => make("option", {value: each, selected: each === 1}, `${each}×`)));
    return make("div", {class: "label-controls"},
      iconButton("back", "Label before (,)", () => this.#jump(-1)),
      iconButton("left", "One frame back (←)", () => this.clock.step(-1)),
      this.playButton,
      iconButton("right", "One frame on (→)", () => this.clock.step(1)),
      iconButton("forward", "Next label (.)", () => this.#jump(1)),
      speed, this.loopButton, this.undoButton, this.redoButton,
      make("span", {class: "zoom"},
        button("−", () => this.timeline.zoom(1 / 1.6), {class: "small", "aria-label": "Zoom out", title: "Zoom out (-)"}),
        button("+", () => this.timeline.zoom(1.6), {class: "small", "aria-label": "Zoom in", title: "Zoom in (+)"}),
        button("Fit", () => this.timeline.fit(), {class: "small", title: "Show the whole video (0)"})));
  }

  #buildFiles() {
    const format = make("select", {"aria-label": "Format of the export"});
    const which = make("select", {"aria-label": "Which labels to export"},
      make("option", {value: "labelled"}, "by hand only"), make("option", {value: "all"}, "all, with certainty"));
    const file = make("input", {type: "file", "aria-label": "Import a label file", class: "label-file",
      onchange: () => this.#import(file)});
    api.get("labels/formats").then((formats) => {
      format.replaceChildren(...formats.map(({name, suffix}) => make("option", {value: name, "data-suffix": suffix}, name)));
    }).catch((error) => this.studio.say(error.message));
    return make("details", {class: "label-files"},
      make("summary", {}, "Export and import"),
      make("div", {class: "label-export"}, format, which,
        button("Export", () => this.#export(format, which.value))),
      make("label", {}, "Import ", file));
  }

  // ---- keys

  #setMode(mode) {
    this.mode = mode;
    this.clock.pause();
    this.element.dataset.mode = mode;
    for (const [name, each] of Object.entries(this.modes)) each.setAttribute("aria-pressed", String(name === mode));
    this.#removeKeys();
    const shared = [
      ["u", "Undo", () => this.#undo()],
      ["y", "Redo", () => this.store.act({type: "redo"})],
      ["v", "Switch between marking and review", () => this.#setMode(this.mode === "mark" ? "review" : "mark")],
    ];
    this.#removeKeys = this.studio.keys.addAll([...shared, ...(mode === "mark" ? this.#markKeys() : this.review.keys)]);
    document.activeElement?.blur?.(); // so that Enter and Space do what the hint says
    this.#show();
  }

  #markKeys() {
    const digits = [1, 2, 3, 4, 5, 6, 7, 8, 9].map((digit) =>
      [String(digit), "Mark an event at this frame", () => this.#markNumber(digit)]);
    return [
      ...digits,
      ["n", "Mark an event with a new name", () => this.#askName("event")],
      ...["i", "["].map((key) => [key, "Begin a segment at this frame", () => this.#beginSegment()]),
      ...["o", "]"].map((key) => [key, "End the segment with this frame", () => this.#endSegment()]),
      [" ", "Play or pause", () => this.clock.toggle()],
      ["ArrowLeft", "One frame back", () => this.clock.step(-1)],
      ["ArrowRight", "One frame on", () => this.clock.step(1)],
      ["Shift+ArrowLeft", "Ten frames back", () => this.clock.step(-10)],
      ["Shift+ArrowRight", "Ten frames on", () => this.clock.step(10)],
      ["Home", "First frame", () => this.clock.step(-1e9)],
      ["End", "Last frame", () => this.clock.step(1e9)],
      [",", "Label before", () => this.#jump(-1)],
      [".", "Next label", () => this.#jump(1)],
      ["a", "Move the chosen label one frame earlier", () => this.#nudge(-1)],
      ["d", "Move the chosen label one frame later", () => this.#nudge(1)],
      ["l", "Loop the chosen label", () => this.#toggleLoop()],
      ...["Delete", "Backspace"].map((key) => [key, "Delete the chosen label", () => this.#deleteSelected()]),
      ["r", "Rename the chosen label in all videos", () => this.#renameSelected()],
      ["Enter", "Accept suggested labels", () => this.#accept()],
      ...["+", "="].map((key) => [key, "Zoom in", () => this.timeline.zoom(1.6)]),
      ["-", "Zoom out", () => this.timeline.zoom(1 / 1.6)],
      ["0", "Show the whole video", () => this.timeline.fit()],
    ];
  }

  /** The shortcuts that everyone tries: Ctrl+Z, Ctrl+Shift+Z and Ctrl+Y. */
  #pressWithControl(event) {
    if (!(event.ctrlKey || event.metaKey) || event.target.matches?.("input, textarea")) return;
    const key = event.key.toLowerCase();
    if (key !== "z" && key !== "y") return;
    event.preventDefault();
    if (key === "y" || event.shiftKey) this.store.act({type: "redo"});
    else this.#undo();
  }

  // ---- one video

  #firstVideo() {
    const {project, reference, byId} = this.studio;
    return byId.has(reference) ? reference : project.videos[0]?.id ?? null;
  }

  async #open(id, frame = 0) {
    if (id === null || id === this.id) {
      if (id !== null) this.clock.seek(frame);
      return;
    }
    this.#source?.close();
    Object.assign(this, {id, selected: null, frames: 1});
    this.#begun = this.#dragged = null;
    this.clock.pause();
    this.canvas.removeAttribute("data-frame");
    this.#source = new FrameSource(this.studio, id);
    this.#show();
    try {
      const {times, width, height} = await this.studio.detail(id);
      if (this.id !== id) return;
      this.frames = times.length;
      this.aspect = width / height;
      this.clock.adopt(times, frame);
    } catch (error) {
      this.studio.say(error.message);
    }
    this.#show();
  }

  #edit(id, frame) {
    this.#setMode("mark");
    this.#open(id, frame);
  }

  async #draw(frame) {
    this.#showTime();
    const source = this.#source;
    try {
      if (source && await source.draw(this.canvas, frame)) this.canvas.dataset.frame = frame;
    } catch (error) {
      if (source === this.#source) this.studio.say(error.message);
    }
  }

  // ---- actions

  #act(action) {
    this.store.act({...action, video: this.id, is_draft: this.video.state === "suggested"});
  }

  #markNumber(digit) {
    const names = this.#namesOf("event");
    if (names[digit - 1]) this.#markEvent(names[digit - 1].name);
    else this.#askName("event");
  }

  #markEvent(name) {
    if (!name.trim() || this.id === null) return;
    this.#act({type: "set_event", name: name.trim(), frame: this.clock.frame});
    this.#select({name: name.trim()});
  }

  #beginSegment() {
    this.#begun = this.clock.frame;
    this.#show();
    this.studio.say("");
  }

  #endSegment() {
    if (this.#begun === null) {
      this.studio.say("mark the begin of the segment first: I or [");
      return;
    }
    const [name] = this.#namesOf("segment");
    if (name) this.#addSegment(this.segmentName ?? name.name);
    else this.#askName("segment");
  }

  #addSegment(name) {
    if (!name.trim() || this.#begun === null) return;
    const [start, last] = [this.#begun, this.clock.frame].sort((one, other) => one - other);
    const segment = {id: makeKey().slice(0, 8), name: name.trim(), start, end: last + 1};
    this.segmentName = segment.name;
    this.#begun = null;
    this.#act({type: "set_segment", segment});
    this.#select(segment);
  }

  #askName(kind) {
    const input = this.names.querySelector(`input[data-kind="${kind}"]`);
    input?.focus();
    input?.select();
  }

  #select(label) {
    this.selected = label ? label.id ?? label.name : null;
    this.#show();
  }

  get #chosen() {
    return listMoments(this.video).find(({label}) => (label.id ?? label.name) === this.selected)?.label ?? null;
  }

  #drag(grip, frame, isDone) {
    this.clock.pause();
    this.clock.seek(grip.kind === "end" ? frame - 1 : frame);
    this.#dragged = isDone ? null : {...grip, frame};
    if (isDone) this.#moveEdge(grip.kind, grip.label, frame);
    else this.#showTimeline();
  }

  #moveEdge(kind, label, frame) {
    if (kind === "event") this.#act({type: "set_event", name: label.name, frame});
    else this.#act({type: "set_segment", segment: movedSegment(label, kind, frame)});
  }

  /** Move the chosen event, or the edge of the chosen segment that is nearer to the playhead. */
  #nudge(step) {
    const label = this.#chosen;
    if (!label) {
      this.studio.say("choose a label first: , and . jump from one to the next");
      return;
    }
    if (label.frame !== undefined) {
      const frame = Math.max(0, Math.min(this.frames - 1, label.frame + step));
      this.#moveEdge("event", label, frame);
      this.clock.step(frame - this.clock.frame);
      return;
    }
    const isEnd = Math.abs(label.end - 1 - this.clock.frame) < Math.abs(label.start - this.clock.frame);
    const edge = isEnd ? Math.max(label.start + 1, Math.min(this.frames, label.end + step))
      : Math.max(0, Math.min(label.end - 1, label.start + step));
    this.#moveEdge(isEnd ? "end" : "start", label, edge);
    this.clock.step((isEnd ? edge - 1 : edge) - this.clock.frame);
  }

  #delete(label) {
    this.#act(label.id ? {type: "delete_segment", id: label.id} : {type: "delete_event", name: label.name});
    this.#select(null);
  }

  #deleteSelected() {
    const label = this.#chosen;
    if (label) this.#delete(label);
    else this.studio.say("choose a label first: , and . jump from one to the next");
  }

  #renameSelected() {
    const label = this.#chosen;
    if (label) this.#startRename(label.id ? "segment" : "event", label.name);
  }

  #startRename(kind, name) {
    this.#renamed = {kind, name};
    this.#showNames(true);
    this.names.querySelector("input.rename")?.select();
  }

  #endRename(newName) {
    const {kind, name} = this.#renamed ?? {};
    this.#renamed = null;
    if (name && newName.trim() && newName.trim() !== name) this.store.act({type: "rename", kind, name, new_name: newName.trim()});
    this.#showNames(true);
  }

  /** Jump to the next moment in a direction, and choose its label. */
  #jump(direction) {
    const moments = listMoments(this.video);
    const ahead = direction > 0 ? moments.find(({frame}) => frame > this.clock.frame)
      : moments.findLast(({frame}) => frame < this.clock.frame);
    if (!ahead) return;
    this.clock.step(ahead.frame - this.clock.frame);
    this.#select(ahead.label);
  }

  #toggleLoop() {
    if (this.clock.loop) {
      this.clock.setLoop(null);
      return;
    }
    const label = this.#chosen ?? this.video.segments.find(({start, end}) => start <= this.clock.frame && this.clock.frame < end);
    const center = label?.frame ?? this.clock.frame;
    if (label?.start !== undefined) this.clock.setLoop(label.start, label.end - 1);
    else this.clock.setLoop(center - AROUND, center + AROUND);
    this.clock.play();
  }

  #accept() {
    if (this.video.state === "suggested") this.store.accept(this.id);
  }

  #clear() {
    this.store.act({type: "clear", video: this.id});
  }

  #undo() {
    const {done} = this.store;
    if (!done) {
      this.studio.say("there is nothing to undo");
      return;
    }
    this.store.act({type: "undo"});
    this.#isUndoing = true;
  }

  async #import(input) {
    const [file] = input.files;
    if (!file) return;
    try {
      await this.store.upload(file);
    } catch (error) {
      this.studio.say(error.message);
    }
    input.value = "";
  }

  async #export(format, which) {
    const suffix = format.selectedOptions[0]?.dataset.suffix ?? "";
    try {
      const content = await api.getBytes(`labels/export?format=${format.value}&which=${which}`);
      const link = make("a", {href: URL.createObjectURL(new Blob([content])), download: `labels-${format.value}${suffix}`});
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    } catch (error) {
      this.studio.say(error.message);
    }
  }

  // ---- show

  #show() {
    this.#showHead();
    this.#showConflicts();
    this.#showVideos();
    if (this.mode === "review") {
      this.#followUndo();
      this.review.show();
      return;
    }
    this.#showBar();
    this.#showTimeline();
    this.#showNames();
    this.#showList();
    this.#showTime();
  }

  #followUndo() {
    if (!this.#isUndoing || this.store.waiting) return;
    this.#isUndoing = false;
    const {redo} = this.store.shown;
    if (redo?.video) this.review.open(redo.video);
  }

  #showHead() {
    const {shown} = this.store;
    const reviewed = shown.videos.filter(({state}) => state === "labelled" || state === "given").length;
    this.modes.review.textContent = shown.queue.length ? `Review (${shown.queue.length})` : "Review";
    this.hint.textContent = this.#chooseHint();
    this.progressText.textContent = `${reviewed} of ${this.studio.project.videos.length} reviewed`;
    this.progress.value = reviewed / Math.max(1, this.studio.project.videos.length);
    const {isOffline, waiting} = this.store;
    const changes = waiting === 1 ? "1 change is" : `${waiting} changes are`;
    this.status.textContent = isOffline ? `The server cannot be reached; ${changes} kept here and sent again.`
      : waiting ? "Saving…" : shown.is_updating ? "Saved. Updating the other videos…" : "All saved";
    this.status.classList.toggle("is-bad", isOffline);
    this.undoButton.disabled = !this.store.done;
    this.redoButton.disabled = !shown.redo;
  }

  #chooseHint() {
    const {shown} = this.store;
    if (this.mode === "review") return "Is each moment on the left the same as on the right? ← → moves it, Enter accepts, S skips, U undoes.";
    if (shown.problem) return `Your labels are kept, but not found in other videos: ${shown.problem}.`;
    if (this.#begun !== null) return `The segment begins at frame ${this.#begun}; go to its last frame and press O.`;
    if (!shown.names.length) return "Step to a key moment with ← and →, then type a name for it and press Enter.";
    if (this.video.state === "suggested") return "These labels were found from your others: correct what is wrong, then press Enter to accept.";
    return "Press a number to mark that event at this frame; then press V to review what was found in the other videos.";
  }

  #showConflicts() {
    this.conflicts.replaceChildren(...this.store.conflicts.map(({key, action}) => make("div", {class: "notice"},
      make("span", {}, `Another tab changed ${this.studio.byId.get(action.video)?.name ?? "the labels"} meanwhile. Yours: ${describe(action)}.`),
      make("span", {},
        button("Use mine", () => this.store.settle(key, true)), " ",
        button("Drop mine", () => this.store.settle(key, false))))));
  }

  #showBar() {
    const {videos} = this.studio.project;
    if (this.chooser.children.length !== videos.length || this.chooser.firstElementChild?.value !== videos[0]?.id) {
      this.chooser.replaceChildren(...videos.map(({id, name}) => make("option", {value: id}, name)));
    }
    this.chooser.value = this.id ?? "";
    this.stateText.textContent = STATES[this.video.state];
    this.stateText.dataset.state = this.video.state;
    this.acceptButton.hidden = this.video.state !== "suggested";
    this.clearButton.hidden = this.video.state !== "labelled" && this.video.state !== "given";
  }

  #showTimeline() {
    let {events, segments} = this.video;
    if (this.#dragged) {
      const {kind, label, frame} = this.#dragged;
      events = events.map((each) => (kind === "event" && each.name === label.name ? {...each, frame} : each));
      segments = segments.map((each) => (kind !== "event" && each.id === label.id
        ? {...each, ...movedSegment(each, kind, frame)} : each));
    }
    this.timeline.show({id: this.id, frames: this.frames, aspect: this.aspect, events, segments, playhead: this.clock.frame,
      selected: this.selected, loop: this.clock.loop, draft: this.#begun});
  }

  #showTime() {
    const {frame, times} = this.clock;
    this.readout.textContent = `frame ${frame} of ${Math.max(0, this.frames - 1)} · ${clockTime(times[frame] ?? 0, 2)}`;
    this.#showTimeline();
  }

  #showPlaying() {
    relabel(this.playButton, this.clock.playing ? "pause" : "play", this.clock.playing ? "Pause (Space)" : "Play (Space)");
    this.loopButton.setAttribute("aria-pressed", String(Boolean(this.clock.loop)));
    this.#showTimeline();
  }

  #namesOf(kind) {
    return this.store.shown.names.filter((each) => each.kind === kind);
  }

  /** Show the buttons of all names, unless a name is being typed there. */
  #showNames(isForced = false) {
    if (!isForced && this.names.contains(document.activeElement) && document.activeElement.matches("input")) return;
    const text = JSON.stringify([this.store.shown.names, this.#begun === null, this.#renamed]);
    if (!isForced && this.names.dataset.text === text) return;
    this.names.dataset.text = text;
    this.names.replaceChildren(
      ...this.#namesOf("event").map((each, index) => this.#nameButton(each, String(index + 1), () => this.#markEvent(each.name))),
      this.#nameInput("event", "New event name", (name) => this.#markEvent(name)),
      make("span", {class: "gap"}),
      button([make("kbd", {}, "I"), " Begin segment"], () => this.#beginSegment(), {title: "Begin a segment at this frame (I)"}),
      make("span", {class: "dim"}, make("kbd", {}, "O"), " ends it:"),
      ...this.#namesOf("segment").map((each) => this.#nameButton(each, "", () => this.#addSegment(each.name), this.#begun === null)),
      this.#nameInput("segment", "New segment name", (name) => this.#addSegment(name), this.#begun === null));
  }

  #nameButton({kind, name, colour}, key, action, isDisabled = false) {
    if (this.#renamed?.kind === kind && this.#renamed.name === name) return this.#renameInput(name);
    const dot = make("span", {class: "dot"});
    dot.style.backgroundColor = colour;
    return make("span", {class: "name-button"},
      make("button", {type: "button", disabled: isDisabled, onclick: action, "data-name": name, "data-kind": kind},
        key && Number(key) < 10 ? [make("kbd", {}, key), " "] : [], dot, " ", name),
      button("✎", () => this.#startRename(kind, name), {class: "small rename", "aria-label": `Rename ${name}`, title: "Rename in all videos (R)"}));
  }

  #nameInput(kind, label, action, isDisabled = false) {
    const input = make("input", {type: "text", maxlength: 80, placeholder: label.replace(" name", ""), "aria-label": label, "data-kind": kind, disabled: isDisabled});
    input.addEventListener("keydown", (event) => {
      if (event.key === "Escape") input.blur();
      if (event.key !== "Enter" || !input.value.trim()) return;
      const {value} = input;
      input.value = "";
      input.blur();
      action(value);
    });
    return input;
  }

  #renameInput(name) {
    const input = make("input", {type: "text", class: "rename", maxlength: 80, value: name, "aria-label": `New name for ${name}`});
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.#endRename(input.value);
      if (event.key === "Escape") this.#endRename("");
    });
    input.addEventListener("blur", () => { if (this.#renamed) this.#endRename(input.value); });
    return input;
  }

  #showList() {
    const {events, segments, state} = this.video;
    const times = this.clock.times;
    const row = (label, kind, text, frame) => {
      const dot = make("span", {class: "dot"});
      dot.style.backgroundColor = this.store.colour(kind, label.name);
      const isSelected = this.selected === (label.id ?? label.name);
      return make("li", {class: isSelected ? "is-selected" : null},
        button([dot, ` ${label.name} `, make("span", {class: "dim"}, text)],
          () => { this.clock.step(frame - this.clock.frame); this.#select(label); }, {class: "label-go", "aria-pressed": String(isSelected)}),
        !label.is_by_hand ? make("span", {class: "dim"}, percent(label.certainty)) : [],
        button("Delete", () => this.#delete(label), {class: "small", "aria-label": `Delete ${label.name}`}));
    };
    const at = (frame) => clockTime(times[Math.min(frame, times.length - 1)] ?? 0, 2);
    this.list.replaceChildren(
      ...events.map((each) => row(each, "event", `frame ${each.frame} · ${at(each.frame)}`, each.frame)),
      ...segments.map((each) => row(each, "segment", `frames ${each.start}–${each.end - 1}`, each.start)));
    this.list.dataset.state = state;
  }

  /** List all videos: those to review, the least certain first; then those without labels; then the others. */
  #showVideos() {
    const {queue} = this.store.shown;
    const place = new Map(queue.map((id, index) => [id, index]));
    const rank = ({state}) => (state === "suggested" ? 0 : state === "none" ? 1 : 2);
    const current = this.mode === "review" ? this.review.id : this.id;
    const videos = this.studio.project.videos.map(({id}) => this.store.video(id))
      .sort((one, other) => rank(one) - rank(other) || (place.get(one.id) ?? 0) - (place.get(other.id) ?? 0));
    const rows = videos.map((video) => this.#videoRow(video, video.id === current));
    rows.forEach((row, index) => { if (this.videos.children[index] !== row) this.videos.insertBefore(row, this.videos.children[index] ?? null); });
    while (this.videos.children.length > rows.length) this.videos.lastElementChild.remove();
  }

  #videoRow(video, isCurrent) {
    const text = JSON.stringify([video, isCurrent, this.store.shown.names, this.mode]);
    const known = this.#rows.get(video.id);
    if (known?.text === text) return known.row;
    const name = this.studio.byId.get(video.id)?.name ?? video.id;
    const about = video.state === "suggested" ? percent(video.certainty) : STATES[video.state];
    const row = make("li", {"data-id": video.id, "data-state": video.state},
      make("button", {type: "button", class: "label-video", "aria-current": isCurrent ? "true" : null,
        onclick: () => this.#choose(video)},
      make("span", {class: "name"}, name), make("span", {class: "about"}, about),
      miniTimeline(video, (kind, label) => this.store.colour(kind, label))));
    this.#rows.set(video.id, {text, row});
    return row;
  }

  #choose(video) {
    if (this.mode === "review" && video.state === "suggested") {
      this.review.open(video.id);
      this.#show();
    } else {
      this.#edit(video.id, video.events[0]?.frame ?? video.segments[0]?.start ?? 0);
    }
  }
}

function movedSegment({id, name, start, end}, kind, frame) {
  return kind === "start" ? {id, name, start: frame, end} : {id, name, start, end: frame};
}

/** An action in a few words. */
function describe(action) {
  if (action.type === "set_event") return `${action.name} at frame ${action.frame}`;
  if (action.type === "set_segment") return `${action.segment.name} from frame ${action.segment.start} to ${action.segment.end - 1}`;
  return action.type.replace("_", " ");
}
