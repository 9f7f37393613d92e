"""`compare`: train all methods on one data set, score them, and write one page."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from cycleback import __version__
from cycleback.comparison.figures import draw_scenes
from cycleback.comparison.methods import DEFAULT, KEPT_UNTRAINED, UNTRAINED
from cycleback.comparison.page import write_page
from cycleback.comparison.plan import Plan, make_plan
from cycleback.comparison.reading import best_method, list_warnings, write_reading
from cycleback.comparison.rows import (
    Row,
    Workspace,
    check_comparison_folder,
    check_settings,
    make_row,
    open_folder,
)
from cycleback.errors import require
from cycleback.files import write_json
from cycleback.progress import Progress, ignore
from cycleback.provenance import device_name, package_versions
from cycleback.recipe import recipe_toml
from cycleback.runs import choose_device
from cycleback.training import read_log


@dataclass(frozen=True)
class Comparison:
    """A finished comparison."""

    output: Path  # its folder, with report.html, report.json and report.md
    rows: Mapping[str, Row]  # by name of the method
    content: Mapping[str, Any]  # of report.json


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
    progress: Progress | None = None,
) -> Comparison:
    """Train every method on a data set, score all on its held-out videos, and write the page.

    Rows that `output` already holds with the same settings are reused, and an interrupted training resumes.
    The baselines time-only, untrained, frozen and streams are always among the rows; streams need videos.

    Args:
        directory: folder of videos or sequences, with or without labels and a split.
        output: folder of the comparison; refused if it holds something else.
        methods: losses joined by "+", such as "tcc+tcn"; see `cycleback.comparison.methods`.
        recipe: recipe that all rows share (default: "fast", or "poses" for sequences).
        overrides: changes of the recipe, as `section.key=value`.
        protocol: evaluation protocol.
        perturb: also score the held-out videos cropped, at other speeds and with a still lead-in.
        allow_overlap: allow videos or persons in both the training and the held-out split.
        overwrite: train rows again that were trained with other settings.
        cache: cache of decoded frames (default: the user's cache folder).
        command: command line to show on the page.
    """
    require("matplotlib", extra="plot", purpose="the comparison's page")
    started, progress = time.monotonic(), progress or Progress()
    check_comparison_folder(Path(output))
    choose_device(device)  # raises, if there is none of that name
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
    workspace = Workspace(Path(output), device, cache)
    open_folder(workspace.root)
    for method in plan.methods:
        if method.is_trained:
            check_settings(workspace, method.name, plan.training_settings(method), overwrite=overwrite)
    rows = _make_rows(plan, workspace, progress)
    content = _content(plan, rows, workspace, command=command)
    scenes = draw_scenes(plan, workspace, content["best"])
    content |= {"example": asdict(scenes.example), "snapshots": scenes.snapshots, "pair": scenes.pair}
    content["how"]["seconds"] = round(time.monotonic() - started, 1)
    write_page(workspace.root, content, scenes=scenes)
    write_json(workspace.root / "report.json", content, overwrite=True)
    return Comparison(workspace.root, rows, content)


def _make_rows(plan: Plan, workspace: Workspace, progress: Progress) -> dict[str, Row]:
    rows: dict[str, Row] = {}
    heard, total = progress, len(plan.methods)
    for done, method in enumerate(plan.methods):
        progress.on_stage(done, total, plan.title(method))
        rows[method.name] = make_row(method, plan, workspace, progress=heard)
        if method.is_trained and not rows[method.name].is_reused:
            heard = replace(progress, on_frames=ignore, on_features=ignore)  # everything is cached by now
    progress.on_stage(total, total, "page")
    return rows


def _row_title(plan: Plan, row: Row) -> str:
    """Return the title of a row, which says so if its run keeps the untrained streams."""
    return plan.title(row.method) + (f" ({KEPT_UNTRAINED})" if row.kept_untrained else "")


def _content(plan: Plan, rows: Mapping[str, Row], workspace: Workspace, *, command: str) -> dict[str, Any]:
    """Return everything on the page except its pictures."""
    described = {
        name: {"title": _row_title(plan, row), "losses": dict(row.method.weights), **row.to_json()}
        for name, row in rows.items()
    }
    logs = {name: read_log(workspace.run(name)) for name, row in rows.items() if row.method.is_trained}
    reports = {name: row.report for name, row in rows.items()}
    counts = {"train": len(plan.train), "held out": len(plan.held_out)}
    return {
        "title": plan.dataset.root.resolve().name,
        "is_labelled": plan.is_labelled,
        "has_pictures": plan.has_pictures,
        "best": best_method(described),
        "reading": write_reading(described),
        "warnings": list_warnings(described, reports, plan.left_out),
        "rows": described,
        "splits": list(plan.other_splits),
        "curves": {
            name: [
                {key: line[key] for key in ("step", "loss", "cycle_rate")} for line in log if "loss" in line
            ]
            for name, log in logs.items()
        },
        "recipe": recipe_toml(plan.recipes[UNTRAINED]),
        "how": {
            "command": command,
            "data": str(plan.dataset.root),
            "videos": counts | {split: len(plan.dataset.split(split)) for split in plan.other_splits},
            "key_events": list(plan.dataset.event_names),
            "recipe": " ".join([plan.recipe_name, *plan.overrides]),
            "seed": plan.seed,
            "protocol": plan.protocol,
            "device": device_name(str(choose_device(workspace.device))),
            "versions": {"cycleback": __version__, **package_versions()},
        },
    }
