// Make elements of the page.

/** Make an element: `make("button", {type: "button", class: "big", onclick: play}, "Play")`.
 *
 * True sets a bare attribute, null or false sets none, a function listens. Children may come in arrays. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat());
  return element;
}

/** Make a button that acts when it is pressed. */
export function button(text, action, attributes = {}) {
  const element = make("button", {type: "button", ...attributes}, text);
  element.addEventListener("click", action);
  return element;
}

/** Write a time in seconds as minutes and seconds. */
export function clockTime(seconds, digits = 0) {
  const minutes = Math.floor(seconds / 60);
  const rest = (seconds % 60).toFixed(digits).padStart(digits ? digits + 3 : 2, "0");
  return `${minutes}:${rest}`;
}
