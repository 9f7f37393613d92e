// What all views share: the project, the chosen videos, the reference, the clock, and who wants to know.

import * as api from "./api.js";
import {Clock, frameAt} from "./clock.js";
import {Keys} from "./keys.js";

export const MAX_SHOWN = 16;
const FIRST_SHOWN = 4;
const MESSAGE_MS = 9000;

export class Studio extends EventTarget {
  #aligning = null; // AbortController of the request in flight
  #saying = 0;

  constructor() {
    super();
    this.project = {name: "", folder: "", videos: []};
    this.byId = new Map();      // id -> {id, name, action}
    this.details = new Map();   // id -> promise of details and presentation times
    this.times = new Map();     // id -> presentation times, as far as they are known
    this.shown = [];            // ids of the videos in the player, at most MAX_SHOWN
    this.reference = null;      // id of the video whose pace all follow
    this.alignment = new Map(); // id -> {frames, confidence, matched} per frame of the reference
    this.revision = null;       // of that alignment
    this.method = "auto";       // how videos are aligned
    this.problem = "";          // why there is no alignment, in one line
    this.isAligned = true;      // false: every video plays at its own pace from its own start
    this.isSettling = false;    // the alignment to a new reference is on its way
    this.offsets = new Map();   // id -> frames by which the user shifted it
    this.clock = new Clock();
    this.keys = new Keys();
  }

  /** Tell listeners: "project", "shown", "reference", "alignment", "pins", "labels", "embeddings", "offsets", "jobs". */
  tell(what, detail = null) {
    this.dispatchEvent(new CustomEvent(what, {detail}));
  }

  /** Call `action` with the detail of every such event; returns a function that ends it. */
  listen(what, action) {
    const listener = (event) => action(event.detail);
    this.addEventListener(what, listener);
    return () => this.removeEventListener(what, listener);
  }

  /** Show one line to the user; an empty one takes it away. */
  say(text) {
    const message = document.querySelector("#message");
    clearTimeout(this.#saying);
    message.textContent = text;
    message.hidden = !text;
    if (text) this.#saying = setTimeout(() => this.say(""), MESSAGE_MS);
  }

  async load() {
    this.project = await api.get("project");
    this.byId = new Map(this.project.videos.map((video) => [video.id, video]));
    if (!this.shown.length) this.#recall();
    const known = this.shown.filter((id) => this.byId.has(id));
    const playable = this.project.videos.filter((video) => !video.error);
    this.shown = known.length ? known : playable.slice(0, FIRST_SHOWN).map((video) => video.id);
    if (!this.shown.includes(this.reference)) this.reference = this.shown[0] ?? null;
    this.tell("project");
    this.#settle(this.clock.frame); // not awaited: the page is there before the alignment
  }

  /** Frames, size, rate and sound of a video, with `times`: the presentation time of each frame. */
  detail(id) {
    if (!this.details.has(id)) {
      const loading = this.#load(id);
      this.details.set(id, loading);
      loading.catch(() => this.details.delete(id)); // may be asked for again
    }
    return this.details.get(id);
  }

  async #load(id) {
    const [about, bytes] = await Promise.all([api.get(`videos/${id}`), api.getBytes(`videos/${id}/times`)]);
    const times = new Float64Array(bytes);
    this.times.set(id, times);
    return {...about, times};
  }

  /** Show these videos, in this order. */
  choose(ids) {
    this.shown = ids.slice(0, MAX_SHOWN);
    if (ids.length > MAX_SHOWN) this.say(`the player shows ${MAX_SHOWN} videos at most; take another one away first`);
    const hasReference = this.shown.includes(this.reference);
    const frame = hasReference ? this.clock.frame : this.frameOf(this.shown[0]);
    if (!hasReference) this.reference = this.shown[0] ?? null;
    this.#remember();
    this.tell("shown");
    if (!hasReference) this.tell("reference");
    this.#settle(frame);
  }

  /** Make a video the reference; by default the moment on the screen stays. A loop stays, too. */
  follow(id, frame = this.frameOf(id)) {
    if (id === this.reference && this.shown.includes(id)) {
      this.clock.seek(frame);
      return;
    }
    const {loop} = this.clock;
    const ownLoop = loop && {first: this.frameOf(id, loop.first), last: this.frameOf(id, loop.last)};
    if (!this.shown.includes(id)) this.shown = [id, ...this.shown].slice(0, MAX_SHOWN);
    this.reference = id;
    this.#remember();
    this.tell("reference");
    this.#settle(frame, ownLoop);
  }

  /** Open a view by its name. */
  open(name) {
    location.hash = name;
  }

  /** Switch between aligned videos and videos at their own pace. */
  setAligned(isAligned) {
    this.isAligned = isAligned;
    this.#remember();
    this.tell("alignment");
  }

  /** Shift a video by some frames against the alignment; 0 takes the shift away. */
  shift(id, frames) {
    if (frames) this.offsets.set(id, frames);
    else this.offsets.delete(id);
    this.tell("offsets", id);
  }

  /** The frame of a video that belongs to a frame of the reference. */
  frameOf(id, frame = this.clock.frame) {
    const times = this.times.get(id);
    if (!times?.length) return 0;
    const match = this.isAligned ? this.alignment.get(id) : null;
    const own = id === this.reference ? frame : match?.frames[frame] ?? frameAt(times, this.#secondsOf(frame));
    return Math.max(0, Math.min(times.length - 1, own + (this.offsets.get(id) ?? 0)));
  }

  /** The second of a video that belongs to a second of the reference; between frames, in between. */
  timeOf(id, time = this.clock.time) {
    const times = this.times.get(id);
    if (!times?.length) return 0;
    const {times: base} = this.clock;
    const frame = frameAt(base, time);
    const next = Math.min(base.length - 1, frame + 1);
    const share = next > frame ? Math.min(1, (time - base[frame]) / (base[next] - base[frame])) : 0;
    const [from, to] = [times[this.frameOf(id, frame)], times[this.frameOf(id, next)]];
    return from + share * (to - from);
  }

  #secondsOf(frame) {
    return this.clock.times[Math.min(frame, this.clock.last)];
  }

  /** Ask again for the alignment, after pins or embeddings changed. */
  realign() {
    return this.#settle(this.clock.frame);
  }

  /** Load what the shown videos need, then move clock and alignment to the reference together. */
  async #settle(frame, loop = null) {
    this.#aligning?.abort();
    const request = this.#aligning = new AbortController();
    const {reference} = this;
    if (reference === null) return;
    this.isSettling = true;
    const [detail, found] = await Promise.all([
      this.detail(reference).catch((error) => ({error})),
      this.#fetchAlignment(reference, request.signal),
    ]);
    if (request.signal.aborted) return;
    this.isSettling = false;
    Object.assign(this, found);
    if (detail.error) this.say(detail.error.message);
    else if (detail.times !== this.clock.times) this.clock.adopt(detail.times, frame, loop);
    this.tell("alignment");
  }

  async #fetchAlignment(reference, signal) {
    const others = this.shown.filter((id) => id !== reference);
    if (!others.length) return {alignment: new Map(), revision: null, problem: ""};
    try {
      const query = new URLSearchParams({reference, videos: others.join(","), method: this.method});
      const answer = await api.get(`alignment?${query}`, {signal});
      const alignment = new Map(answer.videos.map((each) => [each.id, {
        ...each,
        frames: Int32Array.from(each.frames),
        confidence: Float32Array.from(each.confidence ?? []),
      }]));
      return {alignment, revision: answer.revision, problem: ""};
    } catch (error) {
      return {alignment: new Map(), revision: null, problem: error.message};
    }
  }

  /** What a reload of the page should bring back, per project. */
  #remember() {
    const {shown, reference, isAligned} = this;
    localStorage.setItem(`studio ${this.project.folder}`, JSON.stringify({shown, reference, isAligned}));
  }

  #recall() {
    try {
      const {shown, reference, isAligned} = JSON.parse(localStorage.getItem(`studio ${this.project.folder}`)) ?? {};
      Object.assign(this, {shown: shown ?? [], reference: reference ?? null, isAligned: isAligned ?? true});
    } catch { /* written by an older page: begin anew */ }
  }
}
