// Put the page together: load the project, list its videos, show one view at a time.

import {Studio} from "./studio.js";

const VIEWS = {}; // name -> () => import("./NAME.js"): a module with `title` and `mount(element, studio)`

const studio = new Studio();
const area = document.querySelector("#view");
let current = null; // {name, unmount}

export async function open(name) {
  current?.unmount?.();
  area.replaceChildren();
  const module = await VIEWS[name]();
  current = {name, unmount: module.mount(area, studio)};
  location.hash = name;
}

await studio.load();
document.querySelector("#project-name").textContent = studio.project.name;
