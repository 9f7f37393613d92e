"""How, where and from what a comparison was made."""

import os
import platform
from importlib import metadata
from typing import Any

import torch

from cycleback import __version__
from cycleback.comparison.plan import Plan
from cycleback.runs import choose_device

PACKAGES = ("torch", "numpy", "scikit-learn", "av")


def circumstances(plan: Plan, *, command: str, device: torch.device | str | None) -> dict[str, Any]:
    """Command, data, settings, machine and versions, as plain values."""
    return {
        "command": command,
        "data": str(plan.dataset.root),
        "videos": _counts(plan),
        "key_events": list(plan.dataset.event_names),
        "recipe": " ".join([plan.recipe_name, *plan.overrides]),
        "seed": plan.seed,
        "protocol": plan.protocol,
        "device": _device_name(choose_device(device)),
        "versions": {"cycleback": __version__, "python": platform.python_version()} | _versions(),
    }


def _counts(plan: Plan) -> dict[str, int]:
    counts = {"train": len(plan.train), "held out": len(plan.held_out)}
    return counts | {part: len(plan.dataset.split(part)) for part in plan.other_parts}


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else f"CPU, {os.cpu_count()} cores"


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found
