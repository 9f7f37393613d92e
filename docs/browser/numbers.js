/** Rows of numbers and matrices, for all that the page computes.
 *
 * Letters: T frames of a, S frames of b. Matrices are {rows, columns, data}, row by row.
 */

export const sum = (values) => values.reduce((total, value) => total + value, 0);
export const mean = (values) => sum(values) / values.length;
export const range = (start, stop) => Array.from({length: stop - start}, (_, k) => start + k);
export const clip = (value, low, high) => Math.min(Math.max(value, low), high);

/** How far `value` is on the way from `low` to `high`, in [0, 1]. */
export const ramp = (value, [low, high]) => clip((value - low) / (high - low), 0, 1);

export function median(values) {
  const sorted = Float64Array.from(values).sort(), middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The value at `x` of the straight lines from point to point; `xs` increase. */
export function interpolate(x, xs, ys) {
  let k = 1;
  while (k < xs.length - 1 && xs[k] < x) k += 1;
  return ys[k - 1] + ramp(x, [xs[k - 1], xs[k]]) * (ys[k] - ys[k - 1]);
}

/** At most `most` (an even number) frame numbers, evenly spread, with the first and the last frame. */
export function spreadFrames(length, most) {
  if (length <= most) return range(0, length);
  return Array.from({length: most}, (_, k) => Math.round(k * (length - 1) / (most - 1)));
}

/** The matrix of some rows and columns. */
export function pick(matrix, rows, columns) {
  const data = new Float64Array(rows.length * columns.length);
  let to = 0;
  for (const i of rows) {
    for (const j of columns) data[to++] = matrix.data[i * matrix.columns + j];
  }
  return {rows: rows.length, columns: columns.length, data};
}

/** Mean and least of each row (frames of a) and of each column (frames of b). */
export function summarize({rows, columns, data}) {
  const found = {
    meanA: new Float64Array(rows), meanB: new Float64Array(columns),
    minA: new Float64Array(rows).fill(Infinity), minB: new Float64Array(columns).fill(Infinity),
  };
  for (let i = 0; i < rows; i += 1) {
    for (let j = 0; j < columns; j += 1) {
      const value = data[i * columns + j];
      found.meanA[i] += value / columns;
      found.meanB[j] += value / rows;
      found.minA[i] = Math.min(found.minA[i], value);
      found.minB[j] = Math.min(found.minB[j], value);
    }
  }
  return found;
}

/** Squared distances (T, S) between the rows of two matrices. What rounding alone can explain is 0. */
export function squaredDistances(a, b) {
  const data = new Float64Array(a.rows * b.rows), size = a.columns;
  const ofA = squaredLengths(a, b), ofB = squaredLengths(b, b), rounding = 4 * Number.EPSILON * Math.sqrt(size);
  for (let i = 0; i < a.rows; i += 1) {
    for (let j = 0; j < b.rows; j += 1) {
      let squared = 0;
      for (let k = 0, p = i * size, q = j * size; k < size; k += 1, p += 1, q += 1) {
        const difference = a.data[p] - b.data[q];
        squared += difference * difference;
      }
      data[i * b.rows + j] = squared <= rounding * (ofA[i] + ofB[j]) ? 0 : squared;
    }
  }
  return {rows: a.rows, columns: b.rows, data};
}

/** Squared length of each row, seen from the first row of `origin`. */
function squaredLengths({rows, columns, data}, origin) {
  const lengths = new Float64Array(rows);
  for (let k = 0; k < data.length; k += 1) {
    lengths[Math.floor(k / columns)] += (data[k] - origin.data[k % columns]) ** 2;
  }
  return lengths;
}
