// Run a published MoveNet graph with TensorFlow.js, as the reference of tests/models/test_movenet.py.
//   npm install @tensorflow/tfjs
//   node movenet_reference.mjs GRAPH.json IMAGES.bin > reference.json
// IMAGES.bin holds uint8 RGB images of the graph's size, one after another. The output has, per image, the
// key points and the maps of the heads (height x width x channels), by the names of the package.
import fs from "node:fs";
import * as tf from "@tensorflow/tfjs";

const [graphPath, imagesPath] = process.argv.slice(2);
const graph = JSON.parse(fs.readFileSync(graphPath));
const bin = fs.readFileSync(graphPath.replace(/json$/, "bin"));
const model = await tf.loadGraphModel(tf.io.fromMemory({
  modelTopology: graph.modelTopology,
  signature: graph.signature,
  weightSpecs: graph.weightsManifest[0].weights,
  weightData: bin.buffer.slice(bin.byteOffset, bin.byteOffset + bin.length),
}));
const nodes = { center: "center_0/conv2d_4", heatmap: "kpt_heatmap_0/conv2d_5" };
Object.assign(nodes, { regress: "kpt_regress_0/conv2d_6", offset: "kpt_offset_0/conv2d_7" });
const outputs = ["Identity", ...Object.values(nodes).map((name) => `StatefulPartitionedCall/${name}/BiasAdd`)];
const size = Number(graph.signature.inputs["input:0"].tensorShape.dim[1].size);
const pixels = fs.readFileSync(imagesPath);
const results = [];
for (let start = 0; start < pixels.length; start += size * size * 3) {
  const image = tf.tensor(Int32Array.from(pixels.subarray(start, start + size * size * 3)), [1, size, size, 3], "int32");
  const found = model.execute(image, outputs).map((tensor) => Array.from(tensor.dataSync()));
  results.push(Object.fromEntries(["key_points", ...Object.keys(nodes)].map((name, i) => [name, found[i]])));
}
console.log(JSON.stringify(results));
