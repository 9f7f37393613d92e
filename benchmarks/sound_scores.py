"""How well a transferred sound fits the pictures it was given to.

Rendered pouring: the pitch of the water tells how full the glass is. The pitch of the transferred sound is
compared with the known fill of the video, also where water is seen but not heard. Real baseball pitches: the
catch is heard at a known moment.

Each figure has two baselines: `_oracle` uses the true key events as its clock, `_proportional` only the
lengths of both videos.
"""

import csv
import json
import os
from collections.abc import Callable, Iterator, Mapping
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.applications.sound import Pair, match_times
from cycleback.applications.sound_warp import TimeMap, warp_sound
from cycleback.embeddings import EmbeddingSet
from cycleback.runs import embed_videos
from cycleback.synth import write_dataset
from cycleback.video import Audio, read_audio

POURINGS = 6
PITCHES = 12
WINDOW_S = 0.1  # of the spectra
HERTZ = (150.0, 4000.0)  # where the water sounds
LEVELS = (0.3, 0.5, 0.7)  # of the final fill, at which the timing is measured
HEARD_S = 0.01  # a catch is heard where it should be when it is this near

Clock = Callable[[str, str], TimeMap]
Array = NDArray[np.float64]


def score(cache: Path, *, run: str = "pretrained") -> dict[str, Any]:
    """Measure all figures; those of the pitches are None where the real videos are missing."""
    return pouring_scores(cache, run=run) | pitch_scores(cache, run=run)


def pouring_scores(cache: Path, *, run: str = "pretrained") -> dict[str, Any]:
    """Correlation of the heard pitch with the fill that is seen, and how late or early a fill is heard."""
    folder = cache / "sound-pouring"
    if not folder.exists():
        write_dataset(folder, videos=POURINGS, seed=11, jobs=1)
    truth = json.loads((folder / "truth.json").read_text("utf-8"))["videos"]
    videos = embed_videos(run, folder, cache=cache)
    sounds = {name: read_audio(_path(videos, name), mono=True) for name in videos}
    events = {name: videos.times(name)[list(videos.events(name).values())] for name in videos}
    result: dict[str, Any] = {"sound_pouring_pairs": len(videos) * (len(videos) - 1)}
    for suffix, clock in _clocks(videos, events).items():
        correlations, errors = [], []
        for source, target in permutations(videos, 2):
            times = videos.times(target)
            heard = warp_sound(sounds[source], clock(source, target), duration_s=float(times[-1] + times[1]))
            pitch = pitch_track(heard, times)
            correlations.append(pitch_correlation(pitch, truth[target]))
            errors += fill_errors(pitch, times, source=truth[source], target=truth[target])
        result[f"sound_pitch_correlation{suffix}"] = round(float(np.mean(correlations)), 3)
        result[f"sound_pitch_correlation_median{suffix}"] = round(float(np.median(correlations)), 3)
        result[f"sound_pitch_error_ms{suffix}"] = round(float(np.median(errors)) * 1000, 1)
    return result


def pitch_scores(cache: Path, *, run: str = "pretrained") -> dict[str, Any]:
    """Median distance in ms of the transferred catch from the true one, over all ordered pairs."""
    pops = dict(_read_pops())
    if not pops:
        return {"sound_pop_error_ms": None}
    videos = embed_videos(run, list(pops), cache=cache)
    moments = {name: pops[_path(videos, name)] for name in videos}
    sounds = {name: read_audio(_path(videos, name), mono=True) for name in videos}
    result: dict[str, Any] = {"sound_pop_pairs": len(videos) * (len(videos) - 1)}
    for suffix, clock in _clocks(videos, {}).items():
        errors, heard = [], []
        for source, target in permutations(videos, 2):
            times = clock(source, target)
            place = float(times.target(moments[source]))
            errors.append(abs(place - moments[target]))
            result_s = float(videos.times(target)[-1]) + 1.0  # room for a catch past the last frame
            sound = warp_sound(sounds[source], times, duration_s=result_s)
            heard.append(_is_heard(sounds[source], moments[source], sound, place))
        result[f"sound_pop_error_ms{suffix}"] = round(float(np.median(errors)) * 1000, 1)
        result[f"sound_pop_within_100ms{suffix}"] = round(float(np.mean(np.array(errors) < 0.1)), 3)
        result[f"sound_pop_heard_once{suffix}"] = round(float(np.mean(heard)), 3)
    return result


def _clocks(videos: EmbeddingSet, events: Mapping[str, Array]) -> dict[str, Clock]:
    """Suffix -> clock of (source, target): by the pictures, the key events where known, the lengths alone."""

    def seen(source: str, target: str) -> TimeMap:
        clocks = {"source_times": videos.times(source), "target_times": videos.times(target)}
        return match_times(Pair(source=videos[source], target=videos[target], **clocks), method="dtw")[0]

    def points(name: str, known: Mapping[str, Array]) -> Array:
        return np.concatenate([[0.0], known.get(name, np.zeros(0)), videos.times(name)[-1:]])

    def oracle(source: str, target: str) -> TimeMap:
        return TimeMap(points(target, events), points(source, events))

    def proportional(source: str, target: str) -> TimeMap:
        return TimeMap(points(target, {}), points(source, {}))

    clocks: dict[str, Clock] = {"": seen, "_oracle": oracle, "_proportional": proportional}
    return clocks if events else {name: clock for name, clock in clocks.items() if name != "_oracle"}


def pitch_track(audio: Audio, times: Array) -> Array:
    """The strongest frequency (N,) of `audio` around each of `times` (N,)."""
    size = round(WINDOW_S * audio.rate)
    padded = np.pad(audio.samples.mean(axis=0), size)
    starts = np.round(times * audio.rate).astype(np.int64) + size // 2
    windows = np.stack([padded[start : start + size] for start in starts]) * np.hanning(size)
    spectra = np.abs(np.fft.rfft(windows, 4 * size, axis=1))
    hertz = np.fft.rfftfreq(4 * size, 1 / audio.rate)
    inside = (hertz >= HERTZ[0]) & (hertz <= HERTZ[1])
    return np.asarray(hertz[inside][spectra[:, inside].argmax(axis=1)])


def pitch_correlation(pitch: Array, target: Mapping[str, Any]) -> float:
    """Correlation of the heard `pitch` (N,) with the seen fill, while water is seen to fall."""
    pouring = np.array([hertz is not None for hertz in target["pitch"]])
    return float(np.corrcoef(pitch[pouring], np.array(target["fill"])[pouring])[0, 1])


def fill_errors(
    pitch: Array, times: Array, *, source: Mapping[str, Any], target: Mapping[str, Any]
) -> list[float]:
    """Seconds between hearing and seeing the glass at each of LEVELS of its final fill."""
    pipe, fills = source["pipe_metres"], np.array(source["fill"])
    heard = 1 - (343 / (4 * pitch) - 0.62 * pipe["radius"]) / pipe["height"]
    heard = np.where((heard >= -0.05) & (heard <= 1.05 * fills.max()), heard, np.nan) / fills.max()
    seen = np.array(target["fill"]) / max(target["fill"])
    return [abs(_crossing(times, heard, level) - _crossing(times, seen, level)) for level in LEVELS]


def _crossing(times: Array, values: Array, level: float) -> float:
    """The moment that best parts what is below `level` from what is above; gaps (NaN) do not count."""
    below, above = values < level, values >= level
    mistakes = np.concatenate([[0], np.cumsum(above)]) + np.concatenate([np.cumsum(below[::-1])[::-1], [0]])
    best = np.flatnonzero(mistakes == mistakes.min())
    return float(np.append(times, times[-1])[best].mean())


def _is_heard(before: Audio, moment: float, after: Audio, place: float) -> bool:
    """Whether the sharpest sound around `moment` is now around `place`, as strong, and nowhere else."""
    was, here = _sharpest(before, moment), _sharpest(after, place)
    doubles = [_sharpest(after, place + shift)[1] for shift in (-0.1, 0.1)]
    alone = [_sharpest(before, moment + shift)[1] for shift in (-0.1, 0.1)]
    shift = abs((here[0] - place) - (was[0] - moment))
    no_copy = all(now < max(0.7 * was[1], 1.1 * then) for now, then in zip(doubles, alone, strict=True))
    return shift <= HEARD_S and here[1] > 0.7 * was[1] and no_copy


def _sharpest(audio: Audio, second: float) -> tuple[float, float]:
    """Seconds and size of the greatest step between samples within 40 ms of `second`."""
    start = max(0, round((second - 0.04) * audio.rate))
    steps = np.abs(np.diff(audio.samples[0, start : round((second + 0.04) * audio.rate) + 1]))
    if len(steps) == 0:
        return second, 0.0
    return (start + int(steps.argmax())) / audio.rate, float(steps.max())


def _read_pops() -> Iterator[tuple[Path, float]]:
    """Real pitches with a clear catch, and its second."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("CYCLEBACK_DATA", beside)) / "pitch_audio"
    table = folder / "audio_peaks.csv"
    rows = csv.DictReader(table.open(encoding="utf-8")) if table.exists() else ()
    clear = [row for row in rows if row["clear_pop"] == "1"][:PITCHES]
    yield from ((folder / "videos" / row["file"], float(row["pop_time_s"])) for row in clear)


def _path(videos: EmbeddingSet, name: str) -> Path:
    path = videos.path(name)
    assert path is not None  # they were embedded from files
    return path


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        print(json.dumps(score(Path(scratch)), indent=1))
