// Start: bring videos in, align them at once ("quick"), or fit an encoder to them and watch it learn.

import uPlot from "./vendor/uPlot.esm.js";
import * as api from "./api.js";
import {button, clockTime, make} from "./elements.js";
import {plotAxis, styleColour} from "./plots.js";

export const title = "Start";

const POLL_MS = 700;
const VIDEO_TYPES = ".mp4,.mov,.m4v,.mkv,.webm,.avi,.mpg,.mpeg,.mts,.ts,.wmv,.flv,.gif,video/*";

export function mount(element, studio) {
  const jobs = make("div", {class: "jobs"});
  element.append(
    make("div", {class: "start"}, [
      dropArea(studio),
      make("section", {class: "card"}, [
        make("h2", {}, "Quick"),
        make("p", {}, "Align the videos at once by what moves, who moves and how it looks. Nothing is trained."),
        button("Align now", () => start(studio, {kind: "quick"}), {class: "accent"}),
      ]),
      fitCard(studio),
    ]),
    make("h2", {}, "Runs"),
    jobs,
  );
  const cards = new Map(); // job id -> card
  let timer = null;
  let isMounted = true;
  const refresh = async () => {
    clearTimeout(timer);
    try {
      const list = await api.get("jobs");
      await Promise.all(list.map((job) => showJob(studio, jobs, cards, job, refresh)));
      jobs.classList.toggle("is-empty", !list.length);
    } catch (error) {
      studio.say(error.message);
    }
    if (isMounted) timer = setTimeout(refresh, POLL_MS);
  };
  studio.refreshJobs = refresh;
  refresh();
  return () => {
    isMounted = false;
    clearTimeout(timer);
    for (const card of cards.values()) card.plot?.destroy();
  };
}

async function start(studio, request) {
  try {
    await api.send("POST", "jobs", request);
    await studio.refreshJobs?.();
  } catch (error) {
    studio.say(error.message);
  }
}

// ---- videos in

function dropArea(studio) {
  const input = make("input", {type: "file", multiple: true, accept: VIDEO_TYPES, id: "videos-in"});
  const status = make("p", {class: "dim", role: "status"});
  const area = make("section", {class: "card drop"}, [
    make("h2", {}, "Videos"),
    make("p", {}, "Drop videos of the same action here. They are copied into the folder of this project."),
    make("label", {class: "button", for: "videos-in"}, "Choose files"),
    input,
    status,
  ]);
  input.addEventListener("change", () => upload(studio, [...input.files], status));
  area.addEventListener("dragover", (event) => { event.preventDefault(); area.classList.add("is-over"); });
  area.addEventListener("dragleave", () => area.classList.remove("is-over"));
  area.addEventListener("drop", (event) => {
    event.preventDefault();
    area.classList.remove("is-over");
    upload(studio, [...event.dataTransfer.files], status);
  });
  return area;
}

async function upload(studio, files, status) {
  const refused = [];
  let added = 0;
  for (const [number, file] of files.entries()) {
    status.textContent = `Adding ${file.name} (${number + 1} of ${files.length}) …`;
    try {
      await api.upload("videos", file);
      added += 1;
    } catch (error) {
      refused.push(error.message);
    }
  }
  await studio.load();
  status.textContent = [`${added} of ${files.length} videos added.`, ...refused].join(" ");
}

// ---- fit

function fitCard(studio) {
  const name = make("input", {id: "fit-name", type: "text", placeholder: "fit-1", maxlength: 60});
  const updates = make("input", {id: "fit-updates", type: "number", min: 10, max: 100000, placeholder: "default"});
  return make("section", {class: "card"}, [
    make("h2", {}, "Fit"),
    make("p", {}, "Learn from these videos. Worth it from about ten videos on; if it does not help, the quick result stays."),
    make("div", {class: "fields"}, [
      make("label", {for: "fit-name"}, ["Name ", name]),
      make("label", {for: "fit-updates"}, ["Updates ", updates]),
    ]),
    button("Start fitting", () => start(studio, {
      kind: "fit", name: name.value.trim(), updates: updates.value ? Number(updates.value) : null,
    })),
  ]);
}

// ---- jobs

async function showJob(studio, list, cards, job, refresh) {
  const card = cards.get(job.id) ?? addCard(list, cards, job);
  if (card.state === job.state && job.state !== "running") return;
  const hasEnded = card.state === "running" && job.state === "done";
  card.state = job.state;
  fillCard(studio, card, job, refresh);
  if (job.kind === "fit") drawTraining(card, await api.get(`jobs/${job.id}`));
  if (hasEnded) await openRun(studio, job);
}

function addCard(list, cards, job) {
  const card = {
    title: make("h3"), line: make("p", {role: "status"}), bar: make("progress", {max: 1, "aria-label": "Progress"}),
    buttons: make("div", {class: "buttons"}), curves: make("div", {class: "curves"}),
    similarity: make("canvas", {class: "similarity", width: 32, height: 32, "aria-label": "Similarity of two videos"}),
  };
  card.pictures = make("div", {class: "pictures", hidden: true}, [card.curves, card.similarity]);
  card.root = make("article", {class: "card job", "data-job": job.id}, [
    card.title, card.line, card.bar, card.buttons, card.pictures,
  ]);
  cards.set(job.id, card);
  const later = [...list.children].find((each) => each.dataset.job < job.id);
  list.insertBefore(card.root, later ?? null);
  return card;
}

function fillCard(studio, card, job, refresh) {
  const isRunning = job.state === "running";
  card.title.textContent = job.kind === "fit" ? job.run : "Quick";
  const share = job.total ? ` ${job.done} of ${job.total}` : "";
  card.line.textContent = isRunning ? `${job.stage}${share}, ${clockTime(job.seconds)}`
    : [job.state, clockTime(job.seconds), job.message].filter(Boolean).join(" · ");
  card.bar.hidden = !isRunning;
  if (job.total) card.bar.value = job.done / job.total; else card.bar.removeAttribute("value");
  const act = (verb) => async () => {
    try { await api.send("POST", `jobs/${job.id}/${verb}`); } catch (error) { studio.say(error.message); }
    refresh();
  };
  card.buttons.replaceChildren(...[
    isRunning && button("Cancel", act("cancel")),
    job.can_resume && button("Resume", act("resume")),
    job.state === "done" && button("Open", () => openRun(studio, job)),
  ].filter(Boolean));
}

async function openRun(studio, job) {
  try {
    await api.send("POST", `jobs/${job.id}/open`);
    await studio.load(); // aligns anew
    studio.tell("embeddings");
    studio.open("play");
  } catch (error) {
    studio.say(error.message);
  }
}

function drawTraining(card, job) {
  if (!job.curve.length) return;
  card.pictures.hidden = false;
  const data = [0, 1, 2].map((column) => job.curve.map((point) => point[column]));
  if (card.plot) card.plot.setData(data);
  else card.plot = new uPlot(plotOptions(card.curves), data, card.curves);
  drawSimilarity(card.similarity, job.similarity);
}

function plotOptions(element) {
  const axis = plotAxis();
  return {
    width: Math.max(260, element.clientWidth || 420), height: 180, scales: {x: {time: false}, rate: {range: [0, 1]}},
    series: [
      {label: "update"},
      {label: "loss", stroke: styleColour("--warn"), width: 2},
      {label: "cycle rate", stroke: styleColour("--accent"), width: 2, scale: "rate"},
    ],
    axes: [axis, {...axis, size: 60}, {...axis, scale: "rate", side: 1, grid: {show: false}}],
  };
}

function drawSimilarity(canvas, rows) {
  if (!rows.length) return;
  [canvas.width, canvas.height] = [rows[0].length, rows.length];
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  rows.flat().forEach((grey, pixel) => image.data.set([grey, grey, grey, 255], 4 * pixel));
  context.putImageData(image, 0, 0);
}
