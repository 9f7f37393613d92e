"""What is to be compared: the videos, the rows and the settings, all checked before anything is learned."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cycleback import __version__
from cycleback.comparison.methods import DEFAULT, Method, method_recipe, parse_methods
from cycleback.data import Dataset, VideoRecord, read_dataset, split_dataset
from cycleback.data.sources import record_digest
from cycleback.errors import ConfigError, DataError, one_of
from cycleback.evaluation.protocol import PROTOCOLS
from cycleback.recipe import Recipe, recipe_toml, require_used
from cycleback.runs.folder import records_of_action

TRAIN, HELD_OUT = "train", "val"


@dataclass(frozen=True)
class Plan:
    """A comparison before it is made.

    Attributes:
        dataset: its records are in the split "train", "val" (held out) or another, measured by itself.
        methods: the rows, in order.
        recipes: method -> all settings of its training.
        recipe_name: of the recipe all rows share.
        protocol: of the evaluation.
        seed: of the split, the training and the evaluation.
        perturb: whether held-out videos are also measured cropped, at other speeds and with a lead-in.
        videos: fingerprint of the videos, their labels and their split.
        allow_overlap: whether videos or people may be both learned from and measured on.
        left_out: why methods that were asked for are not among the rows.
    """

    dataset: Dataset
    methods: tuple[Method, ...]
    recipes: Mapping[str, Recipe]
    recipe_name: str
    overrides: tuple[str, ...]
    protocol: str
    seed: int
    perturb: bool
    videos: str
    allow_overlap: bool = False
    left_out: tuple[str, ...] = ()

    @property
    def train(self) -> Dataset:
        """The videos to learn from."""
        return self.dataset.split(TRAIN)

    @property
    def held_out(self) -> Dataset:
        """The videos to measure on."""
        return self.dataset.split(HELD_OUT)

    @property
    def other_parts(self) -> tuple[str, ...]:
        """Splits besides training and held-out, a slow-motion set for example."""
        splits = dict.fromkeys(record.split for record in self.dataset if record.split is not None)
        return tuple(split for split in splits if split not in (TRAIN, HELD_OUT))

    @property
    def is_labelled(self) -> bool:
        """Whether held-out videos have key events."""
        return any(record.events for record in self.held_out)

    @property
    def is_pictures(self) -> bool:
        """Whether there are frames to show; sequences of vectors have none."""
        return all(record.kind != "sequence" for record in self.dataset)

    def title(self, method: Method) -> str:
        """The name of a row in words; of vectors, the frozen base is the data itself."""
        return "raw vectors" if method.role == "imagenet" and not self.is_pictures else method.title

    def training_settings(self, method: Method) -> dict[str, Any]:
        """What a run depends on."""
        return {"recipe": recipe_toml(self.recipes[method.name]), "videos": self.videos}

    def row_settings(self, method: Method) -> dict[str, Any]:
        """What a finished row depends on."""
        measured = {"protocol": self.protocol, "perturb": self.perturb, "seed": self.seed}
        return {**self.training_settings(method), **measured, "version": __version__}


def make_plan(
    directory: Path | str,
    *,
    methods: Sequence[str] = DEFAULT,
    recipe: str | None = None,
    overrides: Sequence[str] = (),
    seed: int = 0,
    protocol: str = "linear",
    perturb: bool = True,
    allow_overlap: bool = False,
) -> Plan:
    """Read the data set and every setting; the recipe is `fast`, or `poses` for sequences, unless named."""
    if protocol not in PROTOCOLS:
        raise ConfigError(f"no protocol {protocol!r}: expected {one_of(PROTOCOLS)}")
    wanted = parse_methods(methods)
    found = read_dataset(directory)
    name = recipe or ("poses" if all(record.kind == "sequence" for record in found) else "fast")
    recipes = {m.name: method_recipe(m, recipe=name, overrides=overrides, seed=seed) for m in wanted}
    require_used(overrides, recipes.values())
    dataset = _split(found, recipes[wanted[-1].name], seed)
    kept = [m for m in wanted if not m.needs_labels or any(record.events for record in dataset.split(TRAIN))]
    _check_pairs(dataset.split(HELD_OUT))
    digests = {record.name: record_digest(record) for record in dataset}
    if not allow_overlap:
        _check_overlap(dataset, digests)
    return Plan(
        dataset=dataset,
        methods=tuple(kept),
        recipes=recipes,
        recipe_name=name,
        overrides=tuple(overrides),
        protocol=protocol,
        seed=seed,
        perturb=perturb,
        videos=_fingerprint(dataset.records, digests),
        allow_overlap=allow_overlap,
        left_out=tuple(
            f"{m.title}: left out, no training video has key events." for m in wanted if m not in kept
        ),
    )


def _split(dataset: Dataset, recipe: Recipe, seed: int) -> Dataset:
    """The data set with a split of its own: given, or drawn as a run of this recipe would draw it."""
    records = records_of_action(dataset, recipe.data.action)
    if not dataset.given_split:
        records = split_dataset(records, recipe.data.held_out, seed)
    splits = {record.split for record in records}
    if HELD_OUT not in splits and "test" in splits:
        records = tuple(_renamed(record) for record in records)
    given = {record.name: record.split for record in records if record.split is not None}
    return dataclasses.replace(dataset, records=records, given_split=given)


def _renamed(record: VideoRecord) -> VideoRecord:
    return dataclasses.replace(record, split=HELD_OUT) if record.split == "test" else record


def _check_pairs(held_out: Dataset) -> None:
    largest = max(sum(record.action == action for record in held_out) for action in held_out.actions)
    if largest < 2:
        raise DataError(
            f"{held_out.root}: a comparison needs 2 held-out videos of one action, got {largest}. "
            "Add videos, or raise data.held_out."
        )


def _check_overlap(dataset: Dataset, digests: Mapping[str, str]) -> None:
    """Refuse a video or a person that is both learned from and measured on, before any learning."""
    files = {digests[record.name]: record.name for record in dataset.split(TRAIN)}
    people = {record.person: record.name for record in dataset.split(TRAIN) if record.person}
    for record in dataset:
        if record.split in (TRAIN, None):
            continue
        if digests[record.name] in files:
            why = f"is the same file as the training video {files[digests[record.name]]!r}"
        elif record.person in people:
            why = f"shows {record.person}, as does the training video {people[record.person]!r}"
        else:
            continue
        raise DataError(
            f"{dataset.root}: {record.name!r} ({record.split}) {why}. "
            "Remove one of them, or add --allow-overlap and do not call the result held-out."
        )


def _fingerprint(records: Sequence[VideoRecord], digests: Mapping[str, str]) -> str:
    """Sixteen hex digits that change with the videos, their labels and their split."""
    facts = [[r.name, r.action, r.split, r.unit, sorted(r.events.items()), digests[r.name]] for r in records]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
