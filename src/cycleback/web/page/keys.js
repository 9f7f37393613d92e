// The keyboard of the page. Views add their keys while they are mounted; "?" lists what is in force.

const TYPED = "textarea, select, [contenteditable=true], " +
  "input:not([type=checkbox], [type=radio], [type=range], [type=button], [type=file])";
const MOVED = "input[type=range], input[type=radio], [role=slider], [role=tab], [role=listbox]";
const MOVING = new Set(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "PageUp", "PageDown"]);
const PRESSED = "button, a[href], summary, input[type=checkbox], input[type=radio]";
const NAMES = {" ": "Space", ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓"};

/** The name of a key press: the key, after "Shift+" where shift changes no letter. */
function nameOf(event) {
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  return event.shiftKey && event.key.length > 1 ? `Shift+${key}` : key;
}

/** Whether the focused element needs this key for itself. */
function isTaken(event) {
  const target = event.target instanceof Element ? event.target : document.body;
  if (target.matches(TYPED)) return true;
  if (MOVING.has(event.key) && target.matches(MOVED) && !target.hasAttribute("data-timeline")) return true;
  // After a click with the mouse, space plays; with the keyboard on a button, space presses it.
  return (event.key === " " || event.key === "Enter") && target.matches(PRESSED) && target.matches(":focus-visible");
}

export class Keys {
  #entries = []; // {key, help, action}; the one added last wins

  constructor() {
    document.addEventListener("keydown", (event) => this.#press(event));
  }

  /** Add a key such as "b", " ", "ArrowLeft" or "Shift+ArrowLeft"; returns a function that removes it. */
  add(key, help, action) {
    const entry = {key: key.length === 1 ? key.toLowerCase() : key, help, action};
    this.#entries.push(entry);
    return () => { this.#entries = this.#entries.filter((other) => other !== entry); };
  }

  /** Add several [key, help, action]; returns one function that removes all. */
  addAll(entries) {
    const removers = entries.map((entry) => this.add(...entry));
    return () => removers.forEach((remove) => remove());
  }

  /** The keys in force, as [names of keys, help]; keys with the same help stand together. */
  list() {
    const rows = new Map();
    const seen = new Set();
    for (const {key, help} of [...this.#entries].reverse()) {
      if (seen.has(key) || !help) continue;
      seen.add(key);
      rows.set(help, [label(key), ...(rows.get(help) ?? [])]);
    }
    return [...rows].map(([help, names]) => [names.length > 4 ? [names[0], "…", names.at(-1)] : names, help]).reverse();
  }

  #press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTaken(event)) return;
    if (document.querySelector("dialog[open]")) return;
    const name = nameOf(event);
    const entry = this.#entries.findLast((each) => each.key === name);
    if (!entry) return;
    event.preventDefault();
    entry.action(event);
  }
}

function label(key) {
  const parts = key.split("+").map((part) => NAMES[part] ?? (part.length === 1 ? part.toUpperCase() : part));
  return parts.join(" ").trim() || "+";
}
