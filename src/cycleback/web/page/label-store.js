// The labels of the project as this page knows them: what the server has, and what is still on its way there.
//
// Every action is kept in the browser until the server has written it down, and is sent again if no answer
// came. It has a key, so the server never does it twice. Another tab may have been faster: then the action is
// sent again if the other tab changed other videos, and shown as a conflict if it changed the same one.

import * as api from "./api.js";

const UPDATING_MS = 400; // between two looks at suggestions that are being made
const IDLE_MS = 5000;    // between two looks for changes by others
const RETRY_MS = [500, 1000, 2000, 4000];
const EMPTY = {revision: 0, is_updating: false, problem: null, names: [], videos: [], queue: [], undo: null, redo: null};

export class LabelStore {
  #saved = EMPTY;   // the last answer of the server
  #waiting;         // [{key, action, isTried}] not written yet, oldest first
  #inFlight = null; // the key that is being sent
  #sent = 0;        // how many requests were sent that change something
  #tries = 0;
  #timer = 0;
  #channel;
  #isWatched = false;

  constructor(studio) {
    this.studio = studio;
    this.shown = EMPTY;    // what the user sees: the answer of the server with the waiting actions applied
    this.byId = new Map(); // id -> labels of the video
    this.conflicts = [];   // [{key, action}] on videos that another tab changed first
    this.isOffline = false;
    this.isLoaded = false;
    const kept = this.#recall();
    this.#waiting = kept.filter((each) => !each.isConflict).map((each) => ({...each, isTried: true}));
    this.conflicts = kept.filter((each) => each.isConflict);
    this.#channel = new BroadcastChannel("cycleback labels");
    this.#channel.addEventListener("message", () => { if (this.#isWatched) this.#look(); });
  }

  /** The labels of a page: one for all views, because actions may still wait when a view is left. */
  static of(studio) {
    studio.labelStore ??= new LabelStore(studio);
    return studio.labelStore;
  }

  /** Follow the labels from now on. */
  watch() {
    this.#isWatched = true;
    this.#look();
  }

  /** Follow them no longer, except to send what waits. */
  rest() {
    this.#isWatched = false;
    this.#plan();
  }

  get waiting() {
    return this.#waiting.length;
  }

  /** The last thing done: what "undo" takes back. */
  get done() {
    return this.#waiting.at(-1)?.action ?? this.shown.undo;
  }

  video(id) {
    return this.byId.get(id) ?? {id, state: "none", events: [], segments: [], certainty: 1, frames: null};
  }

  colour(kind, name) {
    return this.shown.names.find((each) => each.kind === kind && each.name === name)?.colour ?? "#a9b8b0";
  }

  /** Do something: show it at once, keep it, send it. */
  act(action) {
    const last = this.#waiting.at(-1);
    if (last && !last.isTried && replaces(action, last.action)) last.action = action;
    else this.#waiting.push({key: makeKey(), action, isTried: false});
    this.#remember();
    this.#refresh();
    this.#send();
  }

  /** Take the labels that a video shows as its labels. */
  accept(id) {
    const {events, segments} = this.video(id);
    this.act({
      type: "accept",
      video: id,
      events: Object.fromEntries(events.map(({name, frame}) => [name, frame])),
      segments: segments.map(({id: own, name, start, end}) => ({id: own, name, start, end})),
    });
  }

  /** Send a conflicting action after all, or forget it. */
  settle(key, isWanted) {
    const chosen = this.conflicts.find((each) => each.key === key);
    this.conflicts = this.conflicts.filter((each) => each !== chosen);
    this.#remember(key);
    if (chosen && isWanted) this.act(chosen.action);
    else this.#refresh();
  }

  /** Upload a label file as one action. */
  async upload(file) {
    const content = await encode(file);
    const {revision} = this.#saved;
    this.#sent += 1;
    this.#take(await api.send("POST", "labels/import", {name: file.name, revision, key: makeKey(), content}));
    this.#channel.postMessage("changed");
  }

  /** Ask the server for the labels, and plan when to ask again. */
  async #look() {
    clearTimeout(this.#timer);
    const sent = this.#sent;
    if (this.#inFlight === null) {
      try {
        const answer = await api.get("labels");
        if (sent === this.#sent) this.#take(answer); // else it may be older than what is known now
      } catch (error) {
        this.#fail(error);
      }
    }
    if (!this.isOffline) this.#send();
    this.#plan();
  }

  #plan() {
    clearTimeout(this.#timer);
    if (!this.#isWatched && !this.#waiting.length) return;
    const retry = RETRY_MS[Math.min(this.#tries, RETRY_MS.length - 1)];
    const pause = this.isOffline ? retry : this.#saved.is_updating ? UPDATING_MS : IDLE_MS;
    this.#timer = setTimeout(() => this.#look(), pause);
  }

  #take(answer) {
    const isNew = JSON.stringify(answer) !== JSON.stringify(this.#saved);
    const wasAway = this.isOffline || !this.isLoaded;
    Object.assign(this, {isOffline: false, isLoaded: true});
    this.#tries = 0;
    this.#saved = answer;
    if (isNew || wasAway) this.#refresh();
    this.#plan();
  }

  /** A server that is away or broken will come back; what it refused, it refuses again. */
  #fail(error) {
    if (isRefused(error)) {
      this.studio.say(error.message);
      return;
    }
    this.#tries += 1;
    this.isOffline = true;
    this.#refresh();
  }

  /** Send the oldest waiting action; the next one follows when it is written down. */
  async #send() {
    const [step] = this.#waiting;
    if (this.#inFlight !== null || !this.isLoaded || !step) return;
    this.#inFlight = step.key;
    this.#sent += 1;
    step.isTried = true;
    try {
      const {key, action} = step;
      const answer = await api.send("POST", "labels", {revision: this.#saved.revision, key, action});
      this.#drop(step);
      this.#inFlight = null;
      this.#take(answer);
      this.#refresh();
      this.#channel.postMessage("changed");
    } catch (error) {
      if (error.status === 409) await this.#rebase(step);
      else if (isRefused(error)) this.#drop(step);
      this.#inFlight = null;
      if (error.status !== 409) this.#fail(error);
      this.#refresh();
    }
    if (this.isOffline) this.#plan();
    else this.#send();
  }

  /** Another tab was faster: look at what it changed. */
  async #rebase(step) {
    const before = this.#saved;
    try {
      this.#saved = await api.get("labels");
    } catch (error) {
      this.#fail(error);
      return;
    }
    if (step.action.type === "undo" || step.action.type === "redo") {
      this.#drop(step);
      this.studio.say(`another tab changed the labels meanwhile; ${step.action.type} again if you still want to`);
    } else if (!agree(before, this.#saved, step.action)) {
      this.conflicts.push({...step, isConflict: true});
      this.#drop(step);
    }
  }

  #drop(step) {
    this.#waiting = this.#waiting.filter((each) => each.key !== step.key);
    this.#remember(step.key);
  }

  /** Show the saved labels with the waiting actions applied, and tell everyone. */
  #refresh() {
    this.shown = this.#waiting.reduce((state, {action}) => preview(state, action), this.#saved);
    this.byId = new Map(this.shown.videos.map((video) => [video.id, video]));
    this.studio.tell("labels", this.shown);
  }

  get #place() {
    return `labels ${this.studio.project.folder}`;
  }

  /** Keep what waits, also what other tabs of this project keep there; `gone` is written down. */
  #remember(gone = null) {
    const own = [...this.#waiting, ...this.conflicts];
    const others = this.#recall().filter((each) => each.key !== gone && !own.some(({key}) => key === each.key));
    localStorage.setItem(this.#place, JSON.stringify([...others, ...own]));
  }

  #recall() {
    try {
      return JSON.parse(localStorage.getItem(this.#place)) ?? [];
    } catch {
      return [];
    }
  }
}

/** Whether the server will refuse an action each time; one that is away or locked may take it later. */
function isRefused(error) {
  return error instanceof api.ApiError && [400, 404, 413, 415, 422].includes(error.status);
}

/** A key that nobody has had before; also pages that are not at this machine can make one. */
export function makeKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The bytes of a file in base64. */
function encode(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(reader.result.slice(reader.result.indexOf(",") + 1)));
    reader.addEventListener("error", () => reject(reader.error));
    reader.readAsDataURL(file);
  });
}

/** Whether an action makes the one before it needless: the same label, moved on. */
function replaces(action, before) {
  if (action.type !== before.type || action.video !== before.video) return false;
  if (action.type === "set_event") return action.name === before.name;
  return action.type === "set_segment" && action.segment.id === before.segment.id;
}

/** Whether the labels by hand that an action is about are the same in two states. */
function agree(before, after, action) {
  if (!action.video) return JSON.stringify(before.names) === JSON.stringify(after.names);
  const [old, now] = [before, after].map((state) => state.videos.find((video) => video.id === action.video));
  return JSON.stringify(byHand(old)) === JSON.stringify(byHand(now));
}

function byHand(video) {
  const isOurs = (label) => label.is_by_hand;
  return video ? [video.events.filter(isOurs), video.segments.filter(isOurs)] : null;
}

/** What the labels will be when the server has done an action, as far as the page can tell. */
function preview(state, action) {
  const change = PREVIEWS[action.type];
  if (!change) return state;
  const videos = state.videos.map((video) => (video.id === action.video ? change(video, action) : video));
  const names = addNames(state.names, action);
  if (action.type === "skip") return {...state, queue: [...state.queue.filter((id) => id !== action.video), action.video]};
  const queue = action.type === "accept" ? state.queue.filter((id) => id !== action.video) : state.queue;
  return {...state, videos, names, queue};
}

const PREVIEWS = {
  skip: (video) => video,
  accept: (video, {events, segments}) => ({
    ...video,
    state: "labelled",
    certainty: 1,
    events: Object.entries(events).map(([name, frame]) => ({name, frame, certainty: 1, is_by_hand: true})).sort(byTime),
    segments: segments.map((each) => ({...each, certainty: 1, is_by_hand: true})),
  }),
  clear: (video) => ({...video, state: "none", events: [], segments: []}),
  set_event: (video, {name, frame, is_draft}) => ({
    ...keep(video, is_draft),
    events: [...video.events.filter((each) => each.name !== name), {name, frame, certainty: 1, is_by_hand: true}].sort(byTime),
  }),
  delete_event: (video, {name, is_draft}) => ({
    ...keep(video, is_draft), events: video.events.filter((each) => each.name !== name),
  }),
  set_segment: (video, {segment, is_draft}) => ({
    ...keep(video, is_draft),
    segments: [...video.segments.filter((each) => each.id !== segment.id), {...segment, certainty: 1, is_by_hand: true}].sort(byTime),
  }),
  delete_segment: (video, {id, is_draft}) => ({
    ...keep(video, is_draft), segments: video.segments.filter((each) => each.id !== id),
  }),
};

function keep(video, isDraft) {
  return isDraft ? video : {...video, state: "labelled"};
}

function byTime(one, other) {
  return (one.frame ?? one.start) - (other.frame ?? other.start);
}

function addNames(names, action) {
  const added = action.type === "set_event" ? ["event", action.name]
    : action.type === "set_segment" ? ["segment", action.segment.name] : null;
  if (!added || names.some((each) => each.kind === added[0] && each.name === added[1])) return names;
  return [...names, {kind: added[0], name: added[1], colour: "#a9b8b0"}];
}
