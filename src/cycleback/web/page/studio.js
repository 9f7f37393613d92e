// What all views share: the project, the chosen videos, the reference, the clock, and who wants to know.

import * as api from "./api.js";
import {Clock} from "./clock.js";

export const MAX_SHOWN = 16;

export class Studio extends EventTarget {
  constructor() {
    super();
    this.project = {name: "", folder: "", videos: []};
    this.byId = new Map();    // id -> {id, name, action}
    this.details = new Map(); // id -> promise of details and presentation times
    this.shown = [];          // ids of the videos in the player, at most MAX_SHOWN
    this.reference = null;    // id of the video whose pace all follow
    this.clock = new Clock(this);
  }

  /** Tell listeners: "project", "shown", "reference", "alignment", "pins", "labels". */
  tell(what, detail = null) {
    this.dispatchEvent(new CustomEvent(what, {detail}));
  }

  listen(what, action) {
    this.addEventListener(what, (event) => action(event.detail));
  }

  async load() {
    this.project = await api.get("project");
    this.byId = new Map(this.project.videos.map((video) => [video.id, video]));
    if (!this.shown.length) this.shown = this.project.videos.slice(0, 4).map((video) => video.id);
    this.shown = this.shown.filter((id) => this.byId.has(id));
    if (!this.byId.has(this.reference)) this.reference = this.shown[0] ?? null;
    this.tell("project");
  }

  /** Frames, size, rate and sound of a video, with `times`: the presentation time of each frame. */
  detail(id) {
    if (!this.details.has(id)) this.details.set(id, this.#load(id));
    return this.details.get(id);
  }

  async #load(id) {
    const [about, bytes] = await Promise.all([api.get(`videos/${id}`), api.getBytes(`videos/${id}/times`)]);
    return {...about, times: new Float64Array(bytes)};
  }

  choose(ids) {
    this.shown = ids.slice(0, MAX_SHOWN);
    if (!this.shown.includes(this.reference)) this.reference = this.shown[0] ?? null;
    this.tell("shown");
  }

  follow(id) {
    if (!this.shown.includes(id)) this.shown = [id, ...this.shown].slice(0, MAX_SHOWN);
    this.reference = id;
    this.tell("reference");
  }
}
