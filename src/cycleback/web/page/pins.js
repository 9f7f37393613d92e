// Pins: pairs of frames that the user says belong together. All views share the list of one studio.

import * as api from "./api.js";

const shared = new WeakMap(); // Studio -> Pins

/** The pins of a studio. */
export function pinsOf(studio) {
  if (!shared.has(studio)) shared.set(studio, new Pins(studio));
  return shared.get(studio);
}

class Pins {
  #isTelling = false;
  #work = Promise.resolve(); // one change after the other: each needs the revision of the one before

  constructor(studio) {
    this.studio = studio;
    this.list = [];       // [id of a, frame of a, id of b, frame of b]
    this.revision = null; // of the list; a change that is based on an older one is refused
    this.canUndo = false;
    document.addEventListener("visibilitychange", () => this.#look());
    studio.listen("pins", () => { if (!this.#isTelling) this.load().catch(() => {}); }); // changed by another view
  }

  /** Load the list; tells "pins" when it changed. */
  load() {
    return this.#queue(async () => this.#adopt(await api.get("pins")));
  }

  /** The pins between two videos as [frame of a, frame of b], in order of time. */
  between(a, b) {
    const pairs = this.list.flatMap(([first, i, second, j]) => {
      if (first === a && second === b) return [[i, j]];
      return first === b && second === a ? [[j, i]] : [];
    });
    return pairs.sort((one, other) => one[0] - other[0]);
  }

  /**
   * Pin frame `i` of video `a` to frame `j` of video `b`; resolves to whether it was accepted.
   * Another pin of one of these frames with a frame of the other video gives way, and so does `instead`.
   */
  add(a, i, b, j, {instead = null} = {}) {
    return this.#change((list) => {
      const kept = instead ? withoutPin(list, a, instead[0], b, instead[1]) : list;
      return [...kept.filter((pin) => !holds(pin, a, i, b, j)), [a, i, b, j]];
    });
  }

  remove(a, i, b, j) {
    return this.#change((list) => withoutPin(list, a, i, b, j));
  }

  /** Go back to the list before the last change. */
  undo() {
    return this.#write(() => api.send("POST", "pins/undo", {revision: this.revision}));
  }

  #change(edit) {
    return this.#write(async () => {
      if (this.revision === null) this.#adopt(await api.get("pins"));
      return api.send("PUT", "pins", {revision: this.revision, pins: edit(this.list)});
    });
  }

  #write(send) {
    return this.#queue(async () => {
      try {
        this.#adopt(await send());
        this.studio.realign();
        return true;
      } catch (error) {
        await this.#recover(error);
        return false;
      }
    });
  }

  /** Say why a change was refused; after a change elsewhere, load the list as it is now. */
  async #recover(error) {
    if (error.status !== 409) {
      this.studio.say(error.message);
      return;
    }
    this.studio.say("The pins were changed elsewhere, so this change was not saved. They are loaded again: check them and repeat it.");
    this.#adopt(await api.get("pins"));
    this.studio.realign();
  }

  /** Look for changes of other tabs when this one comes to the front. */
  async #look() {
    if (document.hidden || this.revision === null) return;
    const before = this.revision;
    await this.load().catch(() => {}); // the server may be gone: the next change says so
    if (this.revision !== before) this.studio.realign();
  }

  #adopt({revision, pins, can_undo: canUndo, problem}) {
    const isNew = revision !== this.revision;
    Object.assign(this, {revision, list: pins, canUndo});
    if (problem) this.studio.say(problem);
    if (!isNew) return;
    this.#isTelling = true;
    this.studio.tell("pins");
    this.#isTelling = false;
  }

  #queue(action) {
    const result = this.#work.then(action);
    this.#work = result.catch(() => {});
    return result;
  }
}

function withoutPin(list, a, i, b, j) {
  const same = (pin, ...other) => pin.every((value, place) => value === other[place]);
  return list.filter((pin) => !same(pin, a, i, b, j) && !same(pin, b, j, a, i));
}

/** Whether a pin between `a` and `b` holds frame `i` of the one, or frame `j` of the other. */
function holds([first, k, second, m], a, i, b, j) {
  if (first === a && second === b) return k === i || m === j;
  return first === b && second === a && (m === i || k === j);
}
