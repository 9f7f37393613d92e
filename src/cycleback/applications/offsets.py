"""Line up two videos of one event, filmed by two cameras: by their pictures, their sound, or both.

Shapes: T frames of video a, S frames of video b, V videos.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment import Alignment
from cycleback.alignment.distances import matched_squared
from cycleback.alignment.offset import Line, Offset, OffsetMethod, fit_offset
from cycleback.alignment.sound_offset import MIN_SOUND_S, RATE, fit_sound_offset, is_silent
from cycleback.applications.pace import Pace, read_times
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import UserError, VideoError
from cycleback.video import frame_times, probe, read_audio

Source = Literal["pictures", "sound", "both"]
SOURCES: tuple[Source, ...] = get_args(Source)
TOLERANCE_S = 0.1  # pictures and sound further apart than this, or 1.5 frames, disagree
SURE = 0.5  # a confidence below it is worth a warning
CLOCK = "clock"  # the encoder of a set that knows only when frames are shown
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class OffsetReport:
    """How two videos of one event lie to each other, and what was found on the way."""

    a: str
    b: str
    source: Literal["pictures", "sound"]  # what the line is from
    offset: Offset
    pictures: Offset | None  # None: not asked for
    sound: Offset | None  # None: not asked for, or there is none
    notes: tuple[str, ...] = ()  # what to beware of

    @property
    def confidence(self) -> float:
        """Probability that the line is right: agreement of pictures and sound makes it larger."""
        if self.pictures is None or self.sound is None:
            return self.offset.confidence
        first, second = self.pictures.confidence, self.sound.confidence
        return max(first, second) if self.disagreement_s is None else 1 - (1 - first) * (1 - second)

    @property
    def disagreement_s(self) -> float | None:
        """Seconds between pictures and sound in the middle; None if only one of them is there."""
        if self.pictures is None or self.sound is None:
            return None
        middle = float(np.mean(self.offset.common_s))
        return float(abs(self.pictures.to_b(middle) - self.sound.to_b(middle)))

    def describe(self) -> str:
        """Say in one line what was found."""
        offset = self.offset.offset_s
        when = f"{self.b} starts {'later' if offset > 0 else 'earlier'}" if round(offset, 3) else "together"
        words = f"offset {offset:.3f} s ({when}), drift {self.offset.drift_ppm:.0f} ppm, "
        words += f"confidence {self.confidence:.2f}, from {self.source}"
        if self.disagreement_s is not None:
            does_agree = self.disagreement_s <= TOLERANCE_S
            other = "pictures agree" if does_agree else "pictures differ"
            if self.source == "pictures":
                other = "sound agrees" if does_agree else "sound differs"
            words += f"; {other} {'to' if does_agree else 'by'} {1e3 * self.disagreement_s:.0f} ms"
        return words

    def to_json(self) -> dict[str, Any]:
        """Return the numbers."""
        found = {"pictures": self.pictures, "sound": self.sound}
        gap = self.disagreement_s
        return {
            "offset_s": round(self.offset.offset_s, 6),
            "drift_ppm": round(self.offset.drift_ppm, 2),
            "confidence": round(self.confidence, 4),
            "from": self.source,
            "common_s": [round(second, 6) for second in self.offset.common_s],
            "is_linear": self.offset.is_linear,
            "disagreement_s": None if gap is None else round(gap, 6),
            "notes": list(self.notes),
            **{name: None if each is None else _list_numbers(each) for name, each in found.items()},
        }


def _list_numbers(offset: Offset) -> dict[str, Any]:
    residual = round(offset.residual_s, 6) if np.isfinite(offset.residual_s) else None
    error = round(1e6 * offset.drift_error, 2) if np.isfinite(offset.drift_error) else None
    return {
        "offset_s": round(offset.offset_s, 6),
        "drift_ppm": round(offset.drift_ppm, 2),
        "drift_error_ppm": error,
        "confidence": round(offset.confidence, 4),
        "residual_s": residual,
        "is_linear": offset.is_linear,
    }


def find_offset(
    videos: EmbeddingSet, a: str, b: str, *, source: Source = "both", method: OffsetMethod = "affine"
) -> OffsetReport:
    """Find how much later `b` starts than `a`, and how much its clock drifts.

    The more confident of pictures and sound gives the numbers; sound, if both are sure, because it is finer.

    Args:
        videos: embeddings of both, best made with `embed_videos(..., one_event=True)`; `read_clocks` makes
            a set that is enough for sound.
        source: "both" takes the sound where both videos have one.
        method: "offset" is a constant shift, "affine" has a drift, too.

    Raises:
        UserError: there is nothing to compare, or the two have no moment in common.
    """
    if source not in SOURCES:
        raise ValueError(f"source must be one of {', '.join(map(repr, SOURCES))}, got {source!r}")
    notes: list[str] = []
    sound = None
    if source != "pictures":
        sound = _find_by_sound(videos, a, b, method=method, is_needed=source == "sound", notes=notes)
    pictures = None
    if source != "sound":
        pictures = _find_by_pictures(videos, a, b, method=method, is_needed=sound is None, notes=notes)
    chosen: Literal["pictures", "sound"] = "sound" if sound is not None else "pictures"
    if sound is not None and pictures is not None and sound.confidence < min(SURE, pictures.confidence):
        chosen = "pictures"
    offset = sound if chosen == "sound" else pictures
    assert offset is not None
    report = OffsetReport(a, b, chosen, offset, pictures, sound)
    return replace(report, notes=(*notes, *_list_doubts(videos, report, method)))


def _find_by_sound(
    videos: EmbeddingSet, a: str, b: str, *, method: OffsetMethod, is_needed: bool, notes: list[str]
) -> Offset | None:
    """Return the offset by sound; without sound, None and a note, or an error if it `is_needed`."""
    heard = []
    for name in (a, b):
        sound, problem = _read_sound(videos.path(name))
        if sound is None or problem:
            if is_needed:
                raise UserError(f"{name} {problem}: no offset by sound. Use --from pictures")
            notes.append(f"{name} {problem}: the offset is from pictures alone")
            return None
        heard.append(sound)
    return fit_sound_offset(heard[0], heard[1], method=method)


def _read_sound(path: Path | None) -> tuple[NDArray[np.float32] | None, str]:
    """Return the sound (N,) of a file, or what is wrong with it."""
    if path is None or not path.is_file():
        return None, "has no file to read its sound from"
    try:
        if not probe(path).has_audio:
            return None, "has no sound track"
        sound = read_audio(path, rate=RATE, mono=True).samples[0]
    except VideoError as error:
        return None, f"has no sound that can be read ({error})"
    if is_silent(sound):
        return None, "is silent"
    if len(sound) < MIN_SOUND_S * RATE:
        return None, f"has only {len(sound) / RATE:.2f} s of sound"
    return sound, ""


def _find_by_pictures(
    videos: EmbeddingSet, a: str, b: str, *, method: OffsetMethod, is_needed: bool, notes: list[str]
) -> Offset | None:
    try:
        times = [read_times(videos, name) for name in (a, b)]
        return fit_offset(videos[a], videos[b], times_a=times[0], times_b=times[1], method=method)
    except ValueError as error:
        if is_needed:
            raise UserError(f"{a} and {b}: {error}") from error
        notes.append(f"pictures cannot be compared: {error}")
        return None


def _list_doubts(videos: EmbeddingSet, report: OffsetReport, method: OffsetMethod) -> list[str]:
    """Say what speaks against the numbers of a report."""
    offset, doubts = report.offset, []
    frame_s = max(float(np.median(np.diff(read_times(videos, name)))) for name in (report.a, report.b))
    if report.confidence < SURE:
        doubts.append(
            f"confidence {report.confidence:.2f}: {report.a} and {report.b} may not show the same event"
        )
    gap = report.disagreement_s
    both_sure = report.pictures and report.sound and report.pictures.confidence >= SURE
    if gap is not None and both_sure and gap > max(TOLERANCE_S, 1.5 * frame_s):
        doubts.append(
            f"pictures and sound disagree by {gap:.2f} s: compare --from pictures and --from sound by sync"
        )
    if not offset.is_linear and method == "affine":
        doubts.append(f"the relation is not linear, {_tell_ms(offset)} off a line: use --method dtw")
    if not offset.is_linear and method == "offset":
        doubts.append(f"the shift is not constant, {_tell_ms(offset)} off: use --method affine, or dtw")
    return doubts


def _tell_ms(offset: Offset) -> str:
    return f"{1e3 * offset.residual_s:.0f} ms"


def read_clocks(paths: Mapping[str, Path]) -> EmbeddingSet:
    """Return a set that knows only when the frames of videos are shown, which is enough for sound."""
    times = {name: frame_times(path) for name, path in paths.items()}
    arrays = {name: np.linspace(0, 1, len(clock))[:, None] for name, clock in times.items()}
    rates = {name: probe(path).fps for name, path in paths.items()}
    return EmbeddingSet.from_arrays(arrays, times=times, paths=paths, fps=rates, encoder=CLOCK)


def match_by_offset(videos: EmbeddingSet, report: OffsetReport) -> Alignment:
    """Return the frame of b that is shown nearest to each frame of a, by the line of a report."""
    a, b = report.a, report.b
    own, other = read_times(videos, a), read_times(videos, b)
    wanted = report.offset.to_b(own)
    half = 0.5 * float(np.median(np.diff(other)))
    matched = (wanted >= other[0] - half) & (wanted <= other[-1] + half)
    if not matched.any():
        raise UserError(
            f"{a} and {b} have no moment in common: b starts {report.offset.offset_s:.2f} s after a, which "
            f"lasts {own[-1]:.2f} s"
        )
    positions = np.interp(wanted, other, np.arange(len(other)))
    indices = np.rint(positions).astype(np.int64)
    rows, others = (np.asarray(videos[name], dtype=np.float64) for name in (a, b))
    return Alignment(
        indices=indices,
        confidence=np.where(matched, report.confidence, 0.0),
        distances=matched_squared(rows, others, indices),
        method="affine" if report.offset.line.drift else "offset",
        matched=matched,
        positions=positions,
    )


def pace_by_offset(
    videos: EmbeddingSet, names: Sequence[str], lines: Mapping[str, Line], *, fps: float | None = None
) -> Pace:
    """Play what all videos show together: frames are repeated or left out only where rates differ.

    Args:
        names: the videos, the reference first.
        lines: of each other video, from the seconds of the reference to its own.
        fps: output frames per second; default: the reference's.
    """
    clocks = {name: read_times(videos, name) for name in names}
    first, *others = names
    known = {first: Line(0.0), **{name: lines[name] for name in others}}
    ends = np.array([known[name].to_a(clocks[name][[0, -1]]) for name in names])
    start, stop = float(ends[:, 0].max()), float(ends[:, 1].min())
    if stop <= start:
        raise UserError(
            f"the {len(names)} videos have no moment in common: the last one starts {start:.2f} s after "
            f"{first} does, and one has ended {start - stop:.2f} s before"
        )
    clock = clocks[first]
    rate = fps or (len(clock) - 1) / float(clock[-1] - clock[0])
    if fps is None:  # begin with a frame of the reference, so that it plays frame by frame
        half = 0.5 / rate
        start, stop = float(clock[np.searchsorted(clock, start - half)]), stop + half
    seconds = np.arange(int((stop - start) * rate + 1e-6) + 1) / rate
    sources = np.array([known[name].to_b(start + seconds) for name in names])
    sources = np.clip(sources, 0.0, np.array([clocks[name][-1] for name in names])[:, None])
    positions = np.array(
        [
            videos.first_frame(name) + np.interp(row, clocks[name], np.arange(len(clocks[name])))
            for name, row in zip(names, sources, strict=True)
        ]
    )
    cuts = tuple(
        (float(row[0] - clocks[name][0]), float(clocks[name][-1] - row[-1]))
        for name, row in zip(names, sources, strict=True)
    )
    return Pace(tuple(names), rate, seconds, sources, positions, cuts)
