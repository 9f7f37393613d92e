"""How often the verdict on two videos is right, and how often it accuses a good pair falsely, set by set.

Pairs of videos are embedded as by `cycleback align a b`, by the untrained streams, and judged:

same        two videos of a set: no finding but a guess is due
different   videos of two sets of different actions
backwards   two videos of a set, the second played backwards (what is measured of it is turned round)
repeated    videos of the set `repetitions`, and each other video four times on end; all other videos once

The constants of `cycleback.alignment.likeness` were fitted to golf-train, robot-train, square and tick; `left
out` is a fit to these and pouring, without the pairs that show the action of the set. The pairs of
golf-val, golf-slow, robot-val, pitch and repetitions are never fitted to.

    python benchmarks/verdicts.py --out results/verdicts.json
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from cycleback.alignment.align import align
from cycleback.alignment.likeness import GAIN_WEIGHT, MIN_SAME, OFFSET, ORDER_WEIGHT
from cycleback.applications.verdict import PairEvidence, count_repetitions, weigh_evidence
from cycleback.embeddings import EmbeddingSet
from cycleback.files import write_text
from cycleback.provenance import provenance
from real_sets import Film, Floats, draw_pairs, embed_two, list_sets, read_set
from result_file import format_json

FITTED = ("golf-train", "robot-train", "square", "tick", "pouring-easy", "pouring-hard")
UNLIKE = ("repetitions",)  # every video shows another action, or one that repeats
MOST = {"same": 30, "different": 6, "backwards": 16}
TIMES, TILED = 4, 10  # that a clip is repeated, and clips of a set

Pairs = dict[str, list[PairEvidence]]  # by set, or by two sets


def action(name: str) -> str:
    """The action of a set."""
    return name.split("-")[0]


def judge_pairs(first: Sequence[Film], second: Sequence[Film], what: str) -> list[PairEvidence]:
    """The evidence about some pairs of two sets, or of one."""
    found = []
    for i, j in draw_pairs(len(first), len(second), MOST[what], is_same=first is second):
        other = second[j].reversed if what == "backwards" else second[j]
        a, b, weights = embed_two(first[i], other)
        found.append(weigh_evidence(a, b, streams=weights))
    return found


def collect(sets: Mapping[str, Sequence[Film]]) -> dict[str, Pairs]:
    """The evidence about all kinds of pairs."""
    alike = {name: films for name, films in sets.items() if name not in UNLIKE}
    return {
        "same": {name: judge_pairs(films, films, "same") for name, films in alike.items()},
        "different": {
            f"{a} {b}": judge_pairs(sets[a], sets[b], "different")
            for a, b in combinations(sets, 2)
            if action(a) != action(b)
        },
        "backwards": {name: judge_pairs(films, films, "backwards") for name, films in alike.items()},
    }


def fit(evidence: Mapping[str, Pairs], *, without: str = "") -> Floats:
    """Weights of gain, order and 1 of a logistic fit to the fitted sets; same and different count alike."""
    from sklearn.linear_model import LogisticRegression

    signs, truth, weights = [], [], []
    for kind in ("same", "different"):
        groups = {
            name: pairs
            for name, pairs in evidence[kind].items()
            if all(each in FITTED and action(each) != without for each in name.split())
        }
        for pairs in groups.values():
            signs += [(p.likeness.gain, p.likeness.gain - p.likeness.chance) for p in pairs]
            truth += [kind == "same"] * len(pairs)
            weights += [1 / len(pairs) / len(groups)] * len(pairs)
    if len(set(truth)) < 2:
        return np.full(3, np.nan)
    scale = len(truth) / sum(weights)
    model = LogisticRegression(C=100).fit(np.array(signs), truth, sample_weight=np.array(weights) * scale)
    return np.append(model.coef_[0], model.intercept_[0])


def share_below(pairs: Sequence[PairEvidence], fitted: Floats) -> float:
    """The share of pairs that a fit would call different."""
    signs = [(p.likeness.gain, p.likeness.gain - p.likeness.chance, 1.0) for p in pairs]
    return float((np.array(signs) @ fitted < np.log(MIN_SAME / (1 - MIN_SAME))).mean())


def share(pairs: Sequence[PairEvidence], *kinds: str) -> float:
    """The share of pairs with such a verdict."""
    return float(np.mean([each.kind in kinds for each in pairs]))


def count_repeated(films: Sequence[Film]) -> dict[str, float]:
    """The share of videos that are said to repeat the action, once and four times on end."""
    weights = {"appearance": 0.35, "motion": 1.0, "pose": 0.5}
    told = {"once": 0, "repeated": 0}
    for film in films[:TILED]:
        for what, times in (("once", 1), ("repeated", TIMES)):
            rows = np.concatenate([weights[stream] * film.plain[stream] for stream in weights], axis=1)
            clip = EmbeddingSet.from_arrays({"clip": np.tile(rows, (times, 1))}, fps=30.0)
            told[what] += count_repetitions(clip, "clip") > 0
    return {what: told[what] / len(films[:TILED]) for what in told}


def measure_cost(films: Sequence[Film]) -> dict[str, float]:
    """Milliseconds of a verdict on two videos, and of their alignment."""
    pairs = [embed_two(films[i], films[j]) for i, j in draw_pairs(len(films), len(films), 12, is_same=True)]
    weigh_evidence(*pairs[0][:2], streams=pairs[0][2])  # compiles
    started = perf_counter()
    for a, b, weights in pairs:
        weigh_evidence(a, b, streams=weights)
    judged = perf_counter()
    for a, b, _ in pairs:
        align(a, b)
    aligned = perf_counter()
    return {
        "verdict_ms": 1000 * (judged - started) / len(pairs),
        "align_ms": 1000 * (aligned - judged) / len(pairs),
    }


def summarize(evidence: Mapping[str, Pairs], sets: Mapping[str, Sequence[Film]]) -> dict[str, Any]:
    """One row per set."""
    rows: dict[str, Any] = {}
    for name, films in sets.items():
        row: dict[str, Any] = {}
        if name in evidence["same"]:
            same, back = evidence["same"][name], evidence["backwards"][name]
            row["same"] = {
                "pairs": len(same),
                "called_different": share(same, "different"),
                "called_different_left_out": share_below(same, fit(evidence, without=action(name))),
                "called_backwards": share(same, "backwards"),
                "called_guess": share(same, "guess"),
            }
            row["backwards"] = {
                "pairs": len(back),
                "found": share(back, "backwards"),
                "accused": share(back, "backwards", "different"),
            }
        others = [p for key, pairs in evidence["different"].items() if name in key.split() for p in pairs]
        row["different"] = {
            "pairs": len(others),
            "found": share(others, "different"),
            "accused": share(others, "different", "backwards"),
            "found_left_out": share_below(others, fit(evidence, without=action(name))),
        }
        row["repetitions"] = count_repeated(films)
        rows[name] = row
    return rows


def main() -> None:
    """Embed, judge, count."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rendered", type=Path, default=Path("pouring"), help="folder of rendered videos")
    parser.add_argument("--sets", help="only these, separated by commas")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    listed = list_sets(args.rendered)
    sets = {name: read_set(listed[name]()) for name in (args.sets.split(",") if args.sets else listed)}
    evidence = collect(sets)
    rows = summarize(evidence, sets)
    print("| set | good pairs accused: different | left out | backwards | guess |", end="")
    print(" other action found | left out | reversed found | accused | repeated found | once |")
    print("|---|" + "---:|" * 10)
    for name, row in rows.items():
        same, back, other, times = (row.get(k, {}) for k in ("same", "backwards", "different", "repetitions"))
        cells = [same.get(f"called_{k}") for k in ("different", "different_left_out", "backwards", "guess")]
        cells += [other["accused"], other["found_left_out"], back.get("found"), back.get("accused")]
        cells += [times["repeated"], times["once"]]
        print(f"| {name} | {' | '.join('–' if c is None else f'{c:.2f}' for c in cells)} |")
    fitted = dict(zip(("gain", "order", "offset"), fit(evidence).round(1).tolist(), strict=True))
    cost = measure_cost(next(iter(sets.values())))
    print(json.dumps({"fitted": fitted, "built_in": [GAIN_WEIGHT, ORDER_WEIGHT, -OFFSET], **cost}))
    if args.out is not None:
        result = {"sets": _round(rows), "fitted": fitted, "cost": _round(cost), **provenance()}
        write_text(args.out, format_json(result), overwrite=True)


def _round(value: Any) -> Any:
    """Round all numbers to three digits."""
    if isinstance(value, dict):
        return {key: _round(each) for key, each in value.items()}
    return round(value, 3) if isinstance(value, float) else value


if __name__ == "__main__":
    main()
