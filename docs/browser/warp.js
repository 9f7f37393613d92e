/** Dynamic time warping, and how alike it finds two videos to run.
 *
 * The same rules as `cycleback/alignment/dtw.py` and `likeness.py`. A test compares both.
 * Matrices are {rows, columns, data}, row by row.
 */
import {mean, ramp} from "./numbers.js";

const GAINS = [0.08, 0.28]; // up to the first a gain says nothing, from the second it is trusted in full

/** The cheapest path, and its price. `ends` price beginning and ending at each frame; by default the path
 * joins both first and both last frames. */
export function warp({rows, columns, data}, ends = null) {
  const fixed = (length, at) => Float64Array.from({length}, (_, k) => (k === at ? 0 : Infinity));
  const enterA = ends?.enterA ?? fixed(rows, 0), enterB = ends?.enterB ?? fixed(columns, 0);
  const leaveA = ends?.leaveA ?? fixed(rows, rows - 1), leaveB = ends?.leaveB ?? fixed(columns, columns - 1);
  const again = ends ? 1 : 0; // with free ends a step in both videos pays its cell twice
  const steps = new Uint8Array(rows * columns);
  let before = new Float64Array(columns).fill(Infinity), now = new Float64Array(columns);
  let best = {price: Infinity, i: -1, j: -1};
  for (let i = 0; i < rows; i += 1) {
    for (let j = 0; j < columns; j += 1) {
      const cost = data[i * columns + j];
      let least = (j > 0 ? before[j - 1] : Infinity) + again * cost, step = 0;
      if (before[j] < least) [least, step] = [before[j], 1];
      if (j > 0 && now[j - 1] < least) [least, step] = [now[j - 1], 2];
      const begin = enterA[i] + enterB[j] + again * cost;
      if (begin < least) [least, step] = [begin, 3];
      now[j] = cost + least;
      steps[i * columns + j] = step;
      const end = now[j] + leaveA[i] + leaveB[j];
      if (end < best.price || (end === best.price && end < Infinity && i + j > best.i + best.j)) {
        best = {price: end, i, j};
      }
    }
    [before, now] = [now, before];
  }
  const path = [];
  for (let {i, j} = best;;) {
    path.push([i, j]);
    const step = steps[i * columns + j];
    if (step === 3) return {path: path.reverse(), price: best.price};
    if (step !== 2) i -= 1;
    if (step !== 1) j -= 1;
  }
}

/** The distance of each pair of frames on a path. */
export const costs = (distances, path) => path.map(([i, j]) => distances.data[i * distances.columns + j]);

/** Mean distance along the cheapest path. */
export const pathDistance = (distances) => mean(costs(distances, warp(distances).path));

/** How much nearer warped frames are than any two, as a share. */
export function measureGain(distances) {
  const all = mean(distances.data);
  return all > 0 ? 1 - pathDistance(distances) / all : 0;
}

/** How far matches with such a gain can be trusted, in [0, 1]. */
export const trustGain = (gain) => ramp(gain, GAINS);
