"""Finding an action in a long recording: every occurrence, none across a cut, none where there is none."""

from pathlib import Path

import numpy as np
import pytest

from cycleback.applications import find_action, find_occurrences
from cycleback.applications.find import (
    Scanner,
    describe_action,
    estimate_confidence,
    iter_motion,
    mend_starts,
    read_motion,
)
from cycleback.errors import DataError
from cycleback.video import read_frames, write_video
from cycleback.video.motion import MotionMeter
from long_recordings import draw, perform, record, wander


def measure(frames, times=None):
    """Return the motion of frames, and their seconds at 30 per second."""
    clock = np.arange(len(frames)) / 30 if times is None else times
    motion = MotionMeter().push(frames, clock).astype(np.float32)
    mend_starts(motion, clock)
    return motion, clock


@pytest.fixture(scope="module")
def example():
    return measure(draw(perform(60), scene=5))


@pytest.fixture(scope="module")
def recording():
    places, spans = record()
    return measure(draw(places, scene=1)), spans


def test_every_occurrence_is_found_at_its_own_pace_and_scene(example, recording) -> None:
    (motion, times), spans = recording
    found = find_occurrences([example], motion, times)
    assert len(found.found) == len(spans)
    for each, (start, stop) in zip(found.found, spans, strict=True):
        assert abs(each.start - start) <= 5 and abs(each.stop - stop) <= 5
        assert each.start_s == times[each.start] and each.end_s == pytest.approx(each.stop / 30)
        assert each.speed == pytest.approx(60 / (stop - start), rel=0.15)
        assert each.confidence > 0.9
    middles = [(start + stop) // 2 for start, stop in spans]
    assert found.curve[middles].min() > 0.6 and np.median(found.curve) < 0.5


def test_a_recording_without_the_action_has_none(example) -> None:
    for seed in (3, 4, 5):
        places = wander(500, np.random.default_rng(seed))
        found = find_occurrences([example], *measure(draw(places)))
        assert found.found == () and found.rows() == [] and found.to_json()["count"] == 0


def test_the_action_backwards_is_not_found(example) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        before, places = wander(120, rng)[::-1], perform(60)[::-1]
        long = np.concatenate([before + places[0] - before[-1], places, wander(120, rng)]).clip(0, 50)
        assert find_occurrences([example], *measure(draw(long))).found == ()


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_still_or_empty_recording_has_none(example, value: float) -> None:
    motion = np.full((200, 4, 8, 8), value, dtype=np.float32)
    assert find_occurrences([example], motion, np.arange(200) / 30).found == ()
    assert find_occurrences([example], motion[:3], np.arange(3) / 30).found == ()
    assert find_occurrences([example], motion[:1], np.zeros(1)).found == ()


def test_the_result_does_not_depend_on_the_pieces(example, recording) -> None:
    (motion, times), _ = recording
    whole = find_occurrences([example], motion, times, cuts=[170], min_confidence=0)
    scanner = Scanner(describe_action([example]), fps=30)
    start = 0
    for size in np.random.default_rng(0).integers(1, 40, 200):
        stop = min(start + int(size), len(times))
        scanner.push(motion[start:stop], times[start:stop], [170] if start <= 171 < stop else [])
        start = stop
    pieces = scanner.finish(min_confidence=0)
    assert pieces.found == whole.found
    assert np.allclose(pieces.curve, whole.curve, atol=1e-5)


def test_memory_does_not_grow_with_the_recording(example, recording) -> None:
    (motion, times), _ = recording
    scanner, sizes = Scanner(describe_action([example]), fps=30), []
    for turn in range(2):
        for start in range(0, len(times), 64):
            piece = slice(start, start + 64)
            scanner.push(motion[piece], times[piece] + turn * (times[-1] + 1 / 30))
            sizes.append(len(scanner._motion))
    assert max(sizes) < 64 + scanner._window + 3 * scanner._margin < len(times)
    assert len(scanner.finish().found) == 6


def test_no_occurrence_reaches_across_a_cut(example, recording) -> None:
    (motion, times), spans = recording
    start, stop = spans[1]
    cut = (start + stop) // 2
    found = find_occurrences([example], motion, times, cuts=[cut], min_confidence=0)
    assert found.cuts == (cut,) and found.cuts_s == [times[cut]]
    assert not any(each.start < cut < each.stop for each in found.found)
    sure = [each for each in found.found if each.confidence > 0.5]
    assert [abs(each.start - spans[k][0]) <= 5 for each, k in zip(sure, (0, 2), strict=True)] == [True, True]


def test_more_examples_and_faster_frame_rates_agree(example, recording) -> None:
    (motion, times), spans = recording
    quick = draw(perform(120), scene=9)  # the same two seconds at 60 frames per second
    other = measure(quick, np.arange(120) / 60)
    found = find_occurrences([example, other, measure(draw(perform(72)))], motion, times)
    assert len(found.found) == len(spans)
    assert all(abs(each.start - start) <= 5 for each, (start, _) in zip(found.found, spans, strict=True))


def test_a_slower_action_than_allowed_is_not_found(example) -> None:
    rng = np.random.default_rng(2)
    long = np.concatenate([wander(150, rng), perform(190), wander(150, rng, start=perform(9)[-1])])
    motion = measure(draw(long))
    assert all(each.stop - each.start < 150 for each in find_occurrences([example], *motion).found)
    best = max(find_occurrences([example], *motion, max_stretch=4).found, key=lambda each: each.confidence)
    assert abs(best.start - 150) < 12 and abs(best.stop - 340) < 12
    with pytest.raises(ValueError, match=r"max_stretch must be from 1 to 100, got 0\.5"):
        find_occurrences([example], *motion, max_stretch=0.5)


def test_confidence_rises_with_likeness_and_falls_with_another_loudness() -> None:
    values = [estimate_confidence(likeness, frames=60) for likeness in np.linspace(0, 1, 21)]
    assert values == sorted(values) and values[0] < 0.01 and values[-1] > 0.99
    assert estimate_confidence(0.45, frames=60, louder=-4) < estimate_confidence(0.45, frames=60)
    assert estimate_confidence(0.35, frames=30) < estimate_confidence(0.35, frames=300)


def test_a_video_file_is_searched_with_its_own_part(tmp_path: Path) -> None:
    places, spans = record(lengths=(60, 66))
    cut = spans[1][0] - 40
    frames = np.concatenate([draw(places[:cut], scene=1), draw(places[cut:], scene=2)])
    video = write_video(tmp_path / "day.mp4", frames, fps=30)
    seen: list[tuple[int, int]] = []
    found = find_action(
        video, video, span=(spans[0][0], spans[0][1] - 1), progress=lambda *done: seen.append(done)
    )
    assert [abs(each.start - start) <= 5 for each, (start, _) in zip(found.found, spans, strict=True)]
    assert found.cuts == (cut,)
    assert found.found[0].likeness > 0.9 and found.found[0].confidence > 0.99
    assert seen[-1] == (len(frames), len(frames)) and len(found.times) == len(frames)
    motion, times = read_motion(video, span=(10, 29))
    whole = np.concatenate([piece[0] for piece in iter_motion(video)])
    assert np.array_equal(motion, whole[10:30].astype(np.float32)) and times[0] == pytest.approx(10 / 30)


def test_what_cannot_be_an_example_is_refused(tmp_path: Path) -> None:
    video = write_video(tmp_path / "short.mp4", draw(perform(5)), fps=30)
    with pytest.raises(DataError, match="shows 5 frames of the action; expected 8 or more"):
        find_action(video, video)
    still = write_video(tmp_path / "still.mp4", draw(np.full((40, 4), 20.0)), fps=30)
    with pytest.raises(DataError, match="nothing moves in an example"):
        find_action(still, still)


def test_golf_swings_are_found_among_other_actions(shared_data: Path, tmp_path: Path) -> None:
    import csv

    with (shared_data / "golf" / "labels.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["role"] == "train"][:6]
    clips = {row["id"]: shared_data / "golf" / "videos" / f"{row['id']}.mp4" for row in rows}
    motions = {row["id"]: read_motion(clips[row["id"]]) for row in rows}
    spans = {row["id"]: (int(row["address"]), int(row["finish"]) + 1) for row in rows}
    others = [read_motion(path)[0] for path in sorted((shared_data / "repetitions").glob("*.mp4"))[:4]]
    pieces, true, total = list[np.ndarray](), list[tuple[int, int]](), 0
    for row, other in zip(rows[2:], others, strict=True):
        start, stop = spans[row["id"]]
        true.append((total + start, total + stop))
        pieces += [motions[row["id"]][0], other]
        total += sum(len(piece) for piece in pieces[-2:])
    examples = [tuple(part[slice(*spans[row["id"]])] for part in motions[row["id"]]) for row in rows[:2]]
    found = find_occurrences(examples, np.concatenate(pieces), np.arange(total) / 30).found
    right = [any(abs((e.start + e.stop) - (a + b)) < 30 for e in found) for a, b in true]
    assert sum(right) >= 3 and len(found) <= 5


def test_frames_are_those_of_the_file(tmp_path: Path) -> None:
    places, _ = record(lengths=(60,), between=90)
    video = write_video(tmp_path / "one.mp4", draw(places), fps=30, crf=1)
    found = find_action(write_video(tmp_path / "ref.mp4", draw(perform(60)), fps=30), video).found
    assert len(found) == 1
    at = read_frames(video, [found[0].start])[0].astype(int)
    near = range(found[0].start - 3, found[0].start + 4)
    apart = [np.abs(at - draw(places[frame][None])[0]).mean() for frame in near]
    assert np.argmin(apart) == 3
