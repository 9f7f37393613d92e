// What all curves on the page share: colours and axes.

/** A colour of the style sheet, by the name of its variable. */
export function styleColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** A colour for the n-th of several videos; neighbours differ clearly. */
export function colourOf(number, alpha = 1) {
  return `hsl(${Math.round((number * 137.5 + 80) % 360)} 75% 62% / ${alpha})`;
}

export function plotAxis() {
  return {stroke: styleColour("--dim"), grid: {stroke: styleColour("--line"), width: 1}};
}
