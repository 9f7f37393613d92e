"""Every method of the field on the same videos: the same input, encoder, updates and scores, another loss.

Each row is a sum of losses, trained on one part of a set without labels and scored on the other part. The
scores of key events are those of dynamic time warping; the columns cropped, speed and lead-in score the same
videos after a perturbation that no clock survives. Rows and sets are named below; an encoder is one of

    transformer  motion, pose and appearance, computed once; attention over the video on top (two CPU cores)
    mlp          the same with a network that sees a frame and two earlier ones (two CPU cores)
    appearance   that network on the appearance of a frozen EfficientNet-Lite0 alone (two CPU cores)
    frozen       appearance alone: the paper's embedder on a frozen ResNet-50 (one GPU)
    finetuned    the same, with the ResNet-50 trained from its second stage on (one GPU)
    fused        that ResNet-50 beside motion and pose, and attention over the video on top (one GPU)

The result is written after every cell, and cells that are there are not measured again; several processes
may add to one file. Vectors of streams are kept in a folder, so another row of a set starts at once.

    python benchmarks/methods.py --out results/methods.json
    python benchmarks/methods.py --rows tcc,lav,gta --sets golf --seeds 0,1,2 --out results/methods.json
    python benchmarks/methods.py --rows match+tcc --sets robot-choice optimizer.num_updates=1000
    python benchmarks/methods.py --encoders finetuned,fused --device cuda --out results/methods.json
    python benchmarks/methods.py --rows lav --sets golf-choice loss.lav.smoothing=1.0 --out trial.json
"""

import argparse
import dataclasses
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by torch and numpy when they are imported

import numpy as np
import torch
from torch import Tensor

from cycleback.comparison.perturbed import Library, perturbed_set
from cycleback.data import Dataset
from cycleback.embeddings import EmbeddingSet
from cycleback.embeddings.embed import embed_maps
from cycleback.embeddings.features import FusedFeatures
from cycleback.errors import UserError
from cycleback.evaluation import TIME_ONLY, Report, evaluate, time_only_embeddings
from cycleback.evaluation.perturbations import PERTURBATIONS
from cycleback.files import hold_lock, write_text
from cycleback.models.streams import STREAMS, Stream, mirror, stream_vectors
from cycleback.provenance import provenance
from cycleback.recipe import Recipe, build_batches, build_encoder, build_loss, build_optimizer, load_recipe
from cycleback.recipe.files import METHODS
from cycleback.runs import embed_videos, load_encoder, train
from cycleback.runs.folder import open_caches
from cycleback.training import Trainer
from cycleback.training.matches import Matches
from cycleback.training.state import TrainState
from result_file import group_seeds, mean_and_spread, read_results
from small_folders import DATA, FPS, embed_poses, read_golf, read_labelled, read_penn, read_pitches, render

UNTRAINED = "untrained"
ROWS: Mapping[str, tuple[str, ...]] = {  # row -> the settings of its training
    "match+tcc": ("loss.weights={ match = 1.0, tcc = 0.2 }",),
    "match": ("loss.weights={ match = 1.0 }",),
    **METHODS,
    "stochastic_tcc": ("loss.weights={ stochastic_tcc = 1.0 }",),
    # combinations
    "tcc+tcn": ("loss.weights={ tcc = 1.0, tcn = 1.0 }",),
    "tcc+order": ("loss.weights={ tcc = 1.0, order = 1.0 }",),
    "tcc+reversal": ("loss.weights={ tcc = 1.0, reversal = 1.0 }",),
    "tcc+next_frame": ("loss.weights={ tcc = 1.0, next_frame = 0.3 }",),
    "match+gta": ("loss.weights={ match = 1.0, gta = 0.2 }",),
    "match+lav": ("loss.weights={ match = 1.0, lav = 0.2 }", "loss.lav.window=5"),
    "match+scl": ("loss.weights={ match = 1.0, scl = 0.2 }",),
    "match+next_frame": ("loss.weights={ match = 1.0, next_frame = 0.2 }",),
    "supervised": ("loss.weights={ supervised = 1.0 }",),  # sees the labels of the training videos
}
ATTENTION: Mapping[str, tuple[str, ...]] = {  # rows of the encoders with attention alone
    "match+tcc-causal": (*ROWS["match+tcc"], "encoder.transformer.attention=causal"),
    "match+tcc-relative": (*ROWS["match+tcc"], "encoder.transformer.positions=relative"),
    "match+tcc-shifted": (*ROWS["match+tcc"], "encoder.transformer.positions=shifted"),
}
PUBLISHED: Mapping[
    str, tuple[str, ...]
] = {  # rows of appearance alone: the settings of the paper or its program
    **{f"{name}-published": (f"loss.weights={{ {name} = 1.0 }}",) for name in ("lav", "vava", "vaot")},
    "tc3i-published": ("loss.weights={ tcc = 1.0, idm = 1.0 }", *METHODS["tc3i"][2:]),
}
TRAINED = {**ROWS, **ATTENTION, **PUBLISHED}
FUSED = (
    *("encoder.embedder=transformer", "encoder.base=resnet50", 'encoder.train_base="all"'),
    *('encoder.statistics="fixed"', 'encoder.train_from="network.layer2"', "optimizer.base_factor=0.1"),
    *("data.frame_size=160", "data.context_scale=[1.0,1.0]"),
    *('run.precision="bfloat16"', "run.channels_last=true"),
)
ENCODERS: Mapping[str, tuple[str | None, tuple[str, ...]]] = {  # encoder -> its recipe and settings
    "transformer": (None, ()),
    "mlp": ("neighbours", ()),
    "appearance": ("neighbours", ()),
    "frozen": ("fast-gpu", ("encoder.train_base=frozen",)),
    "finetuned": ("fast-gpu", ()),
    "fused": (None, FUSED),
}
# updates of each training, unless the command line says
UPDATES = {"appearance": 1000, "frozen": 1000, "finetuned": 1000}
FEW_UPDATES = 400  # where the streams know most already
# encoders of vectors that are computed once -> their streams
OF_VECTORS: Mapping[str, tuple[Stream, ...]] = {
    "transformer": STREAMS,
    "mlp": STREAMS,
    "appearance": ("appearance",),
}
OF_APPEARANCE = ("appearance", "frozen", "finetuned")  # `match` needs motion or pose
BASELINES = (TIME_ONLY, UNTRAINED)
SCORES = (
    *("phase_accuracy", "progression", "tau", "cycle_rate", "event_error_frames_dtw"),
    *("pce1_dtw", "pce3_dtw", "precision5"),
)
ROBUST = ("event_error_frames_dtw", "pce3_dtw")
PENN_TRAIN, PENN_TEST = 20, 12  # videos of each of the 13 actions

Split = tuple[Dataset, Dataset]
"""The videos to train on and those to score."""


def split_every(dataset: Dataset, step: int) -> Split:
    """Score every `step`-th video of a data set, and train on the others."""
    names = dataset.names
    held_out = names[::step]
    return dataset.subset([name for name in names if name not in set(held_out)]), dataset.subset(held_out)


def take(names: Sequence[str], count: int) -> list[str]:
    """Return `count` names, evenly spaced, or all if there are fewer."""
    places = np.linspace(0, len(names) - 1, min(count, len(names))).round().astype(int)
    return [names[place] for place in places]


def golf(count: int, role: str = "val") -> Split:
    """Train on the first swings in real time, score on 32 unseen ones."""
    seen, tested = read_golf("train"), read_golf(role)
    return seen.subset(seen.names[:count]), tested.subset(take(tested.names, 32))


def robot() -> Split:
    """Train on 60 episodes, score on unseen ones."""
    seen = read_labelled(DATA / "robot", "train")
    return seen.subset(take(seen.names, 60)), read_labelled(DATA / "robot", "val")


SETS: Mapping[str, Callable[[Path], Split]] = {
    "golf": lambda _: golf(60),
    "golf-20": lambda _: golf(20),
    "golf-all": lambda _: golf(10_000),
    "golf-slow": lambda _: golf(60, "val_slow"),
    "golf-choice": lambda _: split_every(golf(60)[0], 3),  # training videos alone: to choose settings on
    "robot-choice": lambda _: split_every(robot()[0], 3),
    "robot": lambda _: robot(),
    "square": lambda _: split_every(read_labelled(DATA / "gesture_square"), 2),
    "tick": lambda _: split_every(read_labelled(DATA / "gesture_tick"), 2),
    "pitches": lambda _: split_every(read_pitches(), 2),
    "pouring-easy": lambda folder: split_every(render("easy", folder), 3),
    "pouring-hard": lambda folder: split_every(render("hard", folder), 3),
}
PENN = "penn-poses"
CHOICES = ("golf-choice", "robot-choice")  # left out unless they are asked for


@dataclass
class Inputs:
    """The vectors of all videos of a set, for the encoder of streams."""

    train: EmbeddingSet
    mirrored: EmbeddingSet  # the training videos, from the other side
    held_out: EmbeddingSet
    perturbed: Mapping[str, EmbeddingSet]
    streams: Mapping[str, float]
    matches: Matches = field(init=False)

    def __post_init__(self) -> None:
        self.matches = Matches(self.videos)

    @property
    def videos(self) -> list[Tensor]:
        """The training videos (N, V, 1, 1)."""
        return [_maps(self.train, name) for name in self.train]


def _maps(vectors: EmbeddingSet, name: str) -> Tensor:
    return torch.from_numpy(np.array(vectors[name], dtype=np.float32))[..., None, None]


def load_inputs(name: str, encoder: str, place: Path, options: argparse.Namespace) -> Inputs:
    """Compute the vectors of a set for an encoder, or load them from an earlier call."""
    chosen = OF_VECTORS[encoder]
    kept = options.vectors / (name if chosen == STREAMS else "-".join([name, *chosen]))
    parts = ("train", "mirrored", "held_out", *PERTURBATIONS)
    if not (kept / "streams.json").is_file():
        is_penn = name == PENN
        found, streams = compute_penn() if is_penn else compute_vectors(*SETS[name](place), chosen, options)
        for part, vectors in found.items():
            vectors.save(kept / part, overwrite=True)
        (kept / "streams.json").write_text(json.dumps(dict(streams)))
    sets = {part: EmbeddingSet.load(kept / part) for part in parts if (kept / part).is_dir()}
    tested = take(sets["held_out"].names, options.held_out)
    sets |= {part: sets[part].subset(tested) for part in ("held_out", *PERTURBATIONS) if part in sets}
    return Inputs(
        *(sets[part] for part in parts[:3]),
        perturbed={kind: sets[kind] for kind in PERTURBATIONS if kind in sets},
        streams=json.loads((kept / "streams.json").read_text()),
    )


def compute_vectors(
    train: Dataset, held_out: Dataset, chosen: tuple[Stream, ...], options: argparse.Namespace
) -> tuple[dict[str, EmbeddingSet], Mapping[str, float]]:
    """Compute the vectors of training, held-out and perturbed videos, turned to one side.

    Weights are chosen for the training videos if all streams are used; otherwise each has the weight 1.
    """
    encoder = build_encoder(load_recipe(None, ["encoder.embedder=pooled"])).eval()
    where = {"device": options.device, "cache": options.cache}
    weights = None if chosen == STREAMS else dict.fromkeys(chosen, 1.0)
    seen = embed_videos(encoder, train, streams=weights, **where)
    frames, features = open_caches(encoder, options.cache)
    assert isinstance(features, FusedFeatures)
    features.base.set_weights(seen.streams)
    features.mirrored = set(seen.mirrored)
    turned = {r.name: features.load(r, is_turned=True)[..., 0, 0] for r in train}
    tested = embed_videos(encoder, held_out, alike=seen, **where)
    features.mirrored = set(tested.mirrored)
    library = Library(encoder, frames, features)
    found = {
        "train": seen,
        "mirrored": seen.with_embeddings(turned, encoder=seen.encoder),
        "held_out": tested,
    }
    found |= {kind: perturbed_set(library, held_out, kind=kind) for kind in PERTURBATIONS}
    return found, seen.streams


def compute_penn() -> tuple[dict[str, EmbeddingSet], Mapping[str, float]]:
    """Compute the vectors of poses of Penn Action: no pixels, no key events, 13 actions."""
    parts: dict[str, dict[str, np.ndarray]] = {"train": {}, "mirrored": {}, "held_out": {}}
    actions = {}
    for role, count in (("train", PENN_TRAIN), ("held_out", PENN_TEST)):
        for action, videos in read_penn(is_train=role == "train").items():
            chosen = [videos[i] for i in np.linspace(0, len(videos) - 1, min(count, len(videos))).astype(int)]
            found = embed_poses("pose", chosen)
            for number in found:
                name, vectors = f"{action}/{role}-{number}", found[number]
                parts[role][name], actions[name] = vectors, action
                if role == "train":
                    raw, clock = {"pose": chosen[int(number)]}, np.arange(len(vectors)) / FPS
                    plain, turned = (stream_vectors(pose, clock)["pose"] for pose in (raw, mirror(raw)))
                    parts["mirrored"][name] = plain if np.allclose(vectors, turned) else turned
    made = {
        part: EmbeddingSet.from_arrays(found, actions={n: actions[n] for n in found}, fps=FPS)
        for part, found in parts.items()
    }
    return made, {"pose": 1.0}


def row_recipe(row: str, encoder: str, seed: int, options: argparse.Namespace, *, is_penn: bool) -> Recipe:
    """Return the recipe of a row; baselines get one of which they train nothing."""
    source, settings = ENCODERS[encoder]
    if row == UNTRAINED:
        settings = (*settings, "encoder.embedder=pooled", "encoder.pooled.grid=1")
    own = TRAINED.get(row, ())
    poses = ('encoder.streams=["pose"]',) if is_penn else ()
    updates = options.updates or UPDATES.get(encoder, FEW_UPDATES)
    size = (f"optimizer.num_updates={updates}", f"run.seed={seed}", "data.held_out=0.0")
    return load_recipe(source, [*settings, *own, *poses, *size, *options.overrides])


def train_on_vectors(recipe: Recipe, inputs: Inputs) -> torch.nn.Module:
    """Train the encoder of streams, and return it whether or not it beats the streams themselves."""
    torch.manual_seed(recipe.run.seed)
    encoder = build_encoder(recipe)
    encoder.base.set_weights(inputs.streams)
    labels = [inputs.train.phases(name) for name in inputs.train]
    phases = [torch.from_numpy(found) for found in labels if found is not None]
    is_labelled = recipe.loss.is_used("supervised")
    loss = build_loss(recipe, num_phases=1 + max(int(p.max()) for p in phases) if is_labelled else 0)
    actions = [inputs.train.action(name) for name in inputs.train]
    mirrored = [_maps(inputs.mirrored, name) for name in inputs.train]
    batches = build_batches(
        recipe,
        inputs.videos,
        actions,
        encoder=encoder,
        phases=phases if is_labelled else None,
        mirrored=mirrored,
    )
    if batches.matches is not None:
        batches = dataclasses.replace(batches, matches=inputs.matches)
    optimizer = build_optimizer(recipe, encoder, loss)
    with tempfile.TemporaryDirectory() as folder:
        state = Trainer(
            encoder,
            loss,
            optimizer,
            batches,
            names=list(inputs.train.names),
            settings=recipe.optimizer,
            run_settings=dataclasses.replace(recipe.run, save_every=100_000),
            slow_momentum=recipe.loss.next_frame.momentum,
        ).run(Path(folder))
    require_finished(state)
    return encoder.eval()


def require_finished(state: TrainState) -> None:
    """End the program after Ctrl-C: a cell of a training that was cut short is not kept."""
    if state.is_interrupted:
        raise SystemExit(f"stopped at update {state.step}; finished cells are kept")


def measure_streams(row: str, recipe: Recipe, inputs: Inputs) -> dict[str, Any]:
    """Train a row on the vectors of streams and score it."""
    began = time.process_time()
    embed: Callable[[EmbeddingSet], EmbeddingSet] = time_only_embeddings if row == TIME_ONLY else lambda v: v
    counts = False
    if row in TRAINED:
        encoder = train_on_vectors(recipe, inputs)
        embedder = encoder.embedder
        counts = embedder.can_count_frames

        def embed(vectors: EmbeddingSet) -> EmbeddingSet:
            cpu = torch.device("cpu")
            arrays = {n: embed_maps(embedder, iter([_maps(vectors, n)]), device=cpu) for n in vectors}
            return vectors.with_embeddings(arrays, encoder=row)

    spent = time.process_time() - began
    scores = score(embed(inputs.train), embed(inputs.held_out))
    robust = {kind: score_robust(embed(vectors)) for kind, vectors in inputs.perturbed.items()}
    return {**scores, "robust": robust, "minutes": round(spent / 60, 3), "can_count_frames": counts}


def measure_run(row: str, recipe: Recipe, split: Split, options: argparse.Namespace) -> dict[str, Any]:
    """Train a row from videos into a run folder, unless it is untrained, and score it."""
    seen, tested = split[0], split[1].subset(take(split[1].names, options.held_out))
    where = {"device": options.device, "cache": options.cache}
    seconds, encoder = 0.0, build_encoder(recipe).eval()
    with tempfile.TemporaryDirectory() as folder:
        if row in TRAINED:
            run = Path(folder) / "run"
            state = train(seen, run, recipe=recipe, **where)
            require_finished(state)
            seconds, encoder = state.seconds, load_encoder(run)
        taught = embed_videos(encoder, seen, **where)
        held_out = embed_videos(encoder, tested, alike=taught, **where)
        frames, features = open_caches(encoder, options.cache)
        if isinstance(features, FusedFeatures):
            features.mirrored = set(held_out.mirrored)
        library = Library(encoder, frames, features)
        robust = {kind: score_robust(perturbed_set(library, tested, kind=kind)) for kind in PERTURBATIONS}
    counts = encoder.embedder.can_count_frames
    minutes = round(seconds / 60, 3)
    return {**score(taught, held_out), "robust": robust, "minutes": minutes, "can_count_frames": counts}


def score(seen: EmbeddingSet, held_out: EmbeddingSet) -> dict[str, Any]:
    """Return the scores of held-out videos; without labels only those of order and cycles."""
    is_labelled = any(held_out.events(name) for name in held_out)
    report = evaluate(seen if is_labelled else None, held_out, intervals=False, few_shot=False)
    return _figures(report, SCORES)


def score_robust(videos: EmbeddingSet) -> dict[str, Any]:
    """Return the scores of perturbed videos."""
    return _figures(evaluate(None, videos, intervals=False, few_shot=False), ROBUST)


def _figures(report: Report, names: Sequence[str]) -> dict[str, Any]:
    values = {name: getattr(report, name) for name in names}
    return {name: round(value, 4) for name, value in values.items() if value is not None}


def summarize(runs: Mapping[str, Any]) -> dict[str, Any]:
    """Return `set/encoder/row` -> number of seeds, and scores as [mean, spread] over them."""
    rows = {}
    for name, group in group_seeds(runs).items():
        keys = [key for key in (*SCORES, "robust", "minutes") if key in group[0]]
        rows[name] = {"seeds": len(group), "can_count_frames": group[0]["can_count_frames"]}
        rows[name] |= {key: mean_and_spread([run[key] for run in group]) for key in keys}
    return rows


def print_cell(key: str, cell: Mapping[str, Any]) -> None:
    """Print one line of the table."""
    shown = {name: cell[name] for name in SCORES if name in cell}
    shown |= {kind: scores.get("pce3_dtw") for kind, scores in cell["robust"].items()}
    print(f"{key:<42}", *(f"{k} {v}" for k, v in shown.items()), f"({cell['minutes']} min)", flush=True)


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("overrides", nargs="*", help="settings of every trained row, as section.key=value")
    known = {"rows": (*BASELINES, *TRAINED), "sets": (*SETS, PENN), "encoders": tuple(ENCODERS)}
    usual = {"sets": [name for name in known["sets"] if name not in CHOICES], "encoders": OF_VECTORS}
    for name, values in known.items():
        default = usual.get(name, values)
        parser.add_argument(f"--{name}", default=",".join(default), help=f"of {', '.join(values)}")
    parser.add_argument("--seeds", default="0", help="separated by commas (default: 0)")
    parser.add_argument(
        "--updates", type=int, help=f"of each training (default: {FEW_UPDATES}; some encoders {UPDATES})"
    )
    parser.add_argument("--held-out", type=int, default=32, help="most videos to score (default: 32)")
    parser.add_argument("--device", help="cpu or cuda (default: a GPU if there is one)")
    parser.add_argument("--cache", type=Path, help="folder of decoded frames (default: the user's)")
    parser.add_argument("--vectors", type=Path, default=Path("local/methods"), help="folder of vectors")
    parser.add_argument("--minutes", type=float, default=1e6, help="start no cell after so many minutes")
    parser.add_argument("--out", type=Path, default=Path("results/methods.json"))
    options = parser.parse_args()
    for name, values in known.items():
        chosen = getattr(options, name).split(",")
        if unknown := [value for value in chosen if value not in values]:
            parser.error(f"--{name}: no {unknown[0]!r}; known: {', '.join(values)}")
        setattr(options, name, chosen)
    options.seeds = [int(seed) for seed in options.seeds.split(",")]
    return options


def rows_of(encoder: str, rows: Sequence[str], *, is_labelled: bool) -> list[str]:
    """Return those of the rows that an encoder and a set have; baselines stand once per kind of input."""
    if encoder in OF_APPEARANCE:
        known = [row for row in (*ROWS, *PUBLISHED) if "match" not in row]
    else:
        known = [*ROWS, *(() if encoder == "mlp" else ATTENTION)]
    known += {"transformer": BASELINES, "appearance": (UNTRAINED,), "frozen": (UNTRAINED,)}.get(encoder, ())
    return [row for row in rows if row in known and (is_labelled or row != "supervised")]


def missing_cells(name: str, encoder: str, known: Mapping[str, Any], options: Any) -> list[tuple[str, int]]:
    """Return the rows and seeds of a set that are not measured; baselines have no seed but 0."""
    rows = rows_of(encoder, options.rows, is_labelled=name != PENN)
    pairs = [(row, seed) for seed in options.seeds for row in rows if row in TRAINED or seed == 0]
    return [(row, seed) for row, seed in pairs if cell_key(name, encoder, row, seed, options) not in known]


def cell_key(name: str, encoder: str, row: str, seed: int, options: argparse.Namespace) -> str:
    """Return the key of a cell; overrides are part of the name of its row."""
    return f"{name}/{encoder}/{' '.join([row, *options.overrides])}/{seed}"


def add_cell(out: Path, key: str, cell: Mapping[str, Any]) -> None:
    """Add a cell to the result file, to which other processes may add, too."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with hold_lock(out.parent):
        write_text(out, format_runs(read_results(out)["runs"] | {key: cell}), overwrite=True)


def format_runs(runs: Mapping[str, Any]) -> str:
    """Return the text of a result file, with one line for each cell."""
    cells = (f"{json.dumps(key)}: {json.dumps(cell, separators=(',', ':'))}" for key, cell in runs.items())
    return '{"runs": {\n' + ",\n".join(cells) + "\n}}\n"


def main() -> None:
    """Measure the cells that are not in the result file; one that fails is named, and leaves the others."""
    options = parse_options()
    ends, failed = time.monotonic() + 60 * options.minutes, False
    for encoder in options.encoders:
        for name in options.sets:
            cells = missing_cells(name, encoder, read_results(options.out)["runs"], options)
            if not cells or (name == PENN and OF_VECTORS.get(encoder) != STREAMS):
                continue
            with tempfile.TemporaryDirectory() as folder:
                place, is_of_vectors = Path(folder), encoder in OF_VECTORS
                given = load_inputs(name, encoder, place, options) if is_of_vectors else SETS[name](place)
                for row, seed in cells:
                    if time.monotonic() > ends:
                        return
                    try:
                        measure(name, encoder, row, seed, given, options)
                    except (RuntimeError, UserError) as error:
                        failed = True
                        print(f"{name}/{encoder}/{row}/{seed} failed: {error}", file=sys.stderr, flush=True)
    if failed:
        raise SystemExit(1)


def measure(
    name: str, encoder: str, row: str, seed: int, given: Inputs | Split, options: argparse.Namespace
) -> None:
    """Measure one cell and add it to the result file."""
    recipe = row_recipe(row, encoder, seed, options, is_penn=name == PENN)
    if isinstance(given, Inputs):
        cell = measure_streams(row, recipe, given)
    else:
        cell = measure_run(row, recipe, given, options)
    size = {"updates": recipe.optimizer.num_updates, "held_out": options.held_out}
    settings = [*TRAINED.get(row, ()), *options.overrides]
    key = cell_key(name, encoder, row, seed, options)
    add_cell(options.out, key, cell | provenance(options.device or "") | size | {"settings": settings})
    print_cell(key, cell)


if __name__ == "__main__":
    main()
