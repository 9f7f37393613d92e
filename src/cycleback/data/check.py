"""Find every problem of a data set before training stumbles over them one by one.

Letters: N frames of a video, F features per frame.
"""

import hashlib
import shlex
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import median
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment.pins import check_pins
from cycleback.data.folder import SPLITS_FILE
from cycleback.data.labels import nearest_frame
from cycleback.data.pins import PINS_FILE, match_pins, read_pins, select_pairs
from cycleback.data.records import Dataset, Kind, Label, NameIndex, VideoRecord
from cycleback.data.sources import folder_fps, image_paths, iter_images, load_sequence, read_image
from cycleback.errors import DamagedVideoWarning, DataError, UserError, VideoError
from cycleback.progress import Counter as ProgressCounter
from cycleback.progress import ignore
from cycleback.video import FrameChunk, iter_frames, probe
from cycleback.video.shots import ShotDetector

MIN_FRAMES = 2  # of a video that shows an action
FPS_FACTOR = 1.5  # frame rates that differ by more than this factor are reported
THUMBNAIL = (40, 40)  # frames are decoded to see that they can be, and to find shot changes
MAX_TOLD = 5  # shot changes of a video

Level = Literal["error", "warning"]
Times = Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Problem:
    """One problem. An error stops training or makes results wrong; a warning may be intended."""

    level: Level
    video: str  # "" for the whole data set
    message: str  # one line: the problem, and the advice

    def __str__(self) -> str:
        where = f"{self.video}: " if self.video else ""
        return f"{self.level}: {where}{self.message}"


@dataclass(frozen=True)
class VideoRow:
    """Measurements of one video."""

    name: str
    action: str
    split: str | None
    kind: Kind
    num_frames: int = 0  # that can be read
    fps: float = 0.0  # average
    size: tuple[int, ...] = ()  # (height, width) in pixels, (F,) for a sequence, () if it cannot be read
    duration_s: float = 0.0
    labels: int = 0  # labelled key events


@dataclass(frozen=True)
class DatasetReport:
    """The result of `check_dataset`: rows in the order of the data set, problems with errors first."""

    rows: tuple[VideoRow, ...]
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        """Whether there are no errors; warnings do not count."""
        return all(problem.level != "error" for problem in self.problems)


def check_dataset(
    dataset: Dataset, *, frames_per_video: int = 32, progress: ProgressCounter = ignore
) -> DatasetReport:
    """Check every video, label and split of a data set. Videos are decoded to find damaged frames.

    Videos shorter than MIN_FRAMES are errors, and training leaves them out. Videos shorter than
    `frames_per_video`, the frames that training samples from each video, are trained on, with a warning.
    `progress` is called with (videos done, videos) after each video.
    """
    rows: list[VideoRow] = []
    problems: list[Problem] = []
    times = {}
    for done, record in enumerate(dataset.records, start=1):
        row, times[record.name], video_problems = _measure(record)
        rows.append(row)
        problems += video_problems
        if 0 < row.num_frames < MIN_FRAMES:
            message = f"has {row.num_frames} frame, and training leaves it out. Remove the video."
            problems.append(Problem("error", row.name, message))
        progress(done, len(dataset))
    readable = {name: frame_times for name, frame_times in times.items() if len(frame_times)}
    problems += _check_set(dataset, rows, readable)
    problems += _find_short([row.num_frames for row in rows if row.num_frames], frames_per_video)
    problems.sort(key=lambda problem: problem.level)  # "error" before "warning"; the sort is stable
    return DatasetReport(rows=tuple(rows), problems=tuple(problems))


Measured = tuple[VideoRow, NDArray[np.float64], list[Problem]]


def _measure(record: VideoRecord) -> Measured:
    """Return the row of a video, its frame times (N,), and its problems; unreadable videos have no frames."""
    row = VideoRow(record.name, record.action, record.split, record.kind, labels=len(record.events))
    measure = {"video": _measure_file, "frames": _measure_images, "sequence": _measure_sequence}[record.kind]
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DamagedVideoWarning)
            row, times, problems = measure(record, row)
    except (VideoError, DataError) as error:
        return row, np.empty(0), [Problem("error", record.name, f"cannot be read: {error}")]
    damages = [str(each.message) for each in caught if issubclass(each.category, DamagedVideoWarning)]
    problems += [Problem("warning", record.name, damage) for damage in dict.fromkeys(damages)]
    return row, times, problems


def _measure_file(record: VideoRecord, row: VideoRow) -> Measured:
    info = probe(record.path)
    detector, clocks, cuts = ShotDetector(), [np.empty(0)], list[int]()
    for chunk in iter_frames(record.path, size=THUMBNAIL):
        cuts += detector.push(chunk.frames)
        clocks.append(chunk.times)
    times, size = np.concatenate(clocks), (info.height, info.width)
    row = replace(row, num_frames=len(times), fps=info.fps, size=size, duration_s=info.duration_s)
    return row, times, _describe_cuts(record, times[cuts])


def _describe_cuts(record: VideoRecord, seconds: NDArray[np.float64]) -> list[Problem]:
    """Return the warning of a video with shot changes at these seconds (n,): nothing aligns across a cut."""
    if not len(seconds):
        return []
    told = ", ".join(f"{second:.2f} s" for second in seconds[:MAX_TOLD])
    told += f" and {len(seconds) - MAX_TOLD} more" if len(seconds) > MAX_TOLD else ""
    count = "a shot change" if len(seconds) == 1 else f"{len(seconds)} shot changes"
    advice = f"Cut it into shots: cycleback data shots {shlex.quote(str(record.path))} --clips FOLDER"
    return [Problem("warning", record.name, f"has {count}, at {told}. {advice}")]


def _measure_images(record: VideoRecord, row: VideoRow) -> Measured:
    fps, size = folder_fps(record.path), read_image(image_paths(record.path)[0]).shape[:2]
    times = _decode_times(iter_images(record.path, size=THUMBNAIL))
    return replace(row, num_frames=len(times), fps=fps, size=size, duration_s=len(times) / fps), times, []


def _decode_times(chunks: Iterable[FrameChunk]) -> NDArray[np.float64]:
    """Return the times (N,) of the frames that can be decoded."""
    return np.concatenate([np.empty(0), *(chunk.times for chunk in chunks)])


def _measure_sequence(record: VideoRecord, row: VideoRow) -> Measured:
    sequence = load_sequence(record, check_finite=False)
    num_frames, size = sequence.features.shape
    duration = float(sequence.times[-1] - sequence.times[0]) * num_frames / max(1, num_frames - 1)
    fps = num_frames / duration if duration > 0 else 0.0
    row = replace(row, num_frames=num_frames, fps=fps, size=(size,), duration_s=duration)
    problem = sequence.explain_broken()
    return row, sequence.times, [Problem("error", record.name, problem)] if problem else []


def _check_set(dataset: Dataset, rows: Sequence[VideoRow], times: Times) -> Iterator[Problem]:
    """Yield every problem of the labels, then those that only show when videos are compared.

    `times` holds the frame times (N,) of the readable videos.
    """
    by_action = [[record for record in dataset if record.action == action] for action in dataset.actions]
    yield from _find_unknown_videos(dataset)
    yield from _find_repeated(dataset.labels)
    for label in dataset.labels:
        yield from _find_outside(label, times)
    for records in by_action:
        yield from _find_missing_events(records)
        yield from _find_unusual_order(records)
    yield from _find_mixed_kinds(dataset)
    for records in by_action:
        yield from _find_small_action(records)
    yield from _check_split(dataset)
    yield from _check_pins(dataset, times)
    yield from _find_identical_files(dataset)
    yield from _find_other_feature_sizes(rows)
    for action in dataset.actions:
        yield from _find_other_rates([row for row in rows if row.action == action and row.fps > 0])


def _find_unknown_videos(dataset: Dataset) -> Iterator[Problem]:
    index = NameIndex(dataset.names)
    for label in {label.video: label for label in reversed(dataset.labels)}.values():
        if label.video not in index.names:
            advice = index.suggest(label.video, otherwise="Remove its rows, or add the video.")
            yield Problem(
                "error", label.video, f"{label.source} labels a video that does not exist. {advice}"
            )


def _check_pins(dataset: Dataset, times: Times) -> Iterator[Problem]:
    """Yield pins that cannot be read, that name unknown videos, or that contradict each other."""
    index = NameIndex(dataset.names)
    try:
        written = read_pins(dataset.root)
        pins = match_pins(written, dataset.names)
    except DataError as error:
        yield Problem("error", "", str(error))
        return
    for video in dict.fromkeys(name for pin in written for name in (pin.video_a, pin.video_b)):
        if index.match(video) is None:
            advice = index.suggest(video, otherwise="Remove its rows, or add the video.")
            yield Problem("warning", video, f"{PINS_FILE} names a video that does not exist. {advice}")
    for a, b in sorted({tuple(sorted((pin.video_a, pin.video_b))) for pin in pins}):
        if a in times and b in times:
            try:
                check_pins(select_pairs(pins, a, b), len(times[a]), len(times[b]), names=(a, b))
            except UserError as error:
                yield Problem("error", "", f"{PINS_FILE}: {error}")


def _find_repeated(labels: Sequence[Label]) -> Iterator[Problem]:
    first: dict[tuple[str, str], Label] = {}
    for label in labels:
        earlier = first.setdefault((label.video, label.event), label)
        if earlier is not label:
            again = f"{label.event!r} is at {earlier.value:g} and again at {label.value:g} ({label.source})"
            level: Level = "warning" if earlier.value == label.value else "error"
            yield Problem(level, label.video, f"{again}. The first row is used; remove one of them.")


def _find_outside(label: Label, times: Times) -> Iterator[Problem]:
    where = f"{label.event!r} is at {label.unit} {label.value:g} ({label.source})"
    if label.value < 0:
        advice = "Frames count from 0" if label.unit == "frame" else "Seconds count from the first frame"
        yield Problem("error", label.video, f"{where}, before the start. {advice}: correct the row.")
    elif label.video in times:
        frame_times = times[label.video]
        frame = int(label.value) if label.unit == "frame" else nearest_frame(label.value, frame_times)
        if frame >= len(frame_times):
            end = f"frame {len(frame_times) - 1}" if label.unit == "frame" else f"{frame_times[-1]:.3f} s"
            yield Problem("error", label.video, f"{where}, but the video ends at {end}. Correct the row.")


def _find_missing_events(records: Sequence[VideoRecord]) -> Iterator[Problem]:
    """Find videos without an event that others of the action have: few-label evaluation needs all or none."""
    counts = Counter(event for record in records for event in record.events)
    labelled = sum(bool(record.events) for record in records)
    for record in records:
        missing = [event for event in counts if event not in record.events]
        if labelled and not record.events:
            message = f"has no labels, but {labelled} of {len(records)} videos do."
            advice = "Training needs none; label it to evaluate on it."
            yield Problem("warning", record.name, f"{message} {advice}")
        elif missing:
            listed = ", ".join(f"{event!r} (in {counts[event]} of {labelled} videos)" for event in missing)
            message = f"has no label for {listed}."
            yield Problem("warning", record.name, f"{message} Add it, or the phases of this video differ.")


def _find_unusual_order(records: Sequence[VideoRecord]) -> Iterator[Problem]:
    """Find videos in which two events are in the opposite order to most videos of the action."""
    before: Counter[tuple[str, str]] = Counter()
    for record in records:
        before.update(_ordered_pairs(record))
    for record in records:
        for first, second in _ordered_pairs(record):
            same, opposite = before[first, second], before[second, first]
            if same < opposite:
                message = (
                    f"{first!r} ({record.events[first]:g}) comes before {second!r} "
                    f"({record.events[second]:g}), but after it in {opposite} of {same + opposite} videos. "
                    "Check both labels."
                )
                yield Problem("warning", record.name, message)


def _ordered_pairs(record: VideoRecord) -> Iterator[tuple[str, str]]:
    """Yield pairs (earlier event, later event); simultaneous events have no order."""
    for first, second in combinations(sorted(record.events, key=lambda event: record.events[event]), 2):
        if record.events[first] < record.events[second]:
            yield first, second


def _find_mixed_kinds(dataset: Dataset) -> Iterator[Problem]:
    sequences = [record.name for record in dataset.records if record.kind == "sequence"]
    if sequences and len(sequences) < len(dataset):
        message = (
            f"{len(sequences)} of {len(dataset)} are .npz sequences ({sequences[0]}, …), the rest videos."
        )
        yield Problem("error", "", f"{message} One encoder cannot read both: use separate folders.")
    if "" in dataset.actions and len(dataset.actions) > 1:
        at_top = sum(record.action == "" for record in dataset.records)
        message = f"{at_top} videos are outside the action folders and count as an action of their own."
        yield Problem("warning", "", f"{message} Move them into a folder if they belong to an action.")


def _find_short(lengths: Sequence[int], frames_per_video: int) -> Iterator[Problem]:
    """Yield the warning that training gives, too, where videos have fewer frames than are sampled."""
    short = [length for length in lengths if MIN_FRAMES <= length < frames_per_video]
    if short:
        message = f"{len(short)} of {len(lengths)} videos have fewer than {frames_per_video} frames"
        advice = "training draws some of them twice. Lower data.frames_per_video if that are most."
        yield Problem("warning", "", f"{message} (the shortest {min(short)}): {advice}")


def _find_small_action(records: Sequence[VideoRecord]) -> Iterator[Problem]:
    subject = f"action {records[0].action!r}" if records[0].action else "the data set"
    training = sum(record.split == "train" for record in records)
    if len(records) < 2:
        message = f"{subject} has only one video, {records[0].name}, and nothing to align it with."
        yield Problem("error", "", f"{message} Add another video, or remove this one.")
    elif training < 2:
        message = f"{subject} has {len(records)} videos but {training} to train on."
        yield Problem("error", "", f"{message} Move at least 2 to the split 'train'.")


def _check_split(dataset: Dataset) -> Iterator[Problem]:
    index = NameIndex(dataset.names)
    for name in sorted(set(dataset.given_split) - set(index.names)):
        advice = index.suggest(name, otherwise="Remove its row, or add the video.")
        yield Problem("error", name, f"{SPLITS_FILE} lists a video that does not exist. {advice}")
    for record in dataset.records:
        if dataset.given_split and record.split is None:
            yield Problem("warning", record.name, f"is in no split and not used. Add it to {SPLITS_FILE}.")


def _find_identical_files(dataset: Dataset) -> Iterator[Problem]:
    """Find byte-identical files; a copy of a training video in the test set makes results look better."""
    groups: dict[str, list[VideoRecord]] = {}
    files = [record for record in dataset.records if record.kind != "frames" and record.path.is_file()]
    sizes = Counter(record.path.stat().st_size for record in files)
    for record in files:
        if sizes[record.path.stat().st_size] > 1:
            with record.path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            groups.setdefault(digest, []).append(record)
    for first, *copies in groups.values():
        for copy in copies:
            leaks = first.split != copy.split
            message = f"is the same file as {first.name}"
            message += f", one in {first.split}, one in {copy.split}" if leaks else ""
            yield Problem("error" if leaks else "warning", copy.name, f"{message}. Remove one of them.")


def _find_other_feature_sizes(rows: Sequence[VideoRow]) -> Iterator[Problem]:
    sequences = [row for row in rows if row.kind == "sequence" and row.size]
    sizes = Counter(row.size[0] for row in sequences).most_common()
    for row in sequences:
        usual, count = sizes[0]
        if row.size[0] != usual:
            message = f"has {row.size[0]} features per frame; {count} of {len(sequences)} sequences have"
            yield Problem("error", row.name, f"{message} {usual}. Recreate or remove it.")


def _find_other_rates(rows: Sequence[VideoRow]) -> Iterator[Problem]:
    usual = median(row.fps for row in rows) if rows else 0.0
    for row in rows:
        if max(row.fps / usual, usual / row.fps) > FPS_FACTOR:
            message = f"has {row.fps:g} frames per second, but {usual:g} is usual here."
            advice = f"Its context frames span a different time. Convert it to {usual:g}, unless intended."
            yield Problem("warning", row.name, f"{message} {advice}")
