// Progress: how far the action is at each second of every shown video, measured by the reference.

import uPlot from "./vendor/uPlot.esm.js";
import * as api from "./api.js";
import {frameAt} from "./clock.js";
import {make} from "./elements.js";
import {colourOf, plotAxis} from "./plots.js";

export const title = "Progress";

export function mount(element, studio) {
  const note = make("p", {class: "dim", role: "status"});
  const area = make("div", {class: "progress-plot"});
  element.append(make("h2", {}, "How far is the action?"), note, area);
  let plot = null;
  let request = null;

  async function show() {
    request?.abort();
    request = new AbortController();
    if (!studio.reference) return;
    try {
      const all = await api.get(`progress?reference=${studio.reference}`, {signal: request.signal});
      const shown = all.filter(({id}) => studio.shown.includes(id));
      const times = await Promise.all(shown.map(({id}) => studio.detail(id).then((about) => about.times)));
      draw(shown, times);
      note.textContent = `0 is the start and 1 the end of ${studio.byId.get(studio.reference).name}. A flat part is a pause.`;
    } catch (error) {
      if (error.name !== "AbortError") note.textContent = error.message;
    }
  }

  function draw(videos, times) {
    plot?.destroy();
    const tables = videos.map(({progress}, place) => [Array.from(times[place].subarray(0, progress.length)), progress]);
    plot = new uPlot({
      width: Math.max(280, area.clientWidth), height: Math.max(260, Math.min(520, area.clientHeight || 420)),
      scales: {x: {time: false}, y: {range: [-0.02, 1.02]}},
      series: [{label: "second"}, ...videos.map(({id}, place) => ({
        label: studio.byId.get(id).name, stroke: colourOf(place), width: id === studio.reference ? 3 : 1.5, spanGaps: true, points: {show: false},
      }))],
      axes: [plotAxis(), {...plotAxis(), size: 50}],
    }, uPlot.join(tables), area);
    plot.over.addEventListener("click", () => jump(plot.data[0][plot.cursor.idx]));
  }

  function jump(seconds) {
    if (seconds === undefined) return;
    studio.clock.seek(frameAt(studio.times.get(studio.reference), seconds));
    studio.open("play");
  }

  const stops = ["reference", "shown", "embeddings"].map((what) => studio.listen(what, show));
  show();
  return () => { for (const stop of stops) stop(); request?.abort(); plot?.destroy(); };
}
