"""What a file format is: how to tell it, how to read it and how to write it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cycleback.annotations.annotation import Annotation


@dataclass(frozen=True)
class Format:
    """One file format for annotations.

    Attributes:
        name: what users call it.
        suffixes: how its files end; the first is given to new files.
        read: (text of a file, its path for messages) to annotations.
        write: annotations to the text of a file.
        marks: words, any of which tells a file of this format from others with the same suffix.
        one_video: whether a file is about one video, so that several videos make a folder of files.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[str, str], list[Annotation]]
    write: Callable[[Sequence[Annotation]], str]
    marks: tuple[str, ...] = ()
    one_video: bool = False
