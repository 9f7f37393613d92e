/** Align two videos by dynamic time warping: the method `auto` of `cycleback align`, in the browser.
 *
 * The same rules as `cycleback/alignment/ends.py` and `align.py`. A test compares both.
 * Letters: T frames of a, S frames of b. Matrices are {rows, columns, data}, row by row.
 */
import {estimateConfidence} from "./confidence.js";
import {clip, mean, pick, range, squaredDistances, summarize} from "./numbers.js";
import {costs, warp} from "./warp.js";

const CHANCE_SHARE = 0.75, MAX_NEED = 2, MIN_SHARE = 0.5, STILL_PACE = 8, STILL_FRAMES = 5;
const MAX_CELLS = 4e6; // of the matrix that decides what is in common; longer videos are halved until they fit

/** Prices of leaving out all frames before each one, or of leaving out none. */
function prices(own, isFree) {
  const sums = new Float64Array(own.length);
  for (let k = 1; k < own.length; k += 1) sums[k] = isFree ? sums[k - 1] + own[k - 1] : Infinity;
  return sums;
}

/** The part that both videos show: [first, frame after the last] of a and of b. */
function commonPart(a, b, distances) {
  const lengths = [a.rows, b.rows];
  let scale = 1;
  while (a.rows * b.rows > MAX_CELLS && Math.min(a.rows, b.rows) > 1) [a, b, scale] = [halve(a), halve(b), 2 * scale];
  const spans = commonSpans(scale > 1 ? squaredDistances(a, b) : distances);
  return spans.map(([start, stop], k) => [scale * start, Math.min(scale * stop, lengths[k])]);
}

/** Means of two frames each; an odd last frame is kept. */
function halve({rows, columns, data}) {
  const half = Math.ceil(rows / 2), means = new Float64Array(half * columns);
  for (let i = 0; i < half; i += 1) {
    const first = 2 * i * columns, second = Math.min(2 * i + 1, rows - 1) * columns;
    for (let k = 0; k < columns; k += 1) means[i * columns + k] = (data[first + k] + data[second + k]) / 2;
  }
  return {rows: half, columns, data: means};
}

/** The same for videos that need not be halved. */
function commonSpans(distances) {
  const {meanA, meanB, minA, minB} = summarize(distances), least = Math.min(...minA);
  const price = (means, need) => means.map((value) =>
    least + Math.min(CHANCE_SHARE * (value - least), MAX_NEED * (need - least)));
  const ofA = price(meanA, Math.max(...minB)), ofB = price(meanB, Math.max(...minA));
  const whole = [[0, distances.rows], [0, distances.columns]];
  let best = null;
  for (const leadA of [true, false]) {
    for (const tailA of [true, false]) {
      const found = warp(distances, {
        enterA: prices(ofA, leadA), enterB: prices(ofB, !leadA),
        leaveA: prices(ofA.slice().reverse(), tailA).reverse(), leaveB: prices(ofB.slice().reverse(), !tailA).reverse(),
      });
      if (!best || found.price < best.price) best = found;
    }
  }
  const first = best.path[0], last = best.path[best.path.length - 1];
  const spans = [0, 1].map((k) => [first[k], last[k] + 1]);
  const isWhole = spans.every(([start, stop], k) => start === 0 && stop === whole[k][1]);
  const shortest = Math.min(...spans.map(([start, stop]) => stop - start));
  if (isWhole || shortest < MIN_SHARE * Math.min(distances.rows, distances.columns)) return whole;
  const part = meanCosts(distances, spans, meanA, meanB), all = meanCosts(distances, whole, meanA, meanB);
  const isCheap = part.cost - least < (all.cost - least) / 2;
  return part.chance - part.cost > all.chance - all.cost || isCheap ? spans : whole;
}

const cut = (distances, spans) => pick(distances, ...spans.map(([start, stop]) => range(start, stop)));

function meanCosts(distances, spans, meanA, meanB) {
  const inside = cut(distances, spans), {path} = warp(inside);
  const chance = mean(path.map(([i, j]) => meanA[i + spans[0][0]] + meanB[j + spans[1][0]]));
  return {cost: mean(costs(inside, path)), chance};
}

/** How many steps pass before the slower video moves on. */
function standstill(advance) {
  const lead = advance.map(([i, j]) => Math.max(i, j) - Math.min(i, j) - STILL_PACE * Math.min(i, j));
  const step = lead.indexOf(Math.max(...lead));
  return lead[step] >= STILL_FRAMES ? step : 0;
}

function dropStandstills(path) {
  const [i0, j0] = path[0], [i1, j1] = path[path.length - 1];
  const first = standstill(path.map(([i, j]) => [i - i0, j - j0]));
  const last = path.length - 1 - standstill(path.map(([i, j]) => [i1 - i, j1 - j]).reverse());
  return first < last ? path.slice(first, last + 1) : path;
}

/** Match every frame of a with one of b: {indices, confidence, matched, path, distances}. */
export function align(a, b) {
  const distances = squaredDistances(a, b), part = commonPart(a, b, distances);
  const path = dropStandstills(warp(cut(distances, part)).path).map(([i, j]) => [i + part[0][0], j + part[1][0]]);
  const first = path[0][0], last = path[path.length - 1][0];
  const low = new Map(), high = new Map();
  for (const [i, j] of path) {
    if (!low.has(i)) low.set(i, j);
    high.set(i, j);
  }
  const indices = [], matched = [];
  for (let i = 0; i < a.rows; i += 1) {
    const inside = clip(i, first, last);
    indices.push(Math.floor((low.get(inside) + high.get(inside)) / 2));
    matched.push(i >= first && i <= last);
  }
  const confidence = estimateConfidence(distances, indices).map((value, i) => (matched[i] ? value : 0));
  return {indices, confidence, matched, path, distances};
}
