// The list of videos: which are on the screen and in which order, and all of them to choose from.
//
// A project may hold hundreds of videos, so only the rows in sight exist; they ask for pictures and
// details when the list stands still.

import * as api from "./api.js";
import {make} from "./elements.js";
import {icon, iconButton} from "./icons.js";

const ROW = 52;          // pixels, as in style.css
const SPARE_ROWS = 4;    // above and below the window
const REST_MS = 120;     // after scrolling, before pictures are asked for

export function mountSidebar(element, studio) {
  const shown = new ShownList(studio);
  const all = new VideoList(studio);
  element.replaceChildren(shown.element, all.element);
  studio.listen("project", () => { shown.render(); all.render(); });
  for (const event of ["shown", "reference"]) studio.listen(event, () => { shown.render(); all.mark(); });
  shown.render();
  all.render();
}

/** The videos on the screen, in their order. */
class ShownList {
  #dragged = null;

  constructor(studio) {
    this.studio = studio;
    this.list = make("ol", {class: "shown-list"});
    this.count = make("span", {class: "count"});
    this.element = make("section", {class: "shown", "aria-label": "Videos on the screen"},
      make("h2", {}, "On the screen ", this.count), this.list);
  }

  render() {
    const {shown} = this.studio;
    this.count.textContent = shown.length;
    this.list.replaceChildren(...shown.map((id, index) => this.#row(id, index)));
  }

  #row(id, index) {
    const {name} = this.studio.byId.get(id);
    const isReference = id === this.studio.reference;
    const row = make("li", {draggable: "true", "data-id": id, class: isReference ? "is-reference" : ""},
      make("span", {class: "grip", title: "Drag to change the order"}, icon("grip"), make("span", {class: "place"}, index + 1)),
      make("button", {type: "button", class: "name", title: isReference ? "The reference" : `Follow the pace of ${name}`,
        "aria-pressed": String(isReference), onclick: () => this.studio.follow(id)}, name),
      iconButton("up", `Move ${name} up`, () => this.#move(index, index - 1), {disabled: index === 0}),
      iconButton("down", `Move ${name} down`, () => this.#move(index, index + 1),
        {disabled: index === this.studio.shown.length - 1}),
      iconButton("close", `Take ${name} off the screen`, () => this.#remove(id)));
    row.addEventListener("dragstart", (event) => this.#startDrag(event, index));
    row.addEventListener("dragover", (event) => { if (this.#dragged !== null) event.preventDefault(); });
    row.addEventListener("drop", (event) => { event.preventDefault(); this.#move(this.#dragged, index); });
    row.addEventListener("dragend", () => { this.#dragged = null; });
    return row;
  }

  #startDrag(event, index) {
    this.#dragged = index;
    event.dataTransfer.effectAllowed = "move";
    event.dataTransfer.setData("text/plain", this.studio.shown[index]);
  }

  #move(from, to) {
    const ids = [...this.studio.shown];
    if (from === null || to < 0 || to >= ids.length) return;
    ids.splice(to, 0, ...ids.splice(from, 1));
    this.studio.choose(ids);
    this.list.children[to]?.querySelector(from > to ? ".icon-button" : ".icon-button + .icon-button")?.focus();
  }

  #remove(id) {
    this.studio.choose(this.studio.shown.filter((other) => other !== id));
  }
}

/** All videos, with a search box and check boxes. */
class VideoList {
  #found = [];
  #rows = new Map(); // index -> element
  #resting = 0;

  constructor(studio) {
    this.studio = studio;
    this.search = make("input", {type: "search", placeholder: "Search by name", "aria-label": "Search videos by name",
      oninput: () => this.render()});
    this.count = make("span", {class: "count"});
    this.spacer = make("ul", {class: "rows"});
    this.window = make("div", {class: "window", tabindex: -1}, this.spacer);
    this.window.addEventListener("scroll", () => this.#fill(), {passive: true});
    new ResizeObserver(() => this.#fill()).observe(this.window);
    this.element = make("section", {class: "all", "aria-label": "All videos"},
      make("h2", {}, "All videos ", this.count), this.search, this.window);
  }

  render() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const {videos} = this.studio.project;
    this.#found = videos.filter(({name, action}) => words.every((word) => `${name} ${action}`.toLowerCase().includes(word)));
    this.count.textContent = words.length ? `${this.#found.length} of ${videos.length}` : videos.length;
    this.spacer.style.height = `${this.#found.length * ROW}px`;
    for (const row of this.#rows.values()) row.remove();
    this.#rows.clear();
    this.#fill();
  }

  /** Tick the videos on the screen; the rows stay. */
  mark() {
    for (const row of this.#rows.values()) {
      const isShown = this.studio.shown.includes(row.dataset.id);
      row.classList.toggle("is-shown", isShown);
      row.querySelector("input").checked = isShown;
    }
  }

  /** Keep exactly the rows in sight. */
  #fill() {
    const {scrollTop, clientHeight} = this.window;
    const first = Math.max(0, Math.floor(scrollTop / ROW) - SPARE_ROWS);
    const last = Math.min(this.#found.length - 1, Math.ceil((scrollTop + clientHeight) / ROW) + SPARE_ROWS);
    for (const [index, row] of this.#rows) {
      if ((index < first || index > last) && !row.contains(document.activeElement)) {
        row.remove();
        this.#rows.delete(index);
      }
    }
    for (let index = first; index <= last; index += 1) {
      if (!this.#rows.has(index)) this.#add(index);
    }
    clearTimeout(this.#resting);
    this.#resting = setTimeout(() => this.#lookUp(), REST_MS);
  }

  #add(index) {
    const {id, name, action} = this.#found[index];
    const isShown = this.studio.shown.includes(id);
    const row = make("li", {"data-id": id, "aria-setsize": this.#found.length, "aria-posinset": index + 1,
      class: isShown ? "is-shown" : ""},
      make("label", {},
        make("input", {type: "checkbox", checked: isShown, onchange: (event) => this.#choose(id, event.target.checked)}),
        make("span", {class: "picture"}),
        make("span", {class: "text"}, make("span", {class: "name", title: name}, name),
          make("span", {class: "about"}, action || ""))));
    row.style.transform = `translateY(${index * ROW}px)`;
    this.spacer.append(row);
    this.#rows.set(index, row);
  }

  #choose(id, isShown) {
    const {shown} = this.studio;
    this.studio.choose(isShown ? [...shown, id] : shown.filter((other) => other !== id));
  }

  /** Ask for the pictures and details of the rows in sight. */
  #lookUp() {
    for (const row of this.#rows.values()) {
      if (row.dataset.isKnown) continue;
      row.dataset.isKnown = "yes";
      this.#describe(row, row.dataset.id);
    }
  }

  async #describe(row, id) {
    const about = row.querySelector(".about");
    try {
      const {error} = this.studio.byId.get(id);
      if (error) throw new Error(error);
      const detail = await this.studio.detail(id);
      about.textContent = describe(detail);
      if (row.isConnected) row.querySelector(".picture").append(makePicture(id));
    } catch (error) {
      row.classList.add("is-broken");
      about.textContent = about.title = error.message;
    }
  }
}

function makePicture(id) {
  return make("img", {src: api.address(`videos/${id}/frames/0.jpg?height=40`), alt: "", loading: "lazy", decoding: "async",
    onerror: (event) => event.target.remove()});
}

function describe({frames, duration_s: seconds, width, height, action}) {
  return [action, `${seconds.toFixed(1)} s`, `${frames} frames`, `${width}×${height}`].filter(Boolean).join(" · ");
}
