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
  repeat: "M7 7h9.6l-2-2L16 3.6 20.4 8 16 12.4 14.6 11l2-2H9v4H7zm10 10H7.4l2 2L8 20.4 3.6 16 8 11.6 9.4 13l-2 2H15v-4h2z",
  pin: "M15.500 3 21 8.500l-1.800.9-3.700 3.700.1 4.300-1.700 1.700-4-4L5 20l-1-1 4.900-4.900-4-4 1.700-1.700 4.300.1 3.700-3.700z",
  full: "M4 4h7v2.200H6.200V11H4zm9 0h7v7h-2.200V6.200H13zM4 13h2.200v4.800H11V20H4zm13.800 0H20v7h-7v-2.200h4.800z",
  layers: "M12 3 2.500 8 12 13l9.500-5zM4.700 11.200 2.500 12.400 12 17.400l9.500-5-2.200-1.200L12 15zm0 4.300-2.200 1.200L12 21.700l9.500-5-2.200-1.200-7.300 3.800z",
  grip: "M8 5h2.500v2.500H8zm5.500 0H16v2.500h-2.500zM8 10.800h2.500v2.500H8zm5.500 0H16v2.500h-2.500zM8 16.500h2.500V19H8zm5.500 0H16V19h-2.500z",
  close: "m6.200 4.800 5.800 5.800 5.800-5.800 1.400 1.400-5.800 5.800 5.800 5.800-1.400 1.400-5.800-5.800-5.800 5.800-1.400-1.400 5.800-5.800-5.800-5.800z",
  star: "m12 3 2.700 5.900 6.400.7-4.800 4.300 1.400 6.300L12 17l-5.700 3.200 1.400-6.300L2.900 9.600l6.400-.7z",
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
