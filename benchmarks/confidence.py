"""Fit the built-in calibration of the confidence of a match, and measure it on every set of labelled videos.

Videos of a set are embedded by the untrained streams, weighed for the set. Ordered pairs of them are matched
by the methods auto and nearest. A match is right within 5 % of the video or 3 frames. It is judged at the
labelled key events; `between` also counts the frames between two key events, whose truth is interpolated.

Every set is measured by curves that were fitted to the other actions (leave one action out), where each
action counts the same. The built-in curves are fitted to all but golf-val, golf-slow and robot-val, which no
curve ever sees. Two more curves are fitted without labels, to copies and cycles: `own` to the set itself,
`others` to the other actions. The expected calibration error (ECE) is the mean difference between confidence
and share of right matches over ten bins of equal width. The rank correlation is Spearman's, of confidence
and error.

    python benchmarks/confidence.py --out results/confidence.json --picture docs/images/confidence.svg
"""

import argparse
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from cycleback.alignment import ConfidenceCurve, align, score_matches, squared_distances
from cycleback.alignment.confidence import NEAREST, WARPED, tolerance
from cycleback.alignment.self_consistency import Judged, judge_matches
from cycleback.evaluation.events import measure_calibration
from cycleback.files import write_text
from cycleback.provenance import provenance
from real_sets import Film, Floats, draw_pairs, list_sets, read_set
from result_file import format_json

UNSEEN = ("golf-val", "golf-slow", "robot-val")  # by the built-in curves
METHODS = {"auto": WARPED, "nearest": NEAREST}
MAX_PAIRS = 120
DRAWN = 3000  # matches per action that a curve is fitted to
BINS = 12  # of the curves
MIN_DOTTED = 10  # matches in a bin of the dotted lines
WITHOUT_LABELS = ("own_without_labels", "others_without_labels")


@dataclass(frozen=True)
class Matches:
    """Score and error, in tolerances, of some matches."""

    scores: Floats
    errors: Floats

    @property
    def right(self) -> NDArray[np.bool_]:
        """Whether each match is right."""
        return self.errors <= 1

    @classmethod
    def join(cls, parts: Sequence["Matches"]) -> "Matches":
        """All matches of several pairs."""
        return cls(np.concatenate([p.scores for p in parts]), np.concatenate([p.errors for p in parts]))


def match_pairs(films: Sequence[Film], method: str) -> dict[str, Matches]:
    """Score and error of the matches of a set, at key events and between them."""
    found: dict[str, list[Matches]] = defaultdict(list)
    for i, j in draw_pairs(len(films), len(films), MAX_PAIRS, is_same=True):
        a, b = films[i], films[j]
        shared = sorted(set(a.events) & set(b.events), key=lambda name: a.events[name])
        if not shared:
            continue
        frames = np.array([a.events[name] for name in shared])
        truth = np.array([b.events[name] for name in shared])
        matches = align(a.embedding, b.embedding, method=method).indices  # type: ignore[arg-type]
        scores = score_matches(squared_distances(a.embedding, b.embedding), matches)
        inner = np.arange(frames[0], frames[-1] + 1)
        known, first = np.unique(frames, return_index=True)
        for what, at, true in (
            ("events", frames, truth),
            ("between", inner, np.interp(inner, known, truth[first])),
        ):
            found[what].append(Matches(scores[at], np.abs(matches[at] - true) / tolerance(len(b.embedding))))
    return {what: Matches.join(parts) for what, parts in found.items()}


def action(name: str) -> str:
    """The action of a set."""
    return name.split("-")[0]


def fit(sets: Mapping[str, Matches] | Mapping[str, Judged]) -> ConfidenceCurve:
    """Fit a curve to several sets; each action counts the same."""
    rng, scores, right = np.random.default_rng(0), [], []
    for own in dict.fromkeys(map(action, sets)):
        parts = [found for name, found in sets.items() if action(name) == own]
        drawn = rng.integers(sum(len(part.scores) for part in parts), size=DRAWN)
        scores.append(np.concatenate([part.scores for part in parts])[drawn])
        right.append(np.concatenate([part.right for part in parts])[drawn])
    return ConfidenceCurve.fit(np.concatenate(scores), np.concatenate(right), bins=BINS)


def measure(curve: ConfidenceCurve, found: Matches) -> dict[str, Any]:
    """Calibration of a curve on the matches of a set."""
    confidence = curve.apply(found.scores)
    result = measure_calibration(confidence, found.right)
    rank = spearmanr(confidence, found.errors).statistic
    numbers = {"right": found.right.mean(), "said": confidence.mean(), "ece": result.error}
    numbers |= {"auroc": result.auroc, "rank_correlation": rank}
    rounded = {name: None if value is None else round(float(value), 3) for name, value in numbers.items()}
    bins = [[round(part.confidence, 3), round(part.right, 3), part.count] for part in result.bins]
    return {**rounded, "matches": result.count, "bins": bins}


def measure_method(sets: Mapping[str, Sequence[Film]], method: str) -> dict[str, Any]:
    """Measure all sets by curves of the other actions and by the built-in curve; fit a new one."""
    found = {name: match_pairs(films, method) for name, films in sets.items()}
    events = {name: each["events"] for name, each in found.items()}
    known = {name: each for name, each in events.items() if name not in UNSEEN}
    judged = {
        name: judge_matches([film.embedding for film in films], method=method)  # type: ignore[arg-type]
        for name, films in sets.items()
    }
    rows = {}
    for name, each in found.items():
        apart = [other for other in known if action(other) != action(name)]
        others = fit({other: known[other] for other in apart})
        rows[name] = {
            "left_out": measure(others, each["events"]),
            "between": measure(others, each["between"]),
            "built_in": measure(METHODS[method], each["events"]),
            "own_without_labels": measure(ConfidenceCurve.fit(*judged[name]), each["events"]),
            "others_without_labels": measure(fit({other: judged[other] for other in apart}), each["events"]),
        }
    curve = {axis: [float(f"{x:.9g}") for x in values] for axis, values in asdict(fit(known)).items()}
    return {"curve": curve, "sets": rows}


def draw(result: Mapping[str, Any], path: Path) -> None:
    """Draw the calibration of each set by the labels of other actions, and dotted by its own videos alone."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.fonttype"] = "none"
    from matplotlib import pyplot

    names = list(result["auto"]["sets"])
    columns = -(-len(names) // 2)
    figure, axes = pyplot.subplots(2, columns, figsize=(1.9 * columns, 4.1), sharex=True, sharey=True)
    for panel in axes.flat[len(names) :]:
        panel.axis("off")
    for panel, name in zip(axes.flat, names, strict=False):
        panel.plot([0, 1], [0, 1], color="0.75", linewidth=1)
        for method, color in zip(METHODS, ("#1b6ca8", "#d1762b"), strict=True):
            alone = np.array(result[method]["sets"][name]["own_without_labels"]["bins"])
            said, right, _ = alone[alone[:, 2] >= MIN_DOTTED].T
            panel.plot(said, right, color=color, linewidth=1, linestyle=":", label=f"{method}, no labels")
            said, right, count = np.array(result[method]["sets"][name]["left_out"]["bins"]).T
            panel.plot(said, right, color=color, linewidth=1, label=method)
            panel.scatter(said, right, s=4 + 60 * count / count.sum(), color=color)
        errors = [f"{result[method]['sets'][name]['left_out']['ece']:.2f}" for method in METHODS]
        panel.set_title(f"{name}\nerror {' and '.join(errors)}", fontsize=8)
        panel.tick_params(labelsize=7)
        panel.set_xlim(0, 1)
        panel.set_ylim(0, 1)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    place = {"loc": "lower right", "bbox_to_anchor": (0.99, 0.12)}  # where a panel is left free
    figure.legend(handles, labels, fontsize=7, frameon=False, **place)
    figure.supxlabel("confidence", fontsize=9)
    figure.supylabel("share of right matches", fontsize=9)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main() -> None:
    """Embed, match, fit, measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rendered", type=Path, default=Path("pouring"), help="folder of rendered videos")
    parser.add_argument("--sets", help="only these, separated by commas")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--picture", type=Path)
    args = parser.parse_args()
    listed = {
        name: each for name, each in list_sets(args.rendered).items() if name not in ("pitch", "repetitions")
    }
    wanted = args.sets.split(",") if args.sets else list(listed)
    sets = {name: read_set(listed[name]()) for name in wanted}
    result = {method: measure_method(sets, method) for method in METHODS}
    print(
        "| set | method | matches | right | said | ECE | between | built-in | own | others | AUROC | rank |"
    )
    print("|---|---|" + "---:|" * 10)
    for name in wanted:
        for method in METHODS:
            row = result[method]["sets"][name]
            left = row["left_out"]
            cells = [left["matches"], left["right"], left["said"], left["ece"], row["between"]["ece"]]
            cells += [row[which]["ece"] for which in ("built_in", *WITHOUT_LABELS)]
            cells += [left["auroc"], left["rank_correlation"]]
            print(f"| {name} | {method} | {' | '.join(map(str, cells))} |")
    for method in METHODS:
        rows = result[method]["sets"].values()
        for which in ("left_out", "built_in", *WITHOUT_LABELS):
            print(f"median ECE, {method}, {which}: {np.median([row[which]['ece'] for row in rows]):.3f}")
        print(method, result[method]["curve"])
    if args.out is not None:
        write_text(args.out, format_json({**result, **provenance()}), overwrite=True)
    if args.picture is not None:
        draw(result, args.picture)


if __name__ == "__main__":
    main()
