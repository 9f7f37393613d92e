// Review: the labels that were carried over to one video at a time, the least certain video first.
//
// Each moment is shown as the frame itself, beside the same moment of a video labelled by hand.

import * as api from "./api.js";
import {button, make} from "./elements.js";

const HEIGHT = 240;        // of the pictures, in pixels
const NEAR = 2;            // frames on both sides that are fetched before they are asked for
const AROUND = 8;          // frames on both sides that play
const PLAY_MS = 90;

export class Review {
  #at = 0;          // the chosen moment
  #timer = 0;       // of the moving pictures
  #offset = 0;
  #kept = new Map(); // address -> picture that is or was fetched
  #drawn = "";
  #wanted = null;   // the video to show as soon as it has suggestions

  /** `onedit(id, frame)` opens a video at a frame to label it by hand. */
  constructor(studio, store, {onedit}) {
    Object.assign(this, {studio, store, onedit, id: null});
    this.element = make("section", {class: "review", "aria-label": "Review"});
  }

  /** The keys of the review. */
  get keys() {
    return [
      ["Enter", "Accept the labels of this video", () => this.accept()],
      ["ArrowLeft", "Move the moment one frame earlier", () => this.nudge(-1)],
      ["ArrowRight", "Move the moment one frame later", () => this.nudge(1)],
      ["Shift+ArrowLeft", "Move the moment ten frames earlier", () => this.nudge(-10)],
      ["Shift+ArrowRight", "Move the moment ten frames later", () => this.nudge(10)],
      ["ArrowUp", "Choose the moment before", () => this.choose(this.#at - 1)],
      ["ArrowDown", "Choose the next moment", () => this.choose(this.#at + 1)],
      ["s", "Skip this video: it comes last", () => this.skip()],
      ["Delete", "Remove the moment from this video", () => this.remove()],
      [" ", "Play around the moment", () => this.togglePlay()],
      ["e", "Edit this video by hand", () => this.edit()],
    ];
  }

  get moments() {
    return this.id === null ? [] : listMoments(this.store.video(this.id));
  }

  close() {
    clearInterval(this.#timer);
  }

  /** Show the video under review; the first of the queue where there is none. */
  show() {
    const {queue} = this.store.shown;
    if (queue.includes(this.#wanted)) this.#begin(this.#wanted);
    else if (!queue.includes(this.id)) this.#begin(queue[0] ?? null, this.#wanted);
    const video = this.id && this.store.video(this.id);
    const text = JSON.stringify([video, this.store.shown.names, queue.length, this.store.shown.is_updating,
      this.store.shown.problem, this.#at, this.models()]);
    if (text === this.#drawn) return;
    this.#drawn = text;
    this.element.replaceChildren(...(video ? this.#drawVideo(video) : [this.#drawEmpty()]));
    this.#fetchNear();
  }

  /** Show a video as soon as it has suggestions; after undo, they must be made first. */
  open(id) {
    this.#wanted = id;
    this.show();
  }

  choose(index) {
    const count = this.moments.length;
    if (!count) return;
    this.#at = (index + count) % count;
    this.show();
    this.element.querySelector(".is-chosen")?.scrollIntoView({block: "nearest"});
  }

  nudge(frames) {
    const moment = this.moments[this.#at];
    if (moment) this.#move(moment, moment.at + frames);
  }

  accept() {
    if (this.id !== null) this.store.accept(this.id);
  }

  skip() {
    const {id} = this;
    const next = this.store.shown.queue.find((each) => each !== id);
    if (id === null || next === undefined) return;
    this.#begin(next);
    this.store.act({type: "skip", video: id});
  }

  remove() {
    const moment = this.moments[this.#at];
    if (!moment) return;
    const {kind, label} = moment;
    const removed = kind === "event" ? {type: "delete_event", name: label.name} : {type: "delete_segment", id: label.id};
    this.store.act({...removed, video: this.id, is_draft: true});
  }

  edit() {
    if (this.id !== null) this.onedit(this.id, this.moments[this.#at]?.frame ?? 0);
  }

  togglePlay() {
    if (this.#timer) this.#stop();
    else this.#timer = setInterval(() => this.#turn(), PLAY_MS);
  }

  #begin(id, wanted = null) {
    this.#stop();
    this.id = id;
    this.#wanted = wanted;
    this.#at = 0;
    this.#at = leastCertain(this.moments);
  }

  #move(moment, at) {
    const {frames} = this.store.video(this.id);
    const {kind, label} = moment;
    const last = frames ?? Infinity;
    this.#stop();
    if (kind === "event") {
      const frame = Math.max(0, Math.min(last - 1, at));
      this.store.act({type: "set_event", video: this.id, name: label.name, frame, is_draft: true});
      return;
    }
    const {id, name, start, end} = label;
    const segment = kind === "start" ? {id, name, start: Math.max(0, Math.min(end - 1, at)), end}
      : {id, name, start, end: Math.max(start + 1, Math.min(last, at))};
    this.store.act({type: "set_segment", video: this.id, segment, is_draft: true});
  }

  /** For each moment the same one in a video labelled by hand, or null. */
  models() {
    if (this.id === null) return [];
    const action = this.studio.byId.get(this.id)?.action;
    const known = this.store.shown.videos
      .filter(({id}) => id !== this.id && this.studio.byId.get(id)?.action === action)
      .sort((one, other) => (one.state === "suggested") - (other.state === "suggested"))
      .map((video) => ({video, moments: listMoments(video).filter(({label}) => label.is_by_hand)}));
    return this.moments.map(({key}) => {
      for (const {video, moments} of known) {
        const same = moments.find((each) => each.key === key);
        if (same) return {id: video.id, frame: same.frame};
      }
      return null;
    });
  }

  #drawVideo(video) {
    const {queue} = this.store.shown;
    const name = this.studio.byId.get(video.id)?.name ?? "";
    const models = this.models();
    return [
      make("div", {class: "review-head"},
        make("h2", {}, name),
        make("span", {class: "dim"}, `certainty ${percent(video.certainty)}, ${queue.length} to review`),
        make("span", {class: "review-buttons"},
          button("Accept", () => this.accept(), {class: "accent", title: "Accept (Enter)"}),
          button("Skip", () => this.skip(), {title: "Skip (S)", disabled: queue.length < 2}),
          button("Edit", () => this.edit(), {title: "Edit by hand (E)"}))),
      make("ol", {class: "moments"}, this.moments.map((moment, index) => this.#drawMoment(moment, index, models[index]))),
    ];
  }

  #drawMoment(moment, index, model) {
    const isChosen = index === this.#at;
    const title = make("h3", {}, moment.title);
    title.style.color = this.store.colour(moment.kind === "event" ? "event" : "segment", moment.label.name);
    const item = make("li", {class: isChosen ? "moment is-chosen" : "moment", "data-key": moment.key},
      make("div", {class: "moment-head"},
        button(title, () => this.choose(index), {class: "moment-choose", "aria-pressed": String(isChosen)}),
        make("span", {class: "dim"}, !moment.label.is_by_hand ? percent(moment.label.certainty) : "yours"),
        button("−1", () => { this.choose(index); this.nudge(-1); }, {class: "small", "aria-label": `${moment.title} one frame earlier`}),
        button("+1", () => { this.choose(index); this.nudge(1); }, {class: "small", "aria-label": `${moment.title} one frame later`})),
      make("div", {class: "pair"},
        this.#drawPicture(this.id, moment.frame, "here", `Here: frame ${moment.frame}`),
        model ? this.#drawPicture(model.id, model.frame, "model",
          `By hand in ${this.studio.byId.get(model.id).name}: frame ${model.frame}`) : []));
    item.addEventListener("click", () => { if (!isChosen) this.choose(index); });
    return item;
  }

  #drawPicture(id, frame, role, text) {
    const image = make("img", {alt: text, height: HEIGHT, "data-role": role, "data-id": id, "data-frame": frame,
      src: pictureAddress(id, frame)});
    return make("figure", {}, image, make("figcaption", {}, text));
  }

  #drawEmpty() {
    const {shown, isLoaded} = this.store;
    const reviewed = shown.videos.filter(({state}) => state === "labelled" || state === "given").length;
    const text = !isLoaded ? "Loading the labels."
      : shown.is_updating ? "The labels are being carried over to the other videos."
        : shown.problem ? shown.problem
          : reviewed ? "Everything is reviewed. Export the labels at the right, or mark more moments."
            : "Nothing to review yet: mark a moment in one video, and it is found in all others.";
    return make("p", {class: "review-empty"}, text);
  }

  /** Fetch the frames that the next nudges show. */
  #fetchNear() {
    const moment = this.moments[this.#at];
    if (!moment) return;
    for (let away = 1; away <= NEAR; away += 1) {
      for (const frame of [moment.frame - away, moment.frame + away]) if (frame >= 0) this.#fetch(this.id, frame);
    }
  }

  #fetch(id, frame) {
    const source = pictureAddress(id, frame);
    if (!this.#kept.has(source)) {
      const image = new Image();
      image.src = source;
      this.#kept.set(source, image);
      if (this.#kept.size > 400) this.#kept.delete(this.#kept.keys().next().value);
    }
    return this.#kept.get(source);
  }

  /** Show the next of the frames around the chosen moment, here and in the video labelled by hand. */
  #turn() {
    this.#offset = this.#offset >= AROUND ? -AROUND : this.#offset + 1;
    for (const image of this.element.querySelectorAll(".is-chosen img")) {
      const frame = Math.max(0, Number(image.dataset.frame) + this.#offset);
      const picture = this.#fetch(image.dataset.id, frame);
      if (picture.complete && picture.naturalWidth) image.src = picture.src;
    }
  }

  #stop() {
    clearInterval(this.#timer);
    this.#timer = this.#offset = 0;
    for (const image of this.element.querySelectorAll("img")) {
      image.src = pictureAddress(image.dataset.id, Number(image.dataset.frame));
    }
  }
}

/** The moments of a video in order: events, and starts and ends of segments. `at` moves, `frame` is shown. */
export function listMoments(video) {
  const events = video.events.map((label) => ({
    key: `event ${label.name}`, kind: "event", title: label.name, label, at: label.frame, frame: label.frame,
  }));
  const counts = new Map();
  const edges = video.segments.flatMap((label) => {
    const count = counts.get(label.name) ?? 0;
    counts.set(label.name, count + 1);
    const key = `${label.name} ${count}`;
    return [
      {key: `start ${key}`, kind: "start", title: `${label.name} begins`, label, at: label.start, frame: label.start},
      {key: `end ${key}`, kind: "end", title: `${label.name} ends`, label, at: label.end, frame: label.end - 1},
    ];
  });
  return [...events, ...edges].sort((one, other) => one.frame - other.frame);
}

function leastCertain(moments) {
  const certainties = moments.map(({label}) => label.certainty);
  return Math.max(0, certainties.indexOf(Math.min(...certainties)));
}

function pictureAddress(id, frame) {
  return api.address(`videos/${id}/frames/${frame}.jpg?height=${HEIGHT}`);
}

export function percent(certainty) {
  return `${Math.round(100 * certainty)} %`;
}
