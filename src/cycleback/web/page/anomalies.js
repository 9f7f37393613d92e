// Odd takes: how far each take is from the others, moment by moment, the oddest first.

import uPlot from "./vendor/uPlot.esm.js";
import * as api from "./api.js";
import {clockTime, make} from "./elements.js";
import {plotAxis, styleColour} from "./plots.js";

export const title = "Odd takes";

const HEIGHT = 110;

export function mount(element, studio) {
  const list = make("div", {class: "takes"});
  const good = new Set(); // ids the user calls good
  const note = make("p", {class: "dim"});
  element.append(make("h2", {}, "Odd takes"), note, list);
  let plots = [];
  let request = null;

  async function show() {
    request?.abort();
    request = new AbortController();
    note.textContent = "Comparing the takes …";
    try {
      const takes = await api.get(`anomalies?good=${[...good].join(",")}`, {signal: request.signal});
      const details = await Promise.all(takes.map((take) => studio.detail(take.id)));
      clear();
      note.textContent = good.size
        ? `Compared with ${good.size} takes that you call good.`
        : "Compared with the other takes. Tick five or more good takes to compare with those instead.";
      takes.forEach((take, place) => addTake(take, details[place]));
    } catch (error) {
      if (error.name !== "AbortError") note.textContent = error.message;
    }
  }

  function clear() {
    for (const plot of plots) plot.destroy();
    plots = [];
    list.replaceChildren();
  }

  function addTake(take, about) {
    const box = make("input", {type: "checkbox", checked: good.has(take.id)});
    box.addEventListener("change", () => {
      if (box.checked) good.add(take.id); else good.delete(take.id);
      if (!good.size || good.size >= 5) show();
    });
    const plot = make("div", {class: "take-curve"});
    const card = make("article", {class: "card take", "data-video": take.id, "data-verdict": take.verdict}, [
      make("header", {}, [
        make("h3", {}, about.name),
        make("span", {class: `verdict ${take.verdict === "typical" ? "is-typical" : "is-odd"}`}, take.verdict),
        make("label", {}, [box, " good take"]),
      ]),
      oddities(take, (frame) => jump(take.id, frame)),
      thumbnails(take, about),
      plot,
    ]);
    list.append(card);
    plots.push(drawCurve(plot, take, about, (frame) => jump(take.id, frame)));
  }

  function jump(id, frame) {
    studio.follow(id, frame);
    studio.open("play");
  }

  const stop = studio.listen("embeddings", show);
  show();
  return () => { stop?.(); request?.abort(); clear(); };
}

function oddities(take, onClick) {
  return make("ul", {class: "take-oddities"}, take.oddities.map((odd) => {
    const line = make("li", {"data-kind": odd.kind, title: "Play this part"}, odd.text);
    line.addEventListener("click", () => onClick(odd.first));
    return line;
  }));
}

function thumbnails(take, about) {
  const frames = take.spans.length ? take.spans.map(([first, last]) => Math.round((first + last) / 2)) : [take.peak];
  return make("div", {class: "take-frames"}, frames.slice(0, 4).map((frame) => make("figure", {}, [
    make("img", {
      src: api.address(`videos/${take.id}/frames/${frame}.jpg?height=90`), loading: "lazy",
      alt: `${about.name}, frame ${frame}`,
    }),
    make("figcaption", {class: "dim"}, clockTime(about.times[frame], 2)),
  ])));
}

function drawCurve(element, take, about, onClick) {
  const axis = plotAxis();
  const seconds = Array.from(about.times.subarray(0, take.scores.length));
  const inSpans = take.scores.map((score, frame) => (
    take.spans.some(([first, last]) => first <= frame && frame <= last) ? score : null));
  const plot = new uPlot({
    width: Math.max(240, element.clientWidth || 480), height: HEIGHT, scales: {x: {time: false}},
    legend: {show: false}, cursor: {drag: {x: false, y: false}},
    series: [
      {label: "second"},
      {label: "difference", stroke: styleColour("--dim"), width: 1.5, points: {show: false}},
      {label: "odd", stroke: styleColour("--bad"), width: 3, points: {show: false}},
      {label: "threshold", stroke: styleColour("--warn"), width: 1, dash: [4, 4], points: {show: false}},
    ],
    axes: [{...axis, size: 28}, {...axis, size: 40}],
  }, [seconds, take.scores, inSpans, take.scores.map(() => take.threshold)], element);
  plot.over.addEventListener("click", () => plot.cursor.idx !== null && onClick(plot.cursor.idx));
  return plot;
}
