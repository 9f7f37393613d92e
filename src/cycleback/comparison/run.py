"""`compare`: all rows learned or found, measured, and shown in one page."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from cycleback.comparison.folder import check_settings, open_folder, write_json
from cycleback.comparison.methods import DEFAULT
from cycleback.comparison.page import write_page
from cycleback.comparison.plan import Plan, make_plan
from cycleback.comparison.rows import Place, Row, Stages, make_row
from cycleback.comparison.scenes import draw_scenes
from cycleback.comparison.setting import circumstances
from cycleback.comparison.summary import best_method, reading, warnings
from cycleback.errors import require
from cycleback.recipe import recipe_toml
from cycleback.training import read_log


@dataclass(frozen=True)
class Comparison:
    """A finished comparison.

    Attributes:
        output: its folder, with report.html, report.json and report.md.
        rows: method -> its row.
        content: what report.json holds.
    """

    output: Path
    rows: Mapping[str, Row]
    content: Mapping[str, Any]


def compare(
    directory: Path | str,
    output: Path | str,
    *,
    methods: Sequence[str] = DEFAULT,
    recipe: str | None = None,
    overrides: Sequence[str] = (),
    seed: int = 0,
    protocol: str = "linear",
    perturb: bool = True,
    allow_overlap: bool = False,
    overwrite: bool = False,
    device: torch.device | str | None = None,
    cache: Path | None = None,
    command: str = "",
    stages: Stages | None = None,
) -> Comparison:
    """Learn every method on a data set, measure all on its held-out videos, write the page.

    Rows that `output` already has with the same settings are used as they are, and a run that was stopped
    goes on. The rows time only, random encoder and frozen base are always there.

    Args:
        directory: folder of videos or sequences; with labels and a split, or without.
        output: folder of the comparison; refused where it holds something else.
        methods: losses joined by "+", "tcc-classification", "tcc-mse", or a baseline.
        recipe: shared by all rows; default "fast", or "poses" for sequences.
        overrides: settings of it, as `section.key=value`.
        protocol: of the evaluation.
        perturb: also measure the held-out videos cropped, at other speeds and with a still lead-in.
        allow_overlap: go on although videos or people are both learned from and measured on.
        overwrite: learn rows again that were learned with other settings.
        cache: where decoded frames are kept (default: the user's cache folder).
        command: how this was asked for; stands on the page.
    """
    require("matplotlib", extra="plot", purpose="the comparison's page")
    started, stages = time.monotonic(), stages or Stages()
    plan = make_plan(
        directory,
        methods=methods,
        recipe=recipe,
        overrides=overrides,
        seed=seed,
        protocol=protocol,
        perturb=perturb,
        allow_overlap=allow_overlap,
    )
    place = Place(open_folder(Path(output)), device, cache)
    for method in plan.methods:
        if method.is_trained:
            check_settings(place.folder, method.name, plan.training_settings(method), overwrite=overwrite)
    rows = _all_rows(plan, place, stages)
    content = _content(plan, rows, place, command=command)
    scenes = draw_scenes(plan, place, content["best"])
    content |= {"example": scenes.example.to_json(), "snapshots": scenes.snapshots, "pair": scenes.pair}
    content["how"]["seconds"] = round(time.monotonic() - started, 1)
    write_page(place.folder.root, content, scenes=scenes)
    write_json(place.folder.root / "report.json", content)
    return Comparison(place.folder.root, rows, content)


def _all_rows(plan: Plan, place: Place, stages: Stages) -> dict[str, Row]:
    rows: dict[str, Row] = {}
    heard: Stages = stages
    for done, method in enumerate(plan.methods):
        if stages.on_method is not None:
            stages.on_method(done, len(plan.methods), plan.title(method))
        rows[method.name] = make_row(method, plan, place, stages=heard)
        if method.is_trained and not rows[method.name].is_reused:
            heard = replace(stages, on_frames=None, on_features=None)  # all is decoded by now
    if stages.on_method is not None:
        stages.on_method(len(plan.methods), len(plan.methods), "page")
    return rows


def _content(plan: Plan, rows: Mapping[str, Row], place: Place, *, command: str) -> dict[str, Any]:
    """What the page is made from, but for what its pictures show."""
    shown = {
        name: {
            **row.to_json(),
            "title": plan.title(row.method),
            "role": row.method.role,
            "losses": list(row.method.losses),
        }
        for name, row in rows.items()
    }
    logs = {name: read_log(place.folder.run(name)) for name, row in rows.items() if row.method.is_trained}
    return {
        "title": plan.dataset.root.resolve().name,
        "is_labelled": plan.is_labelled,
        "is_pictures": plan.is_pictures,
        "best": best_method(shown),
        "reading": reading(shown),
        "warnings": warnings(shown, {name: row.report for name, row in rows.items()}, plan.left_out),
        "rows": shown,
        "parts": list(plan.other_parts),
        "curves": {
            name: [
                {key: line[key] for key in ("step", "loss", "cycle_rate")} for line in lines if "loss" in line
            ]
            for name, lines in logs.items()
        },
        "recipe": recipe_toml(plan.recipes["random"]),
        "how": circumstances(plan, command=command, device=place.device),
    }
