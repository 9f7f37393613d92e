"""Find the pins that a command uses: those of pins.csv, and those given with --pin."""

import re
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cycleback.errors import UserError

if TYPE_CHECKING:
    from cycleback.data import Pin
    from cycleback.embeddings import EmbeddingSet

PIN_FRAME = re.compile(r"[+-]?[0-9]{1,15}")
PIN_SECONDS = re.compile(r"[+-]?([0-9]{1,15}\.?[0-9]*|\.[0-9]+)s")


def check_no_pins(repetitions: bool, given: Sequence[str] | None) -> None:
    """Refuse --pin together with --repetitions."""
    if repetitions and given:
        raise UserError("--pin is for two whole videos: leave out --pin, or --repetitions")


def collect_pins(
    embedding_set: "EmbeddingSet",
    given: Sequence[str] | None,
    *,
    videos: Sequence[str] | None,
    is_file_used: bool = True,
    labelled: Collection[str] | None = None,
) -> "list[Pin]":
    """Return the pins between the videos of a set, and say on stderr how many there are.

    Args:
        given: the texts of --pin; they need a set of two videos.
        videos: the paths or names that the user typed; --pin means the first and the second of them.
        is_file_used: whether pins.csv counts.
        labelled: if given, pins count only between one of these videos and another.
    """
    from cycleback.data.pins import PINS_FILE

    def count(pins: "Sequence[Pin]") -> "list[Pin]":
        return [
            pin for pin in pins if labelled is None or (pin.video_a in labelled) != (pin.video_b in labelled)
        ]

    folder = find_folder(embedding_set, videos)
    typed = count(parse_pins(embedding_set, given or (), videos=videos))
    kept = count(load_pins(embedding_set, videos=videos)) if is_file_used else []
    parts = [f"{len(typed)} by --pin"] if typed else []
    if kept and folder is not None:
        parts.append(f"{len(kept)} of {folder / PINS_FILE}")
    if parts:
        pins = list(dict.fromkeys([*kept, *typed]))
        print(f"pins that hold the alignment: {len(pins)} ({', '.join(parts)})", file=sys.stderr)
        return pins
    if is_file_used and folder is not None and (folder / PINS_FILE).is_file():
        print(f"no pin of {folder / PINS_FILE} is between these videos", file=sys.stderr)
    return []


def parse_pins(
    embedding_set: "EmbeddingSet", given: Sequence[str], *, videos: Sequence[str] | None
) -> "list[Pin]":
    """Read texts such as 12:30 or 1.5s:2.0s, frames or seconds of the first and of the second video."""
    from cycleback.data import Pin

    if not given:
        return []
    names = _order_names(embedding_set, videos)
    if len(names) != 2:
        raise UserError(f"--pin is for two videos, got {len(names)}: write the pins of more into pins.csv")
    pins = []
    for text in given:
        ends = text.split(":")
        if len(ends) != 2:
            raise UserError(
                f"cannot read the pin {text!r}: expected frames of A and B such as 12:30, or 1.5s:2.0s"
            )
        i, j = (_parse_end(embedding_set, name, end, text) for name, end in zip(names, ends, strict=True))
        pins.append(Pin(names[0], i, names[1], j))
    return pins


def _parse_end(embedding_set: "EmbeddingSet", name: str, end: str, text: str) -> int:
    """Return the frame that one side of a pin names, by its number or by its second."""
    from cycleback.data.labels import nearest_frame

    times = embedding_set.times(name)
    end = end.strip()
    if PIN_SECONDS.fullmatch(end):
        frame = nearest_frame(float(end[:-1]), times)
    elif PIN_FRAME.fullmatch(end):
        frame = int(end)
    else:
        raise UserError(
            f"cannot read {end!r} of the pin {text!r}: expected a frame such as 12, or seconds such as 1.5s"
        )
    if not 0 <= frame < len(times):
        raise UserError(
            f"the pin {text!r} lies outside {name}, which has frames 0 to {len(times) - 1}, the last at "
            f"{times[-1]:.2f} s"
        )
    return frame


def _order_names(embedding_set: "EmbeddingSet", videos: Sequence[str] | None) -> list[str]:
    """Return the names of a set in the order in which the user typed the videos, where both are typed."""
    typed = [
        name
        for video in videos or ()
        for name in embedding_set.names
        if name in (video, Path(video).stem, Path(video).as_posix())
    ]
    ordered = list(dict.fromkeys(typed))
    return ordered if len(ordered) == len(embedding_set) else list(embedding_set.names)


def find_folder(embedding_set: "EmbeddingSet", videos: Sequence[str] | None) -> Path | None:
    """Return the folder that the user typed, or the one that holds all videos of the set."""
    from cycleback.data.records import remove_suffix

    if videos is not None and len(videos) == 1 and Path(videos[0]).is_dir():
        return Path(videos[0])
    folders = set()
    for name in embedding_set.names:
        path = embedding_set.path(name)
        if path is None:
            return None
        stem = remove_suffix(path.as_posix())
        is_below = stem.endswith(f"/{name}")
        folders.add(Path(stem.removesuffix(f"/{name}")) if is_below else path.parent)
    return folders.pop() if len(folders) == 1 else None


def load_pins(embedding_set: "EmbeddingSet", *, videos: Sequence[str] | None) -> "list[Pin]":
    """Return the pins of pins.csv between the videos of a set, with their names in the set."""
    from cycleback.data import Pin, read_pins
    from cycleback.data.pins import match_pins

    folder = find_folder(embedding_set, videos)
    if folder is None:
        return []
    names = {_name_in(folder, embedding_set, name): name for name in embedding_set.names}
    return [
        Pin(names[pin.video_a], pin.frame_a, names[pin.video_b], pin.frame_b)
        for pin in match_pins(read_pins(folder), names)
    ]


def save_pins(embedding_set: "EmbeddingSet", pins: "Sequence[Pin]", *, videos: Sequence[str] | None) -> Path:
    """Add pins between the two videos of a set to pins.csv in their folder; return the file."""
    from cycleback.alignment import check_pins
    from cycleback.data import Pin, read_pins, select_pairs, write_pins
    from cycleback.data.pins import match_pins

    folder = find_folder(embedding_set, videos)
    if folder is None:
        raise UserError("cannot save the pins: the videos do not lie in one folder; leave out --save-pins")
    names = {name: _name_in(folder, embedding_set, name) for name in embedding_set.names}
    new = [Pin(names[pin.video_a], pin.frame_a, names[pin.video_b], pin.frame_b) for pin in pins]
    together = [*read_pins(folder), *new]
    (a, first), (b, second) = names.items()
    pairs = select_pairs(match_pins(together, names.values()), first, second)
    check_pins(pairs, len(embedding_set[a]), len(embedding_set[b]), names=(first, second))
    return write_pins(folder, together)


def _name_in(folder: Path, embedding_set: "EmbeddingSet", name: str) -> str:
    """Return the name of a video in the data set of a folder, where it may differ from that in the set."""
    from cycleback.data.records import remove_suffix

    path = embedding_set.path(name)
    if path is None or not path.absolute().is_relative_to(folder.absolute()):
        return name
    return remove_suffix(path.absolute().relative_to(folder.absolute()).as_posix())
