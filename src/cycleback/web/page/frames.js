// Exact frames of one video. `FrameSource` is what views use; the readers below know how a browser decodes.
//
// A frame is asked for by its number. The server's table of presentation times says where it lies in the
// file, so nothing is ever computed from a frame rate. Decoded frames are kept in a ring around the playhead;
// while playing, one decoder runs forward; a jump decodes from the key frame before it.

import * as api from "./api.js";
import {frameAt, frameEnd} from "./clock.js";

const RING_BYTES = 16e6;      // of decoded pictures per video
const [MIN_RING, MAX_RING] = [8, 32];
const MAX_HEIGHT = 720;       // of decoded pictures; a larger video is shown smaller
const MAX_SKIP = 48;          // frames that a running decoder decodes and drops rather than start anew
const NEAR = 8;               // frames ahead for which a forward decoder is worth its start
const HOME_FRAMES = 6;        // after the frame to which playing returns: they stay in the ring
const PRESENT_MS = 150;       // how long a <video> may take to present a frame after it sought it
const RETRY_MS = 600;         // while the server prepares a file

/** One video's frames, drawn exactly. */
export class FrameSource {
  #reader = null;
  #cursor = null;  // what decodes now: {position, next(), stop()}
  #ring = null;
  #last = -1;      // the frame asked for last
  #ticket = 0;     // of the latest call: older ones give up
  #isClosed = false;

  /** `onprogress` is called with 0..1 while the server prepares the file, and with 1 when it is there. */
  constructor(studio, id, {onprogress = () => {}} = {}) {
    this.studio = studio;
    this.id = id;
    this.onprogress = onprogress;
    this.times = null;
    this.home = 0; // where playing begins again
    this.width = 0;
    this.height = 0;
    this.opening = this.#open();
    this.opening.catch(() => {}); // told to whoever asks for a frame
  }

  async #open() {
    const detail = await this.studio.detail(this.id);
    const reader = await openReader(detail, {onprogress: this.onprogress, isOver: () => this.#isClosed});
    if (this.#isClosed) {
      reader?.close();
      return;
    }
    this.#reader = reader;
    this.times = reader.times;
    const scale = Math.min(1, MAX_HEIGHT / reader.height);
    this.width = Math.max(1, Math.round(reader.width * scale));
    this.height = Math.max(1, Math.round(reader.height * scale));
    this.#ring = new Ring(this.width, this.height);
  }

  get frames() {
    return this.times?.length ?? 0;
  }

  /** Whether a frame can be painted at once. */
  has(frame) {
    return Boolean(this.#ring?.get(frame));
  }

  /** Decode a frame; false when a later call overtook this one. */
  async load(frame) {
    const ticket = ++this.#ticket;
    await this.opening;
    for (let attempt = 0; ticket === this.#ticket && !this.#isClosed;) {
      if (this.#ring.get(frame)) {
        const move = frame - this.#last;
        this.#last = frame;
        if ((move > 0 && move <= NEAR) || frame === this.home) this.warm();
        return true;
      }
      if (attempt > 1) await this.#fetchStill(frame);
      else if (!await this.#advance(frame, attempt)) attempt += 1;
    }
    return false;
  }

  /** Paint a decoded frame; false when it is not there. */
  paint(canvas, frame) {
    const picture = this.#ring?.get(frame);
    if (!picture) return false;
    if (canvas.width !== this.width || canvas.height !== this.height) {
      [canvas.width, canvas.height] = [this.width, this.height];
    }
    canvas.getContext("2d", {alpha: false}).drawImage(picture, 0, 0);
    return true;
  }

  /** Draw exactly this frame; false when a later call overtook this one. */
  async draw(canvas, frame) {
    return await this.load(frame) && this.paint(canvas, frame);
  }

  /** Start to decode what comes after the frame asked for last, so that playing goes on without a pause. */
  warm() {
    if (this.#isClosed || !this.#reader || this.#reader.isRandom || this.#last < 0) return;
    let next = this.#last + 1;
    while (this.#ring.get(next)) next += 1;
    const ahead = this.#cursor && !this.#cursor.isSingle ? next - this.#cursor.position : -1;
    if (next >= this.frames || next > this.#last + HOME_FRAMES || (ahead >= 0 && ahead <= MAX_SKIP)) return;
    this.#start(this.#reader.run(next));
  }

  close() {
    this.#isClosed = true;
    this.#ticket += 1;
    this.#cursor?.stop();
    this.#cursor = null;
    this.#reader?.close();
    this.#reader = null;
    this.#ring?.clear();
  }

  /** Decode one more frame on the way to `frame`; false when this way does not lead there. */
  async #advance(frame, attempt) {
    const cursor = this.#choose(frame, attempt);
    let sample = null;
    try {
      sample = await cursor.next();
    } catch (error) {
      if (this.#isClosed || attempt > 0) return false;
      console.warn(`video ${this.id}, frame ${frame}:`, error);
    }
    if (!sample) {
      if (this.#cursor === cursor) this.#cursor = null;
      return cursor.isStopped; // stopped by a later call: nothing is wrong
    }
    cursor.position = sample.frame + 1;
    cursor.isDone = cursor.isSingle;
    if (!this.#isClosed && Math.abs(sample.frame - frame) < this.#ring.capacity) this.#ring.put(sample, frame, this.home);
    sample.close();
    return sample.frame <= frame;
  }

  /** The decoder to ask: the running one if it comes to this frame soon, else a new one. */
  #choose(frame, attempt) {
    const cursor = this.#cursor;
    const ahead = cursor ? frame - cursor.position : -1;
    if (cursor && !attempt && ahead >= 0 && ahead <= MAX_SKIP && !cursor.isDone) return cursor;
    if (cursor && attempt && ahead >= 0 && cursor.attempt === attempt) return cursor;
    const fresh = this.#begin(frame, attempt);
    fresh.attempt = attempt;
    return this.#start(fresh);
  }

  #begin(frame, attempt) {
    if (this.#reader.isRandom) return this.#reader.single(frame);
    if (attempt) return this.#reader.run(Math.max(0, frame - NEAR));
    const half = this.#ring.capacity >> 1;
    const move = this.#last < 0 ? Infinity : frame - this.#last;
    if (move > 0 && move <= NEAR) return this.#reader.run(frame);
    if (move < 0 && move >= -half) return this.#reader.run(Math.max(0, frame - half + 1)); // more steps back follow
    return this.#reader.single(frame);
  }

  #start(cursor) {
    this.#cursor?.stop();
    this.#cursor = cursor;
    return cursor;
  }

  /** Where the browser's decoder drops a frame, the server's picture of it stands in. */
  async #fetchStill(frame) {
    const bytes = await api.getBytes(`videos/${this.id}/frames/${frame}.jpg?height=${this.height}`);
    const picture = await createImageBitmap(new Blob([bytes], {type: "image/jpeg"}));
    this.#ring?.put({frame, paint: (context, width, height) => context.drawImage(picture, 0, 0, width, height)}, frame, this.home);
    picture.close();
  }
}

/** Decoded pictures by frame; when it is full, the one farthest from the playhead makes room, none at home. */
class Ring {
  #pictures = new Map();

  constructor(width, height) {
    this.width = width;
    this.height = height;
    this.capacity = Math.max(MIN_RING, Math.min(MAX_RING, Math.floor(RING_BYTES / (width * height * 4))));
  }

  get(frame) {
    return this.#pictures.get(frame) ?? null;
  }

  put(sample, wanted, home) {
    const picture = this.#pictures.get(sample.frame) ?? this.#take(wanted, home);
    sample.paint(picture.getContext("2d", {alpha: false}), this.width, this.height);
    this.#pictures.set(sample.frame, picture);
  }

  clear() {
    this.#pictures.clear();
  }

  #take(wanted, home) {
    if (this.#pictures.size < this.capacity) return new OffscreenCanvas(this.width, this.height);
    let farthest = null;
    for (const frame of this.#pictures.keys()) {
      if (this.capacity > MIN_RING && frame >= home && frame < home + HOME_FRAMES) continue;
      if (farthest === null || Math.abs(frame - wanted) > Math.abs(farthest - wanted)) farthest = frame;
    }
    const picture = this.#pictures.get(farthest);
    this.#pictures.delete(farthest);
    return picture;
  }
}

/** Open what the server serves for a video; a browser that cannot decode it gets the all-intra copy. */
async function openReader({id, times, media}, {onprogress, isOver}) {
  const path = `videos/${id}/media`;
  if ("VideoDecoder" in window && media === "original") {
    const reader = await PacketReader.open(api.address(path), times);
    if (reader || isOver()) return reader;
  }
  await waitForFile(`${path}?proxy=1`, {onprogress, isOver});
  const [url, own] = [api.address(`${path}?proxy=1`), await fetchTimes(id)];
  if (isOver()) return null;
  return "VideoDecoder" in window ? await PacketReader.open(url, own) ?? ElementReader.open(url, own) : ElementReader.open(url, own);
}

/** The presentation times of the all-intra copy: a damaged video may have lost frames in it. */
async function fetchTimes(id) {
  return new Float64Array(await api.getBytes(`videos/${id}/times?proxy=1`));
}

/** Ask for the first byte until the server has the file. */
async function waitForFile(path, {onprogress, isOver}) {
  while (!isOver()) {
    const {status, body} = await api.probe(path);
    if (status !== 202) {
      onprogress(1);
      return;
    }
    onprogress(body?.progress ?? 0);
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

/** Where to seek for a frame: the middle of its interval, which no rounding leaves. */
function middleOf(times, frame) {
  return (times[frame] + frameEnd(times, frame)) / 2;
}

/** The frame that begins nearest to `time`. */
function nearestFrame(times, time) {
  const frame = frameAt(times, time);
  const isNextNearer = frame + 1 < times.length && times[frame + 1] - time < time - times[frame];
  return isNextNearer ? frame + 1 : frame;
}

/** Demux with mediabunny, decode with WebCodecs. */
class PacketReader {
  isRandom = false;

  /** A reader, or null when this browser cannot decode the file. */
  static async open(url, times) {
    let input = null;
    try {
      const {ALL_FORMATS, Input, UrlSource, VideoSampleSink} = await import("./vendor/mediabunny.min.mjs");
      input = new Input({formats: ALL_FORMATS, source: new UrlSource(url, {maxCacheSize: 16 << 20})});
      const track = await input.getPrimaryVideoTrack();
      if (!track || !await track.canDecode()) throw new Error("no track that this browser decodes");
      const reader = new PacketReader();
      reader.input = input;
      reader.sink = new VideoSampleSink(track);
      reader.times = times;
      reader.origin = await track.getFirstTimestamp();
      reader.width = await track.getDisplayWidth();
      reader.height = await track.getDisplayHeight();
      return reader;
    } catch (error) {
      console.warn(`${url}:`, error);
      input?.dispose();
      return null;
    }
  }

  /** Decode forward from a frame. */
  run(frame) {
    return this.#cursor(frame, this.sink.samples(this.origin + middleOf(this.times, frame)));
  }

  /** Decode one frame. */
  single(frame) {
    const samples = this.sink.samplesAtTimestamps([this.origin + middleOf(this.times, frame)]);
    return Object.assign(this.#cursor(frame, samples), {isSingle: true});
  }

  #cursor(position, samples) {
    const reader = this;
    return {
      position,
      isStopped: false,
      async next() {
        const {value: sample, done} = await samples.next();
        if (done || !sample) return null;
        return {
          frame: nearestFrame(reader.times, sample.timestamp - reader.origin),
          paint: (context, width, height) => sample.draw(context, 0, 0, width, height),
          close: () => sample.close(),
        };
      },
      stop() {
        this.isStopped = true;
        samples.return();
      },
    };
  }

  close() {
    this.input.dispose();
  }
}

/** A browser without WebCodecs: seek a <video> on the all-intra copy to the middle of the frame. */
class ElementReader {
  isRandom = true;

  static async open(url, times) {
    const video = document.createElement("video");
    Object.assign(video, {muted: true, playsInline: true, preload: "auto", src: url});
    await new Promise((resolve, reject) => {
      video.addEventListener("loadeddata", resolve, {once: true});
      video.addEventListener("error", () => reject(new Error("this browser cannot play the video")), {once: true});
    });
    const about = {video, times, width: video.videoWidth, height: video.videoHeight, turn: Promise.resolve()};
    return Object.assign(new ElementReader(), about);
  }

  single(frame) {
    const reader = this;
    return {
      position: frame,
      isSingle: true,
      isStopped: false,
      next() {
        const sought = reader.turn.then(() => (this.isStopped ? null : reader.#seek(frame)));
        reader.turn = sought.catch(() => {});
        return sought;
      },
      stop() {
        this.isStopped = true;
      },
    };
  }

  async #seek(frame) {
    const {video} = this;
    const target = middleOf(this.times, frame);
    if (Math.abs(video.currentTime - target) > 1e-4) {
      const isShown = this.#waitFor(frame);
      video.currentTime = target;
      await isShown;
    }
    return {frame, paint: (context, width, height) => context.drawImage(video, 0, 0, width, height), close() {}};
  }

  /** Wait until the element presents a frame: the event "seeked" may come before its picture. */
  async #waitFor(frame) {
    const {video, times} = this;
    let isOver = false;
    const sought = new Promise((resolve) => video.addEventListener("seeked", resolve, {once: true}));
    const presented = new Promise((resolve) => {
      const check = (_, {mediaTime}) => {
        if (nearestFrame(times, mediaTime) === frame) resolve();
        else if (!isOver) video.requestVideoFrameCallback(check);
      };
      video.requestVideoFrameCallback?.(check);
    });
    await sought; // a seek within the frame that is shown already presents nothing new
    await Promise.race([presented, new Promise((resolve) => setTimeout(resolve, PRESENT_MS))]);
    isOver = true;
  }

  close() {
    this.video.removeAttribute("src");
    this.video.load();
  }
}
