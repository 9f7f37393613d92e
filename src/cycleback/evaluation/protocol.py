"""Evaluation protocols by name. Results of different protocols must not be compared.

                       linear (default)        paper                    reference
    stands for         the successors          the paper's text         the authors' program
    classifier         logistic regression     support vector machine   support vector machine
      kernel           none                    RBF, C = 1 (not stated)  RBF, C = 1, gamma "scale"
      embeddings       standardised            raw                      raw
    10 % and 50 %      seeded draw             seeded draw              the first videos, in order
    few-shot           1, 2, 3, 5, 10 videos   1, 2, 3, 5, 10 videos    1 to 10 videos
    progression from   the key event           the key event            the frame before it
    tau                b                       ties are discordant      b
      frames           all                     all                      every fifth
      undefined pair   counts as 0             (is -1 by definition)    left out

The reference program uses the default "gamma" of scikit-learn, which was "auto" until 2019 and is "scale"
now. Its stride is 5 for Pouring and 2 for Penn Action (`tau_stride=2`). It takes the last frame of a phase as
the key event that ends it. Its random draws cannot be repeated. It drops frames whose embedding is not
finite; an embedding set refuses them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from cycleback.alignment.cycles import TauVariant
from cycleback.evaluation.order import Undefined

Classifier = Literal["logistic", "svm"]


@dataclass(frozen=True)
class Protocol:
    """Settings of one evaluation."""

    name: str  # key in `PROTOCOLS`
    classifier: Classifier = "logistic"  # on standardised embeddings; "svm": RBF kernel on raw ones
    first_videos: bool = False  # smaller shares are the first training videos instead of a seeded draw
    few_shot_videos: tuple[int, ...] = (1, 2, 3, 5, 10)  # numbers of training videos
    progression_shift: int = 0  # frames from a key event to the frame from which progression is counted
    tau_variant: TauVariant = "b"  # "a", "b" or "strict", see `cycleback.evaluation.order`
    tau_stride: int = 1  # use every n-th frame for tau
    tau_undefined: Undefined = "zero"
    # events that begin and end the action, for tolerances relative to its duration; None: first and last
    event_span: tuple[str, str] | None = None


PROTOCOLS: Mapping[str, Protocol] = {
    "linear": Protocol("linear"),
    "paper": Protocol("paper", classifier="svm", tau_variant="strict"),
    "reference": Protocol(
        "reference",
        classifier="svm",
        first_videos=True,
        few_shot_videos=tuple(range(1, 11)),
        progression_shift=-1,
        tau_stride=5,
        tau_undefined="drop",
    ),
}


def named_protocol(protocol: str | Protocol) -> Protocol:
    """Return the protocol of that name; a Protocol is returned unchanged."""
    if isinstance(protocol, Protocol):
        return protocol
    if protocol not in PROTOCOLS:
        raise ValueError(f"protocol must be one of {', '.join(PROTOCOLS)}, got {protocol!r}")
    return PROTOCOLS[protocol]
