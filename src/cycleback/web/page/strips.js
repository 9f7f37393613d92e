// Strips: the key moments of all shown videos side by side, one row per video, best match first.

import * as api from "./api.js";
import {clockTime, make} from "./elements.js";

export const title = "Strips";

const EVEN_MOMENTS = 6; // where the reference has no labels

export function mount(element, studio) {
  const order = make("select", {id: "strip-order"}, [
    make("option", {value: "best"}, "best match first"),
    make("option", {value: "worst"}, "worst match first"),
    make("option", {value: "list"}, "as in the list"),
  ]);
  const note = make("p", {class: "dim", role: "status"});
  const table = make("table", {class: "strips"});
  element.append(
    make("div", {class: "toolbar"}, [make("h2", {}, "Key moments"), make("label", {for: "strip-order"}, ["Order ", order]), note]),
    make("div", {class: "strip-area"}, table),
  );

  async function show() {
    const reference = studio.reference;
    if (!reference || !studio.alignment) {
      note.textContent = "Align the videos first (Start, Align now).";
      return;
    }
    const moments = await chooseMoments(studio, reference);
    const rows = rank(studio, moments, order.value);
    const details = new Map(await Promise.all(rows.map(async (row) => [row.id, await studio.detail(row.id)])));
    note.textContent = `Moments of ${studio.byId.get(reference).name}`;
    table.replaceChildren(
      make("thead", {}, make("tr", {}, [make("th", {scope: "col"}, "Video"),
        ...moments.map(({name}) => make("th", {scope: "col"}, name))])),
      make("tbody", {}, rows.map((row) => showRow(studio, row, moments, details.get(row.id)))),
    );
  }

  order.addEventListener("change", show);
  const stops = ["alignment", "labels", "reference", "shown"].map((what) => studio.listen(what, show));
  show();
  return () => { for (const stop of stops) stop?.(); };
}

/** The key events of the reference, or evenly spread frames where it has none: [{name, frame}]. */
async function chooseMoments(studio, reference) {
  const labels = await api.get("labels").catch(() => null);
  const events = labels?.videos.find((video) => video.id === reference)?.events ?? [];
  if (events.length) return events.map(({name, frame}) => ({name, frame}));
  const {times} = await studio.detail(reference);
  return Array.from({length: EVEN_MOMENTS}, (_, number) => {
    const frame = Math.round((number * (times.length - 1)) / (EVEN_MOMENTS - 1));
    return {name: clockTime(times[frame], 1), frame};
  });
}

/** One row per shown video, with its frames and the mean confidence of their matches. */
function rank(studio, moments, order) {
  const rows = studio.shown.filter((id) => id === studio.reference || studio.alignment.has(id)).map((id) => {
    if (id === studio.reference) return {id, frames: moments.map(({frame}) => frame), confidence: 1};
    const match = studio.alignment.get(id);
    const sure = moments.map(({frame}) => match.confidence[frame]);
    return {id, frames: moments.map(({frame}) => match.frames[frame]), confidence: mean(sure)};
  });
  const sign = {best: -1, worst: 1, list: 0}[order];
  return rows.sort((a, b) => sign * (a.confidence - b.confidence));
}

function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}

function showRow(studio, row, moments, about) {
  const isReference = row.id === studio.reference;
  const sure = isReference ? "reference" : `confidence ${Math.round(100 * row.confidence)} %`;
  return make("tr", {"data-video": row.id}, [
    make("th", {scope: "row"}, [about.name, make("br"), make("span", {class: "dim"}, sure)]),
    ...row.frames.map((frame, place) => {
      const picture = make("button", {type: "button", class: "strip-frame", "data-frame": frame}, [
        make("img", {
          src: api.address(`videos/${row.id}/frames/${frame}.jpg?height=110`), loading: "lazy",
          alt: `${about.name} at ${moments[place].name}, frame ${frame}`,
        }),
        make("span", {class: "dim"}, clockTime(about.times[frame], 2)),
      ]);
      picture.addEventListener("click", () => {
        studio.clock.seek(moments[place].frame);
        studio.open("play");
      });
      return make("td", {}, picture);
    }),
  ]);
}
