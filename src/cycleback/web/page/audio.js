// The sound of one video, in time with the clock.
//
// At its own pace it is played as it is. Where the alignment stretches or squeezes the video, short grains
// of its sound follow the warp, so the pitch stays what it was.

import * as api from "./api.js";

const GRAIN_S = 0.06;    // length of a grain; the next one begins in its middle
const AHEAD_S = 0.15;    // how far grains are scheduled ahead
const PERIOD_MS = 40;    // between two looks at the clock
const MAX_DRIFT_S = 0.05; // between plain sound and clock before it starts anew
const MAX_SOUND_S = 1200;

export class Voice {
  #context = null;
  #timer = 0;
  #sounds = new Map(); // id -> promise of {buffer, start}
  #sound = null;       // of the chosen video
  #plain = null;       // {node, started, time}: sound that runs by itself
  #next = 0;           // when the next grain begins, in seconds of the context

  constructor(studio) {
    this.studio = studio;
    this.id = null;
    this.watch = () => this.#follow();
    studio.clock.watchers.add(this.watch);
  }

  /** Hear this video; null is silence. */
  async choose(id) {
    this.#hush();
    this.id = id;
    this.#sound = null;
    if (id === null) return;
    this.#context ??= new AudioContext();
    this.#context.resume();
    if (!this.#sounds.has(id)) this.#sounds.set(id, this.#load(id));
    try {
      const sound = await this.#sounds.get(id);
      if (this.id === id) this.#sound = sound;
      this.#follow();
    } catch (error) {
      this.#sounds.delete(id);
      this.studio.say(`no sound of ${this.studio.byId.get(id)?.name}: ${error.message}`);
    }
  }

  close() {
    this.#hush();
    this.studio.clock.watchers.delete(this.watch);
    this.#context?.close();
    this.#sounds.clear();
  }

  async #load(id) {
    const url = api.address(`videos/${id}/media`);
    if (!("AudioDecoder" in window)) {
      const bytes = await api.getBytes(`videos/${id}/media?proxy=1`);
      return {buffer: await this.#context.decodeAudioData(bytes), start: 0};
    }
    const {ALL_FORMATS, AudioBufferSink, Input, UrlSource} = await import("./vendor/mediabunny.min.mjs");
    const input = new Input({formats: ALL_FORMATS, source: new UrlSource(url)});
    try {
      const [video, track] = [await input.getPrimaryVideoTrack(), await input.getPrimaryAudioTrack()];
      if (!track) throw new Error("the video has none");
      const parts = [];
      for await (const part of new AudioBufferSink(track).buffers(0, MAX_SOUND_S)) parts.push(part);
      return join(parts, await video?.getFirstTimestamp() ?? 0);
    } finally {
      input.dispose();
    }
  }

  #follow() {
    const isHeard = this.studio.clock.playing && this.#sound;
    if (!isHeard) this.#hush();
    else if (!this.#timer) {
      this.#next = this.#context.currentTime;
      this.#timer = setInterval(() => this.#schedule(), PERIOD_MS);
      this.#schedule();
    }
  }

  #hush() {
    clearInterval(this.#timer);
    this.#timer = 0;
    this.#stopPlain();
  }

  #schedule() {
    const {clock} = this.studio;
    const isOwnPace = this.id === this.studio.reference || !this.studio.isAligned;
    if (isOwnPace && clock.speed === 1 && !clock.isBackward) this.#playPlain();
    else {
      this.#stopPlain();
      this.#playGrains();
    }
  }

  #playPlain() {
    const now = this.#context.currentTime;
    const time = this.studio.timeOf(this.id);
    const drift = this.#plain ? this.#plain.time + (now - this.#plain.started) - time : Infinity;
    if (Math.abs(drift) < MAX_DRIFT_S) return;
    this.#stopPlain();
    const offset = time - this.#sound.start;
    if (offset < 0 || offset >= this.#sound.buffer.duration) return;
    const node = this.#node();
    node.connect(this.#context.destination);
    node.start(now, offset);
    this.#plain = {node, started: now, time};
  }

  #stopPlain() {
    this.#plain?.node.stop();
    this.#plain = null;
  }

  #playGrains() {
    const {clock} = this.studio;
    const now = this.#context.currentTime;
    const pace = clock.speed * (clock.isBackward ? -1 : 1);
    this.#next = Math.max(this.#next, now);
    while (this.#next < now + AHEAD_S) {
      const time = Math.max(0, clock.time + (this.#next - now) * pace);
      this.#playGrain(this.#next, this.studio.timeOf(this.id, time) - this.#sound.start);
      this.#next += GRAIN_S / 2;
    }
  }

  #playGrain(when, offset) {
    if (offset < 0 || offset >= this.#sound.buffer.duration) return;
    const gain = this.#context.createGain();
    gain.gain.setValueAtTime(0, when);
    gain.gain.linearRampToValueAtTime(1, when + GRAIN_S / 2);
    gain.gain.linearRampToValueAtTime(0, when + GRAIN_S);
    const node = this.#node();
    node.connect(gain).connect(this.#context.destination);
    node.start(when, offset, GRAIN_S);
  }

  #node() {
    const node = this.#context.createBufferSource();
    node.buffer = this.#sound.buffer;
    return node;
  }
}

/** One buffer of all parts; `start` is the second of the video at which it begins. */
function join(parts, origin) {
  if (!parts.length) throw new Error("the sound cannot be decoded");
  const {numberOfChannels: channels, sampleRate} = parts[0].buffer;
  const begin = parts[0].timestamp;
  const last = parts.at(-1);
  const length = Math.round((last.timestamp - begin) * sampleRate) + last.buffer.length;
  const buffer = new AudioBuffer({numberOfChannels: channels, length, sampleRate});
  for (const {buffer: part, timestamp} of parts) {
    const offset = Math.max(0, Math.round((timestamp - begin) * sampleRate));
    for (let channel = 0; channel < channels; channel += 1) {
      buffer.copyToChannel(part.getChannelData(Math.min(channel, part.numberOfChannels - 1)), channel, offset);
    }
  }
  return {buffer, start: begin - origin};
}
