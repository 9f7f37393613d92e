"""How exact `cycleback timing` is, against key events that people labelled.

labelled     The labels of one take, the reference, are given; those of the others are hidden. Each key event
             of each other take has a true deviation from the reference and a reported one. `error_ms` is the
             median distance of the two, `time_only_ms` that of the same report without pictures: events at
             the same share of every clip. `within_resolution` is the share of errors that are smaller than
             the resolution that is reported; `findings_right` the share of findings whose true deviation
             points the same way; `found` the share of deviations larger than the resolution that are
             findings. Means over REFERENCES references.
discovered   No labels are given. Boundaries of phases are compared with the labelled events of every clip,
             one to one, within 3 frames or 5 % of the clip: precision, recall and F1, and the F1 of as many
             evenly spread boundaries. `found_again` is the share of boundaries that are in the same place
             when a fifth of the clips, drawn at random, is left out and all is computed anew.

    python benchmarks/timing.py --out results/timing.json
"""

import argparse
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by numpy when it is imported

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment.confidence import tolerance
from cycleback.alignment.distances import spread_items
from cycleback.applications.phases import Phases, discover_phases
from cycleback.applications.timing import measure_timing
from cycleback.embeddings import EmbeddingSet
from cycleback.provenance import provenance
from cycleback.runs import embed_videos
from result_file import write_results
from small_folders import SETS

MEASURED = ("golf", "robot", "square", "tick", "pouring-easy", "pouring-hard")
MAX_VIDEOS, REFERENCES, REDRAWS = 60, 3, 3
Floats = NDArray[np.float64]


def read_set(name: str, folder: Path) -> EmbeddingSet:
    """Embed the labelled videos of one set without training."""
    dataset = SETS[name](folder)
    named = [record.name for record in dataset if len(record.events) == len(dataset.event_names)]
    return embed_videos("pretrained", dataset.subset(spread_items(named, MAX_VIDEOS)))


def score_labelled(videos: EmbeddingSet) -> dict[str, float]:
    """Compare reported and true deviations from some references."""
    rows = [_compare(videos, name) for name in spread_items(videos.names, REFERENCES)]
    return {key: round(float(np.mean([row[key] for row in rows])), 3) for key in rows[0]}


def _compare(videos: EmbeddingSet, reference: str) -> dict[str, float]:
    given = {reference: videos.events(reference)}
    report = measure_timing(videos, reference=reference, labels=given)
    first = report.moments[0]
    truth, reported, blind, least, is_finding = [], [], [], [], []
    for name in report.takes:
        for each in report.deviations(name):
            if not each.is_phase:
                truth.append(_deviate(_times(videos, name), _times(videos, reference), each.name, first))
                blind.append(_deviate_blindly(videos, name, reference, each.name, first))
                reported.append(each.difference_s)
                least.append(each.resolution_s)
                is_finding.append(each.is_finding)
    true, said, flat, known = map(np.array, (truth, reported, blind, least))
    found = np.array(is_finding)
    return {
        "error_ms": 1000 * float(np.median(np.abs(said - true))),
        "time_only_ms": 1000 * float(np.median(np.abs(flat - true))),
        "true_deviation_ms": 1000 * float(np.median(np.abs(true))),
        "resolution_ms": 1000 * float(np.median(known)),
        "within_resolution": float((np.abs(said - true) <= known).mean()),
        "findings": float(found.mean()),
        "findings_right": float((np.sign(said) == np.sign(true))[found].mean()) if found.any() else 1.0,
        "found": float(found[np.abs(true) > known].mean()) if (np.abs(true) > known).any() else 1.0,
    }


def _times(videos: EmbeddingSet, name: str) -> dict[str, float]:
    return {event: float(videos.times(name)[frame]) for event, frame in videos.events(name).items()}


def _deviate(own: dict[str, float], usual: dict[str, float], event: str, first: str) -> float:
    """Return by how many seconds an event is late, counted from the first event."""
    return (own[event] - own[first]) - (usual[event] - usual[first])


def _deviate_blindly(videos: EmbeddingSet, name: str, reference: str, event: str, first: str) -> float:
    """Return the same if events lie at the same share of every clip."""
    usual, longer = _times(videos, reference), videos.times(name)[-1] / videos.times(reference)[-1]
    return float((longer - 1) * (usual[event] - usual[first]))


def score_discovered(videos: EmbeddingSet) -> dict[str, float]:
    """Compare discovered phases with the labelled events, and with those of fewer clips."""
    found = discover_phases([videos[name] for name in videos])
    count = len(found.changes)
    precision, recall = _match(videos, found.starts)
    even = np.array([np.linspace(0, len(videos[name]) - 1, count + 2)[1:-1] for name in videos])
    again = [_find_again(videos, found, seed) for seed in range(REDRAWS)]
    figures = {
        "phases": count + 1,
        "events": len(videos.event_names),
        "precision": precision,
        "recall": recall,
        "f1": _harmonic(precision, recall),
        "f1_uniform": _harmonic(*_match(videos, even)),
        "found_again": float(np.mean(again)),
    }
    return {key: round(value, 3) for key, value in figures.items()}


def _harmonic(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0


def _match(videos: EmbeddingSet, boundaries: NDArray[Any]) -> tuple[float, float]:
    """Return precision and recall of boundaries (videos, M), matched one to one, the nearest first."""
    hits = events = 0
    for name, own in zip(videos, boundaries, strict=True):
        truth = np.array(list(videos.events(name).values()))
        away = np.abs(own[:, None] - truth).astype(np.float64)  # (M, E)
        events += len(truth)
        while away.size and away.min() <= tolerance(len(videos[name])):
            hits += 1
            row, column = np.unravel_index(away.argmin(), away.shape)
            away[row], away[:, column] = np.inf, np.inf
    return hits / max(boundaries.size, 1), hits / events


def _find_again(videos: EmbeddingSet, whole: Phases, seed: int) -> float:
    """Return the share of boundaries that the phases of four fifths of the clips have, too."""
    count = len(videos)
    kept = np.sort(np.random.default_rng(seed).choice(count, round(0.8 * count), replace=False))
    names = [videos.names[number] for number in kept]
    part = discover_phases([videos[name] for name in names])
    near = [
        np.abs(own[:, None] - others).astype(float).min(axis=1, initial=np.inf)
        <= tolerance(len(videos[name]))
        for name, own, others in zip(names, whole.starts[kept], part.starts, strict=True)
    ]
    return float(np.mean(near))


def measure(names: Sequence[str]) -> dict[str, Any]:
    """Score the named sets."""
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            videos = read_set(name, Path(folder))
            result[name] = {"videos": len(videos), "labelled": score_labelled(videos)}
            result[name]["discovered"] = score_discovered(videos)
            print(name, result[name], flush=True)
    return {"sets": result, "circumstances": provenance()}


def main() -> None:
    """Measure, and write the result file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join(MEASURED), help="measure these sets")
    parser.add_argument("--out", type=Path, help="overwrite this result file")
    args = parser.parse_args()
    names = args.sets.split(",")
    unknown = [name for name in names if name not in SETS]
    if unknown:
        parser.error(f"no set {unknown[0]!r}: expected {', '.join(MEASURED)}")
    result = measure(names)
    if args.out is not None:
        write_results(args.out, result)


if __name__ == "__main__":
    main()
