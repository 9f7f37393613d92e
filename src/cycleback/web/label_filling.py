"""Carry the labels by hand over to all other videos, in a thread: the last result is shown meanwhile."""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cycleback.annotations import Annotation
from cycleback.applications.labels import transfer_labels
from cycleback.data.pins import Pin
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import UserError
from cycleback.web.label_actions import HandLabels, Kind, Span

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Suggestions:
    """The labels that were found in videos, or why there are none."""

    videos: Mapping[str, Annotation] = field(default_factory=dict)  # by name; the least certain first
    problem: str | None = None

    def certainty(self, name: str) -> float:
        """Return the mean confidence of the labels found in one video."""
        return _certainty(self.videos[name])


def carry_over(
    embeddings: EmbeddingSet, voters: Mapping[str, HandLabels], pins: Sequence[Pin] = ()
) -> Suggestions:
    """Find the labels of the `voters` in all other videos, and in the voters that lack some.

    The `pins` between a voter and another video hold.
    A voter lacks a label that came up in another voter of its action after its own labels were accepted.
    """
    voters = {name: own for name, own in voters.items() if name in embeddings}
    found: dict[str, Annotation] = {}
    if len(voters) < len(embeddings):
        found |= _transfer(embeddings, voters, pins)
    for kinds, names in _find_late(embeddings, voters).items():
        knowing = {name: own.restrict(kinds) for name, own in voters.items() if own.kinds & kinds}
        found |= _transfer(embeddings.subset([*knowing, *names]), knowing, pins)
    return Suggestions(dict(sorted(found.items(), key=lambda item: _certainty(item[1]))))


def _find_late(
    embeddings: EmbeddingSet, voters: Mapping[str, HandLabels]
) -> dict[frozenset[Kind], list[str]]:
    """Group the voters by what they lack of the labels of their action."""
    all_kinds: dict[str, frozenset[Kind]] = {}
    for name, own in voters.items():
        action = embeddings.action(name)
        all_kinds[action] = all_kinds.get(action, frozenset()) | own.kinds
    late: dict[frozenset[Kind], list[str]] = {}
    for name, own in voters.items():
        if lacked := all_kinds[embeddings.action(name)] - own.kinds - own.seen:
            late.setdefault(lacked, []).append(name)
    return late


def _transfer(
    embeddings: EmbeddingSet, voters: Mapping[str, HandLabels], pins: Sequence[Pin]
) -> dict[str, Annotation]:
    """Return the labels that the library finds in the videos that do not vote."""
    events = {name: own.events for name, own in voters.items()}
    segments = {name: list_spans(own.segments.values()) for name, own in voters.items()}
    result = transfer_labels(embeddings, events, segments=segments, pins=pins)
    return {name: result.videos[name] for name in result.label_next}


def list_spans(segments: Iterable[Span]) -> list[tuple[str, int, int]]:
    """Return name, first frame and frame after the last of segments, in order of time."""
    return sorted(((each.name, each.start, each.end) for each in segments), key=lambda span: span[1])


def _certainty(found: Annotation) -> float:
    return float(np.mean([label.confidence for label in found.labels if label.confidence is not None]))


class Filler:
    """Make suggestions in a thread; only the newest request counts."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._key: object = None  # what the last suggestions follow from
        self._last = Suggestions()
        self._wanted: tuple[object, Callable[[], Suggestions]] | None = None
        self._is_running = False

    def request(self, key: object, fill: Callable[[], Suggestions]) -> tuple[Suggestions, bool]:
        """Return the last suggestions, and whether they are those of `key`; if not, start to make them."""
        with self._changed:
            if self._key == key:
                self._wanted = None
                return self._last, True
            self._wanted = key, fill
            if not self._is_running:
                self._is_running = True
                threading.Thread(target=self._run, name="labels", daemon=True).start()
            return self._last, False

    def wait(self, key: object, timeout_s: float) -> bool:
        """Wait until the last suggestions are those of `key`."""
        with self._changed:
            return self._changed.wait_for(lambda: self._key == key, timeout_s)

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._wanted is None:
                    self._is_running = False
                    return
                (key, fill), self._wanted = self._wanted, None
            made = _try(fill)
            with self._changed:
                self._key, self._last = key, made
                if self._wanted is not None and self._wanted[0] == key:
                    self._wanted = None
                self._changed.notify_all()


def _try(fill: Callable[[], Suggestions]) -> Suggestions:
    try:
        return fill()
    except UserError as error:
        return Suggestions(problem=str(error))
    except Exception as error:  # a thread that dies would leave the page waiting for ever
        logger.exception("cannot carry labels over")
        return Suggestions(problem=f"cannot carry the labels over ({error})")
