"""Body key points of one person in every frame of a video, found once and kept on disk.

MoveNet answers for the most central person of a square image. A video may show several people, small and far
from the middle. So one person is chosen and followed:

1. Frames are taken `STEP_S` seconds apart. On every `COARSE_STEP`-th of them the network looks at the whole
   frame and, unless the frame is nearly square, at the two squares at the ends of its longer side.
2. Of everyone found there, the most prominent person is followed: the largest, clearest and most central. In
   the next coarse frame, that is the most prominent and nearest person within reach. If nobody is within
   reach twice in a row, the person is lost, and the most prominent one is followed from there on.
3. All frames are cropped around the followed person, with a margin, and the network finds the joints in the
   crops. Where nobody is followed, it looks at the whole frame.

Joints between the taken frames are interpolated. Motion, not the pose, carries exact timing.

Shapes: N frames of a video, n taken frames or those of a chunk, V views of a coarse frame, H W pixels.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cycleback.arrays import write_array
from cycleback.data import FrameCache, VideoRecord
from cycleback.data.sources import display_height, iter_chosen_frames
from cycleback.errors import DataError, UserError
from cycleback.files import atomic_files, check_output, join_inside
from cycleback.models.joints import JOINTS, JointFinder, Variant
from cycleback.models.streams import TORSO
from cycleback.progress import Counter, ignore
from cycleback.tables import write_table

if TYPE_CHECKING:
    import torch

STEP_S = 0.1
COARSE_STEP = 8
CHUNK_FRAMES = 64  # taken frames in memory at a time, and the batch on a GPU
MAX_SIDE = 512  # pixels of the decoded frames: small people need more than the network's input
MIN_SCORE = 0.2  # of a joint that counts for the box, and mean of the torso of a person
MARGIN = 1.5  # side of a crop over the extent of the joints
MIN_SIDE = 1 / 6  # of a crop, over the longer side of the frame
WHOLE_SIDE = 0.8  # a larger crop is replaced by the whole frame
REACH = 0.5  # how far a person moves between coarse frames, in sides of its crop
NEARLY_SQUARE = 1.25  # longer side over shorter; such frames are looked at as a whole only
VERSION = 2  # of the rule that follows a person; poses of other versions are found anew

Floats = NDArray[np.float32]


class Square(NamedTuple):
    """A part of a frame: its middle and its side, in pixels. It may reach beyond the frame."""

    y: float
    x: float
    side: float


class PoseCache:
    """Key points (N, 17, 3) float32 by video, beside its cached frames. The files are safe to delete.

    Args:
        frames: the cache of decoded frames.
        device: where the network runs; the CPU by default.
        variant: "thunder" costs about three times as much; videos align no better with it. Its weights are
            not in the wheel.
        network: finds the joints instead of the `variant` of MoveNet.
    """

    def __init__(
        self,
        frames: FrameCache,
        device: "torch.device | None" = None,
        *,
        variant: Variant = "lightning",
        network: JointFinder | None = None,
    ) -> None:
        self.frames, self.device, self.variant = frames, device, variant
        self._network = network
        self._file = f"poses-{variant if network is None else network.key}-{VERSION}.npy"

    def load(self, record: VideoRecord, *, progress: Counter = ignore) -> Floats:
        """Return y, x and score of the 17 joints in every frame (N, 17, 3); they are found on first use.

        y and x are in units of the frame's height, as displayed; scores are in [0, 1].

        Args:
            progress: called with (frames done, frames of the video).
        """
        cached = self.frames.load(record)
        poses = cached.find(self._file, np.float32, (len(JOINTS), 3))
        if poses is None:
            poses = self._find(record, cached.times, progress)
            self.keep(record, poses)
        progress(cached.num_frames, cached.num_frames)
        return np.array(poses)

    def keep(self, record: VideoRecord, poses: Floats) -> None:
        """Keep the poses (N, 17, 3) of a video, as `load` returns them."""
        with self.frames.load(record).add(self._file) as draft:
            write_array(draft, poses, with_checksum=True)

    def _find(self, record: VideoRecord, times: NDArray[np.float64], progress: Counter) -> Floats:
        self._network = self._network or _load_network(self.variant, self.device)
        tracker, numbers = Tracker(self._network), choose_frames(times)
        found: list[Floats] = []
        for chunk in iter_chosen_frames(record, numbers, max_side=MAX_SIDE, chunk_frames=CHUNK_FRAMES):
            found.append(tracker.push(chunk.frames))
            progress(int(numbers[chunk.start + len(chunk.frames) - 1]), len(times))
        poses = np.concatenate(found)
        if len(poses) != len(numbers):
            raise DataError(f"{record.path} changed while it was read: {len(poses)} of {len(numbers)} frames")
        return interpolate_poses(poses, times[numbers], times)


def _load_network(variant: Variant, device: "torch.device | None") -> JointFinder:
    from cycleback.models.movenet import MoveNet

    return MoveNet(variant, device=device)


def write_poses(
    cache: PoseCache,
    records: Sequence[VideoRecord],
    folder: Path,
    *,
    overwrite: bool = False,
    inputs: Sequence[Path] = (),
    only_own: bool = False,
    progress: Counter = ignore,
) -> None:
    """Write the poses of each record to `folder`, as NAME.npz and NAME.csv.

    The .npz holds `times` (N,) in seconds, `key_points` (N, 17, 2) as x, y in pixels of the video as
    displayed, `scores` (N, 17), and the names of the `joints` (17,). The .csv has one row per frame.

    Args:
        inputs: files and folders that are never replaced.
        only_own: replace a file only if it is as this program wrote it.
        progress: called with (videos done, videos).
    """
    check_poses_folder(folder, inputs=inputs)
    for record in records:
        if record.kind == "sequence":
            raise DataError(f"{record.path} is a sequence of features and shows no people; expected a video")
        for suffix in (".npz", ".csv"):
            path = join_inside(folder, record.name + suffix)
            check_output(path, overwrite=overwrite, inputs=inputs, only_own=only_own)
    names = [record.name + suffix for record in records for suffix in (".npz", ".csv")]
    with atomic_files(folder, names, overwrite=overwrite) as drafts:
        for done, record in enumerate(records, start=1):
            poses, times = cache.load(record), cache.frames.load(record).times
            key_points, scores = poses[..., 1::-1] * display_height(record), poses[..., 2]
            arrays, table = drafts[2 * done - 2 : 2 * done]
            np.savez(arrays, times=times, key_points=key_points, scores=scores, joints=JOINTS)
            write_table(table, _tabulate(times, key_points, scores))
            progress(done, len(records))


def check_poses_folder(folder: Path, *, inputs: Sequence[Path] = ()) -> None:
    """Refuse a folder in which poses would be taken for videos, or for a part of something else."""
    place = folder.resolve()
    for source in inputs:
        if source.is_dir() and place.is_relative_to(source.resolve()):
            raise UserError(
                f"{folder} lies in the input {source}, where poses would be taken for videos of their own. "
                "Give another folder for them."
            )
    for marker in ("index.json", "recipe.toml", "manifest.json"):
        if (folder / marker).is_file():
            raise UserError(
                f"{folder} holds {marker}, but poses need a folder of their own. Give another one."
            )


def _tabulate(times: NDArray[np.float64], key_points: Floats, scores: Floats) -> list[dict[str, str]]:
    """Return one row per frame: its number and seconds, then x, y and score of each joint."""
    columns = [f"{joint}_{value}" for joint in JOINTS for value in ("x", "y", "score")]
    table = np.concatenate([key_points, scores[..., None]], axis=-1).reshape(len(times), -1)
    return [
        {"frame": str(number), "seconds": f"{seconds:.4f}"}
        | {column: f"{value:.3f}" for column, value in zip(columns, values, strict=True)}
        for number, (seconds, values) in enumerate(zip(times.tolist(), table.tolist(), strict=True))
    ]


def choose_frames(times: NDArray[np.float64]) -> NDArray[np.int64]:
    """Take the first frame, the last, and those nearest to every `STEP_S` seconds, by their `times` (N,)."""
    wanted = np.arange(times[0], times[-1], STEP_S)
    after = np.clip(np.searchsorted(times, wanted), 1, max(len(times) - 1, 1))
    is_before = wanted - times[after - 1] < times[np.minimum(after, len(times) - 1)] - wanted
    return np.unique(np.concatenate([after - is_before, [0, len(times) - 1]]))


def interpolate_poses(poses: Floats, at: NDArray[np.float64], times: NDArray[np.float64]) -> Floats:
    """Interpolate poses (n, 17, 3), found at seconds `at` (n,), to `times` (N,): (N, 17, 3).

    A joint with a low score counts less, so a joint that is lost for a moment does not pull.
    """
    if len(at) == 1:
        return np.repeat(poses, len(times), axis=0)
    after = np.clip(np.searchsorted(at, times), 1, len(at) - 1)
    share = np.clip((times - at[after - 1]) / (at[after] - at[after - 1]), 0, 1)[:, None]  # (N, 1)
    before, later = poses[after - 1], poses[after]
    weights = (1 - share) * (before[..., 2] + 1e-3), share * (later[..., 2] + 1e-3)  # (N, 17) each
    middle = weights[1] / (weights[0] + weights[1])
    places = before[..., :2] + middle[..., None] * (later[..., :2] - before[..., :2])
    scores = before[..., 2] + share * (later[..., 2] - before[..., 2])
    return np.concatenate([places, scores[..., None]], axis=-1).astype(np.float32)


class Tracker:
    """Finds the joints of one person in the frames of a video, chunk by chunk."""

    def __init__(self, network: JointFinder) -> None:
        self._network = network
        self._last: Square | None = None  # the person followed in the last chunk

    def push(self, frames: NDArray[np.uint8]) -> Floats:
        """Return the poses (n, 17, 3) of the next frames (n, H, W, 3), in units of their height."""
        height, width = frames.shape[1:3]
        coarse, views = frames[::COARSE_STEP], choose_views(height, width)
        found = self._find([(frame, view) for frame in coarse for view in views])
        poses = found.reshape(len(coarse), len(views), len(JOINTS), 3)
        people = [find_people(candidates, (height, width)) for candidates in poses]
        followed = follow_person(people, last=self._last)
        self._last = next((square for square in reversed(followed) if square is not None), self._last)
        crops = spread_crops(followed, len(frames), (height, width))
        poses = self._find(list(zip(frames, crops, strict=True)))
        poses[..., :2] /= height
        return poses

    def _find(self, parts: Sequence[tuple[NDArray[np.uint8], Square]]) -> Floats:
        """Return the poses (n, 17, 3) in n parts of frames, in pixels of the frame."""
        found = []
        for start in range(0, len(parts), CHUNK_FRAMES):
            batch = parts[start : start + CHUNK_FRAMES]
            images = np.stack([cut_square(*part, size=self._network.image_size) for part in batch])
            found.append(self._network.find(images))
        poses = np.concatenate(found)
        middle, side = (np.array([square[k] for _, square in parts]) for k in (slice(2), slice(2, 3)))
        poses[..., :2] = (middle - side / 2)[:, None] + poses[..., :2] * side[:, None]
        return poses


def choose_views(height: int, width: int) -> list[Square]:
    """Return the parts of a frame to look for people in: all of it, and the squares at both ends."""
    long, short = max(height, width), min(height, width)
    views = [Square(height / 2, width / 2, long)]
    if long < NEARLY_SQUARE * short:
        return views
    for middle in (short / 2, long - short / 2):
        y, x = (height / 2, middle) if width > height else (middle, width / 2)
        views.append(Square(y, x, short))
    return views


def cut_square(frame: NDArray[np.uint8], square: Square, *, size: int) -> NDArray[np.uint8]:
    """Scale a part of `frame` (H, W, 3) to (size, size, 3); what lies beyond the frame is black."""
    from PIL import Image

    scale = square.side / size
    top, left = square.y - square.side / 2, square.x - square.side / 2
    rows = _covered(top, frame.shape[0], scale, size)
    columns = _covered(left, frame.shape[1], scale, size)
    image = np.zeros((size, size, 3), dtype=np.uint8)
    if rows.stop > rows.start and columns.stop > columns.start:
        corners = np.array([(columns.start, rows.start), (columns.stop, rows.stop)]) * scale + (left, top)
        x1, y1, x2, y2 = np.clip(corners, 0, frame.shape[1::-1]).flatten().tolist()  # against rounding
        shape = (columns.stop - columns.start, rows.stop - rows.start)
        part = Image.fromarray(frame).resize(shape, Image.Resampling.BILINEAR, box=(x1, y1, x2, y2))
        image[rows, columns] = np.asarray(part)
    return image


def _covered(start: float, length: int, scale: float, size: int) -> slice:
    """The pixels of the new image whose row or column lies inside the frame."""
    first, last = int(np.ceil(-start / scale)), int(np.floor((length - start) / scale))
    return slice(max(first, 0), min(last, size))


class Person(NamedTuple):
    """Someone found in a frame: where to crop, and how large, clear and central the person is."""

    square: Square
    prominence: float


def find_people(poses: Floats, shape: tuple[int, int]) -> list[Person]:
    """Return the people among `poses` (V, 17, 3), in pixels of a frame of `shape` (H, W)."""
    long = max(shape)
    people = []
    for pose in poses:
        score = float(pose[TORSO, 2].mean())
        if score < MIN_SCORE:
            continue
        joints = pose[pose[:, 2] >= MIN_SCORE, :2]
        low, high = joints.min(axis=0), joints.max(axis=0)
        side = float(np.clip(MARGIN * (high - low).max(), MIN_SIDE * long, long))
        y, x = (low + high).tolist()
        square = Square(y / 2, x / 2, side)
        from_middle = np.hypot(square.y - shape[0] / 2, square.x - shape[1] / 2) / long  # 0 to 0.7
        people.append(Person(square, score * side**2 * float(1 - from_middle)))
    return people


def follow_person(people: Sequence[Sequence[Person]], *, last: Square | None = None) -> list[Square | None]:
    """Choose one of the `people` in each coarse frame; None where nobody is followed.

    `last` is the person followed before. Without one, the most prominent person of all frames is followed
    from its frame in both directions.
    """
    if last is not None:
        return _follow(people, last)
    everyone = [
        (person.prominence, number, person) for number, frame in enumerate(people) for person in frame
    ]
    if not everyone:
        return [None] * len(people)
    _, start, person = max(everyone)
    before, after = _follow(people[start::-1], person.square), _follow(people[start:], person.square)
    return [*before[:0:-1], *after]


def _follow(people: Sequence[Sequence[Person]], last: Square) -> list[Square | None]:
    followed: list[Square | None] = []
    for persons in people:
        likely = [(person.prominence * _nearness(person.square, last), person.square) for person in persons]
        likelihood, chosen = max(likely, default=(0.0, None))
        if likelihood == 0:
            is_lost = bool(followed) and followed[-1] is None
            everyone = [(person.prominence, person.square) for person in persons if is_lost]
            chosen = max(everyone, default=(0.0, None))[1]
        followed.append(chosen)
        last = chosen or last
    return followed


def _nearness(one: Square, other: Square) -> float:
    """1 for the same place and size, 0 beyond `REACH`."""
    moved = np.hypot(np.hypot(one.y - other.y, one.x - other.x), one.side - other.side)
    return max(0.0, 1 - float(moved) / (REACH * other.side))


def spread_crops(followed: Sequence[Square | None], count: int, shape: tuple[int, int]) -> list[Square]:
    """Return what to crop from each of `count` frames, from the people in every `COARSE_STEP`-th.

    Between two coarse frames the crop moves evenly and has the larger side. A coarse frame that misses the
    person is passed over: the person is more likely still there than anywhere else.
    """
    whole = choose_views(*shape)[0]
    squares = [square for square in followed if square is not None]
    if not squares:
        return [whole] * count
    known = np.flatnonzero([square is not None for square in followed])
    places = np.arange(count) / COARSE_STEP
    y, x, side = np.array(squares).T
    after = np.minimum(np.searchsorted(known, places), len(known) - 1)
    sides = np.maximum(side[after], side[np.maximum(after - 1, 0)])
    rows = np.stack([np.interp(places, known, y), np.interp(places, known, x), sides], axis=-1)
    crops = [Square(*row) for row in rows.tolist()]
    return [crop if crop.side <= WHOLE_SIDE * whole.side else whole for crop in crops]
