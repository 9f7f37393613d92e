"""Every format: what it can hold comes back equal, files are told apart, bad files are one line."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cycleback.annotations import FORMATS, Annotation, Event, Moment, read_annotations, write_annotations
from cycleback.errors import DataError, OutputExistsError

Draw = Callable[[int], Annotation]
NOT_HELD = {  # what is lost on the way
    "csv": {"file", "fps", "num_frames", "duration"},
    "json": set(),
    "activitynet": {"file", "fps", "num_frames", "frame"},
    "elan": {"fps", "num_frames", "duration", "frame"},
    "label-studio": {"num_frames", "duration", "seconds"},
    "via": {"fps", "num_frames", "duration", "frame"},
    "boris": {"num_frames", "frame"},
    "boris-events": {"num_frames", "frame"},
    "cvat": {"fps", "duration", "seconds"},
    "cvat-intervals": {"fps", "num_frames", "duration", "frame"},
    "labelu": {"fps", "num_frames", "frame"},
    "frames": {"file", "fps", "duration", "seconds", "events", "confidence"},
}


def held(name: str, annotation: Annotation) -> Annotation:
    """What is left of an annotation after a way through format `name`."""
    lost = NOT_HELD[name]
    unit = {"seconds": None} if "seconds" in lost else {"frame": None} if "frame" in lost else {}
    sure = {"confidence": None} if "confidence" in lost else {}
    events = tuple(replace(each, at=replace(each.at, **unit), **sure) for each in annotation.events)
    segments = tuple(
        replace(each, start=replace(each.start, **unit), end=replace(each.end, **unit), **sure)
        for each in annotation.segments
    )
    about = {key: None for key in lost & {"file", "fps", "num_frames", "duration"}}
    return replace(annotation, events=() if "events" in lost else events, segments=segments, **about)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("seed", range(12))
def test_what_a_format_holds_comes_back_equal(name: str, seed: int, drawn: Draw, tmp_path: Path) -> None:
    videos = [drawn(seed)] if FORMATS[name].one_video else [drawn(seed), drawn(seed + 100)]
    written = write_annotations(tmp_path / "labels", videos, format=name)
    assert read_annotations(written, format=name) == [held(name, video) for video in videos]


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_tells_its_own_format(name: str, drawn: Draw, tmp_path: Path) -> None:
    for suffix in FORMATS[name].suffixes:
        path = write_annotations(tmp_path / f"labels{suffix}", [drawn(1)], format=name)
        assert read_annotations(path)[0].segments == held(name, drawn(1)).segments


@pytest.mark.parametrize("name", ["elan", "frames"])
def test_several_videos_make_a_folder_which_is_read_as_one(name: str, drawn: Draw, tmp_path: Path) -> None:
    videos = [replace(drawn(seed), video=f"train/v{seed}", file=f"train/v{seed}.mp4") for seed in (1, 2)]
    folder = write_annotations(tmp_path / "out", videos, format=name)
    suffix = FORMATS[name].suffixes[0]
    assert sorted(file.name for file in (folder / "train").iterdir()) == [f"v1{suffix}", f"v2{suffix}"]
    assert [each.video for each in read_annotations(folder)] == ["v1", "v2"]


@pytest.mark.parametrize("name", ["csv", "elan"])
def test_existing_files_are_kept_and_none_is_written(name: str, drawn: Draw, tmp_path: Path) -> None:
    videos = [drawn(1), replace(drawn(2), video="b")]
    taken = tmp_path / "out" if name == "csv" else tmp_path / "out" / "b.eaf"
    taken.parent.mkdir(exist_ok=True)
    taken.write_text("mine")
    with pytest.raises(OutputExistsError, match=rf"{taken.name} exists"):
        write_annotations(tmp_path / "out", videos, format=name)
    assert taken.read_text() == "mine" and len(list(taken.parent.iterdir())) == 1
    assert write_annotations(tmp_path / "out", videos, format=name, overwrite=True).exists()


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    "text", ["", "{", "[]", "<a>", "x,y\n1,2\n", '{"a": 3}', "[[1]]", '["b"]', "null", "\n\n"]
)
def test_no_text_is_more_than_one_line_of_error(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / f"bad{FORMATS[name].suffixes[0]}"
    path.write_text(text)
    if name == "frames" and text.strip():
        return  # any line is a label
    with pytest.raises(DataError, match=r"bad\.[a-z]+") as caught:
        read_annotations(path, format=name)
    assert "\n" not in str(caught.value)


def broken(value: object, junk: object) -> Iterator[object]:
    """Copies of a JSON value in each of which one value is replaced by junk."""
    yield junk
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in list(inside):
        for worse in broken(child, junk):
            copy = dict(value) if isinstance(value, dict) else list(value)
            copy[key] = worse
            yield copy


@pytest.mark.parametrize("name", ["json", "activitynet", "label-studio", "via", "boris", "labelu"])
@pytest.mark.parametrize("junk", [None, "", "x", -1.5, [], {}, [1], True])
def test_any_value_of_a_file_may_be_junk(name: str, junk: object, drawn: Draw) -> None:
    for text in map(json.dumps, broken(json.loads(FORMATS[name].write([drawn(1)])), junk)):
        try:
            FORMATS[name].read(text, "bad.json")
        except DataError as error:
            assert str(error).startswith("bad.json") and "\n" not in str(error)


def test_an_unknown_format_names_the_closest() -> None:
    with pytest.raises(DataError, match=r"unknown label format 'elna'\. Did you mean 'elan'"):
        write_annotations("x", [], format="elna")


def test_a_file_that_says_nothing_of_its_format_asks_for_it(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(
        DataError, match=r"x\.json: cannot detect its label format\. Name it with --from: json"
    ):
        read_annotations(tmp_path / "x.json")
    (tmp_path / "x.doc").write_text("a")
    with pytest.raises(DataError, match=r"x\.doc: cannot detect its label format"):
        read_annotations(tmp_path / "x.doc")


def test_missing_binary_and_empty_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read .*gone\.csv: No such file"):
        read_annotations(tmp_path / "gone.csv")
    (tmp_path / "b.csv").write_bytes(b"video\xff\xfe")
    with pytest.raises(DataError, match=r"b\.csv: not a UTF-8 text file \(byte 5\)"):
        read_annotations(tmp_path / "b.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        DataError, match=r"empty: no label files in this folder, expected \.eaf, \.tsv, \.txt or \.xml"
    ):
        read_annotations(tmp_path / "empty")
    (tmp_path / "none.csv").write_text("video,event,frame\n")
    with pytest.raises(DataError, match=r"none\.csv: no events and no segments in it"):
        read_annotations(tmp_path / "none.csv")


def test_frames_become_seconds_only_with_a_frame_rate(tmp_path: Path) -> None:
    video = Annotation("a", (Event("top", Moment(frame=50)),))
    with pytest.raises(DataError, match=r"a: frame 50 has no time, because the frame rate is unknown"):
        write_annotations(tmp_path / "x.json", [video], format="activitynet")
    path = write_annotations(tmp_path / "x.json", [replace(video, fps=25)], format="activitynet")
    assert read_annotations(path)[0].events[0].at == Moment(2.0)


@pytest.mark.parametrize("format", ["csv", "boris-events"])
def test_a_tsv_has_tabs(tmp_path: Path, format: str) -> None:
    video = Annotation("a, b", (Event("x", Moment(1.0, 25)),), fps=25.0)
    path = write_annotations(tmp_path / "x.tsv", [video], format=format)
    assert all("\t" in line for line in path.read_text().splitlines())
    assert [each.name for each in read_annotations(path)[0].events] == ["x"]


def test_the_video_is_named_as_seen_from_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clips").mkdir()
    (tmp_path / "clips" / "a.mp4").touch()
    video = Annotation("a", (Event("x", Moment(1.0)),), file="clips/a.mp4")
    folder = write_annotations(tmp_path / "labels" / "out", [video], format="elan")
    (again,) = read_annotations(folder)
    assert again.file == "../../clips/a.mp4"
    assert (folder / again.file).resolve() == tmp_path / "clips" / "a.mp4"
