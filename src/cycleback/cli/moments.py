"""Read moments and spans of a video that a user types: a frame, seconds, or the name of a key event."""

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from cycleback.errors import UserError, one_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Seconds = NDArray[np.float64]


def parse_moment(text: str, times: "Seconds", *, events: Mapping[str, int], video: str) -> int:
    """Return the frame that a text means: a frame such as 12, seconds such as 1.5s, or an event.

    Args:
        times: (N,) seconds of the frames of the video.
        events: frames of its key events.
        video: its name, for errors.
    """
    from cycleback.data.labels import nearest_frame

    word = text.strip()
    if word in events:
        return events[word]
    try:
        is_second = word.endswith("s")
        frame = nearest_frame(float(Fraction(word[:-1])), times) if is_second else int(word)
    except (ValueError, OverflowError, ZeroDivisionError):
        known = f", or an event: {one_of(list(events))}" if events else f" ({video} has no labelled events)"
        raise UserError(
            f"cannot read the moment {text!r}: expected a frame such as 12, seconds such as 1.5s{known}"
        ) from None
    if not 0 <= frame < len(times):
        raise UserError(
            f"the moment {text!r} lies outside {video}, which has frames 0 to {len(times) - 1}, the last at "
            f"{times[-1]:.2f} s"
        )
    return frame


def parse_span(text: str, times: "Seconds", *, events: Mapping[str, int], video: str) -> tuple[int, int]:
    """Return the first and the last frame of a span such as 12:80, 1.5s:3s, top:impact or 2s:."""
    first, colon, last = text.partition(":")
    if not colon:
        raise UserError(f"cannot read the span {text!r}: expected START:END, such as 12:80 or 1.5s:3s")
    start = parse_moment(first, times, events=events, video=video) if first.strip() else 0
    end = parse_moment(last, times, events=events, video=video) if last.strip() else len(times) - 1
    if start >= end:
        raise UserError(f"the span {text!r} is empty: it goes from frame {start} to frame {end} of {video}")
    return start, end
