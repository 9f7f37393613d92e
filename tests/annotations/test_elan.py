"""Files are compared with what pympi, a library for ELAN files, reads and writes."""

import warnings
from pathlib import Path

import pytest

from cycleback.annotations import Annotation, Event, Moment, Segment
from cycleback.annotations.elan import read, write
from cycleback.errors import DataError

pympi = pytest.importorskip("pympi", reason="pympi-ling is not installed")


def test_another_library_reads_the_same_labels(drawn, tmp_path: Path) -> None:
    video = drawn(5)
    (tmp_path / "a.eaf").write_text(write([video]), "utf-8")
    found = pympi.Elan.Eaf(str(tmp_path / "a.eaf"))
    events = [(start, text) for start, _, text in found.get_annotation_data_for_tier("events")]
    assert sorted(events) == [(1000 * event.at.seconds, event.name) for event in video.events]
    phases = [(1000 * each.start.seconds, 1000 * each.end.seconds, each.name) for each in video.segments]
    assert sorted(found.get_annotation_data_for_tier("phases")) == phases
    assert found.get_linked_files()[0]["MEDIA_URL"] == video.file
    sure = [float(note[2]) for note in found.get_ref_annotation_data_for_tier("phases confidence")]
    assert sorted(sure) == sorted(each.confidence for each in video.segments if each.confidence is not None)


def test_files_of_another_library_are_read(tmp_path: Path) -> None:
    made = pympi.Elan.Eaf()
    made.add_linked_file("file:///videos/a.mp4", mimetype="video/mp4")
    for tier in ("Events", "gesture"):
        made.add_tier(tier)
        made.add_annotation(tier, 1200, 1900, f"in {tier}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made.to_file(str(tmp_path / "x.eaf"))
    (video,) = read((tmp_path / "x.eaf").read_text("utf-8"), "x.eaf")
    assert (video.video, video.file) == ("a", "file:///videos/a.mp4")
    assert video.events == (Event("in Events", Moment(1.2)),)
    assert video.segments == (Segment("in gesture", Moment(1.2), Moment(1.9)),)


def test_another_library_finds_nothing_wrong(drawn, tmp_path: Path) -> None:
    (tmp_path / "a.eaf").write_text(write([drawn(7)]), "utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = pympi.Elan.Eaf(str(tmp_path / "a.eaf"))
    assert set(found.get_tier_names()) == {"events", "events confidence", "phases", "phases confidence"}


def test_what_is_no_xml_names_the_line() -> None:
    with pytest.raises(DataError, match=r"x\.eaf, line 2: not XML"):
        read("<ANNOTATION_DOCUMENT>\n<TIER", "x.eaf")


def test_a_slot_without_a_time_is_named(drawn) -> None:
    text = write([drawn(5)]).replace('TIME_SLOT_ID="ts1" TIME_VALUE', 'TIME_SLOT_ID="ts1" NO')
    with pytest.raises(DataError, match=r"x\.eaf, tier events, annotation a1: time slot ts1 has no time"):
        read(text, "x.eaf")


def test_no_two_annotations_of_a_tier_overlap(tmp_path: Path) -> None:
    """ELAN refuses overlaps; two events at one frame go to two tiers, and both are read back."""
    events = tuple(Event(name, Moment(second, round(25 * second))) for name, second in (("a", 1), ("b", 1)))
    video = Annotation(
        "v", events, (Segment("p", Moment(0.0), Moment(2.0)), Segment("q", Moment(1), Moment(3))), fps=25
    )
    (tmp_path / "a.eaf").write_text(write([video]), "utf-8")
    found = pympi.Elan.Eaf(str(tmp_path / "a.eaf"))
    for tier in ("events", "events 2", "phases", "phases 2"):
        assert len(found.get_annotation_data_for_tier(tier)) == 1
    (again,) = read((tmp_path / "a.eaf").read_text("utf-8"), "a.eaf")
    assert sorted(event.name for event in again.events) == ["a", "b"]
    assert sorted(segment.name for segment in again.segments) == ["p", "q"]
