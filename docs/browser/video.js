/** Read a video file and turn its frames into vectors: decoding by WebCodecs, the network by WebAssembly.
 *
 * Nothing leaves the browser: the file is read in place, and the network was loaded with the page.
 */
import * as ort from "./vendor/ort.wasm.min.mjs";
import {ALL_FORMATS, BlobSource, Input, VideoSampleSink} from "./vendor/mediabunny.min.mjs";
import {appearanceVectors, measureMotion, mirrorMotion, motionVectors, shrink, SIZE, toGrey} from "./streams.js";

const MAX_SIDE = 480; // pixels of a frame that are averaged; larger frames are drawn smaller first
const SHOWN_BYTES = 160e6; // of the pictures that are kept to play, per video
const MAX_FRAMES = 3000, BATCH = 16;

ort.env.wasm.wasmPaths = new URL("./vendor/", import.meta.url).href;
ort.env.wasm.numThreads = 1;

/** Load the network of the stream `appearance`. */
export async function loadNetwork() {
  const answer = await fetch(new URL("./model/base.onnx", import.meta.url));
  if (!answer.ok) throw new Error("The network is missing beside this page. Build it again with: make browser");
  return ort.InferenceSession.create(new Uint8Array(await answer.arrayBuffer()));
}

/** Decode a file: {name, times, greys, images, pictures, width, height}. */
export async function readVideo(file, onprogress = () => {}) {
  const input = new Input({formats: ALL_FORMATS, source: new BlobSource(file)});
  try {
    const track = await input.getPrimaryVideoTrack().catch(() => null);
    if (!track) throw new Error(`${file.name} holds no video that a browser can open.`);
    if (!await track.canDecode()) throw new Error(`${file.name}: this browser cannot decode its ${track.codec ?? "video"}.`);
    const seconds = await track.computeDuration();
    return await readFrames(file, track, (time, video) => onprogress(Math.min(time / Math.max(seconds, 1e-3), 1), video));
  } finally {
    input.dispose?.();
  }
}

async function readFrames(file, track, onprogress) {
  const video = {name: file.name, times: [], greys: [], images: [], pictures: []};
  const [stats, space] = [await track.computePacketStats(), await track.getColorSpace()];
  const scale = Math.min(1, MAX_SIDE / Math.max(track.displayWidth, track.displayHeight));
  const width = Math.max(1, Math.round(track.displayWidth * scale)), height = Math.max(1, Math.round(track.displayHeight * scale));
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d", {willReadFrequently: true, alpha: false});
  context.imageSmoothingQuality = "high";
  const kept = Math.min(1, Math.sqrt(SHOWN_BYTES / (4 * width * height * Math.max(stats.packetCount, 1))));
  [video.width, video.height] = [Math.max(1, Math.round(width * kept)), Math.max(1, Math.round(height * kept))];
  let start = null;
  for await (const sample of new VideoSampleSink(track).samples()) {
    if (video.times.length >= MAX_FRAMES) {
      sample.close();
      throw new Error(`${file.name} has more than ${MAX_FRAMES} frames. Cut it to the action, or use cycleback align.`);
    }
    start ??= sample.timestamp;
    sample.draw(context, 0, 0, width, height);
    video.times.push(sample.timestamp - start);
    const isGuessed = !space.matrix && sample.colorSpace.matrix === "bt709";
    sample.close();
    const image = shrink(context.getImageData(0, 0, width, height), isGuessed);
    video.images.push(image);
    video.greys.push(toGrey(image));
    video.pictures.push(await createImageBitmap(canvas, {resizeWidth: video.width, resizeHeight: video.height}));
    onprogress(video.times[video.times.length - 1], video);
  }
  if (video.times.length < 2) throw new Error(`${file.name} has ${video.times.length} frames that can be decoded; expected two or more.`);
  return video;
}

/** Compute the means (N, F) of the feature maps of all frames, rounded to 16 bits before, as Python does. */
export async function seeFrames(network, images, onprogress = () => {}) {
  const area = SIZE * SIZE;
  let data = null, columns = 0;
  for (let start = 0; start < images.length; start += BATCH) {
    const batch = images.slice(start, start + BATCH), pixels = new Float32Array(batch.length * 3 * area);
    batch.forEach((image, n) => {
      for (let k = 0; k < 3 * area; k += 1) pixels[(n * 3 + k % 3) * area + Math.floor(k / 3)] = image[k];
    });
    const tensor = new ort.Tensor("float32", pixels, [batch.length, 3, SIZE, SIZE]);
    const {features} = await network.run({frames: tensor});
    const [count, maps, rows, width] = features.dims, size = rows * width;
    columns = maps;
    data ??= new Float64Array(images.length * maps);
    for (let k = 0; k < count * maps; k += 1) {
      let sum = 0;
      for (let cell = 0; cell < size; cell += 1) sum += features.data[k * size + cell];
      data[start * maps + k] = sum / size;
    }
    features.dispose?.();
    onprogress(Math.min(start + BATCH, images.length) / images.length);
    await new Promise((resume) => setTimeout(resume)); // lets the page draw
  }
  return {rows: images.length, columns, data};
}

/** Turn a decoded video into the vectors of its streams, as it is and mirrored. */
export async function embedVideo(network, video, onprogress) {
  const means = await seeFrames(network, video.images, onprogress);
  const motion = measureMotion(video.greys, video.times), appearance = appearanceVectors(means);
  return {
    plain: {appearance, motion: motionVectors(motion, video.times)},
    turned: {appearance, motion: motionVectors(mirrorMotion(motion), video.times)},
  };
}
