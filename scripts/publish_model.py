"""Publish a run as a model of the package, so that `cycleback align a.mp4 b.mp4 --run golf-lite` works.

Usage:
    python scripts/publish_model.py runs/golf-lite models/golf-lite --data golf
    python scripts/publish_model.py runs/golf-lite models/golf-lite --results measured.json
    python scripts/publish_model.py --card models/golf-lite

The weights are stored in 16 bits. The scores on the card belong to the rounded weights: --data measures them
on the splits val and val_slow of the data set, and --results reads them from a file. --card writes the card
again.

NAME/encoder.safetensors  the weights             NAME/results.json  the scores
NAME/recipe.toml          every setting           NAME/README.md     the model card
NAME/videos.json          the videos by split     NAME/LICENSE       the licence of the weights
"""

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import interpolate

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "scripts"), str(ROOT / "benchmarks")]

from model_card import FROZEN, LICENCE, OWN, RESULTS_FILE, TIME_ONLY, card  # noqa: E402

from cycleback.data import read_dataset  # noqa: E402
from cycleback.errors import CheckpointError, UserError  # noqa: E402
from cycleback.evaluation import time_only_embeddings  # noqa: E402
from cycleback.files import atomic_folder, write_json, write_text  # noqa: E402
from cycleback.models import Encoder, fingerprint, load_settings, save_encoder  # noqa: E402
from cycleback.provenance import provenance  # noqa: E402
from cycleback.recipe import RECIPE_FILE  # noqa: E402
from cycleback.runs import CARD_FILE, VIDEOS_FILE, embed_videos, load_encoder  # noqa: E402
from cycleback.runs.folder import build_pretrained  # noqa: E402
from cycleback.training import read_log  # noqa: E402
from scoring import score  # noqa: E402

MAX_BYTES = 10_000_000
MAX_ROUNDING = 0.03  # for random pictures; embeddings of real ones move about a third as far
PARTS = ("val", "val_slow")


def write_weights(run: Path, folder: Path) -> None:
    """Write what using the encoder needs: recipe, videos, and weights in 16 bits."""
    encoder = load_encoder(run)
    save_encoder(folder, encoder, load_settings(run), half=True)
    for name in (RECIPE_FILE, VIDEOS_FILE):
        shutil.copyfile(run / name, folder / name)
    lost = rounding(encoder, load_encoder(folder))
    if lost > MAX_ROUNDING:
        raise CheckpointError(
            f"16 bits move the embeddings of {run} by {lost:.1%}, more than {MAX_ROUNDING:.0%}"
        )


@torch.no_grad()
def rounding(exact: Encoder, rounded: Encoder) -> float:
    """Return how far rounding moves the embeddings of 24 smooth pictures, relative to their spread.

    Streams see whole videos, so random vectors take the place of pictures.
    """
    if exact.needs_whole_videos:
        features = torch.randn(24, exact.base.channels, 1, 1, generator=torch.Generator().manual_seed(0))
        features /= exact.base.channels**0.5
        first, second = (torch.cat(list(each.embed_stream([features]))) for each in (exact, rounded))
        return float((first - second).square().mean().sqrt() / _spread(first))
    coarse = torch.rand(24, 3, 9, 9, generator=torch.Generator().manual_seed(0))
    pictures = interpolate(coarse, size=exact.frame_size, mode="bicubic").clamp(0, 1)  # (24, 3, H, W)
    first, second = (
        torch.cat(list(each.embed_stream([each.features(pictures)]))) for each in (exact, rounded)
    )  # (24, D)
    return float((first - second).square().mean().sqrt() / _spread(first))


def _spread(embeddings: Tensor) -> Tensor:
    return (embeddings - embeddings.mean(0)).square().mean().sqrt()


def measure(folder: Path, data: Path) -> dict[str, Any]:
    """Score the model, the frozen base and time alone on each held-out part."""
    dataset, encoder = read_dataset(data), load_encoder(folder)
    rows: dict[str, dict[str, Any]] = {}
    for row, source in ((OWN, encoder), (FROZEN, build_pretrained(("appearance",)))):
        sets = {part: embed_videos(source, dataset.split(part)) for part in ("train", *PARTS)}
        rows[row] = {part: score(sets["train"], sets[part], few_shot=False) for part in PARTS}
    blind = {part: time_only_embeddings(found) for part, found in sets.items()}
    rows[TIME_ONLY] = {part: score(blind["train"], blind[part], few_shot=False) for part in PARTS}
    return {"encoder": fingerprint(encoder), **provenance(), "rows": rows}


def check_results(folder: Path, results: dict[str, Any]) -> None:
    """Refuse scores of other weights."""
    expected, found = fingerprint(load_encoder(folder)), results.get("encoder")
    if found != expected:
        raise CheckpointError(
            f"these scores belong to encoder {found}, not to {expected}: measure again with --data"
        )


def check_size(folder: Path) -> int:
    """Return the size in bytes; refuse a model that is too large for the package."""
    size = sum(path.stat().st_size for path in folder.iterdir())
    if size > MAX_BYTES:
        raise CheckpointError(
            f"the model has {size / 1e6:.1f} MB, more than {MAX_BYTES / 1e6:.0f} MB: "
            "train a smaller one (encoder.efficientnet_lite0.block, encoder.conv.capacity)"
        )
    return size


def publish(arguments: argparse.Namespace) -> None:
    """Write the model folder."""
    run, target = arguments.run, arguments.folder
    results = json.loads(arguments.results.read_text("utf-8")) if arguments.data is None else None
    with atomic_folder(target, overwrite=arguments.overwrite) as draft:
        write_weights(run, draft)
        check_size(draft)
        results = results or measure(draft, arguments.data)
        check_results(draft, results)
        minutes = round(read_log(run)[-1]["seconds"] / 60, 1) if read_log(run) else None
        results |= {"model": target.name, "minutes": minutes, "trained_on": arguments.trained_on}
        write_json(draft / RESULTS_FILE, results)
        write_text(draft / "LICENSE", LICENCE)
        write_text(draft / CARD_FILE, card(draft))
        size = check_size(draft)
    print(f"{size / 1e6:.2f} MB: {target}")


def main() -> int:
    """Publish a run, or write a card again."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, help="run folder (with --card: the model's folder)")
    parser.add_argument("folder", type=Path, nargs="?", help="folder to make; its name is the model's")
    parser.add_argument("--data", type=Path, help="data set folder with the splits train, val and val_slow")
    parser.add_argument("--results", type=Path, help="numbers measured before, instead of --data")
    parser.add_argument("--trained-on", help="hardware of the training, for the card: 'one H200'")
    parser.add_argument("--card", action="store_true", help="only write README.md of a model anew")
    parser.add_argument("--overwrite", action="store_true", help="replace the folder")
    arguments = parser.parse_args()
    try:
        if arguments.card:
            write_text(arguments.run / CARD_FILE, card(arguments.run), overwrite=True)
        elif arguments.folder is None or (arguments.data is None) == (arguments.results is None):
            parser.error("give RUN and FOLDER, and either --data or --results")
        else:
            publish(arguments)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
