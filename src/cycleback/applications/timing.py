"""Compare when things happen: each key moment and phase of a take against a reference, or the typical take.

Key moments are labelled ones, carried over to takes without labels (`transfer_labels`), or, without any
labels, the phases that all takes share (`cycleback.applications.phases`). Time counts from a moment that all
takes have, so it does not matter how long a clip runs before the action begins.

    deviation of a moment    its time in the take - its time in the reference; below 0 is early
    difference of a phase    its duration in the take - its duration in the reference

The typical take has the median time of each moment. How far a found moment can be trusted is measured. Its
resolution joins the robust spread of votes of other takes, each aligned with the take, how long the take
stays as near to that frame as takes are to each other at one moment, and half a frame. A deviation is a
finding only if it is larger than twice the resolution of all moments it was computed from, and larger than a
frame.

Shapes: N frames of a take, M key moments.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment import ALIGNED_AXES, align, discriminant_axes
from cycleback.alignment.distances import spread_items
from cycleback.applications.labels import transfer_labels
from cycleback.applications.phases import discover_phases
from cycleback.display import show_rows
from cycleback.embeddings import EmbeddingSet, check_one_action, check_same_encoder
from cycleback.errors import DataError, UserError, did_you_mean

BEGIN = "begin"
"""The first frame of a clip, as a moment to count time from."""
TYPICAL = "typical"
WHOLE = "whole action"
MAX_VOTERS = 8  # other takes that tell how far a moment can be trusted
SPREAD = 1.4826  # median absolute deviation to standard deviation
SURE = 2.0  # resolutions that a finding must exceed
MAX_TOLD = 3  # moments, and phases, that the sentence on a take names

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TakeTiming:
    """When things happen in one take; not-a-number where a moment is not known."""

    seconds: Floats  # (M,), time of each moment in the clip
    resolution: Floats  # (M,), seconds by which each may be off
    zero: float  # second of the clip from which time counts
    zero_resolution: float
    ends: tuple[float, float]  # seconds of the first frame and the last
    frame_s: float  # duration of a frame; 0 for the typical take

    @property
    def since(self) -> Floats:
        """(M,), seconds of each moment since the zero."""
        return self.seconds - self.zero


@dataclass(frozen=True, eq=False)
class Deviation:
    """How a moment or a phase of one take differs from the reference."""

    name: str
    is_phase: bool
    start_s: float  # in the clip
    duration_s: float | None  # of a phase
    difference_s: float  # later, or longer, than in the reference
    share: float  # of the action of the reference for a moment, of its phase for a phase
    resolution_s: float  # a smaller difference cannot be told

    @property
    def is_finding(self) -> bool:
        """Whether the difference is larger than what can be told."""
        return abs(self.difference_s) > self.resolution_s

    def describe(self) -> str:
        """Say it in words, such as "top 0.40 s early" or "top to impact 20 % shorter"."""
        if self.is_phase:
            return f"{self.name} {abs(self.share):.0%} {'longer' if self.difference_s > 0 else 'shorter'}"
        return f"{self.name} {abs(self.difference_s):.2f} s {'late' if self.difference_s > 0 else 'early'}"


@dataclass(frozen=True, eq=False)
class TimingReport:
    """The timing of several takes, beside a reference."""

    moments: tuple[str, ...]  # (M,), in the order of the reference
    phases: tuple[str, ...]  # (M - 1,), between two moments
    takes: Mapping[str, TakeTiming]  # without the reference
    reference: str  # its name, or TYPICAL
    normal: TakeTiming  # of the reference
    zero: str  # the moment that time counts from
    is_discovered: bool  # whether the phases were found without labels

    @property
    def compared_with(self) -> str:
        """The reference in words."""
        return "the typical take" if self.reference == TYPICAL else self.reference

    def deviations(self, name: str) -> list[Deviation]:
        """Compare one take with the reference: moments first, then phases, the whole action last."""
        take, normal = self.takes[name], self.normal
        since = [_compare(take, normal, number) for number in range(len(self.moments))]
        found = [
            Deviation(moment, False, take.seconds[n], None, *since[n])
            for n, moment in enumerate(self.moments)
            if moment != self.zero and np.isfinite(since[n][0])
        ]
        spans = [(phase, n, n + 1) for n, phase in enumerate(self.phases)]
        if len(spans) > 1:
            spans.append((WHOLE, 0, len(self.moments) - 1))
        for phase, first, last in spans:
            found += _compare_phase(phase, take, normal, first=first, last=last)
        return found

    def describe(self, name: str) -> str:
        """Say in one line what is early, late, longer or shorter in a take."""
        findings = [each for each in self.deviations(name) if each.is_finding]
        parts = []
        for is_phase in (False, True):
            chosen = [each for each in findings if each.is_phase == is_phase]
            chosen.sort(key=lambda each: -abs(each.difference_s))
            if chosen:
                parts.append(", ".join(each.describe() for each in chosen[:MAX_TOLD]))
        return f"{name}: {'; '.join(parts) or f'like {self.compared_with}, as far as can be told'}"

    def rows(self) -> list[dict[str, Any]]:
        """Make one row per take and moment or phase; see the guide on timing for the columns."""
        return [
            {
                "video": name,
                "kind": "phase" if each.is_phase else "moment",
                "name": each.name,
                "start_s": round(each.start_s, 4),
                "duration_s": None if each.duration_s is None else round(each.duration_s, 4),
                "difference_ms": round(1000 * each.difference_s, 1),
                "difference_share": round(each.share, 4),
                "resolution_ms": round(1000 * each.resolution_s, 1),
                "finding": int(each.is_finding),
            }
            for name in self.takes
            for each in self.deviations(name)
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the reference, the moments, and one sentence for each take."""
        return {
            "reference": self.reference,
            "zero": self.zero,
            "discovered": self.is_discovered,
            "moments": list(self.moments),
            "phases": list(self.phases),
            "reference_s": [round(value, 4) for value in self.normal.since.tolist()],
            "videos": {name: self.describe(name) for name in self.takes},
        }

    def _repr_html_(self) -> str:
        """Show the deviation of each moment in ms as a table in a notebook; findings are marked by a star."""
        rows = []
        for name in self.takes:
            cells = {each.name: each for each in self.deviations(name) if not each.is_phase}
            texts = {
                m: f"{1000 * cells[m].difference_s:+.0f}{'*' * cells[m].is_finding}" if m in cells else ""
                for m in self.moments
            }
            rows.append({"video": name} | texts)
        return show_rows(rows, caption=f"ms later than in {self.compared_with}; *: a finding")


def measure_timing(
    videos: EmbeddingSet,
    *,
    reference: str | None = None,
    source: EmbeddingSet | None = None,
    labels: Mapping[str, Mapping[str, int]] | None = None,
    phases: int | None = None,
    zero: str | None = None,
) -> TimingReport:
    """Compare the timing of takes of one action with a reference, or with the typical take.

    Args:
        videos: at least two takes, with the reference if that is in `source`.
        reference: name of the take to compare with; None compares with the median of all takes.
        source: the embedding set that holds the reference; default: `videos`.
        labels: video -> {key moment: frame}, of one or more takes; default: the events of the sets. With
            none, the phases are discovered.
        phases: discover so many phases, and ignore all labels.
        zero: count time from this moment, or from BEGIN; default: the first moment.
    """
    takes = videos if source is None or reference is None else _join(videos, source.subset([reference]))
    check_one_action(takes)
    if len(takes) < 2:
        raise DataError("one take has nothing to be compared with: give at least two, or a reference")
    if reference is not None and reference not in takes:
        raise DataError(f"no reference {reference!r}. {did_you_mean(reference, takes.names)}")
    short = [name for name in takes if len(takes[name]) < 2]
    if short:
        raise DataError(f"{short[0]} has one frame, which has no timing: leave it out")
    known = {name: takes.events(name) for name in takes} if labels is None else dict(labels)
    known = {name: dict(events) for name, events in known.items() if events and name in takes}
    is_discovered = phases is not None or not known
    frames, names, given = _discover(takes, phases) if is_discovered else _carry(takes, known)
    order = _order_moments(frames, reference)
    start = _choose_zero(zero, order)
    seconds = {n: np.array([_seconds(takes, n, own.get(m)) for m in order]) for n, own in frames.items()}
    resolution = _resolve(takes, frames, order, given=given)
    timings = {
        name: _time_take(takes, name, seconds[name], resolution[name], order=order, zero=start)
        for name in takes
    }
    normal = timings[reference] if reference is not None else _typical(list(timings.values()))
    between = names or tuple(f"{first} to {last}" for first, last in pairwise(order))
    others = {name: timing for name, timing in timings.items() if name != reference}
    return TimingReport(order, between, others, reference or TYPICAL, normal, start, is_discovered)


def _compare(take: TakeTiming, normal: TakeTiming, number: int) -> tuple[float, float, float]:
    """Return by how much a moment comes later, the same as a share of the action, and what can be told."""
    difference = float(take.since[number] - normal.since[number])
    doubts = [each.resolution[number] for each in (take, normal)]
    doubts += [each.zero_resolution for each in (take, normal)]
    action = float(np.nanmax(normal.seconds) - np.nanmin(normal.seconds))
    return difference, difference / action if action > 0 else 0.0, _tell(doubts, take.frame_s)


def _compare_phase(
    phase: str, take: TakeTiming, normal: TakeTiming, *, first: int, last: int
) -> list[Deviation]:
    """Compare the duration of a phase between two moments; nothing where one of them is not known."""
    own, usual = (float(each.seconds[last] - each.seconds[first]) for each in (take, normal))
    if not np.isfinite(own - usual) or usual <= 0:
        return []
    doubts = [each.resolution[number] for each in (take, normal) for number in (first, last)]
    start, least = float(take.seconds[first]), _tell(doubts, take.frame_s)
    return [Deviation(phase, True, start, own, own - usual, own / usual - 1, least)]


def _tell(doubts: Sequence[float], frame_s: float) -> float:
    """Return the least difference in seconds that can be told, given what it was computed from."""
    return max(SURE * float(np.sqrt(np.square(doubts).sum())), frame_s)


def _discover(
    takes: EmbeddingSet, count: int | None
) -> tuple[dict[str, dict[str, int]], tuple[str, ...], frozenset[str]]:
    """Find the phases of takes: the frames of the moments between them, and the names of inner phases."""
    found = discover_phases([takes[name] for name in takes], count=count)
    if len(found.changes) < 1:
        raise DataError(
            "no moment stands out in all takes: label one take, or ask for a number of phases with --phases"
        )
    moments = [f"start of phase {number + 2}" for number in range(len(found.changes))]
    frames = {
        name: dict(zip(moments, own, strict=True))
        for name, own in zip(takes, found.starts.tolist(), strict=True)
    }
    return frames, tuple(f"phase {number + 2}" for number in range(len(moments) - 1)), frozenset()


def _carry(
    takes: EmbeddingSet, known: Mapping[str, Mapping[str, int]]
) -> tuple[dict[str, dict[str, int]], tuple[str, ...], frozenset[str]]:
    """Carry the labels of some takes over to the others: frames of the moments in all takes."""
    frames = {name: dict(events) for name, events in known.items()}
    if len(known) < len(takes):
        carried = transfer_labels(takes, known)
        for name in carried.label_next:
            events = carried.videos[name].events
            frames[name] = {each.name: int(each.at.frame) for each in events if each.at.frame is not None}
    return {name: frames[name] for name in takes}, (), frozenset(known)


def _order_moments(frames: Mapping[str, Mapping[str, int]], reference: str | None) -> tuple[str, ...]:
    """Order all moments by their mean rank in the takes, or as in the reference where it has them all."""
    moments = list(dict.fromkeys(moment for own in frames.values() for moment in own))
    first = frames.get(reference or "", {})
    if set(first) == set(moments):
        return tuple(sorted(moments, key=lambda moment: first[moment]))
    ranks: dict[str, list[float]] = {moment: [] for moment in moments}
    for own in frames.values():
        for rank, moment in enumerate(sorted(own, key=lambda each: own[each])):
            ranks[moment].append(rank / max(len(own) - 1, 1))
    return tuple(sorted(moments, key=lambda moment: float(np.mean(ranks[moment]))))


def _seconds(takes: EmbeddingSet, name: str, frame: int | None) -> float:
    return float("nan") if frame is None else float(takes.times(name)[frame])


def _resolve(
    takes: EmbeddingSet,
    frames: Mapping[str, Mapping[str, int]],
    order: Sequence[str],
    *,
    given: frozenset[str],
) -> dict[str, Floats]:
    """Return by how many seconds each moment (M,) of each take may be off.

    A labelled moment is off by half a frame. For the others some takes vote: each is aligned with the take,
    and its own moments say where they lie there. The formula is above.
    """
    half = {name: np.full(len(order), _frame_seconds(takes, name) / 2) for name in takes}
    if given == set(takes.names):
        return half
    axes = discriminant_axes([takes[name] for name in takes], max_axes=ALIGNED_AXES)
    turned = {name: takes[name] @ axes for name in takes}
    resolution = {}
    for name in takes:
        if name in given:
            resolution[name] = half[name]
            continue
        own = np.array([frames[name].get(moment, -1) for moment in order])
        voters = spread_items([other for other in takes if other != name], MAX_VOTERS)
        votes = np.array([_vote(turned[v], turned[name], frames[v], order) for v in voters])  # (voters, M)
        times = takes.times(name)
        heard = np.interp(votes, np.arange(len(times)), times)
        away = np.where(np.isnan(votes), np.nan, np.abs(heard - times[own]))
        spread = np.array([np.nanmedian(each) if np.isfinite(each).any() else np.inf for each in away.T])
        stay = np.array([_stay(turned[name], times, frame) for frame in own])
        resolution[name] = np.sqrt(half[name] ** 2 + (SPREAD * spread) ** 2 + stay**2)
    return resolution


def _vote(voter: Floats, take: Floats, frames: Mapping[str, int], order: Sequence[str]) -> Floats:
    """Return the frame (M,) of each moment in a take by another one; not-a-number where it cannot tell."""
    match = align(voter, take)
    places = np.array([frames.get(moment, -1) for moment in order])
    votes = np.where((places >= 0) & ~match.abstain[places], match.positions[places], np.nan)
    return np.asarray(votes, dtype=np.float64)


def _stay(take: Floats, times: Floats, frame: int) -> float:
    """Return half the seconds for which a take (N, K) stays near a frame: there, moments look alike.

    Along discriminant axes, frames of one moment are about K (squared) away from their mean.
    """
    is_far = np.square(take - take[frame]).sum(axis=1) > take.shape[1]
    before, after = np.flatnonzero(is_far[:frame]), np.flatnonzero(is_far[frame:])
    first = before[-1] + 1 if len(before) else 0
    last = frame + after[0] - 1 if len(after) else len(take) - 1
    return float(times[last] - times[first]) / 2


def _choose_zero(zero: str | None, order: Sequence[str]) -> str:
    if zero is None:
        return order[0]
    if zero != BEGIN and zero not in order:
        raise UserError(f"no moment {zero!r} to count time from. {did_you_mean(zero, [*order, BEGIN])}")
    return zero


def _time_take(
    takes: EmbeddingSet, name: str, seconds: Floats, resolution: Floats, *, order: Sequence[str], zero: str
) -> TakeTiming:
    """Build the timing of one take; time counts from the moment `zero`."""
    times = takes.times(name)
    start, doubt = float(times[0]), 0.0
    if zero != BEGIN:
        number = order.index(zero)
        start, doubt = float(seconds[number]), float(resolution[number])
    ends = float(times[0]), float(times[-1])
    return TakeTiming(seconds, resolution, start, doubt, ends, _frame_seconds(takes, name))


def _frame_seconds(takes: EmbeddingSet, name: str) -> float:
    return float(np.median(np.diff(takes.times(name))))


def _typical(timings: Sequence[TakeTiming]) -> TakeTiming:
    """Return the median time of each moment; the more takes, the finer it is known."""
    since = np.array([each.since for each in timings])  # (takes, M)
    known = np.isfinite(since).any(axis=0)
    seconds, doubt = np.full(since.shape[1], np.nan), np.zeros(since.shape[1])
    seconds[known] = np.nanmedian(since[:, known], axis=0)
    doubt[known] = np.median([each.resolution for each in timings], axis=0)[known] / len(timings) ** 0.5
    zero = float(np.median([each.zero_resolution for each in timings])) / len(timings) ** 0.5
    before, after = (float(np.median([each.ends[end] - each.zero for each in timings])) for end in (0, 1))
    return TakeTiming(seconds, doubt, 0.0, zero, (before, after), 0.0)


def _join(videos: EmbeddingSet, others: EmbeddingSet) -> EmbeddingSet:
    """Return one set of the videos of two sets by the same encoder; a name in both means the first."""
    check_same_encoder({"the takes": videos.encoder, "the reference": others.encoder})
    homes = {name: videos for name in videos} | {name: others for name in others if name not in videos}
    paths = {name: home.path(name) for name, home in homes.items()}
    return EmbeddingSet.from_arrays(
        {name: home[name] for name, home in homes.items()},
        times={name: home.times(name) for name, home in homes.items()},
        events={name: home.events(name) for name, home in homes.items()},
        actions={name: home.action(name) for name, home in homes.items()},
        paths={name: path for name, path in paths.items() if path is not None},
        encoder=videos.encoder,
        streams=videos.streams,
    )
