"""Every problem of a data set in one pass, before training finds them one by one."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

from cycleback.data.check_labels import label_problems
from cycleback.data.check_videos import measure
from cycleback.data.names import NameIndex
from cycleback.data.records import Dataset, VideoRecord
from cycleback.data.report import DatasetReport, Problem, VideoRow
from cycleback.data.split import SPLITS_FILE

FPS_FACTOR = 1.5  # frame rates further apart than this are "mixed"


def check_dataset(
    dataset: Dataset,
    *,
    frames_per_video: int = 20,
    decode: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> DatasetReport:
    """Look into every video, label and split of a data set.

    Args:
        dataset: from `read_dataset`.
        frames_per_video: T, the frames training samples from each video: shorter videos are errors.
        decode: False reads only the packets of video files: many times faster, but blind to damaged pictures.
        progress: called with (videos done, videos) after each video.
    """
    rows: list[VideoRow] = []
    problems: list[Problem] = []
    times = {}
    for done, record in enumerate(dataset.records, start=1):
        row, shown, found = measure(record, decode=decode)
        rows.append(row)
        problems += [*found, *_too_short(row, frames_per_video)]
        if row.num_frames:
            times[record.name] = shown
        if progress is not None:
            progress(done, len(dataset))
    problems += [*label_problems(dataset, times), *_set_problems(dataset, rows)]
    problems.sort(
        key=lambda problem: problem.level
    )  # "error" before "warning"; the sort keeps the order otherwise
    return DatasetReport(rows=tuple(rows), problems=tuple(problems))


def _too_short(row: VideoRow, frames_per_video: int) -> Iterator[Problem]:
    if 0 < row.num_frames < frames_per_video:
        message = f"has {row.num_frames} frames, fewer than the {frames_per_video} sampled from each video."
        yield Problem("error", row.name, f"{message} Lower data.frames_per_video or remove the video.")


def _set_problems(dataset: Dataset, rows: Sequence[VideoRow]) -> Iterator[Problem]:
    """Problems that only show when videos are compared."""
    yield from _mixed_kinds(dataset)
    yield from _small_actions(dataset)
    yield from _split_names(dataset)
    yield from _identical_files(dataset)
    yield from _feature_sizes(rows)
    for action in dataset.actions:
        yield from _mixed_rates([row for row in rows if row.action == action and row.fps > 0])


def _mixed_kinds(dataset: Dataset) -> Iterator[Problem]:
    sequences = [record.name for record in dataset.records if record.kind == "sequence"]
    if sequences and len(sequences) < len(dataset):
        message = (
            f"{len(sequences)} of {len(dataset)} are .npz sequences ({sequences[0]}, …), the others pictures."
        )
        yield Problem("error", "", f"{message} One encoder cannot read both: use a folder for each.")
    if "" in dataset.actions and len(dataset.actions) > 1:
        at_top = sum(record.action == "" for record in dataset.records)
        message = f"{at_top} videos lie beside the folders of actions and count as an action of their own."
        yield Problem("warning", "", f"{message} Move them into a folder if they belong to one.")


def _small_actions(dataset: Dataset) -> Iterator[Problem]:
    for action in dataset.actions:
        records = [record for record in dataset.records if record.action == action]
        of = f"action {action!r}" if action else "the data set"
        training = sum(record.split == "train" for record in records)
        if len(records) < 2:
            message = f"{of} has only one video, {records[0].name}: there is nothing to align it with."
            yield Problem("error", "", f"{message} Add one, or leave it out.")
        elif training < 2:
            message = f"{of} has {len(records)} videos but {training} to train on; at least 2 are needed."
            yield Problem("error", "", f"{message} Move videos to the split 'train'.")


def _split_names(dataset: Dataset) -> Iterator[Problem]:
    index = NameIndex(dataset.names)
    for name in sorted(set(dataset.given_split) - set(index.names)):
        guess = index.closest(name)
        advice = f"Did you mean {guess!r}?" if guess else "Remove its row, or add the video."
        yield Problem("error", name, f"{SPLITS_FILE} names a video that is not here. {advice}")
    for record in dataset.records:
        if dataset.given_split and record.split is None:
            yield Problem(
                "warning", record.name, f"is in no split, so it is not used. Add it to {SPLITS_FILE}."
            )


def _identical_files(dataset: Dataset) -> Iterator[Problem]:
    """Byte-identical files; one in train and one held out makes results look better than they are."""
    groups: dict[str, list[VideoRecord]] = {}
    files = [record for record in dataset.records if record.kind != "frames" and record.path.is_file()]
    sizes = Counter(record.path.stat().st_size for record in files)
    for record in files:
        if sizes[record.path.stat().st_size] > 1:
            groups.setdefault(_whole_digest(record.path), []).append(record)
    for first, *copies in groups.values():
        for copy in copies:
            leaks = first.split != copy.split
            message = f"is the same file as {first.name}" + (
                f", one in {first.split}, one in {copy.split}" * leaks
            )
            yield Problem("error" if leaks else "warning", copy.name, f"{message}. Remove one of them.")


def _whole_digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _feature_sizes(rows: Sequence[VideoRow]) -> Iterator[Problem]:
    sequences = [row for row in rows if row.kind == "sequence" and row.size]
    sizes = Counter(row.size[0] for row in sequences).most_common()
    for row in sequences:
        usual, count = sizes[0]
        if row.size[0] != usual:
            message = (
                f"has {row.size[0]} features a frame, {count} of {len(sequences)} sequences have {usual}."
            )
            yield Problem("error", row.name, f"{message} Write it again, or remove it.")


def _mixed_rates(rows: Sequence[VideoRow]) -> Iterator[Problem]:
    usual = median(row.fps for row in rows) if rows else 0.0
    for row in rows:
        if max(row.fps / usual, usual / row.fps) > FPS_FACTOR:
            message = (
                f"has {row.fps:g} frames a second, usual here is {usual:g}: context frames span another time."
            )
            yield Problem(
                "warning", row.name, f"{message} Bring it to {usual:g}, unless the slow motion is meant."
            )
