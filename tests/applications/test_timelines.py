"""Timelines of editing programs: OpenTimelineIO as its own library reads it, and Final Cut Pro XML."""

from fractions import Fraction
from pathlib import Path
from urllib.parse import unquote, urlparse
from xml.etree import ElementTree

import numpy as np
import opentimelineio as otio
import pytest

from cycleback.applications.edits import write_edits
from cycleback.applications.pace import Pace, smooth_pace
from cycleback.embeddings import EmbeddingSet


@pytest.fixture
def pace(embeddings: EmbeddingSet) -> Pace:
    return smooth_pace(embeddings, ["slow", "fast"], reference="slow")


def follow_otio(track: otio.schema.Track, fps: float) -> np.ndarray:
    """The second of the video at every output frame, by the clips and their time warps."""
    seconds = []
    for clip in track.find_clips():
        speed = clip.effects[0].time_scalar if clip.effects else 1.0
        start, count = clip.source_range.start_time.to_seconds(), round(clip.source_range.duration.value)
        seconds.append(start + speed * np.arange(count) / fps)
    return np.concatenate(seconds)


def test_opentimelineio_reads_one_track_per_video(pace: Pace, ramps: list[Path], tmp_path: Path) -> None:
    (path,) = write_edits(tmp_path / "edits.otio", pace, ramps)
    timeline = otio.adapters.read_from_file(str(path))
    tracks = timeline.video_tracks()
    assert [track.name for track in tracks] == ["slow", "fast"]
    for track, source, video in zip(tracks, pace.sources, ramps, strict=True):
        assert follow_otio(track, pace.fps) == pytest.approx(source, abs=1 / pace.fps + 1e-6)
        assert track.duration().to_seconds() == pytest.approx(len(source) / pace.fps)
        url = next(iter(track.find_clips())).media_reference.target_url
        assert Path(unquote(urlparse(url).path)) == video.resolve()


def test_videos_in_turns_share_a_track(pace: Pace, ramps: list[Path], tmp_path: Path) -> None:
    (path,) = write_edits(tmp_path / "edits.otio", pace, ramps, layout="switch", switch_every=8)
    (track,) = otio.adapters.read_from_file(str(path)).video_tracks()
    names = list(dict.fromkeys(clip.name for clip in track.find_clips()))
    assert (track.name, names) == ("turns", ["slow", "fast"])


def test_a_video_that_stands_still_is_a_freeze_frame(pace: Pace, ramps: list[Path], tmp_path: Path) -> None:
    still = np.stack([pace.sources[0], np.full(20, 1.03)])
    held = Pace(pace.names, pace.fps, pace.seconds, still, still * 10)
    (path,) = write_edits(tmp_path / "edits.otio", held, ramps)
    (clip,) = otio.adapters.read_from_file(str(path)).video_tracks()[1].find_clips()
    assert isinstance(clip.effects[0], otio.schema.FreezeFrame)


def seconds(text: str) -> Fraction:
    return Fraction(text.removesuffix("s"))


def test_final_cut_gets_the_time_map_of_each_video(pace: Pace, ramps: list[Path], tmp_path: Path) -> None:
    (path,) = write_edits(tmp_path / "edits.fcpxml", pace, ramps)
    root = ElementTree.parse(path).getroot()
    sources = {asset.get("id"): asset.find("media-rep").get("src") for asset in root.iter("asset")}
    clips = list(root.iter("asset-clip"))
    assert [clip.get("lane") for clip in clips] == ["1", "2"]
    for clip, source, video in zip(clips, pace.sources, ramps, strict=True):
        points = [(seconds(p.get("time")), seconds(p.get("value"))) for p in clip.iter("timept")]
        at, value = np.array(points, dtype=float).T
        shown = np.interp(np.arange(len(source)) / pace.fps, at, value)
        assert shown == pytest.approx(source, abs=1 / pace.fps + 1e-4)
        assert seconds(clip.get("duration")) * Fraction(pace.fps) == len(source)
        assert Path(unquote(urlparse(sources[clip.get("ref")]).path)) == video.resolve()


def test_turns_are_clips_one_after_another(pace: Pace, ramps: list[Path], tmp_path: Path) -> None:
    (path,) = write_edits(tmp_path / "edits.fcpxml", pace, ramps, layout="switch", switch_every=8)
    clips = list(ElementTree.parse(path).getroot().iter("asset-clip"))
    ends = [seconds(clip.get("offset")) + seconds(clip.get("duration")) for clip in clips]
    assert [clip.get("name") for clip in clips] == ["slow", "fast", "slow"]
    assert [seconds(clip.get("offset")) for clip in clips] == [0, *ends[:-1]]
