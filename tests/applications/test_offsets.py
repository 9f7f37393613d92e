"""Offsets of videos: what is chosen, what is said, and what is played."""

from pathlib import Path

import numpy as np
import pytest

from cycleback.alignment.offset import Line
from cycleback.alignment.sound_offset import RATE, fit_sound_offset
from cycleback.applications import find_offset, match_by_offset, pace_by_offset
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import UserError
from cycleback.models.streams import SCALES
from cycleback.video import read_audio
from moving_clips import make_clips


def film(seconds: np.ndarray) -> np.ndarray:
    """What any camera sees at these seconds of the event (N, 5)."""
    moments = np.arange(-5, 25, 0.1)
    values = np.random.default_rng(0).normal(size=(len(moments), 5))
    return np.stack([np.interp(seconds, moments, column) for column in values.T], axis=1)


@pytest.fixture
def videos() -> EmbeddingSet:
    """A reference at 30 fps, one at 25 that starts 1.5 s later, one at 60 that starts 2 s earlier."""
    clocks = {"a": np.arange(240) / 30, "late": np.arange(200) / 25, "early": np.arange(600) / 60}
    starts = {"a": 0.0, "late": 1.5, "early": -2.0}
    arrays = {name: film(clock + starts[name]) for name, clock in clocks.items()}
    return EmbeddingSet.from_arrays(arrays, times=clocks, fps={"a": 30, "late": 25, "early": 60})


def test_without_files_the_offset_is_from_pictures_and_says_so(videos) -> None:
    found = find_offset(videos, "a", "late")
    assert found.source == "pictures" and found.sound is None
    assert found.offset.offset_s == pytest.approx(1.5, abs=0.005)
    assert found.notes == ("a has no file to read its sound from: the offset is from pictures alone",)
    assert found.describe().startswith("offset 1.50") and "(late starts later)" in found.describe()
    assert "early starts earlier" in find_offset(videos, "a", "early").describe()
    with pytest.raises(UserError, match="a has no file to read its sound from: no offset by sound"):
        find_offset(videos, "a", "late", source="sound")
    with pytest.raises(ValueError, match="source must be one of"):
        find_offset(videos, "a", "late", source="music")  # type: ignore[arg-type]


def test_matches_are_the_nearest_frames_of_the_common_part(videos) -> None:
    match = match_by_offset(videos, find_offset(videos, "a", "late", method="offset"))
    inside = np.flatnonzero(match.matched)
    assert inside[0] == 45 and match.method == "offset"
    own, other = videos.times("a")[inside], videos.times("late")[match.indices[inside]]
    assert np.abs(own - 1.5 - other).max() < 0.5 / 25 + 0.005
    assert (match.confidence[: inside[0]] == 0).all() and match.confidence[inside].min() > 0.5


def test_all_videos_play_what_they_have_in_common(videos) -> None:
    lines = {"late": Line(1.5), "early": Line(-2.0)}
    pace = pace_by_offset(videos, ("a", "late", "early"), lines)
    assert pace.fps == pytest.approx(30) and pace.sources[0, 0] == pytest.approx(1.5)
    assert pace.sources[0] - pace.sources[1] == pytest.approx(np.full(len(pace.seconds), 1.5))
    assert pace.sources[2] - pace.sources[0] == pytest.approx(np.full(len(pace.seconds), 2.0), abs=0.02)
    assert np.diff(pace.positions[0]) == pytest.approx(np.ones(len(pace.seconds) - 1))  # frame by frame
    assert np.diff(pace.positions[2]).max() == pytest.approx(2.0)
    assert pace.sources[:, -1] == pytest.approx([7.97, 6.47, 9.97], abs=0.04)
    assert pace.cuts[0] == pytest.approx((1.5, 0.0), abs=0.04)
    assert pace.cuts[2] == pytest.approx((3.5, 0.0), abs=0.04)
    with pytest.raises(UserError, match=r"the 2 videos have no moment in common"):
        pace_by_offset(videos, ("a", "late"), {"late": Line(9.0)})


def test_cameras_of_one_event_keep_the_usual_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cycleback.runs import embed_videos

    monkeypatch.setenv("CYCLEBACK_CACHE", str(tmp_path / "cache"))
    files = sorted(make_clips(tmp_path, count=2).glob("*.mp4"))
    found = embed_videos("pretrained", files, one_event=True)
    assert found.streams == pytest.approx(dict(SCALES))
    assert find_offset(found, "clip-0", "clip-1").offset.common_s[0] >= 0


def test_a_real_sound_is_placed_to_a_fraction_of_a_millisecond(shared_data: Path) -> None:
    whole = read_audio(shared_data / "pouring_audio" / "ayNzH0uygFw_9.0_21.0.mp4", rate=RATE, mono=True)
    sound, rng = whole.samples[0].astype(np.float64), np.random.default_rng(0)
    line = Line(2.34567, 2e-4)
    places = line.to_a(np.arange(7 * RATE) / RATE) * RATE
    other = 0.1 * np.interp(places, np.arange(len(sound)), sound)
    other += 0.3 * other.std() * rng.normal(size=len(other))
    found = fit_sound_offset(sound[: 8 * RATE], other)
    inside = np.linspace(*found.common_s, 9)
    assert np.abs(found.to_b(inside) - line.to_b(inside)).max() < 5e-4 and found.confidence > 0.9
