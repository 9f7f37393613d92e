// Put the page together: load the project, list its videos, show one view at a time, follow the running job.

import * as api from "./api.js";
import {make} from "./elements.js";
import {mountSidebar} from "./sidebar.js";
import {Studio} from "./studio.js";

const VIEWS = {
  play: {title: "Play", load: () => import("./player.js")},
  align: {title: "Align", load: () => import("./align.js")},
  label: {title: "Label", load: () => import("./label.js")},
  search: {title: "Search", load: () => import("./search.js")},
  anomalies: {title: "Odd takes", load: () => import("./anomalies.js")},
  map: {title: "Map", load: () => import("./map.js")},
  progress: {title: "Progress", load: () => import("./progress.js")},
  sound: {title: "Sound", load: () => import("./sound.js")},
  strips: {title: "Strips", load: () => import("./strips.js")},
  start: {title: "Start", load: () => import("./start.js")},
};
const FIRST_VIEW = "play";
const [BUSY_MS, IDLE_MS] = [1000, 5000]; // between two looks at the jobs

const studio = globalThis.studio = new Studio(); // global for the console
const area = document.querySelector("#view");
const tabs = document.querySelector("#tabs");
const drawer = document.querySelector("#drawer");
let current = {name: null, unmount: null};

/** The view that the address names: "#play", or "#align?a=…" with arguments for the view. */
function nameInAddress() {
  const name = location.hash.slice(1).split(/[?&]/)[0];
  return name in VIEWS ? name : null;
}

async function open(name) {
  if (name === current.name) return;
  current.unmount?.();
  current = {name, unmount: null};
  area.replaceChildren();
  area.dataset.view = name;
  for (const link of tabs.children) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  try {
    const view = await VIEWS[name].load();
    if (current.name === name) current.unmount = view.mount(area, studio);
  } catch (error) {
    console.error(error);
    studio.say(`the view "${VIEWS[name].title}" does not open: ${error.message}`);
  }
}

function listTabs() {
  tabs.replaceChildren(...Object.entries(VIEWS).map(([name, {title}]) => make("a", {href: `#${name}`}, title)));
}

function showKeys() {
  const rows = studio.keys.list().flatMap(([names, help]) => [
    make("dt", {}, ...names.flatMap((name, index) => [index ? " " : "", make("kbd", {}, name)])), make("dd", {}, help)]);
  document.querySelector("#keys dl").replaceChildren(...rows);
  const dialog = document.querySelector("#keys");
  dialog.showModal();
  dialog.scrollTop = 0; // the button that gets the focus is at its end
}

function toggleDrawer(isOpen = !document.body.classList.contains("drawer-open")) {
  document.body.classList.toggle("drawer-open", isOpen);
  drawer.setAttribute("aria-expanded", String(isOpen));
}

/** Show what the running job does, and tell everyone when it is over. */
async function showJobs(jobs, before) {
  const [running] = jobs.filter((job) => job.state === "running");
  const line = document.querySelector("#job");
  const share = running?.total ? ` ${Math.round(100 * running.done / running.total)} %` : "";
  line.hidden = !running;
  line.textContent = running ? `${running.stage}${share}` : "";
  line.style.setProperty("--share", running?.total ? running.done / running.total : 0);
  studio.jobs = jobs;
  studio.tell("jobs", jobs);
  for (const job of jobs.filter((each) => before.has(each.id) && each.state !== "running")) await endJob(job);
  return new Set(running ? [running.id] : []);
}

async function endJob(job) {
  if (job.state === "failed") studio.say(job.message || "the job failed");
  if (job.state !== "done") return;
  await studio.load();
  studio.tell("embeddings");
}

async function followJobs() {
  let [running, isAway] = [new Set(), false];
  for (;;) {
    try {
      running = await showJobs(await api.get("jobs"), running);
      isAway = false;
    } catch (error) {
      if (error.status === 404) return; // a server without jobs
      if (!isAway) studio.say(error.message);
      isAway = true;
    }
    await new Promise((resolve) => { setTimeout(resolve, running.size ? BUSY_MS : IDLE_MS); studio.lookAtJobs = resolve; });
  }
}

addEventListener("hashchange", () => open(nameInAddress() ?? current.name ?? FIRST_VIEW));
addEventListener("unhandledrejection", (event) => {
  if (!(event.reason instanceof api.ApiError)) return;
  studio.say(event.reason.message);
  if (event.reason.status === 0) event.preventDefault(); // the studio was closed, no defect of the page
});
document.querySelector("#help").addEventListener("click", showKeys);
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); area.focus(); });
drawer.addEventListener("click", () => toggleDrawer());
area.addEventListener("pointerdown", () => toggleDrawer(false));
studio.keys.add("?", "List the keys", showKeys);
studio.keys.add("Escape", "", () => { studio.say(""); toggleDrawer(false); });

listTabs();
try {
  await studio.load();
  document.querySelector("#project-name").textContent = studio.project.name;
  document.title = `${studio.project.name} · Cycleback studio`;
  mountSidebar(document.querySelector("#sidebar"), studio);
  open(nameInAddress() ?? (studio.project.videos.length || !VIEWS.start ? FIRST_VIEW : "start"));
  followJobs();
} catch (error) {
  studio.say(error.message);
}
