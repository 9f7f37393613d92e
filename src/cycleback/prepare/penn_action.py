"""Penn Action as its authors distribute it: frames/0001/000001.jpg, labels/0001.mat.

The phase labels of the paper are not part of it. Per-frame label files that later work shares, laid out as
split/action/0001.npy, are read where the user has them.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from cycleback.data.sources import image_paths
from cycleback.errors import DataError
from cycleback.prepare.frame_labels import labelled_events
from cycleback.prepare.paper import PENN_ACTION, fewer_than_the_paper, more_than_the_paper
from cycleback.prepare.penn_annotations import (
    LabelFile,
    PennAnnotation,
    check_actions,
    find_label_files,
    read_annotation,
    read_frame_labels,
)
from cycleback.prepare.writer import DatasetWriter, place_file


def prepare_penn_action(
    source: Path,
    writer: DatasetWriter,
    *,
    progress: Callable[[int, int], None],
    actions: tuple[str, ...] = tuple(PENN_ACTION),
    labels: Path | str | None = None,
    link: bool = True,
) -> list[str]:
    """Write each video as a folder of its images under its action; returns what is missing.

    The official training set becomes the split "train", the official test set "val". The images play at the
    default 30 a second; the data set does not say its rate.

    Args:
        source: The folder that holds `frames` and `labels`, or the one above its `Penn_Action`.
        writer: Takes the videos.
        progress: Called with (annotations done, annotations).
        actions: Which actions; the default is the paper's thirteen of fifteen.
        labels: Folder of frame labels, split/action/0001.npy; without it the videos have no key events.
        link: Hard links (else symbolic links, else copies) to the images, or always copies.
    """
    check_actions(actions)
    root = source / "Penn_Action" if (source / "Penn_Action").is_dir() else source
    files = None if labels is None else find_label_files(Path(labels))
    annotations = _find_annotations(root)
    for done, path in enumerate(annotations, start=1):
        annotation = read_annotation(path)
        if annotation.action in actions:
            _write_video(root / "frames" / annotation.video_id, annotation, files, writer, link=link)
        progress(done, len(annotations))
    return compare_counts(writer, actions)


def compare_counts(writer: DatasetWriter, actions: tuple[str, ...]) -> list[str]:
    """What the paper has more of the chosen actions; where it has less, that becomes a warning."""
    expected = {action: PENN_ACTION[action] for action in actions if action in PENN_ACTION}
    for case in more_than_the_paper(writer.videos(), expected):
        writer.warnings.add("splits of an action with more videos than the paper counts", case)
    return fewer_than_the_paper(writer.videos(), expected)


def frame_label_events(
    annotation: PennAnnotation, num_frames: int, files: Mapping[str, LabelFile] | None, writer: DatasetWriter
) -> dict[str, int]:
    """Key events of a video from its label file; {} without label files, or for an action without events."""
    events = PENN_ACTION[annotation.action].events if annotation.action in PENN_ACTION else ()
    if files is None or not events:
        return {}
    video, file = f"{annotation.action}/{annotation.video_id}", files.get(annotation.video_id)
    if file is not None and file.split != annotation.split:
        case = f"{video}: {annotation.split}, its label file lies in {file.split}"
        writer.warnings.add("videos whose label file lies in another split; the official split is kept", case)
    labels = None if file is None else read_frame_labels(file.path)
    return labelled_events(video, labels, num_frames=num_frames, events=events, warnings=writer.warnings)


def _find_annotations(root: Path) -> list[Path]:
    for folder in ("frames", "labels"):
        if not (root / folder).is_dir():
            raise DataError(
                f"no folder {folder!r} in {root}. Expected frames/0001/000001.jpg and labels/0001.mat in it."
            )
    annotations = sorted((root / "labels").glob("*.mat"))
    if not annotations:
        raise DataError(f"no annotations in {root / 'labels'}. Expected files such as 0001.mat.")
    return annotations


def _write_video(
    frames: Path,
    annotation: PennAnnotation,
    files: Mapping[str, LabelFile] | None,
    writer: DatasetWriter,
    *,
    link: bool,
) -> None:
    video = f"{annotation.action}/{annotation.video_id}"
    images = image_paths(frames) if frames.is_dir() else []
    if len(images) < 2:
        writer.warnings.add(
            "videos left out, since they have no frames", f"{video}: {len(images)} in {frames}"
        )
        return
    if len(images) != annotation.num_frames:
        case = f"{video}: {len(images)} images, {annotation.num_frames} annotated"
        writer.warnings.add("videos with another number of images than their annotation says", case)
    folder = writer.add(
        video, split=annotation.split, events=frame_label_events(annotation, len(images), files, writer)
    )
    folder.mkdir()
    for image in images:
        place_file(image, folder / image.name, link=link)
