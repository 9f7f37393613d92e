"""The description of an exported model, `model.json`, and the digests of its files."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

from cycleback.errors import CheckpointError, one_of
from cycleback.models.streams import STREAMS
from cycleback.reading import Cursor, check_seal, not_a_file, read_json, seal
from cycleback.video.scaling import Fit

MODEL_FILE, CARD_FILE = "model.json", "README.md"
BASE_FILE, POSE_FILE, EMBEDDER_FILE = "base.onnx", "pose.onnx", "embedder.onnx"
NETWORK_FILES = (BASE_FILE, POSE_FILE, EMBEDDER_FILE)
FORMAT = "cycleback-onnx-1"
MAX_BYTES = 2 << 30  # of a network; no ONNX file is larger
MAX_SIZE = 1 << 20  # of any axis
MAX_PIXELS = 4096  # of a side of a frame
AGAIN = ". Copy the model again, or export it again."

InputKind = Literal["images", "vectors"]
Parity = Mapping[str, float]
"""What was compared with torch -> the largest difference, as a share of the size of torch's values."""


@dataclass(frozen=True)
class StreamPart:
    """A stream of a model: the size of its vectors, and how much it counts."""

    size: int
    weight: float


@dataclass(frozen=True)
class ExportedModel:
    """Everything but the networks that embedding needs."""

    folder: Path
    fingerprint: str  # of the encoder; embeddings by torch and by this model may be compared
    input_kind: InputKind
    frame_size: tuple[int, int]  # (H, W)
    fit: Fit
    embedding_size: int
    context_frames: int
    context_stride: int
    feature_shape: tuple[int, int, int]  # F, h, w of the features that the embedder takes
    rounds_features: bool  # whether features are kept in 16 bits, as in training on a frozen base
    is_weighed: bool  # whether streams are weighed anew for the videos at hand
    standardize: bool  # whether the embeddings of each video are scaled to mean 0 and deviation 1
    can_count_frames: bool
    mixes_frames: bool  # whether an embedding depends on all frames of the video
    vector_size: int  # of a frame that is a vector, before velocities; 0 for images
    velocity: bool  # whether velocities are appended to vectors
    streams: Mapping[str, StreamPart]  # in order; empty for a model without streams
    files: Mapping[str, str]  # name -> SHA-256
    parity: Parity

    @property
    def reach(self) -> int:
        """Frames before a frame that its embedding depends on."""
        return self.context_stride * (self.context_frames - 1)

    def to_json(self) -> dict[str, Any]:
        """Return the content of `model.json`."""
        content = {name: value for name, value in asdict(self).items() if name != "folder"}
        return seal({"format": FORMAT, **content})

    def read_network(self, name: str) -> bytes:
        """Read a network; a file that is not the one that was exported is refused."""
        path = self.folder / name
        try:
            if reason := not_a_file(path, max_bytes=MAX_BYTES):
                raise CheckpointError(f"cannot read {path}: {reason}{AGAIN}")
            content = path.read_bytes()
        except OSError as error:
            raise CheckpointError(f"cannot read {path}: {error.strerror or error}{AGAIN}") from error
        if hashlib.sha256(content).hexdigest() != self.files.get(name):
            raise CheckpointError(f"{path} was changed or damaged since it was exported{AGAIN}")
        return content


def is_exported(source: Path | str) -> bool:
    """Whether a path is the folder of an exported model."""
    return (Path(source) / MODEL_FILE).is_file()


def check_options(source: Path | str, *, device: object, precision: str | None) -> None:
    """Refuse options that an exported model does not have: it runs on the CPU in float32."""
    if str(device or "cpu") != "cpu" or precision not in (None, "float32"):
        asked = f"device {device or 'cpu'} and precision {precision or 'float32'}"
        raise CheckpointError(f"{source} is an exported model: it runs on the cpu in float32, not on {asked}")


def read_model(folder: Path | str) -> ExportedModel:
    """Read the description of an exported model; its networks are read when they are needed."""
    folder = Path(folder)
    root = read_json(folder / MODEL_FILE, problem=CheckpointError, advice=AGAIN)
    if root.at("format").text() != FORMAT:
        raise root.at("format").expected(FORMAT)
    check_seal(root)
    files = {_choice(name, NETWORK_FILES): _digest(digest) for name, digest in root.at("files").items()}
    if EMBEDDER_FILE not in files:
        raise root.at("files").wrong(f"no {EMBEDDER_FILE!r} here")
    height, width = _sizes(root.at("frame_size"), 2, MAX_PIXELS)
    maps, rows, columns = _sizes(root.at("feature_shape"), 3, MAX_SIZE)
    streams = {
        _choice(name, STREAMS): StreamPart(_size(part.at("size")), _weight(part.at("weight")))
        for name, part in root.at("streams").items()
    }
    model = ExportedModel(
        folder=folder,
        fingerprint=root.at("fingerprint").text(),
        input_kind=cast(InputKind, _choice(root.at("input_kind"), get_args(InputKind))),
        frame_size=(height, width),
        fit=cast(Fit, _choice(root.at("fit"), get_args(Fit))),
        embedding_size=_size(root.at("embedding_size")),
        context_frames=_size(root.at("context_frames")),
        context_stride=_size(root.at("context_stride")),
        feature_shape=(maps, rows, columns),
        rounds_features=root.at("rounds_features").flag(),
        is_weighed=root.at("is_weighed").flag(),
        standardize=root.at("standardize").flag(),
        can_count_frames=root.at("can_count_frames").flag(),
        mixes_frames=root.at("mixes_frames").flag(),
        vector_size=_size(root.at("vector_size"), low=0),
        velocity=root.at("velocity").flag(),
        streams={stream: streams[stream] for stream in STREAMS if stream in streams},
        files=files,
        parity={name.text(): value.number() for name, value in _named(root.at("parity"))},
    )
    _check_whole(model, root)
    return model


def _check_whole(model: ExportedModel, root: Cursor) -> None:
    """Refuse a description whose parts do not fit together."""
    needs_base = "appearance" in model.streams if model.streams else True
    needed = {BASE_FILE: needs_base, POSE_FILE: "pose" in model.streams, EMBEDDER_FILE: True}
    for name, is_needed in needed.items():
        if is_needed != (name in model.files):
            raise root.at("files").wrong(f"{name} is {'missing' if is_needed else 'not part of this model'}")
    if (model.vector_size > 0) != (model.input_kind == "vectors") or (model.streams and model.vector_size):
        raise root.at("vector_size").wrong(f"it does not fit {model.input_kind}")
    width = sum(part.size for part in model.streams.values())
    if model.streams and model.feature_shape != (width, 1, 1):
        raise root.at("feature_shape").expected(f"[{width}, 1, 1], the streams side by side")


def _named(cursor: Cursor) -> "list[tuple[Cursor, Cursor]]":
    """Return keys, as cursors, and values of an object."""
    return [(Cursor(key, value.place, value.problem, value.advice), value) for key, value in cursor.items()]


def _choice(value: Cursor | str, choices: tuple[str, ...]) -> str:
    text = value if isinstance(value, str) else value.text()
    if text not in choices:
        message = f"expected {one_of(choices)}, got {text[:60]!r}"
        raise CheckpointError(message + AGAIN) if isinstance(value, str) else value.wrong(message)
    return text


def _digest(cursor: Cursor) -> str:
    text = cursor.text()
    if len(text) != 64 or set(text) - set("0123456789abcdef"):
        raise cursor.expected("a SHA-256 of 64 hex digits")
    return text


def _size(cursor: Cursor, *, low: int = 1, high: int = MAX_SIZE) -> int:
    value = cursor.integer(low=low)
    if value > high:
        raise cursor.expected(f"at most {high}")
    return value


def _sizes(cursor: Cursor, count: int, high: int) -> list[int]:
    sizes = [_size(each, high=high) for each in cursor.each()]
    if len(sizes) != count:
        raise cursor.expected(f"{count} numbers")
    return sizes


def _weight(cursor: Cursor) -> float:
    value = cursor.number()
    if not 0 <= value <= MAX_SIZE:
        raise cursor.expected("a weight of at least 0")
    return value
