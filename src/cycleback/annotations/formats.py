"""All label formats by name: detect the format of a file, read it and write it."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from cycleback.annotations import boris, cvat, elan, json_formats, label_studio, text_formats, via
from cycleback.annotations.annotation import Annotation, Event, Segment
from cycleback.errors import DataError, OutputExistsError, did_you_mean, one_of
from cycleback.files import atomic_files, check_output, join_inside, write_text
from cycleback.reading import read_text
from cycleback.tables import replace_commas


@dataclass(frozen=True)
class Format:
    """One file format for annotations."""

    suffixes: tuple[str, ...]  # file name endings; new files get the first
    read: Callable[[str, str], list[Annotation]]  # takes the text of a file and its path, for error messages
    write: Callable[[Sequence[Annotation]], str]  # returns the text of a file
    # any of these words in a file tells this format from others with the same suffix
    marks: tuple[str, ...] = ()
    one_video: bool = False  # whether a file holds one video, so that several videos make a folder of files


FORMATS: dict[str, Format] = {  # a file has the first format whose marks it contains
    "csv": Format((".csv", ".tsv"), text_formats.read_csv, text_formats.write_csv),
    "json": Format(
        (".json",), json_formats.read_json, json_formats.write_json, marks=(f'"{json_formats.FORMAT_NAME}"',)
    ),
    "elan": Format((".eaf",), elan.read, elan.write, one_video=True),
    "label-studio": Format(
        (".json",), label_studio.read, label_studio.write, marks=(f'"{label_studio.KIND}"',)
    ),
    "via": Format((".json",), via.read, via.write, marks=('"vid_list"',)),
    "boris": Format(
        (".boris", ".json"), boris.read_project, boris.write_project, marks=('"behaviors_conf"',)
    ),
    "boris-events": Format(
        (".csv", ".tsv"),
        boris.read_events,
        boris.write_events,
        marks=("Behavior type", "Behavioral category"),
    ),
    "cvat": Format((".xml",), cvat.read, cvat.write, one_video=True),
    "cvat-intervals": Format(
        (".tsv",), cvat.read_intervals, cvat.write_intervals, marks=("start\tstop\tlabel",), one_video=True
    ),
    "labelu": Format(
        (".json", ".jsonl"), json_formats.read_labelu, json_formats.write_labelu, marks=json_formats.TOOLS
    ),
    "activitynet": Format(
        (".json",),
        json_formats.read_activitynet,
        json_formats.write_activitynet,
        marks=('"database"', '"segment"'),
    ),
    "frames": Format((".txt",), text_formats.read_frames, text_formats.write_frames, one_video=True),
}


def read_annotations(path: Path | str, *, format: str | None = None) -> list[Annotation]:
    """Read the annotations of a file, or of all files of a folder with one file per video.

    Args:
        path: the file or folder.
        format: a name in `FORMATS`; by default it is detected from the suffix and the content.
    """
    path = Path(path)
    files = [path]
    if path.is_dir():
        known = {suffix for each in FORMATS.values() if each.one_video for suffix in each.suffixes}
        files = sorted(file for file in path.rglob("*") if file.suffix.lower() in known)
        if not files:
            raise DataError(f"{path}: no label files in this folder, expected {one_of(sorted(known))}")
    annotations = []
    for file in files:
        annotations += parse_annotations(read_text(file), str(file), format=format)
    if not any(each.labels for each in annotations):
        raise DataError(f"{path}: no events and no segments in it")
    return annotations


def parse_annotations(text: str, place: str, *, format: str | None = None) -> list[Annotation]:
    """Read the annotations in the text of a file; `place` is its path."""
    found = find_format(format or detect_format(PurePath(place), text)).read(text, place)
    for annotation in found:
        for label in annotation.labels:
            _check_label(f"{place}: {annotation.video}", label)
    return found


def _check_label(place: str, label: Event | Segment) -> None:
    """Refuse what no file of any tool can mean, so that a wrong file is not taken for a right one."""
    if label.confidence is not None and not 0 <= label.confidence <= 1:
        raise DataError(f"{place}: the confidence of {label.name!r} is {label.confidence:g}, expected 0 to 1")
    start, end = (label.at, label.at) if isinstance(label, Event) else (label.start, label.end)
    for one, other in ((start.frame, end.frame), (start.seconds, end.seconds)):
        if one is not None and other is not None and other < one:
            raise DataError(f"{place}: {label.name!r} starts at {one:g} and ends before that, at {other:g}")
    if start.frame is not None and start.frame < 0:
        raise DataError(f"{place}: {label.name!r} is at frame {start.frame}, but frames count from 0")


def find_format(name: str) -> Format:
    """Return the format of this name."""
    if name not in FORMATS:
        raise DataError(f"unknown label format {name!r}. {did_you_mean(name, FORMATS)}")
    return FORMATS[name]


def detect_format(path: PurePath, text: str) -> str:
    """Name the format of a file by its suffix and the marks in its text."""
    fitting = {name: each for name, each in FORMATS.items() if path.suffix.lower() in each.suffixes}
    for name, each in fitting.items():
        if any(mark in text for mark in each.marks):
            return name
    unmarked = [name for name, each in fitting.items() if not each.marks or len(fitting) == 1]
    if not unmarked:
        names = ", ".join(fitting or FORMATS)
        raise DataError(f"{path}: cannot detect its label format. Name it with --from: {names}.")
    return unmarked[0]


def write_annotations(
    path: Path | str,
    annotations: Sequence[Annotation],
    *,
    format: str = "csv",
    overwrite: bool = False,
    inputs: Sequence[Path] = (),
    only_own: bool = False,
) -> Path:
    """Write annotations to one file, or to a folder if the format holds one video per file.

    A single video is written to one file in every format if `path` has the suffix of the format.

    Args:
        inputs: files and folders that are never replaced.
        only_own: replace a file only if it is as this program wrote it.
    """
    path, chosen = Path(path), find_format(format)
    if not chosen.one_video or (len(annotations) == 1 and path.suffix in chosen.suffixes):
        check_output(path, overwrite=overwrite, inputs=inputs, only_own=only_own)
        text = chosen.write([_place_file(each, path.parent) for each in annotations])
        if path.suffix.lower() == ".tsv" and ".csv" in chosen.suffixes:
            text = replace_commas(text, "\t")
        return write_text(path, text, overwrite=overwrite)
    if path.is_file():
        raise OutputExistsError(f"{path} is a file, but {format} needs a folder: it has one file per video")
    files = [join_inside(path, f"{each.video}{chosen.suffixes[0]}") for each in annotations]
    texts = {
        file: chosen.write([_place_file(each, file.parent)])
        for file, each in zip(files, annotations, strict=True)
    }
    for file in texts:
        check_output(file, overwrite=overwrite, inputs=inputs, only_own=only_own)
    names = [str(file.relative_to(path)) for file in texts]
    with atomic_files(path, names, overwrite=overwrite) as drafts:
        for draft, text in zip(drafts, texts.values(), strict=True):
            draft.write_text(text, "utf-8")
    return path


def _place_file(annotation: Annotation, folder: Path) -> Annotation:
    """Return the annotation with its video file as seen from `folder`; an address or unknown file stays."""
    if annotation.file is None or os.path.isabs(annotation.file) or not os.path.isfile(annotation.file):
        return annotation
    return replace(annotation, file=Path(os.path.relpath(annotation.file, folder)).as_posix())
