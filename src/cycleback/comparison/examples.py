"""Alignment examples: moments of one held-out video, and where a row finds them in others."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cycleback.alignment import align
from cycleback.comparison.thumbnails import Thumbnails
from cycleback.embeddings import EmbeddingSet

OTHERS = 3
MOMENTS = 6  # shown where no key events are labelled


@dataclass(frozen=True)
class Match:
    """A moment found in another video: its frame, and how many frames that is late (None: not known)."""

    frame: int
    late: int | None


@dataclass(frozen=True)
class Example:
    """Moments of a reference video and their matches.

    Attributes:
        reference: name of the video.
        moments: title -> frame of the reference.
        matches: row -> other video -> a match a moment.
    """

    reference: str
    moments: Mapping[str, int]
    matches: Mapping[str, Mapping[str, list[Match]]]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def choose_videos(videos: EmbeddingSet, *, count: int = OTHERS + 1) -> list[str]:
    """Held-out videos of one action to show, those with most key events first; at least two."""
    groups = [videos.of_action(action).names for action in videos.actions]
    group = max(groups, key=lambda names: (min(len(names), 2), max(len(videos.events(n)) for n in names)))
    return sorted(group, key=lambda name: -len(videos.events(name)))[:count]


def find_example(sets: Mapping[str, EmbeddingSet], names: Sequence[str]) -> Example:
    """The moments of the first video in the others, by the nearest frames of each row."""
    reference, *others = names
    first = next(iter(sets.values()))
    moments = dict(first.events(reference)) or _even_moments(first, reference)
    matches: dict[str, dict[str, list[Match]]] = {}
    for row, embeddings in sets.items():
        matches[row] = {}
        for other in others:
            found = align(embeddings[reference], embeddings[other], method="nearest").indices
            truth = embeddings.events(other)
            matches[row][other] = [
                Match(int(found[frame]), int(found[frame]) - truth[title] if title in truth else None)
                for title, frame in moments.items()
            ]
    return Example(reference, moments, matches)


def _even_moments(videos: EmbeddingSet, name: str) -> dict[str, int]:
    last = len(videos[name]) - 1
    frames = np.linspace(0.1 * last, 0.9 * last, MOMENTS).round().astype(int)
    return {f"{frame / max(last, 1):.0%} of the video": int(frame) for frame in frames}


def strips_html(example: Example, titles: Mapping[str, str], thumbs: Thumbnails) -> str:
    """The example as film strips: the reference above, then each row's matches."""
    head = "".join(f'<th scope="col">{html.escape(title)}</th>' for title in example.moments)
    body = _strip(
        "reference", example.reference, [Match(f, None) for f in example.moments.values()], thumbs=thumbs
    )
    for row, videos in example.matches.items():
        span = len(example.moments) + 1
        body += (
            f'<tr class="group"><th scope="rowgroup" colspan="{span}">{html.escape(titles[row])}</th></tr>'
        )
        body += "".join(_strip("", video, found, thumbs=thumbs) for video, found in videos.items())
    return (
        '<div class="scroll"><table class="strips"><caption>Moments of the reference, and the frames matched '
        f"to them</caption><thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _strip(what: str, video: str, found: Sequence[Match], *, thumbs: Thumbnails) -> str:
    name = html.escape(video)
    label = f"{what}<small>{name}</small>" if what else f"<small>{name}</small>"
    cells = "".join(
        f'<td><img src="{thumbs.data_url(video, match.frame)}" alt="{name}, frame {match.frame}">'
        f"<small>{match.frame}{_lateness(match)}</small></td>"
        for match in found
    )
    return f'<tr><th scope="row">{label}</th>{cells}</tr>'


def _lateness(match: Match) -> str:
    if match.late is None:
        return ""
    kind = "hit" if abs(match.late) <= 3 else "miss"
    return f' <b class="{kind}">{_signed(match.late)}</b>' if match.late else ' <b class="hit">±0</b>'


def _signed(frames: int) -> str:
    return f"{frames:+d}".replace("-", "−")
