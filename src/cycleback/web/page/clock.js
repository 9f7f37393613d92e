// One clock owns the time of the reference. Everything on the page that moves listens to it.

export class Clock {
  constructor(studio) {
    this.studio = studio;
    this.frame = 0;      // of the reference
    this.times = new Float64Array([0]); // presentation times of the reference
    this.speed = 1;
    this.playing = false;
    this.listeners = new Set(); // called with the frame of the reference, whenever it changes
  }

  seek(frame) {
    this.frame = Math.max(0, Math.min(this.times.length - 1, Math.round(frame)));
    for (const listener of this.listeners) listener(this.frame);
  }
}
