// One clock owns the time of the reference. Everything on the page that moves listens to it.
//
// The clock counts seconds of the reference and turns them into a frame by the presentation times of that
// video, so videos of any rate, also a variable one, keep their own pace.

export const MIN_SPEED = 0.1;
export const MAX_SPEED = 4;
const MAX_STEP_S = 0.1; // a page that was hidden or busy goes on from where it was

/** The last frame that begins at or before `time`; `times` rises. */
export function frameAt(times, time) {
  let low = 0;
  let high = times.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (times[middle] <= time) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** When a frame ends: where the next one begins; the last one is as long as the one before it. */
export function frameEnd(times, frame) {
  const last = times.length - 1;
  if (frame < last) return times[frame + 1];
  return times[last] + (last > 0 ? times[last] - times[last - 1] : 0.04);
}

export class Clock {
  #time = 0;       // seconds of the reference
  #before = null;  // when the last tick was, in milliseconds of the page
  #request = 0;

  constructor() {
    this.frame = 0;                     // of the reference
    this.times = new Float64Array([0]); // presentation times of the reference
    this.speed = 1;
    this.isBackward = false;
    this.playing = false;
    this.isRepeating = true;            // start again at the end
    this.loop = null;                   // {first, last}: play only these frames
    this.isHeld = () => false;          // whether the pictures are late: time waits for them
    this.listeners = new Set();         // called with the frame of the reference, whenever it changes
    this.watchers = new Set();          // called when playing, speed or loop change
  }

  get time() {
    return this.#time;
  }

  get last() {
    return this.times.length - 1;
  }

  /** Take over the presentation times of another reference, at a frame of it, with a loop or none. */
  adopt(times, frame = this.frame, loop = null) {
    this.times = times;
    this.loop = loop;
    this.seek(frame);
    this.#tellWatchers();
  }

  seek(frame) {
    this.frame = Math.max(0, Math.min(this.last, Math.round(frame)));
    this.#time = this.times[this.frame];
    this.#tell();
  }

  step(frames) {
    this.pause();
    this.seek(this.frame + frames);
  }

  play({backward = false} = {}) {
    const [first, last] = this.#bounds();
    this.isBackward = backward;
    if (this.frame < first || this.frame > last || this.frame === (backward ? first : last)) {
      this.seek(backward ? last : first);
    }
    if (!this.playing) {
      this.playing = true;
      this.#before = null;
      this.#request = requestAnimationFrame((now) => this.#tick(now));
    }
    this.#tellWatchers();
  }

  pause() {
    if (!this.playing) return;
    this.playing = false;
    cancelAnimationFrame(this.#request);
    this.#time = this.times[this.frame];
    this.#tellWatchers();
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  setSpeed(speed) {
    this.speed = Math.max(MIN_SPEED, Math.min(MAX_SPEED, speed));
    this.#tellWatchers();
  }

  /** Play only the frames from `first` to `last`; null plays all. */
  setLoop(first, last) {
    const [low, high] = [Math.min(first, last), Math.max(first, last)];
    this.loop = first === null ? null : {first: Math.max(0, low), last: Math.min(this.last, high)};
    this.#tellWatchers();
  }

  setRepeating(isRepeating) {
    this.isRepeating = isRepeating;
    this.#tellWatchers();
  }

  #bounds() {
    return this.loop ? [this.loop.first, this.loop.last] : [0, this.last];
  }

  #tick(now) {
    if (!this.playing) return;
    const seconds = this.#before === null || this.isHeld() ? 0 : Math.min(MAX_STEP_S, (now - this.#before) / 1000);
    this.#before = now;
    this.#time += seconds * this.speed * (this.isBackward ? -1 : 1);
    this.#turnAtEnd();
    const frame = frameAt(this.times, this.#time);
    if (frame !== this.frame) {
      this.frame = frame;
      this.#tell();
    }
    if (this.playing) this.#request = requestAnimationFrame((next) => this.#tick(next));
  }

  /** Begin again at the other end, or stop there. */
  #turnAtEnd() {
    const [first, last] = this.#bounds();
    const [start, end] = [this.times[first], frameEnd(this.times, last)];
    if (this.#time >= start && this.#time < end) return;
    if (this.loop || this.isRepeating) {
      this.#time = this.isBackward ? this.times[last] : start;
      return;
    }
    this.frame = this.isBackward ? first : last;
    this.pause();
    this.#tell();
  }

  #tell() {
    for (const listener of this.listeners) listener(this.frame);
  }

  #tellWatchers() {
    for (const watcher of this.watchers) watcher();
  }
}
