"""Which scores stand in which table."""

from collections.abc import Mapping, Sequence
from typing import Any

from cycleback.comparison.tables import FLOOR, Column, Rows

HEADLINE = (
    Column("event error, frames", ("report", "event_error_frames"), "{:.1f}", lower=True),
    Column("ms", ("report", "event_error_ms"), "{:.0f}", lower=True),
    Column("within 1 frame", ("report", "pce1"), "{:.0%}"),
    Column("within 3 frames", ("report", "pce3"), "{:.0%}"),
    Column("error by DTW, frames", ("report", "event_error_frames_dtw"), "{:.1f}", lower=True),
    Column("phase accuracy", ("report", "phase_accuracy"), "{:.0%}"),
    Column("precision of 5 nearest", ("report", "precision5"), "{:.0%}"),
    Column("progression", ("report", "progression"), "{:.2f}"),
    Column("Kendall's tau", ("report", "tau"), "{:.3f}"),
    Column("cycle rate", ("report", "cycle_rate"), "{:.0%}"),
)
LABELS = {"0.1": "10 % of labels", "0.5": "50 %", "1.0": "100 %"}
ROBUST = {
    "event_error_frames": ("error, frames", "{:.1f}", True),
    "event_error_frames_dtw": ("by DTW", "{:.1f}", True),
    "tau": ("tau", "{:.3f}", False),
}
ABLATION = ("tcc-mse", "tcc-classification", "tcc")


def classification(place: tuple[str, ...] = ("report",)) -> list[Column]:
    """The paper's tables 4 and 5: phase classification by share of labels."""
    return [
        Column(title, (*place, "phase_accuracy_by_fraction", share), "{:.2%}")
        for share, title in LABELS.items()
    ]


def ordering(place: tuple[str, ...] = ("report",)) -> list[Column]:
    """The paper's table 6: phase progression and Kendall's tau."""
    return [
        Column("phase progression", (*place, "progression"), "{:.4f}"),
        Column("Kendall's tau", (*place, "tau"), "{:.4f}"),
    ]


def ablation() -> list[Column]:
    """The paper's table 3: the three ways to close a cycle."""
    return [Column("phase classification", ("report", "phase_accuracy"), "{:.2%}"), *ordering()]


def ablated(rows: Rows) -> dict[str, Mapping[str, Any]]:
    """The rows of table 3, and the floor; empty unless there are two of them."""
    found = {name: rows[name] for name in ABLATION if name in rows}
    return {**found, FLOOR: rows[FLOOR]} if len(found) > 1 else {}


def robust(rows: Rows, parts: Sequence[str]) -> list[Column]:
    """Scores as filmed, after each perturbation, and on every other split."""
    kinds = dict.fromkeys(kind for row in rows.values() for kind in row["report"].get("robust") or {})
    if not kinds and not parts:
        return []
    places: dict[str, tuple[str, ...]] = {"as filmed": ("report",)}
    places |= {kind: ("report", "robust", kind) for kind in kinds}
    places |= {f"split {part}": ("parts", part) for part in parts}
    return [
        Column(title, (*place, score), pattern, lower, group, has_interval=False)
        for group, place in places.items()
        for score, (title, pattern, lower) in ROBUST.items()
    ]


def actions(rows: Rows) -> list[str]:
    """The single actions, where there are several."""
    return list(dict.fromkeys(name for row in rows.values() for name in row["report"].get("by_action") or {}))
