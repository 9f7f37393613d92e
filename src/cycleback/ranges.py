"""Ranges of numbers, stated beside each setting of a recipe: `Annotated[int, Range(1, 64)]`."""

from dataclasses import dataclass
from typing import Annotated


@dataclass(frozen=True)
class Range:
    """The numbers from `low` to `high`; NaN and infinity lie in no range."""

    low: float
    high: float
    has_low: bool = True  # whether `low` itself belongs to it
    has_high: bool = True  # whether `high` itself belongs to it

    def __contains__(self, value: float) -> bool:
        is_above = value >= self.low if self.has_low else value > self.low
        is_below = value <= self.high if self.has_high else value < self.high
        return is_above and is_below

    def __str__(self) -> str:
        if self.has_low and self.has_high:
            return f"from {self.low:_} to {self.high:_}"
        low = f"from {self.low:_}" if self.has_low else f"above {self.low:_}"
        return f"{low}, at most {self.high:_}" if self.has_high else f"{low}, below {self.high:_}"


MAX_COUNT, MAX_CHANNELS, MAX_SEED = 10**9, 2**16, 2**63 - 1
Share = Annotated[float, Range(0, 1)]
ShareBelow1 = Annotated[float, Range(0, 1, has_high=False)]
Weight = Annotated[float, Range(0, 1000)]
Scale = Annotated[float, Range(0, 1000, has_low=False)]  # a temperature, a width, a gain
Factor = Annotated[float, Range(0, 100)]
Count = Annotated[int, Range(1, MAX_COUNT)]
CountOr0 = Annotated[int, Range(0, MAX_COUNT)]
Channels = Annotated[int, Range(1, MAX_CHANNELS)]
Seed = Annotated[int, Range(0, MAX_SEED)]
