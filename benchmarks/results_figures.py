"""The pictures of RESULTS.md, drawn from the runs of result files."""

from collections.abc import Callable, Iterable, Mapping
from statistics import fmean
from typing import Any

BASES = {
    "resnet50": "ResNet-50, fine-tuned from ImageNet weights",
    "resnet50-long": "ResNet-50, fine-tuned four times as long, eight videos per batch",
    "vggm": "VGG-M, from scratch",
    "lite0": "EfficientNet-Lite0, frozen",
    "lite0-tuned": "EfficientNet-Lite0, fine-tuned from there",
}
LINES = ("tcc+tcn", "tcc", "tcn", "sal", "supervised", "frozen")


def of_base(found: Mapping[str, Any], base: str) -> dict[str, Any]:
    """Return the entries named base/..., without the base."""
    return {key.partition("/")[2]: value for key, value in found.items() if key.partition("/")[0] == base}


def few_shot_curve(runs: list[Mapping[str, Any]]) -> tuple[list[int], list[list[float]]]:
    """Return numbers of labelled videos, and the phase accuracies of all runs with each."""
    videos = runs[0]["val"]["counts"]["labelled_train_videos"]
    shares = [s for s in runs[0]["val"]["phase_accuracy_by_fraction"] if int(float(s) * videos) > 10]
    few = list(runs[0]["val"]["few_shot"])
    values = [[run["val"]["few_shot"][number]["mean"] for run in runs] for number in few]
    values += [[run["val"]["phase_accuracy_by_fraction"][share] for run in runs] for share in shares]
    return [*map(int, few), *(int(float(share) * videos) for share in shares)], values


def draw_few_shot(runs: Mapping[str, Any]) -> bytes | None:
    """Draw phase accuracy against labelled videos, one panel per base; None if there is nothing to draw."""
    from cycleback.applications.plots.figure import PHASE_COLOURS, image_bytes, new_figure

    known = {key: run for key, run in runs.items() if "few_shot" in run["val"]}
    bases = [base for base in BASES if len(_lines_of(of_base(known, base))) > 1]
    if not bases:
        return None
    with new_figure(len(bases)) as (figure, axes):
        for axis, base in zip(axes, bases, strict=True):
            _draw_lines(axis, of_base(known, base), PHASE_COLOURS)
            axis.set(title=BASES[base], xscale="log", xlabel="labelled videos", ylabel="phase accuracy")
            numbers, _ = few_shot_curve(list(of_base(known, base).values()))
            axis.set_xticks(numbers, labels=[str(number) for number in numbers])
            axis.minorticks_off()
            axis.grid(axis="y")
            axis.legend()
        limits = [limit for axis in axes for limit in axis.get_ylim()]
        for axis in axes:
            axis.set_ylim(min(limits), max(limits))
        return image_bytes(figure, "svg")


def _lines_of(runs: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the runs of each row that is drawn."""
    found = {row: [run for key, run in runs.items() if key.rpartition("/")[0] == row] for row in LINES}
    return {row: group for row, group in found.items() if group}


def _draw_lines(axis: Any, runs: Mapping[str, Any], colours: Iterable[str]) -> None:
    colour_of = dict(zip(LINES, colours, strict=False))
    for row, group in _lines_of(runs).items():
        numbers, values = few_shot_curve(group)
        low, high = ([choose(found) for found in values] for choose in (min, max))
        axis.plot(numbers, [*map(fmean, values)], color=colour_of[row], label=row, marker="o", markersize=3)
        axis.fill_between(numbers, low, high, color=colour_of[row], alpha=0.2, linewidth=0)


def draw_backwards(runs: Mapping[str, Mapping[str, float]]) -> bytes:
    """Draw the share of pairs with negative tau, one dot per seed, for `setting/loss/seed`."""
    from cycleback.applications.plots.figure import PHASE_COLOURS, image_bytes, new_figure

    settings = list(dict.fromkeys(key.split("/")[0] for key in runs))
    losses = list(dict.fromkeys(key.split("/")[1] for key in runs))
    with new_figure(1, size=(7.0, 3.2)) as (figure, axes):
        for number, loss in enumerate(losses):
            found = [
                (settings.index(key.split("/")[0]), run)
                for key, run in runs.items()
                if key.split("/")[1] == loss
            ]
            places = [at + 0.12 * (2 * number - len(losses) + 1) for at, _ in found]
            shares = [run["backwards"] for _, run in found]
            axes[0].plot(places, shares, "o", color=PHASE_COLOURS[number], label=loss, alpha=0.8)
        axes[0].set(ylabel="pairs with negative tau", xlim=(-0.5, len(settings) - 0.5), ylim=(-0.03, 0.63))
        axes[0].set_xticks(range(len(settings)), labels=settings)
        axes[0].grid(axis="y")
        axes[0].legend()
        return image_bytes(figure, "svg")


FIGURES: dict[str, tuple[Callable[[Any], bytes | None], str]] = {  # file -> how, from which result
    "golf-few-shot.svg": (draw_few_shot, "golf"),
    "golf-backwards.svg": (draw_backwards, "backwards"),
}
