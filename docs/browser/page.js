/** The page: two clips are dropped, embedded and aligned, and play in step. */
import {align} from "./align.js";
import {fuse, isMirrored, weighStreams} from "./streams.js";
import {embedVideo, loadNetwork, readVideo} from "./video.js";

const find = (selector) => document.querySelector(selector);
const slots = [...document.querySelectorAll(".slot")];
const NAMES = {appearance: "what it looks like", motion: "how it moves"};
const SHOWN_EVERY = 6; // frames, while a file is read
const ARROWS = {ArrowLeft: -1, ArrowRight: 1};

const videos = [null, null]; // decoded, with the vectors of their streams
const tickets = [0, 0]; // a later file replaces one that is still being read
let network = null, result = null, frame = 0, playing = null;

slots.forEach((slot, side) => {
  slot.querySelector("input").addEventListener("change", (event) => {
    const [file] = event.target.files;
    if (file) take(side, file);
    event.target.value = "";
  });
  slot.addEventListener("dragover", () => slot.classList.add("is-over"));
  slot.addEventListener("dragleave", () => slot.classList.remove("is-over"));
});
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", (event) => {
  event.preventDefault();
  slots.forEach((slot) => slot.classList.remove("is-over"));
  const files = [...event.dataTransfer.files];
  const slot = event.target.closest?.(".slot");
  const first = files.length > 1 ? 0 : slot ? slots.indexOf(slot) : videos[0] ? 1 : 0;
  files.slice(0, 2).forEach((file, number) => take(first + number, file));
});

let queue = Promise.resolve(); // one file after the other: both share the processor

/** Read a file, then align if both are there. */
function take(side, file) {
  const ticket = tickets[side] += 1;
  stop();
  result = null;
  videos[side] = null;
  find("#result").hidden = true;
  fill(side, file.name);
  queue = queue.then(async () => {
    if (ticket !== tickets[side]) return;
    try {
      say("");
      if (!("VideoDecoder" in globalThis)) throw new Error("This browser has no WebCodecs. Use a newer Chromium, Safari or Firefox.");
      if (!network) show("Loading the network", 0);
      network ??= await loadNetwork();
      const begun = performance.now();
      const video = await readVideo(file, (share, partial) => {
        show(`Reading ${file.name}`, share / 2);
        const last = partial.times.length - 1;
        if (last % SHOWN_EVERY === 0 && ticket === tickets[side]) paint(side, last, partial);
      });
      const read = performance.now();
      video.vectors = await embedVideo(network, video, (share) => show(`Looking at ${file.name}`, 0.5 + share / 2));
      video.images = null;
      video.seconds = {read: (read - begun) / 1000, embed: (performance.now() - read) / 1000};
      if (ticket !== tickets[side]) return;
      videos[side] = video;
      paint(side, 0);
      if (videos[0] && videos[1]) compare();
    } catch (error) {
      if (ticket === tickets[side]) {
        empty(side);
        say(error.message ?? String(error));
      }
    } finally {
      find("#progress").hidden = true;
    }
  });
}

/** Align the two videos, and show the result. */
function compare() {
  const [a, b] = videos;
  const weights = weighStreams(a.vectors.plain, b.vectors.plain);
  const sides = [a, b].map(({vectors}) => ({plain: fuse(vectors.plain, weights), turned: fuse(vectors.turned, weights)}));
  const isTurned = isMirrored(...sides);
  const embeddings = [sides[0].plain, isTurned ? sides[1].turned : sides[1].plain];
  result = {...align(...embeddings), weights, isTurned, embeddings};
  find("#scrub").max = a.times.length - 1;
  find("#result").hidden = false;
  drawStrip();
  drawMatrix();
  listFacts();
  go(0);
}

function go(number) {
  frame = Math.min(Math.max(number, 0), videos[0].times.length - 1);
  find("#scrub").value = frame;
  const other = result.indices[frame];
  paint(0, frame);
  paint(1, other);
  const sure = result.matched[frame] ? `${Math.round(100 * result.confidence[frame])} % sure` : "no match";
  find("#readout").textContent = `${videos[0].times[frame].toFixed(2)} s · ${sure}`;
  markMatrix();
}

function paint(side, number, video = videos[side]) {
  const canvas = slots[side].querySelector("canvas");
  canvas.hidden = false;
  if (canvas.width !== video.width || canvas.height !== video.height) [canvas.width, canvas.height] = [video.width, video.height];
  canvas.getContext("2d", {alpha: false}).drawImage(video.pictures[number], 0, 0);
  const place = `frame ${number} of ${video.times.length} · ${video.times[number].toFixed(2)} s`;
  slots[side].querySelector(".place").textContent = place;
}

function fill(side, name) {
  slots[side].classList.add("is-filled");
  slots[side].querySelector(".name").textContent = name;
  slots[side].querySelector(".place").textContent = "waiting …";
  slots[side].querySelector("canvas").hidden = true;
}

function empty(side) {
  slots[side].classList.remove("is-filled");
  slots[side].querySelector("canvas").hidden = true;
}

function say(text) {
  find("#message").hidden = !text;
  find("#message").textContent = text;
}

function show(step, share) {
  find("#progress").hidden = false;
  find("#step").textContent = `${step} …`;
  find("progress").value = share;
}

/** Confidence along the first clip: bright is sure, empty has no match. */
function drawStrip() {
  const canvas = find("#strip"), context = canvas.getContext("2d");
  canvas.width = result.indices.length;
  result.confidence.forEach((value, i) => {
    if (!result.matched[i]) return;
    context.fillStyle = `hsl(${40 + 45 * value} 75% ${28 + 30 * value}%)`;
    context.fillRect(i, canvas.height * (1 - value), 1, canvas.height * value);
  });
}

let ground = null; // the matrix without the mark of the current frame

function drawMatrix() {
  const {rows, columns, data} = result.distances, canvas = find("#matrix");
  [canvas.width, canvas.height] = [columns, rows];
  const context = canvas.getContext("2d"), image = context.createImageData(columns, rows);
  const sorted = Float64Array.from(data).sort(), low = sorted[0], high = sorted[Math.floor(0.7 * (sorted.length - 1))];
  data.forEach((value, k) => {
    const near = 1 - Math.min(Math.max((value - low) / Math.max(high - low, 1e-12), 0), 1);
    image.data.set([15 + 40 * near, 20 + 130 * near, 18 + 90 * near, 255], 4 * k);
  });
  context.putImageData(image, 0, 0);
  context.strokeStyle = "#a3e635";
  context.lineWidth = Math.max(1.2, Math.max(rows, columns) / 160);
  context.beginPath();
  result.path.forEach(([i, j]) => context.lineTo(j + 0.5, i + 0.5));
  context.stroke();
  ground = context.getImageData(0, 0, columns, rows);
}

function markMatrix() {
  const canvas = find("#matrix"), context = canvas.getContext("2d");
  context.putImageData(ground, 0, 0);
  context.fillStyle = "#fff";
  context.beginPath();
  context.arc(result.indices[frame] + 0.5, frame + 0.5, Math.max(canvas.width, canvas.height) / 70, 0, 7);
  context.fill();
}

function listFacts() {
  const {confidence, matched, weights, isTurned} = result, [a, b] = videos;
  const shared = confidence.filter((_, i) => matched[i]);
  const sure = shared.reduce((sum, value) => sum + value, 0) / Math.max(shared.length, 1);
  const used = Object.entries(weights).filter(([, weight]) => weight > 0);
  const seconds = a.seconds.read + a.seconds.embed + b.seconds.read + b.seconds.embed;
  const facts = {
    "In common": `${shared.length} of ${matched.length} frames of ${a.name}`,
    "Confidence": `${Math.round(100 * sure)} % on average`,
    "Compared by": used.map(([stream, weight]) => `${NAMES[stream]} (${weight.toFixed(2)})`).join(", "),
    "Computed in": `${seconds.toFixed(1)} s, in this browser`,
  };
  if (isTurned) facts.Mirrored = `${b.name} shows the action from the other side, and was turned round to compare`;
  if (sure < 0.4) facts.Note = "Low: the clips may show different actions, or the camera moves more than the action.";
  find("#facts").replaceChildren(...Object.entries(facts).flatMap(([name, text]) => {
    const [term, detail] = [document.createElement("dt"), document.createElement("dd")];
    [term.textContent, detail.textContent] = [name, text];
    return [term, detail];
  }));
}

function stop() {
  if (playing !== null) cancelAnimationFrame(playing);
  playing = null;
  find("#play").textContent = "Play";
  find("#play").setAttribute("aria-pressed", "false");
}

/** Play the first clip by its own clock; the second follows the path. */
function play() {
  const {times} = videos[0];
  if (frame === times.length - 1) go(0);
  let before = null, clock = times[frame];
  const tick = (now) => {
    clock += before === null ? 0 : (now - before) / 1000 * Number(find("#pace").value);
    before = now;
    let next = frame;
    while (next < times.length - 1 && times[next + 1] <= clock) next += 1;
    if (next !== frame) go(next);
    if (next === times.length - 1) stop();
    else playing = requestAnimationFrame(tick);
  };
  playing = requestAnimationFrame(tick);
  find("#play").textContent = "Pause";
  find("#play").setAttribute("aria-pressed", "true");
}

find("#play").addEventListener("click", () => (playing === null ? play() : stop()));
find("#scrub").addEventListener("input", (event) => {
  stop();
  go(Number(event.target.value));
});
find("#matrix").addEventListener("click", (event) => {
  const box = event.target.getBoundingClientRect();
  stop();
  go(Math.floor((event.clientY - box.top) / box.height * event.target.height));
});
document.addEventListener("keydown", (event) => {
  if (!result || event.target.matches("select")) return;
  if (event.key in ARROWS && event.target.id !== "scrub") {
    stop();
    go(frame + ARROWS[event.key]);
    event.preventDefault();
  } else if (event.key === " " && event.target.id !== "play") {
    (playing === null ? play : stop)();
    event.preventDefault();
  }
});

/** For tests and benchmarks: what the page has computed. */
globalThis.cycleback = {
  videos,
  get result() {
    return result;
  },
  take,
};
