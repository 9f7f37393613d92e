/** Confidence of matches: the share of matches like these that are right.
 *
 * The same rules as `cycleback/alignment/confidence.py` and `posterior.py`, which explain them. A test compares
 * both. Matches of this page never run backwards, so there is one curve.
 * Letters: T frames of a, S frames of b, R and C of them that are looked at. Matrices are {rows, columns, data}.
 */
import {clip, interpolate, median, pick, spreadFrames, sum, summarize} from "./numbers.js";
import {measureGain, trustGain} from "./warp.js";

const TOLERANCE = 0.05, TOLERANCE_FRAMES = 3, GAIN_FRAMES = 64, MIN_FRAMES = 8;
const MAX_FRAMES = 128, HEAT = 0.5, OUTLIERS = 0.02, EXACT = 1e-12;
const SMALLEST = 2 ** -1022; // positive number of full precision
const WARPED = { // share of matches with such a score that are right
  scores: [0, 0.290012, 0.779689, 0.920046, 0.963934, 0.985548, 0.994376, 0.998064, 0.999377, 0.999842, 0.999969, 0.999996, 1],
  shares: [0, 0.352, 0.645, 0.769, 0.849, 0.895, 0.938, 0.957, 0.963, 0.963, 0.978, 0.978, 1],
};

/** The confidence in [0, 1] of matches `indices` (T), given squared distances (T, S). */
export function estimateConfidence(distances, indices) {
  return scoreMatches(distances, indices).map((score) => interpolate(score, WARPED.scores, WARPED.shares));
}

/** The probability of all warps that put each match within the tolerance, less where the videos run unlike. */
function scoreMatches(distances, indices) {
  const near = sumNear(findPosterior(distances), indices, Math.max(TOLERANCE_FRAMES, TOLERANCE * distances.columns));
  const trust = indices.length < MIN_FRAMES ? 1 : trustPart(distances, indices);
  return near.map((share) => share * trust);
}

/** How far a and the matched part of b run alike, by warping the whole of both. */
function trustPart(distances, indices) {
  const first = Math.min(...indices), length = Math.max(...indices) + 1 - first;
  const columns = spreadFrames(length, GAIN_FRAMES).map((frame) => first + frame);
  return trustGain(measureGain(pick(distances, spreadFrames(indices.length, GAIN_FRAMES), columns)));
}

/** The probability that each match lies within `reach` of where it was found. */
function sumNear({rows, columns, shares}, indices, reach) {
  const edges = [columns[0] - 0.5];
  columns.slice(1).forEach((column, k) => edges.push((columns[k] + column) / 2));
  edges.push(columns[columns.length - 1] + 0.5);
  const upto = rows.map((_, row) => addUp(shares.subarray(row * columns.length, (row + 1) * columns.length)));
  const whole = Math.floor(reach); // a match that is off by exactly the reach is still near
  let row = 0;
  return indices.map((match, frame) => {
    while (row < rows.length - 1 && (rows[row] + rows[row + 1]) / 2 < frame) row += 1; // the nearest
    const [below, above] = [match - whole - 0.5, match + whole + 0.5];
    return clip(interpolate(above, edges, upto[row]) - interpolate(below, edges, upto[row]), 0, 1);
  });
}

/** Sums of the first 0, 1, 2 ... values. */
function addUp(values) {
  const sums = [0];
  values.forEach((value, k) => sums.push(sums[k] + value));
  return sums;
}

/** The probability `shares` (R, C) that frame `rows` (R) of a matches frame `columns` (C) of b. */
function findPosterior(distances) {
  const [rows, columns] = [distances.rows, distances.columns].map((length) => spreadFrames(length, MAX_FRAMES));
  const seen = pick(distances, rows, columns), {minA, minB} = summarize(seen), unit = HEAT * median(minA);
  const excess = {...seen, data: seen.data.map((value, k) => value - minB[k % columns.length] / 2)};
  const least = summarize(excess).minA;
  const more = excess.data.map((value, k) => value - least[Math.floor(k / columns.length)]);
  if (more.every((value) => value === 0)) { // nothing tells the moments of b apart
    return {rows, columns, shares: new Float64Array(more.length)};
  }
  const floor = unit > 0 ? OUTLIERS : EXACT;
  const fit = more.map((value) => (1 - floor) * Math.exp(-value / Math.max(unit, SMALLEST)) + floor);
  const [lastA, lastB] = [distances.rows - 1, distances.columns - 1];
  const usual = lastB / Math.max(lastA, 1); // frames of b per frame of a, at constant speed
  const stretch = (columns.length - 1) / Math.max(lastB, 1) * Math.max(lastA, 1) / Math.max(rows.length - 1, 1);
  return {rows, columns, shares: sumWarps({...seen, data: fit}, stretch * Math.sqrt(usual))};
}

/** The share (R, C) of all warps that pass each cell, weighted by `fit` (R, C) and their pace. */
function sumWarps(fit, pace) {
  const {columns} = fit, turned = {...fit, data: fit.data.slice().reverse()};
  const forwards = enterCells(fit, pace), backwards = enterCells(turned, pace).reverse();
  const shares = fit.data.map((value, k) => forwards[k] * value * backwards[k]);
  for (let start = 0; start < shares.length; start += columns) {
    const row = shares.subarray(start, start + columns), total = sum(row);
    if (total > 0) row.forEach((value, k) => { row[k] = value / total; });
  }
  return shares;
}

/** The share (R, C) of all warps that enter each cell, by the fit of the rows before. */
function enterCells({columns, data}, pace) {
  const entered = new Float64Array(data.length), decay = Math.exp(-1 / (2 * pace + 1)); // per column moved
  let state = new Float64Array(columns).fill(1);
  for (let start = 0; start < data.length; start += columns) {
    if (start > 0) {
      for (let k = 1; k < columns; k += 1) state[k] += decay * state[k - 1];
    }
    const total = sum(state);
    state = state.map((value) => value / total);
    entered.set(state, start);
    state = state.map((value, k) => value * data[start + k]);
  }
  return entered;
}
