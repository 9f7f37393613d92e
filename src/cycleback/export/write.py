"""Write the encoder of a run as a folder of ONNX files, with a card that says how far it is from torch."""

import dataclasses
import hashlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cycleback import __version__
from cycleback.data import VideoRecord
from cycleback.data.folder import select_records
from cycleback.errors import DataError
from cycleback.export.graphs import OPSET, check_exportable, write_base, write_embedder, write_pose
from cycleback.export.parity import MAX_OF_JOINTS, MAX_OF_NETWORK, MAX_OF_VIDEOS, measure_parity
from cycleback.exported.model import (
    BASE_FILE,
    CARD_FILE,
    EMBEDDER_FILE,
    MODEL_FILE,
    NETWORK_FILES,
    POSE_FILE,
    ExportedModel,
    StreamPart,
)
from cycleback.files import atomic_folder, check_folder, write_json, write_text
from cycleback.models import Encoder, FusedBase, VectorBase, fingerprint
from cycleback.models.joints import IMAGE_SIZES
from cycleback.models.pooling_embedders import PooledEmbedder
from cycleback.progress import Counter, ignore
from cycleback.provenance import package_versions
from cycleback.runs import PRETRAINED, load_encoder, run_videos

MAX_CLIPS = 2  # that an export is compared on
RENDERED = "two rendered clips of pouring"


def export_onnx(
    source: Path | str,
    output: Path | str,
    *,
    videos: Path | str | None = None,
    overwrite: bool = False,
    cache: Path | None = None,
    progress: Counter = ignore,
) -> ExportedModel:
    """Write the encoder of a run to the folder `output`; it appears only if it computes what torch does.

    Args:
        source: what `load_encoder` takes: a run folder, the name of a model, or "pretrained".
        videos: a folder of videos or one video to compare on (default: those of the run, if they are still
            there, else rendered clips).
        cache: folder of decoded frames (default: the user's cache folder).
        progress: called with (steps done, steps).
    """
    output = check_exported_folder(Path(output), overwrite=overwrite, inputs=[Path(source)])
    encoder = load_encoder(source).cpu()
    check_exportable(encoder)
    with tempfile.TemporaryDirectory() as scratch:
        records, named = _choose_clips(encoder, source, videos, Path(scratch))
        with atomic_folder(output, overwrite=overwrite) as draft:
            written = _write_networks(draft, encoder, progress)
            digests = {name: hashlib.sha256((draft / name).read_bytes()).hexdigest() for name in written}
            model = describe_encoder(draft, encoder, digests)
            parity = measure_parity(model, encoder, records, cache=cache)
            model = dataclasses.replace(model, parity=parity)
            write_json(draft / MODEL_FILE, model.to_json())
            write_text(draft / CARD_FILE, _write_card(model, str(source), named))
            progress(len(written) + 1, len(written) + 1)
    return dataclasses.replace(model, folder=output)


def check_exported_folder(output: Path, *, overwrite: bool, inputs: Sequence[Path] = ()) -> Path:
    """Refuse a folder that cannot be written; only an exported model is replaced."""
    own = {*NETWORK_FILES, MODEL_FILE, CARD_FILE}
    return check_folder(
        output, marker=MODEL_FILE, is_own=own.__contains__, overwrite=overwrite, inputs=inputs
    )


def _choose_clips(
    encoder: Encoder, source: Path | str, videos: Path | str | None, scratch: Path
) -> tuple[Sequence[VideoRecord], str]:
    """Return a few videos, and words for them."""
    folder = videos if videos is not None else None if str(source) == PRETRAINED else run_videos(source)
    if folder is not None:
        records = select_records(folder)[0][:MAX_CLIPS]
        if not records:
            raise DataError(f"{folder} has no videos to compare the export on")
        return records, f"{', '.join(record.name for record in records)} of {Path(folder).name}"
    if encoder.input_kind == "vectors":
        raise DataError("the videos of this run are gone; name a folder of sequences (.npz) with --videos")
    from cycleback.synth import write_dataset

    write_dataset(scratch / "clips", videos=MAX_CLIPS, size=128, jobs=1)
    return select_records(scratch / "clips")[0], RENDERED


def _write_networks(folder: Path, encoder: Encoder, progress: Counter) -> list[str]:
    """Write the networks of an encoder, and return the names of their files."""
    base = encoder.base
    network = base.appearance if isinstance(base, FusedBase) else base
    writers: dict[str, Callable[[Path], None]] = {}
    if network is not None:
        writers[BASE_FILE] = lambda path: write_base(path, network, encoder.frame_size)
    if isinstance(base, FusedBase) and "pose" in base.streams:
        writers[POSE_FILE] = lambda path: write_pose(path, IMAGE_SIZES["lightning"])
    size = base.feature_map_size(*encoder.frame_size)
    writers[EMBEDDER_FILE] = lambda path: write_embedder(path, encoder.embedder, size)
    for done, (name, write) in enumerate(writers.items()):
        progress(done, len(writers) + 1)
        write(folder / name)
    return list(writers)


def describe_encoder(folder: Path, encoder: Encoder, digests: Mapping[str, str]) -> ExportedModel:
    """Describe an encoder whose networks are in `folder`."""
    base, embedder = encoder.base, encoder.embedder
    streams = {}
    if isinstance(base, FusedBase):
        weights = base.stream_weights
        streams = {name: StreamPart(size, round(weights[name], 6)) for name, size in base.sizes.items()}
    is_untrained = isinstance(base, FusedBase) and isinstance(embedder, PooledEmbedder)
    return ExportedModel(
        folder=folder,
        fingerprint=fingerprint(encoder),
        input_kind=encoder.input_kind,
        frame_size=encoder.frame_size,
        fit=encoder.fit,
        embedding_size=encoder.embedding_size,
        context_frames=encoder.context_frames,
        context_stride=encoder.context_stride,
        feature_shape=(base.channels, *base.feature_map_size(*encoder.frame_size)),
        rounds_features=encoder.train_base == "frozen" and encoder.input_kind == "images",
        is_weighed=is_untrained,
        standardize=embedder.standardize,
        can_count_frames=embedder.can_count_frames,
        mixes_frames=embedder.mixes_frames,
        vector_size=base.in_features if isinstance(base, VectorBase) else 0,
        velocity=isinstance(base, VectorBase) and base.velocity,
        streams=streams,
        files=digests,
        parity={},
    )


def _write_card(model: ExportedModel, source: str, clips: str) -> str:
    """Describe an exported model for people."""
    height, width = model.frame_size
    frame = f"{width} x {height} px" if model.input_kind == "images" else f"{model.vector_size} numbers"
    context = "" if model.context_frames == 1 else f", {model.context_frames} per embedding"
    streams = ", ".join(f"{name} {part.weight:.3g}" for name, part in model.streams.items())
    rows = "\n".join(f"| {what} | {difference:.1e} |" for what, difference in model.parity.items())
    sizes = "\n".join(
        f"| `{name}` | {(model.folder / name).stat().st_size / 1e6:.1f} MB | `{digest}` |"
        for name, digest in model.files.items()
    )
    versions = package_versions(("torch", "onnx", "onnxscript", "onnxruntime"))
    made = ", ".join(f"{name} {version}" for name, version in versions.items())
    return CARD.format(
        source=Path(source).name,
        frame=frame + context,
        size=model.embedding_size,
        streams=f"\nStreams and their weights: {streams}.\n" if streams else "",
        clips=clips,
        rows=rows,
        sizes=sizes,
        limits=(MAX_OF_NETWORK, MAX_OF_JOINTS, MAX_OF_VIDEOS),
        opset=OPSET,
        made=made,
        version=__version__,
    )


CARD = """# {source} as ONNX

Exported by Cycleback {version}, opset {opset}, float32 ({made}).

Frames: {frame}. An embedding is {size} numbers.
{streams}
    cycleback embed VIDEOS --run THIS_FOLDER -o videos.emb

needs onnxruntime and no torch. `base.onnx` and `pose.onnx` take pixels from 0 to 255 as (frames, 3, height,
width); `embedder.onnx` takes the features of whole videos as (videos, frames, channels, height, width).
Normalisation is inside. BatchNorm is folded into the layers, and there are no 3-D convolutions.

## Difference to torch

Measured at export on {clips}.
Each number is the largest difference, as a share of the root mean square of torch's values; of joints, in
sides of the image; of whole videos, the root mean square of the differences. An export with more than
{limits[0]:.0e} in a network, {limits[1]:.0e} in joints or {limits[2]:.0e} in whole videos is refused.

| compared | difference |
|---|---:|
{rows}

## Files

| file | size | SHA-256 |
|---|---:|---|
{sizes}
"""
FORMATS = {"onnx": export_onnx}
