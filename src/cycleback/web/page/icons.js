// The icons of the page, and buttons that show one.

import {make} from "./elements.js";

const PATHS = {
  play: "M7 4.5v15l13-7.5z",
  pause: "M6 4.5h4.4v15H6zM13.6 4.5H18v15h-4.4z",
  back: "M17.5 5.5v13L8 12zM5.5 5.5h2v13h-2z",
  forward: "M6.5 5.5v13L16 12zM16.5 5.5h2v13h-2z",
  left: "M15.5 4.5 8 12l7.5 7.5 1.7-1.7L11.4 12l5.8-5.8z",
  right: "M8.5 4.5 16 12l-7.5 7.5-1.7-1.7 5.8-5.8-5.8-5.8z",
  up: "M4.5 15.5 12 8l7.5 7.5-1.7 1.7-5.8-5.8-5.8 5.8z",
  down: "M4.5 8.5 12 16l7.5-7.5-1.7-1.7-5.8 5.8-5.8-5.8z",
  sound: "M4 9v6h4l5 5V4L8 9zm12.2-2.6-1.4 1.4a5.9 5.9 0 0 1 0 8.4l1.4 1.4a7.9 7.9 0 0 0 0-11.2z",
  mute: "M4 9v6h4l5 5V4L8 9zm16.6 1.2-1.4-1.4-1.8 1.8-1.8-1.8-1.4 1.4 1.8 1.8-1.8 1.8 1.4 1.4 1.8-1.8 1.8 1.8 1.4-1.4-1.8-1.8z",
  repeat: "M4 11V6h11V3.5l5 4-5 4V9H7v2zM20 13v5H9v2.5l-5-4 5-4V15h8v-2z",
  pin: "M15.5 3 21 8.5l-1.8.9-3.7 3.7.1 4.3-1.7 1.7-4-4L5 20l-1-1 4.9-4.9-4-4 1.7-1.7 4.3.1 3.7-3.7z",
  full: "M4 4h7v2.2H6.2V11H4zm9 0h7v7h-2.2V6.2H13zM4 13h2.2v4.8H11V20H4zm13.8 0H20v7h-7v-2.2h4.8z",
  layers: "M12 3 2.5 8 12 13l9.5-5zM4.7 11.2 2.5 12.4 12 17.4l9.5-5-2.2-1.2L12 15zm0 4.3-2.2 1.2L12 21.7l9.5-5-2.2-1.2-7.3 3.8z",
  grip: "M8 5h2.5v2.5H8zm5.5 0H16v2.5h-2.5zM8 10.8h2.5v2.5H8zm5.5 0H16v2.5h-2.5zM8 16.5h2.5V19H8zm5.5 0H16V19h-2.5z",
  close: "m6.2 4.8 5.8 5.8 5.8-5.8 1.4 1.4-5.8 5.8 5.8 5.8-1.4 1.4-5.8-5.8-5.8 5.8-1.4-1.4 5.8-5.8-5.8-5.8z",
  star: "m12 3 2.7 5.9 6.4.7-4.8 4.3 1.4 6.3L12 17l-5.7 3.2 1.4-6.3L2.9 9.6l6.4-.7z",
};

/** An icon that says nothing to a screen reader: the button around it has the name. */
export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  for (const [key, value] of [["viewBox", "0 0 24 24"], ["class", "icon"], ["aria-hidden", "true"]]) svg.setAttribute(key, value);
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}

/** A button with an icon; its name is also its tooltip. */
export function iconButton(name, label, onclick, attributes = {}) {
  return make("button", {type: "button", class: "icon-button", title: label, "aria-label": label, onclick, ...attributes},
    icon(name));
}

/** Give a button another icon and name. */
export function relabel(button, name, label) {
  button.replaceChildren(icon(name));
  button.title = label;
  button.setAttribute("aria-label", label);
}
