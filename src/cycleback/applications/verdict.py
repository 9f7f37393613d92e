"""A verdict on videos that were compared: whether the result can be trusted, and what to do if not.

    repetitions   a video shows the action several times
    backwards     a video is played backwards: it matches better in reverse (`Likeness.is_backward`)
    different     the videos do not show the same action (`Likeness.is_different`)
    guess         they do, but most matches are probably wrong: the mean confidence is low
    sound         none of these

It needs no training and no labels. Every video is compared with a reference, and long ones are thinned to
128 frames, so a verdict costs a small part of the work of embedding the videos.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from cycleback.alignment import align
from cycleback.alignment.align import MIN_CONFIDENCE
from cycleback.alignment.distances import spread_items, thin
from cycleback.alignment.likeness import MAX_FRAMES, Likeness, measure_likeness
from cycleback.applications.repetitions import find_repetitions
from cycleback.embeddings import EmbeddingSet

Kind = Literal["repetitions", "backwards", "different", "guess", "sound"]
KINDS: tuple[Kind, ...] = get_args(Kind)  # what to settle first comes first
MAX_CELLS = 400 * 400  # frames of two videos that are aligned as they are
MAX_PAIRS = 24  # that are compared
MAX_NAMED = 3  # videos of a finding
MAX_SEARCHED = 6  # videos that are searched for repetitions
MIN_REPETITIONS, MIN_SURE = 3, 0.62  # repetitions, and their confidence, that are worth telling
MIN_FRAMES_EACH = 8  # of a repetition; noise repeats by chance in a few frames


@dataclass(frozen=True)
class Finding:
    """What is wrong with some videos, and what to do."""

    kind: Kind
    videos: tuple[str, ...]  # their names
    words: str
    advice: str


@dataclass(frozen=True)
class Verdict:
    """What is found about videos that were compared; its text is one plain line."""

    right: float  # share of the matches that are right, as far as is known without labels
    findings: tuple[Finding, ...]  # what to settle first comes first; none where nothing is wrong

    @property
    def kind(self) -> Kind:
        """The finding to settle first."""
        return self.findings[0].kind if self.findings else "sound"

    def __str__(self) -> str:
        if not self.findings:
            return f"verdict: the same action, about {self.right:.0%} of the matches are right"
        return f"verdict: {'; '.join(f'{each.words}: {each.advice}' for each in self.findings)}"

    def to_json(self) -> dict[str, Any]:
        """Return the kind, the expected share of right matches, and every finding."""
        found = [{**asdict(each), "videos": list(each.videos)} for each in self.findings]
        return {"kind": self.kind, "right": round(self.right, 4), "findings": found, "text": str(self)}


@dataclass(frozen=True)
class PairEvidence:
    """What is known without labels about a video that is compared with a reference."""

    likeness: Likeness
    confidence: float  # mean over its matches, given that both show the same action

    @property
    def right(self) -> float:
        """The share of its matches that are right, as far as is known."""
        return self.likeness.same * self.confidence

    @property
    def kind(self) -> Kind:
        """What is wrong with the pair, if anything."""
        if self.likeness.is_backward:
            return "backwards"
        if self.likeness.is_different:
            return "different"
        return "guess" if self.confidence < MIN_CONFIDENCE else "sound"


def judge(
    embeddings: EmbeddingSet,
    reference: str,
    others: Iterable[str] | None = None,
    *,
    source: EmbeddingSet | None = None,
    confidence: float | None = None,
    are_takes: bool = False,
) -> Verdict:
    """Judge videos that are compared with a reference.

    Args:
        embeddings: of the videos.
        reference: a name in `source`, or in `embeddings` without it.
        others: names of the videos; by default all but the reference.
        confidence: mean over the matches of one video, where it is known; otherwise they are aligned for it.
        are_takes: whether the videos are single repetitions, which are not searched for more.
    """
    home = source or embeddings
    named = list(embeddings if others is None else others)
    action = home.action(reference)
    own = [name for name in named if not action or embeddings.action(name) in ("", action)]
    names = spread_items([name for name in own if home is not embeddings or name != reference], MAX_PAIRS)
    pairs = {
        name: weigh_evidence(home[reference], embeddings[name], streams=embeddings.streams) for name in names
    }
    if confidence is not None and len(names) == 1:
        pairs = {name: replace(each, confidence=confidence) for name, each in pairs.items()}
    share = float(np.mean([each.right for each in pairs.values()] or [1.0]))
    findings: list[Finding] = []
    if not are_takes:
        findings += tell_repetitions(home, [reference]) or tell_repetitions(embeddings, names)
    titles = {name: find_stem(embeddings, name) for name in names}
    kinds = {name: each.kind for name, each in pairs.items()}
    findings += _find_strange(kinds, titles, reference, find_stem(home, reference))
    if not findings and "guess" in kinds.values() and share < MIN_CONFIDENCE:
        findings.append(_tell_guess(share, names, is_untrained=_is_untrained(embeddings)))
    return Verdict(share, tuple(findings))


def weigh_evidence(a: ArrayLike, b: ArrayLike, *, streams: Collection[str] = ()) -> PairEvidence:
    """Compare `a` (T, D) with `b` (S, D); untrained embeddings hold the `streams` side by side."""
    whole_a, whole_b = (np.asarray(video, dtype=np.float64) for video in (a, b))
    few_a, few_b = thin(whole_a, MAX_FRAMES), thin(whole_b, MAX_FRAMES)
    match = align(whole_a, whole_b) if len(whole_a) * len(whole_b) <= MAX_CELLS else align(few_a, few_b)
    backwards = None
    if streams:
        from cycleback.models.streams import reverse_time  # loads torch

        backwards = reverse_time(few_b, streams)
    likeness = measure_likeness(few_a, few_b, backwards=backwards)
    return PairEvidence(likeness, float(match.confidence[match.matched].mean()))


def _is_untrained(embeddings: EmbeddingSet) -> bool:
    """Return whether the embeddings are the untrained streams themselves."""
    if not embeddings.streams:
        return False
    from cycleback.models.streams import find_parts  # loads torch

    return bool(find_parts(embeddings.size, embeddings.streams))


def find_stem(embeddings: EmbeddingSet, name: str) -> str:
    """Return the file name of a video without its folder, or its name in the set."""
    path = embeddings.path(name)
    return name if path is None else path.name


def count_repetitions(embeddings: EmbeddingSet, name: str) -> int:
    """Return how often a video surely shows the action, and 0 if that is not several times."""
    found = find_repetitions(embeddings[name], embeddings.times(name))
    is_sure = found.count >= MIN_REPETITIONS and found.confidence >= MIN_SURE
    return found.count if is_sure and len(embeddings[name]) >= MIN_FRAMES_EACH * found.count else 0


def tell_repetitions(embeddings: EmbeddingSet, names: Sequence[str]) -> list[Finding]:
    """Tell the first of some videos, of which a few are searched, that shows the action several times."""
    for name in spread_items(names, MAX_SEARCHED):
        if count := count_repetitions(embeddings, name):
            words = f"{find_stem(embeddings, name)} holds about {count} repetitions"
            advice = "add --repetitions to take each as a video of its own"
            return [Finding("repetitions", (name,), words, advice)]
    return []


def _find_strange(
    kinds: Mapping[str, Kind], titles: Mapping[str, str], reference: str, title: str
) -> list[Finding]:
    """Tell which videos run backwards or show another action than the reference, or that it does."""
    findings = []
    for kind in ("backwards", "different"):
        accused = tuple(name for name in kinds if kinds[name] == kind)
        if not accused:
            continue
        told = _list_some([titles[name] for name in accused])
        verb = "runs" if len(accused) == 1 else "run"
        if len(kinds) == 1 and kind == "backwards":
            words = f"{title} or {told} runs backwards"
        elif len(kinds) == 1:
            words = f"{title} and {told} do not seem to show the same action"
        elif 2 * len(accused) > len(kinds) > 2:
            accused, told = (reference,), title
            words = f"{title} runs backwards, against most of the others"
            if kind == "different":
                words = f"{title} does not seem to show the action of most of the others"
        elif kind == "backwards":
            words = f"{told} {verb} backwards"
        else:
            words = f"{told} {'does' if len(accused) == 1 else 'do'} not seem to show the action of {title}"
        advice = "turn it round with ffmpeg -vf reverse" if kind == "backwards" else "leave it out"
        if kind == "different" and len(kinds) == 1:
            advice = "choose another video, or set what belongs together with --pin"
        elif len(accused) > 1:
            advice = advice.replace(" it ", " each ").replace("leave it", "leave them")
        findings.append(Finding(kind, accused, words, advice))
    return findings


def _tell_guess(share: float, names: Sequence[str], *, is_untrained: bool) -> Finding:
    advice = "train first, with cycleback train, or correct the worst with pins"
    if not is_untrained:
        advice = "train longer or with more videos, or correct the worst with pins"
    return Finding("guess", tuple(names), f"only about {share:.0%} of the matches are right", advice)


def _list_some(titles: Sequence[str]) -> str:
    """Name the first few, and count the rest."""
    named, rest = list(titles[:MAX_NAMED]), len(titles) - MAX_NAMED
    if rest > 0:
        return f"{', '.join(named)} and {rest} more"
    return " and ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)
