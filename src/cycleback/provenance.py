"""Where a result comes from: versions, device and commit."""

import os
import platform
import subprocess
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "av")
COMMIT_VARIABLE = "CYCLEBACK_COMMIT"  # for a copy of the tree without its git folder


def package_versions(packages: Iterable[str] = PACKAGES) -> dict[str, str]:
    """The installed version of each package, or "not installed"."""
    versions = {}
    for package in packages:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return versions


def device_name(device: str = "") -> str:
    """The name of a torch device in words; by default the first GPU, or the CPU with its cores."""
    import torch

    kind = device or ("cuda" if torch.cuda.is_available() else "cpu")
    return torch.cuda.get_device_name(kind) if kind.startswith("cuda") else f"CPU, {os.cpu_count()} cores"


def commit() -> str:
    """The short hash of the checkout this package runs from, or "unknown"."""
    if given := os.environ.get(COMMIT_VARIABLE):
        return given
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def provenance(device: str = "") -> dict[str, str]:
    """Commit, device and versions, as kept with every result."""
    versions = {"python": platform.python_version(), **package_versions()}
    return {"commit": commit(), "device": device_name(device), **versions}
