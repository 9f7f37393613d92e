"""The plan of a comparison: videos, methods and settings, all checked before anything is trained."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cycleback import __version__
from cycleback.comparison.methods import (
    DEFAULT,
    FROZEN,
    UNTRAINED_STREAMS,
    Method,
    method_recipe,
    parse_methods,
)
from cycleback.data import Dataset, VideoRecord, read_dataset, split_dataset
from cycleback.data.sources import record_digest
from cycleback.errors import ConfigError, DataError, one_of
from cycleback.evaluation import PROTOCOLS
from cycleback.recipe import Recipe, recipe_toml, require_used
from cycleback.runs.folder import records_of_action

TRAIN, HELD_OUT = "train", "val"


@dataclass(frozen=True)
class Plan:
    """Everything that a comparison depends on."""

    dataset: Dataset  # in splits "train", "val" (held out) and others, which are scored by themselves
    methods: tuple[Method, ...]  # the rows, in order
    recipes: Mapping[str, Recipe]  # method name -> all settings of its training
    recipe_name: str  # of the recipe that all rows share
    overrides: tuple[str, ...] = ()  # changes of that recipe, as `section.key=value`
    protocol: str = "linear"  # of the evaluation
    seed: int = 0  # of the split, the training and the evaluation
    perturb: bool = True  # also score held-out videos cropped, at other speeds and with a still lead-in
    few_shot: bool = True  # also train classifiers on a few labelled videos
    videos: str = ""  # fingerprint of the videos, their labels and their split
    allow_overlap: bool = False  # allow videos or persons in both the training and the held-out split
    left_out: tuple[str, ...] = ()  # why requested methods are not among the rows

    @property
    def train(self) -> Dataset:
        """The training videos."""
        return self.dataset.split(TRAIN)

    @property
    def held_out(self) -> Dataset:
        """The held-out videos."""
        return self.dataset.split(HELD_OUT)

    @property
    def other_splits(self) -> tuple[str, ...]:
        """Splits besides training and held-out, such as a slow-motion set."""
        splits = dict.fromkeys(record.split for record in self.dataset if record.split is not None)
        return tuple(split for split in splits if split not in (TRAIN, HELD_OUT))

    @property
    def is_labelled(self) -> bool:
        """Whether held-out videos have key events."""
        return any(record.events for record in self.held_out)

    @property
    def has_pictures(self) -> bool:
        """Whether there are frames to show; sequences of vectors have none."""
        return all(record.kind != "sequence" for record in self.dataset)

    def title(self, method: Method) -> str:
        """Return the title of a row; for sequences, the frozen features are the vectors themselves."""
        return f"{FROZEN} (raw vectors)" if method.name == FROZEN and not self.has_pictures else method.title

    def training_settings(self, method: Method) -> dict[str, Any]:
        """Return the settings that a training depends on."""
        return {"recipe": recipe_toml(self.recipes[method.name]), "videos": self.videos}

    def row_settings(self, method: Method) -> dict[str, Any]:
        """Return the settings that a finished row depends on."""
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
    """Read the data set and check every setting; the default recipe is `fast`, or `poses` for sequences."""
    if protocol not in PROTOCOLS:
        raise ConfigError(f"no protocol {protocol!r}: expected {one_of(PROTOCOLS)}")
    wanted = parse_methods(methods)
    dataset = read_dataset(directory)
    is_sequences = all(record.kind == "sequence" for record in dataset)
    name = recipe or ("poses" if is_sequences else "fast")
    if is_sequences:
        wanted = [method for method in wanted if method.name != UNTRAINED_STREAMS]
    recipes = {m.name: method_recipe(m, recipe=name, overrides=overrides, seed=seed) for m in wanted}
    require_used(overrides, recipes.values())
    dataset = _split(dataset, recipes[wanted[-1].name], seed)
    is_labelled = any(record.events for record in dataset.split(TRAIN))
    kept = [method for method in wanted if is_labelled or not method.needs_labels]
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
            f"{method.title}: left out, no training video has key events."
            for method in wanted
            if method not in kept
        ),
    )


def _split(dataset: Dataset, recipe: Recipe, seed: int) -> Dataset:
    """Return the data set with its own split, or with the one that a run of this recipe would draw."""
    records = records_of_action(dataset, recipe.data.action)
    if not dataset.given_split:
        records = split_dataset(records, recipe.data.held_out, seed)
    splits = {record.split for record in records}
    if HELD_OUT not in splits and "test" in splits:
        records = tuple(replace(r, split=HELD_OUT) if r.split == "test" else r for r in records)
    given = {record.name: record.split for record in records if record.split is not None}
    return replace(dataset, records=records, given_split=given)


def _check_pairs(held_out: Dataset) -> None:
    largest = max(sum(record.action == action for record in held_out) for action in held_out.actions)
    if largest < 2:
        raise DataError(
            f"{held_out.root}: a comparison needs 2 held-out videos of one action, got {largest}. "
            "Add videos, or raise data.held_out."
        )


def _check_overlap(dataset: Dataset, digests: Mapping[str, str]) -> None:
    """Refuse a video or a person that is in the training split and in another one."""
    files = {digests[record.name]: record.name for record in dataset.split(TRAIN)}
    people = {record.person: record.name for record in dataset.split(TRAIN) if record.person}
    for record in dataset:
        if record.split in (TRAIN, None):
            continue
        if digests[record.name] in files:
            reason = f"is the same file as the training video {files[digests[record.name]]!r}"
        elif record.person in people:
            reason = f"shows {record.person}, as does the training video {people[record.person]!r}"
        else:
            continue
        raise DataError(
            f"{dataset.root}: {record.name!r} ({record.split}) {reason}. "
            "Remove one of them, or add --allow-overlap and do not call the result held-out."
        )


def _fingerprint(records: Sequence[VideoRecord], digests: Mapping[str, str]) -> str:
    """Return sixteen hex digits that change with the videos, their labels and their split."""
    facts = [[r.name, r.action, r.split, r.unit, sorted(r.events.items()), digests[r.name]] for r in records]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
