/** What a frame looks like and how it moves, as vectors: the streams of Cycleback, computed in the browser.
 *
 * The same formulas as `cycleback/video/motion.py` and `cycleback/models/streams.py`. A test compares both.
 * Letters: N frames of a video, V size of a vector. Matrices are {rows, columns, data}, row by row.
 */
import {median, pick, ramp, range, spreadFrames, squaredDistances} from "./numbers.js";
import {measureGain, pathDistance, trustGain} from "./warp.js";

export const SIZE = 112; // side of the frames that the networks see
export const SCALES = {appearance: 0.35, motion: 1};

const PIXELS = 40, CELLS = 8, GAP_S = 1 / 30, MIN_GAP = 0.25;
const FLAT = 0.02, RIDGE = 4e-3, EXPLAINED = [0.05, 0.15], TEXTURE = [0.1, 0.3];
const MIN_BLOCKS = 56, FPS = 30, LAG = 4, SOFTNESS = 0.5, MIN_DEVIATION = 1e-6;
const GRIDS = [1, 2, 4, 8], BANDS = [2, 4, 8], BAND_WEIGHT = 0.5;
const MOTION_GAIN = 20, MOTION_SIGMA = 1, LAG_WEIGHT = 0.7;
const MAX_FRAMES = 256, MIN_ADVANTAGE = 0.03; // MAX_FRAMES of a video are compared

/** How much each of `parts` equal lengths covers of each of `side` pixels, as weights of a mean. */
export function areaWeights(side, parts) {
  const weights = [];
  for (let part = 0; part < parts; part += 1) {
    const low = part * side / parts, high = (part + 1) * side / parts, own = [];
    for (let pixel = Math.floor(low); pixel < Math.min(Math.ceil(high - 1e-9), side); pixel += 1) {
      own.push([pixel, (Math.min(high, pixel + 1) - Math.max(low, pixel)) * parts / side]);
    }
    weights.push(own);
  }
  return weights;
}

/** Average the areas of an RGBA picture into SIZE x SIZE pixels of red, green and blue.
 *
 * A file may not say how its colours are coded. Browsers then read them by BT.709, and Python by BT.601, which
 * is what `isGuessed` asks for here, too.
 */
export function shrink({data, width, height}, isGuessed = false) {
  const across = areaWeights(width, SIZE), down = areaWeights(height, SIZE);
  const rows = new Float32Array(height * SIZE * 3);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < SIZE; x += 1) {
      let red = 0, green = 0, blue = 0;
      for (const [pixel, weight] of across[x]) {
        const at = 4 * (y * width + pixel);
        red += weight * data[at];
        green += weight * data[at + 1];
        blue += weight * data[at + 2];
      }
      rows.set([red, green, blue], 3 * (y * SIZE + x));
    }
  }
  const image = new Uint8ClampedArray(SIZE * SIZE * 3); // rounds
  const line = new Float32Array(SIZE * 3);
  for (let y = 0; y < SIZE; y += 1) {
    line.fill(0);
    for (const [row, weight] of down[y]) {
      for (let k = 0; k < line.length; k += 1) line[k] += weight * rows[row * line.length + k];
    }
    if (isGuessed) recode(line);
    image.set(line, y * line.length);
  }
  return image;
}

/** Turn colours that were decoded by BT.709 into those of BT.601, in place. */
function recode(colours) {
  for (let k = 0; k < colours.length; k += 3) {
    const [red, green, blue] = [colours[k], colours[k + 1], colours[k + 2]];
    const luma = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    colours[k] = luma + 1.402 * (red - luma) / 1.5748;
    colours[k + 2] = luma + 1.772 * (blue - luma) / 1.8556;
    colours[k + 1] = (luma - 0.299 * colours[k] - 0.114 * colours[k + 2]) / 0.587;
  }
}

/** Reduce an image of SIZE x SIZE to a grey one of 40 x 40 in [0, 1], from four samples of each block. */
export function toGrey(image) {
  const block = Math.max(1, Math.floor(SIZE / MIN_BLOCKS));
  const first = Math.floor(block / 4), second = first + Math.floor(block / 2), side = Math.floor(SIZE / block);
  const samples = [[first, first, 1], [first, second, 0], [second, first, 2], [second, second, 1]];
  const grey = new Float64Array(side * side);
  for (let y = 0; y < side; y += 1) {
    for (let x = 0; x < side; x += 1) {
      for (const [top, left, channel] of samples) {
        grey[y * side + x] += image[3 * ((y * block + top) * SIZE + x * block + left) + channel];
      }
    }
  }
  const weights = areaWeights(side, PIXELS), lines = new Float64Array(side * PIXELS);
  for (let y = 0; y < side; y += 1) {
    for (let x = 0; x < PIXELS; x += 1) {
      for (const [pixel, weight] of weights[x]) lines[y * PIXELS + x] += weight * grey[y * side + pixel];
    }
  }
  const small = new Float64Array(PIXELS * PIXELS);
  for (let y = 0; y < PIXELS; y += 1) {
    for (const [row, weight] of weights[y]) {
      for (let x = 0; x < PIXELS; x += 1) small[y * PIXELS + x] += weight * lines[row * PIXELS + x] / 1020;
    }
  }
  return small;
}

/** The motion (N, 4, 8, 8) of grey images shown at `times`: right, down, left, up in 8 x 8 cells. */
export function measureMotion(greys, times) {
  const size = 4 * CELLS * CELLS, motion = new Float64Array(greys.length * size);
  for (let n = 1; n < greys.length; n += 1) {
    const earlier = findEarlier(times, n);
    const gap = Math.max((times[n] - times[earlier]) / GAP_S, MIN_GAP);
    motion.set(measureCells(greys[earlier], greys[n], gap), n * size);
  }
  if (greys.length > 1) motion.copyWithin(0, size, 2 * size); // the first frame has that of the second
  return motion;
}

/** The frame before frame n that is nearest to 1/30 s earlier. */
function findEarlier(times, n) {
  const target = times[n] - GAP_S;
  let after = 0;
  while (after < n - 1 && times[after] < target) after += 1;
  const before = Math.max(after - 1, 0);
  return target - times[before] < times[after] - target - 1e-4 ? before : after;
}

function measureCells(earlier, image, gap) {
  const area = PIXELS * PIXELS, at = (y, x) => y * PIXELS + x;
  const both = new Float64Array(area), change = new Float64Array(area);
  const x = new Float64Array(area), y = new Float64Array(area);
  for (let k = 0; k < area; k += 1) {
    both[k] = image[k] + earlier[k];
    change[k] = earlier[k] - image[k];
  }
  for (let row = 0; row < PIXELS; row += 1) {
    for (let column = 0; column < PIXELS; column += 1) {
      const k = at(row, column), last = PIXELS - 1;
      x[k] = column === 0 ? 2 * (both[k + 1] - both[k]) : column === last ? 2 * (both[k] - both[k - 1])
        : both[k + 1] - both[k - 1];
      y[k] = row === 0 ? 2 * (both[k + PIXELS] - both[k]) : row === last ? 2 * (both[k] - both[k - PIXELS])
        : both[k + PIXELS] - both[k - PIXELS];
    }
  }
  removeShift(change, x, y);
  const cells = new Float64Array(4 * CELLS * CELLS), edge = PIXELS / CELLS;
  for (let row = 0; row < PIXELS; row += 1) {
    for (let column = 0; column < PIXELS; column += 1) {
      const k = at(row, column), cell = Math.floor(row / edge) * CELLS + Math.floor(column / edge);
      const speed = change[k] / ((Math.hypot(x[k], y[k]) + 4 * FLAT) * gap);
      [x[k] * speed, y[k] * speed].forEach((flow, axis) => {
        const way = flow > 0 ? axis : axis + 2;
        cells[way * CELLS * CELLS + cell] += Math.abs(flow) / (edge * edge);
      });
    }
  }
  return cells;
}

/** Subtract from `change` what a shift of the whole image by a moving camera explains. */
function removeShift(change, x, y) {
  let cx = 0, cy = 0, xy = 0, xx = RIDGE, yy = RIDGE, plain = 0, count = 0;
  const chosen = [];
  for (let row = 0; row < PIXELS; row += 2) {
    for (let column = 0; column < PIXELS; column += 2) chosen.push(row * PIXELS + column);
  }
  for (const k of chosen) {
    cx += change[k] * x[k];
    cy += change[k] * y[k];
    xy += x[k] * y[k];
    xx += x[k] * x[k];
    yy += y[k] * y[k];
    plain += 1 / (x[k] * x[k] + y[k] * y[k] + (4 * FLAT) ** 2);
    count += 1;
  }
  const determinant = xx * yy - xy * xy;
  const right = (yy * cx - xy * cy) / determinant, down = (xx * cy - xy * cx) / determinant;
  let left = 0, whole = 0;
  for (const k of chosen) {
    const strength = Math.sqrt(x[k] * x[k] + y[k] * y[k] + (4 * FLAT) ** 2);
    left += Math.abs(change[k] - right * x[k] - down * y[k]) / strength;
    whole += Math.abs(change[k]) / strength;
  }
  const explained = 1 - left / Math.max(whole, 1e-6), texture = 1 - (4 * FLAT) ** 2 * plain / count;
  const share = ramp(explained, EXPLAINED) * ramp(texture, TEXTURE);
  for (let k = 0; k < change.length; k += 1) change[k] -= share * (right * x[k] + down * y[k]);
}

/** The motion of the mirrored video: left for right, columns turned round. */
export function mirrorMotion(motion) {
  const turned = new Float64Array(motion.length), size = CELLS * CELLS, ways = [2, 1, 0, 3];
  for (let start = 0; start < motion.length; start += 4 * size) {
    for (let way = 0; way < 4; way += 1) {
      for (let cell = 0; cell < size; cell += 1) {
        const column = cell % CELLS, other = cell - column + CELLS - 1 - column;
        turned[start + way * size + cell] = motion[start + ways[way] * size + other];
      }
    }
  }
  return turned;
}

/** The vectors of the stream `motion` from the motion (N, 4, 8, 8) of a video. */
export function motionVectors(motion, times) {
  const count = times.length, factor = rateFactor(times), area = CELLS * CELLS;
  const cells = motion.slice();
  for (let start = 0; start < cells.length; start += area) {
    const usual = median(cells.subarray(start, start + area)); // what moves everywhere is the camera, or noise
    for (let k = start; k < start + area; k += 1) cells[k] = Math.max(cells[k] - usual, 0);
  }
  const parts = GRIDS.map((side) => [1, averageCells(cells, count, side)]);
  for (const rows of BANDS) parts.push([BAND_WEIGHT, averageBands(cells, count, rows)]);
  const standard = parts.map(([weight, values]) => scaleBy(standardize(values, MOTION_SIGMA * factor), weight));
  const now = soften(concatenate(standard)), lag = Math.round(LAG * factor);
  const around = [-lag, lag].map((offset) => scaleBy(shift(now, offset), LAG_WEIGHT));
  return normalizeVideo(concatenate([now, ...around]));
}

/** The vectors of the stream `appearance` from the means (N, F) of the feature maps of a video. */
export const appearanceVectors = (means) => normalizeVideo(soften(means));

/** Choose how much each stream counts for two videos: as much as it makes warped frames nearer than others. */
export function weighStreams(a, b) {
  const weights = {};
  for (const stream of Object.keys(a)) {
    const heard = [a[stream], b[stream]].filter(isHeard);
    if (heard.length === 0) {
      weights[stream] = 0;
      continue;
    }
    const share = heard.length === 2 ? trustGain(measureGain(compare(heard[1], heard[0]))) : 1;
    weights[stream] = Math.round(1000 * share * SCALES[stream]) / 1000;
  }
  if (!Object.values(weights).some((weight) => weight > 0)) { // nothing stands out: what is heard must do
    for (const stream of Object.keys(a)) weights[stream] = isHeard(a[stream]) || isHeard(b[stream]) ? SCALES[stream] : 0;
  }
  return weights;
}

/** Whether video b shows the action from the other side than a: whether it is nearer when turned round. */
export function isMirrored(a, b) {
  const near = (one, other) => Math.log(pathDistance(compare(one, other)) + 1e-9);
  const ofB = near(a.plain, b.plain) - near(a.plain, b.turned);
  const ofA = near(b.plain, a.plain) - near(b.plain, a.turned);
  return ofB > 2 * MIN_ADVANTAGE && !(-ofA > 2 * MIN_ADVANTAGE);
}

/** Join weighted streams side by side. */
export function fuse(vectors, weights) {
  return concatenate(Object.keys(vectors).map((stream) => scaleBy(vectors[stream], weights[stream])));
}

/** Squared distances between at most 256 evenly spread frames of each video. */
const compare = (a, b) => squaredDistances(thin(a), thin(b));

const thin = (video) => pick(video, spreadFrames(video.rows, MAX_FRAMES), range(0, video.columns));

const isHeard = ({data}) => data.some((value) => value !== 0);

function rateFactor(times) {
  const span = times[times.length - 1] - times[0];
  return span > 0 ? Math.max(1, (times.length - 1) / span / FPS) : 1;
}

function averageCells(cells, count, side) {
  const step = CELLS / side, columns = 4 * side * side, data = new Float64Array(count * columns);
  for (let n = 0; n < count; n += 1) {
    for (let k = 0; k < 4 * CELLS * CELLS; k += 1) {
      const way = Math.floor(k / 64), row = Math.floor(k % 64 / CELLS), column = k % CELLS;
      const to = (way * side + Math.floor(row / step)) * side + Math.floor(column / step);
      data[n * columns + to] += cells[n * 256 + k] / (step * step);
    }
  }
  return {rows: count, columns, data};
}

function averageBands(cells, count, rows) {
  const step = CELLS / rows, columns = 3 * rows, data = new Float64Array(count * columns);
  const kinds = [0, 1, 0, 2]; // right and left together, down, up
  for (let n = 0; n < count; n += 1) {
    for (let k = 0; k < 4 * CELLS * CELLS; k += 1) {
      const row = Math.floor(k % 64 / CELLS);
      data[n * columns + kinds[Math.floor(k / 64)] * rows + Math.floor(row / step)] += cells[n * 256 + k] / (CELLS * step);
    }
  }
  return {rows: count, columns, data};
}

/** Filter over time with a Gaussian; the ends are mirrored. */
function smooth({rows, columns, data}, sigma) {
  const radius = Math.floor(4 * sigma + 0.5), taps = [], out = new Float64Array(data.length);
  for (let k = -radius; k <= radius; k += 1) taps.push(Math.exp(-0.5 * (k / sigma) ** 2));
  const total = taps.reduce((sum, tap) => sum + tap, 0);
  for (let n = 0; n < rows; n += 1) {
    taps.forEach((tap, k) => {
      let at = (n + k - radius) % (2 * rows); // ... 1 0 | 0 1 2 ... and so on
      at = at < 0 ? at + 2 * rows : at;
      at = at < rows ? at : 2 * rows - 1 - at;
      for (let c = 0; c < columns; c += 1) out[n * columns + c] += tap / total * data[at * columns + c];
    });
  }
  return {rows, columns, data: out};
}

function standardize({rows, columns, data}, sigma) {
  const compressed = data.map((value) => Math.log1p(MOTION_GAIN * value));
  const {data: smoothed} = smooth({rows, columns, data: compressed}, sigma);
  for (let c = 0; c < columns; c += 1) {
    let mean = 0, square = 0;
    for (let n = 0; n < rows; n += 1) mean += smoothed[n * columns + c] / rows;
    for (let n = 0; n < rows; n += 1) square += (smoothed[n * columns + c] - mean) ** 2 / rows;
    const scale = (Math.sqrt(square) + 1e-6) * Math.sqrt(columns);
    for (let n = 0; n < rows; n += 1) smoothed[n * columns + c] = (smoothed[n * columns + c] - mean) / scale;
  }
  return {rows, columns, data: smoothed};
}

function center({rows, columns, data}) {
  const means = new Float64Array(columns), out = Float64Array.from(data);
  for (let k = 0; k < data.length; k += 1) means[k % columns] += data[k] / rows;
  for (let k = 0; k < data.length; k += 1) out[k] -= means[k % columns];
  return out;
}

/** Bring the lengths of centred vectors closer together: x / (|x| + half the mean length). */
function soften(vectors) {
  const {rows, columns} = vectors, data = center(vectors), lengths = new Float64Array(rows);
  for (let k = 0; k < data.length; k += 1) lengths[Math.floor(k / columns)] += data[k] ** 2;
  const mean = lengths.reduce((sum, square) => sum + Math.sqrt(square) / rows, 0);
  return {rows, columns, data: data.map((value, k) => value / (Math.sqrt(lengths[Math.floor(k / columns)]) + SOFTNESS * mean + 1e-9))};
}

/** Scale the vectors of a video to mean 0 and mean squared length 1; all zeros if constant. */
function normalizeVideo(vectors) {
  const {rows, columns} = vectors, data = center(vectors);
  const deviation = Math.sqrt(data.reduce((sum, value) => sum + value * value, 0) / rows);
  return {rows, columns, data: data.map((value) => deviation > MIN_DEVIATION ? value / deviation : 0)};
}

function shift({rows, columns, data}, offset) {
  const out = new Float64Array(data.length);
  for (let n = 0; n < rows; n += 1) {
    const from = Math.min(Math.max(n + offset, 0), rows - 1) * columns;
    out.set(data.subarray(from, from + columns), n * columns);
  }
  return {rows, columns, data: out};
}

const scaleBy = ({rows, columns, data}, weight) => ({rows, columns, data: data.map((value) => weight * value)});

function concatenate(parts) {
  const {rows} = parts[0], columns = parts.reduce((sum, part) => sum + part.columns, 0);
  const data = new Float64Array(rows * columns);
  for (let n = 0, at = 0; n < rows; n += 1) {
    for (const part of parts) {
      data.set(part.data.subarray(n * part.columns, (n + 1) * part.columns), at);
      at += part.columns;
    }
  }
  return {rows, columns, data};
}
