"""A valid file of every format, the public reader of it, and what must hold of anything that it accepts."""

import csv
import io
import json
import math
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import save_file
from torch import nn

from cycleback.annotations import (
    FORMATS,
    Annotation,
    Event,
    Moment,
    Segment,
    read_annotations,
    write_annotations,
)
from cycleback.corpus import list_corpus
from cycleback.corpus.settings import read_references, read_settings
from cycleback.data import Dataset, VideoRecord, check_dataset, read_dataset, read_labels, write_labels
from cycleback.data.episodes import EPISODES_FILE, read_places
from cycleback.data.folder import read_splits
from cycleback.data.lerobot import read_lerobot
from cycleback.data.pins import Pin, read_pins, write_pins
from cycleback.data.sources import folder_fps, load_sequence
from cycleback.embeddings import EmbeddingSet
from cycleback.embeddings.shards import (
    ManifestRow,
    ShardFacts,
    open_shard,
    read_manifest,
    video_id,
    write_manifest,
    write_shard,
)
from cycleback.exported import ExportedModel, read_model
from cycleback.models import Encoder, SmallBase, fingerprint, load_settings, load_weights, save_encoder
from cycleback.models.pooling_embedders import PooledEmbedder
from cycleback.reading import seal
from cycleback.recipe import load_recipe, recipe_toml
from cycleback.recipe.files import load_saved_recipe
from cycleback.runs import run_split, run_videos
from cycleback.search import SearchIndex, add_videos, read_tags
from cycleback.training import TrainState, read_log
from cycleback.training.held_out import Selected
from cycleback.training.state import load_state, save_state
from cycleback.web.embedded import ProjectEmbeddings
from cycleback.web.jobs import Job, Jobs
from cycleback.web.journal import Journal
from cycleback.web.label_files import read_files
from cycleback.web.labels import _parse
from cycleback.web.pins import _read_entry
from cycleback.web.project import Project
from lerobot_folders import write_lerobot

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Sample:
    """One valid file and how it is read."""

    target: str  # the file that is damaged, below a folder
    write: Callable[[Path], object]  # makes the folder
    read: Callable[[Path], object]  # reads it, and checks what is read against the file
    has_values: bool = True  # whether values in it can be replaced one by one


def _embeddings() -> EmbeddingSet:
    chance = np.random.default_rng(0)
    return EmbeddingSet.from_arrays(
        {"a": chance.normal(size=(5, 3)), "b/c": chance.normal(size=(4, 3))},
        times={"a": np.arange(5) / 10, "b/c": np.arange(4) / 10},
        events={"a": {"top": 2}, "b/c": {"top": 1}},
        paths={"a": "a.mp4"},
        actions={"a": "golf", "b/c": "golf"},
        encoder="abc",
        streams={"motion": 1.0},
    )


def _read_set(folder: Path) -> None:
    saved = EmbeddingSet.load(folder)
    content = json.loads((folder / "index.json").read_text("utf-8-sig"))
    rows, times = np.load(folder / "embeddings.npy"), np.load(folder / "times.npy")
    for video in content["videos"]:
        name, part = video["name"], slice(int(video["start"]), int(video["start"]) + int(video["length"]))
        np.testing.assert_array_equal(saved[name], rows[part])
        np.testing.assert_array_equal(saved.times(name), times[part])
        assert np.isfinite(saved[name]).all() and saved[name].dtype == np.float32
        assert (np.diff(saved.times(name)) >= 0).all() and np.isfinite(saved.times(name)).all()
        assert all(0 <= frame < len(saved[name]) for frame in saved.events(name).values())
        assert set(saved.events(name)) <= set(saved.event_names)
        assert saved.fps(name) is None or 0 < saved.fps(name) < math.inf
        assert saved.phases(name) is None or len(saved.phases(name)) == len(rows[part])
    assert list(saved) == [video["name"] for video in content["videos"]]
    assert saved.num_frames == len(rows)
    assert saved._repr_html_() and repr(saved.subset(list(saved)[:1]))


def _write_index(folder: Path) -> None:
    add_videos(folder, _embeddings(), run="pretrained")


def _read_index(folder: Path) -> None:
    index = SearchIndex.load(folder)
    content = json.loads((folder / "manifest.json").read_text("utf-8-sig"))
    assert list(index.manifest.videos) == [video["name"] for video in content["videos"]]
    assert all("/" not in shard and ".." not in shard for shard in index.manifest.shards)
    corpus = index.corpus
    for number in range(len(corpus.videos)):
        assert np.isfinite(corpus.embeddings(number)).all() and len(corpus.times(number))


def _sequence(folder: Path) -> None:
    chance = np.random.default_rng(1)
    np.savez(folder / "a.npz", features=chance.normal(size=(4, 2)), times=np.arange(4.0), fps=25)
    np.savez(folder / "b.npz", chance.normal(size=(4, 2)))


def _read_sequence(folder: Path) -> None:
    check_dataset(read_dataset(folder), frames_per_video=2)  # never raises, whatever is in the files
    sequence = load_sequence(VideoRecord("a", folder / "a.npz", "sequence"))
    assert np.isfinite(sequence.features).all() and sequence.features.dtype == np.float32
    assert len(sequence.times) == len(sequence.features) > 0 and sequence.features.ndim == 2
    assert (np.diff(sequence.times) > 0).all() and np.isfinite(sequence.times).all()
    with zipfile.ZipFile(folder / "a.npz") as archive:
        names = [name for name in archive.namelist() if name == "features.npy"] or archive.namelist()
        tables = [table for name in names if (table := _load(archive.read(name))) is not None]
        assert any(np.array_equal(sequence.features, table.astype(np.float32)) for table in tables)


def _load(content: bytes) -> Any:
    """Return a two-dimensional array; None for others, which are not needed."""
    try:
        array = np.load(io.BytesIO(content), allow_pickle=False)
    except Exception:
        return None
    return array if array.ndim == 2 and array.dtype.kind in "fiub" else None


def _rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text("utf-8-sig"), newline="")))


def _read_labels(folder: Path) -> None:
    labels = read_labels(folder / "labels.csv")
    for label in labels:
        assert math.isfinite(label.value) and label.video.strip() and label.event.strip()
        assert label.unit == "seconds" or label.value == int(label.value)
    for annotation in read_annotations(folder / "labels.csv", format="csv"):
        _check_annotation(annotation)


def _read_splits(folder: Path) -> None:
    splits = read_splits(folder / "splits.csv")
    assert all(video and split for video, split in splits.items())


def _read_pins(folder: Path) -> None:
    for pin in read_pins(folder):
        assert min(pin.frame_a, pin.frame_b) >= 0 and pin.video_a != pin.video_b


def _read_people(folder: Path) -> None:
    (folder / "a.mp4").touch()
    dataset = read_dataset(folder)
    assert isinstance(dataset, Dataset) and set(dataset.persons) <= {"a"}


def _read_tags(folder: Path) -> None:
    for name, tags in read_tags(folder / "tags.csv", ["a"]).items():
        assert name == "a" and all(key.strip() and value.strip() for key, value in tags.items())


def _annotation(one_video: bool) -> list[Annotation]:
    a = Annotation(
        "a",
        (Event("top", Moment(0.2, 5), 0.5), Event("end", Moment(1.0, 25), None)),
        (
            Segment("up", Moment(0.0, 0), Moment(0.2, 5), None),
            Segment("down", Moment(0.2, 5), Moment(1.0, 25), 0.9),
        ),
        file="a.mp4",
        fps=25.0,
        num_frames=40,
        duration=1.6,
    )
    return (
        [a]
        if one_video
        else [a, Annotation("b", (Event("top", Moment(0.4, 10), 0.25),), (), "b.mp4", 25.0, 30, 1.2)]
    )


def _check_annotation(annotation: Annotation) -> None:
    assert annotation.video and (annotation.fps is None or 0 < annotation.fps < math.inf)
    for label in annotation.labels:
        assert label.name.strip() and (label.confidence is None or 0 <= label.confidence <= 1)
        ends = (label.at,) if isinstance(label, Event) else (label.start, label.end)
        for moment in ends:
            assert moment.seconds is None or math.isfinite(moment.seconds)
            assert moment.frame is None or 0 <= moment.frame < 2**54
        if len(ends) == 2 and ends[0].frame is not None and ends[1].frame is not None:
            assert ends[0].frame <= ends[1].frame


def _read_annotations(folder: Path, name: str) -> None:
    """Read a file; what is accepted survives a way through our own format."""
    found = read_annotations(folder / name)
    for annotation in found:
        _check_annotation(annotation)
    write_annotations(folder / "again.json", found, format="json", overwrite=True)
    assert read_annotations(folder / "again.json") == found
    read_files(name, (folder / name).read_bytes())


def _encoder(seed: int) -> Encoder:
    torch.manual_seed(seed)
    base = SmallBase(width=2)
    return Encoder(base, PooledEmbedder(base.channels), frame_size=(32, 32))


def _read_weights(folder: Path) -> None:
    encoder = _encoder(1)
    load_weights(folder, encoder)
    assert fingerprint(encoder) == fingerprint(_encoder(0)) and load_settings(folder) == {"base": "small"}


def _write_exported(folder: Path) -> None:
    model = ExportedModel(
        folder=folder,
        fingerprint="abc",
        input_kind="images",
        frame_size=(32, 32),
        fit="crop",
        embedding_size=8,
        context_frames=2,
        context_stride=3,
        feature_shape=(8, 2, 2),
        rounds_features=False,
        is_weighed=False,
        standardize=True,
        can_count_frames=False,
        mixes_frames=False,
        vector_size=0,
        velocity=False,
        streams={},
        files={name: 64 * "a" for name in ("base.onnx", "embedder.onnx")},
        parity={"base, 2 frames": 1e-6},
    )
    content = model.to_json()
    del content["checksum"]  # so that changed values are looked at
    (folder / "model.json").write_text(json.dumps(content))


def _read_exported(folder: Path) -> None:
    model = read_model(folder)
    assert model.input_kind in ("images", "vectors") and model.fit in ("stretch", "crop")
    assert all(0 < size <= 4096 for size in model.frame_size) and all(
        size > 0 for size in model.feature_shape
    )
    assert set(model.files) == {"base.onnx", "embedder.onnx"} and not model.streams
    assert 0 < model.embedding_size <= 1 << 20 and model.reach >= 0
    assert all(math.isfinite(value) for value in model.parity.values())


def _layer(seed: int) -> nn.Linear:
    torch.manual_seed(seed)
    return nn.Linear(4, 3)


STATE = TrainState(7, 1.5, Selected(4, 0.25, 1))


def _read_state(folder: Path) -> None:
    layer = _layer(1)
    assert load_state(folder, {"encoder": layer}, device=CPU) == STATE
    assert torch.equal(layer.weight, _layer(0).weight)


def _write_run(folder: Path) -> None:
    split = {"train": ["a", "b"], "held_out": ["c"], "folder": str(folder)}
    (folder / "videos.json").write_text(json.dumps(split))
    (folder / "recipe.toml").write_text(recipe_toml(load_recipe()))
    lines = [{"step": n, "loss": 0.5 / n, "seconds": 1.5} for n in (1, 2, 3)]
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def _read_videos(folder: Path) -> None:
    split = run_split(folder)
    run_videos(folder)
    content = json.loads((folder / "videos.json").read_text("utf-8-sig"))
    assert split == {part: content[part] for part in ("train", "held_out")}


def _read_log(folder: Path) -> None:
    read = read_log(folder)
    whole = (folder / "log.jsonl").read_text("utf-8-sig").split("\n")[:-1]
    assert json.dumps(read) == json.dumps([json.loads(line) for line in whole])
    assert all(type(record["step"]) is not bool and record["step"] == int(record["step"]) for record in read)


def _read_recipe(folder: Path) -> None:
    for recipe in (load_recipe(folder / "recipe.toml"), load_saved_recipe(folder / "recipe.toml")):
        (folder / "again.toml").write_text(recipe_toml(recipe))
        assert load_recipe(folder / "again.toml") == recipe


def _write_journal(folder: Path) -> None:
    journal = Journal(folder)
    journal.append("pins", {"pins": [["a", 1, "b", 2]], "before": 0, "file": [1, 2]}, 0)
    journal.append("labels", {"key": "k" * 8, "action": {"type": "skip", "video": "a"}}, 0)
    action = {"type": "accept", "video": "a", "events": {"top": 3}, "segments": []}
    journal.append("labels", {"key": "l" * 8, "action": action}, 1)


def _read_journal(folder: Path) -> None:
    journal = Journal(folder)
    for entry in journal.entries("pins"):
        pins, before = _read_entry(entry)
        assert all(isinstance(pin, Pin) and min(pin.frame_a, pin.frame_b) >= 0 for pin in pins)
        assert before is None or before >= 0
    for entry in journal.entries("labels"):
        assert entry.revision >= 1 and _parse(entry.value, entry.revision).type


def _write_project(folder: Path) -> None:
    (folder / "a.mp4").touch()
    (folder / "b").mkdir(exist_ok=True)
    (folder / "b" / "c.mp4").touch()
    project = Project.open(folder)
    ProjectEmbeddings(project).store(_embeddings())
    (folder / ".cycleback/jobs").mkdir()
    job = Job("1", "fit", "fit-1", "done", curve=[(1, 0.5, 0.25)], similarity=[[1, 2]])
    (folder / ".cycleback/jobs/1.json").write_text(json.dumps(asdict(job)))


def _read_project(folder: Path) -> None:
    saved = ProjectEmbeddings(Project(folder)).open()
    assert all(type(part) is int for stamp in saved.stamps.values() for part in stamp)
    assert saved.run and set(saved.videos) == {"a", "b/c"}


def _read_jobs(folder: Path) -> None:
    for job in Jobs(Project(folder)).all:
        assert (job.id == "1" and "/" not in job.run.removeprefix("/")) or job.kind == "quick"
        assert job.state in ("done", "failed", "cancelled") and math.isfinite(job.started)


def _write_lerobot(folder: Path, version: str) -> None:
    shutil.rmtree(folder)
    write_lerobot(folder, (3, 4), version=version)


def _read_lerobot(folder: Path) -> None:
    dataset = read_lerobot(folder)
    assert 0 < dataset.fps < math.inf and dataset.episodes
    for episode in dataset.episodes:
        assert episode.num_frames > 0 <= episode.first_index and episode.index >= 0
        states = dataset.read_column(episode)
        assert len(states) == episode.num_frames and np.isfinite(states).all()
        for path in (episode.table, *(video.path for video in episode.videos.values())):
            assert path.is_relative_to(folder)


def _write_places(folder: Path) -> None:
    text = "video,episode_index,first_index,frames\na,0,0,3\nb/c,1,3,12\n"
    (folder / EPISODES_FILE).write_text(text)


def _read_places(folder: Path) -> None:
    for place in read_places(folder).values():
        assert min(place.episode, place.first_index, place.num_frames) >= 0
        assert max(place.episode, place.first_index, place.num_frames) < 2**63


def _write_corpus(folder: Path) -> None:
    facts = ShardFacts("cup/a", "cup", "/v/cup/a.mp4", 25.0, {"top": 2}, "abc", True, "10/7", "cut short")
    shard = write_shard(folder, facts, np.random.default_rng(0).normal(size=(5, 3)), np.arange(5) / 25)
    shard.path.rename(folder / "a.safetensors")
    write_manifest(folder, [ManifestRow(facts.id, facts.name, "cup", "", 5, 3, 9, shard.digest, 0.5)] * 2)
    settings = {"run": "pretrained", "encoder": "abc", "precision": "float32", "device": "cpu", "seed": 0}
    more = {"can_count_frames": False, "streams": {"motion": 1.0}, "sample": [facts.id]}
    head = {"format": "cycleback-corpus", "version": 1}
    (folder / "recipe.json").write_text(json.dumps(seal({**head, **settings, **more})))
    save_file({"00": np.ones((4, 3), np.float32)}, folder / "references.safetensors")
    (folder / "list.txt").write_text("# videos\na.mp4\nhttp://127.0.0.1/b.mp4\n")
    with tarfile.open(folder / "x.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("a.mp4"), io.BytesIO())


def _read_shard(folder: Path) -> None:
    shard = open_shard(folder / "a.safetensors").check()
    assert shard.facts.events == {"top": 2} and shard.embeddings.shape == (5, 3) and len(shard.times) == 5


def _read_manifest(folder: Path) -> None:
    for row in read_manifest(folder):
        assert row.id == video_id(row.name) and min(row.frames, row.size, row.bytes) >= 0


def _read_settings(folder: Path) -> None:
    settings = read_settings(folder)
    assert settings.precision in ("float32", "bfloat16")
    assert all(0 <= weight < math.inf for weight in settings.streams.values())


def _read_references(folder: Path) -> None:
    assert all(rows.ndim == 2 and np.isfinite(rows).all() for rows in read_references(folder))


def _list_corpus(path: Path) -> None:
    items = list_corpus(path)
    assert len({item.id for item in items}) == len(items) > 0
    for item in items:
        assert item.offset >= 0 and item.size >= 0


def _corpus_samples() -> Mapping[str, Sample]:
    return {
        "corpus: shard": Sample("a.safetensors", _write_corpus, _read_shard, False),
        "corpus: manifest": Sample("manifest.jsonl", _write_corpus, _read_manifest),
        "corpus: recipe": Sample("recipe.json", _write_corpus, _read_settings),
        "corpus: references": Sample("references.safetensors", _write_corpus, _read_references, False),
        "corpus: list": Sample("list.txt", _write_corpus, lambda f: _list_corpus(f / "list.txt"), False),
        "corpus: archive": Sample("x.tar", _write_corpus, lambda f: _list_corpus(f / "x.tar"), False),
    }


def _samples() -> Mapping[str, Sample]:
    samples = {
        f"set: {name}": Sample(name, lambda folder: _embeddings().save(folder, overwrite=True), _read_set)
        for name in ("index.json", "embeddings.npy", "times.npy")
    }
    for name in ("manifest.json", "shard-00001/index.json", "shard-00001/embeddings.npy"):
        samples[f"search: {name}"] = Sample(name, _write_index, _read_index)
    samples["exported model"] = Sample("model.json", _write_exported, _read_exported)
    samples["sequence"] = Sample("a.npz", _sequence, _read_sequence)
    labels = {"a": {"top": 3, "end": 9}, "b": {"top": 4}}
    samples["labels"] = Sample("labels.csv", lambda f: write_labels(f / "labels.csv", labels), _read_labels)
    text = "video,split\na,train\nb/c,val\n"
    samples["splits"] = Sample("splits.csv", lambda f: (f / "splits.csv").write_text(text), _read_splits)
    people = "video,person\na,kim\n"
    tags = "video,golfer,day\na,kim,1\n"
    samples["tags"] = Sample("tags.csv", lambda f: (f / "tags.csv").write_text(tags), _read_tags)
    samples["people"] = Sample("people.csv", lambda f: (f / "people.csv").write_text(people), _read_people)
    pins = [Pin("a", 1, "b", 2), Pin("a", 3, "b", 5)]
    samples["pins"] = Sample("pins.csv", lambda f: write_pins(f, pins), _read_pins)
    samples["episodes"] = Sample(EPISODES_FILE, _write_places, _read_places)
    samples["fps"] = Sample("fps.txt", lambda f: (f / "fps.txt").write_text("25\n"), _read_fps)
    for format, each in FORMATS.items():
        samples[f"annotations: {format}"] = _annotation_sample(format, f"a{each.suffixes[0]}", each.one_video)
    for name, read in (
        ("videos.json", _read_videos),
        ("log.jsonl", _read_log),
        ("recipe.toml", _read_recipe),
    ):
        samples[f"run: {name}"] = Sample(name, _write_run, read)
    samples["run: encoder.safetensors"] = Sample(
        "encoder.safetensors", lambda f: save_encoder(f, _encoder(0), {"base": "small"}), _read_weights, False
    )
    samples["run: state.pt"] = Sample(
        "state.pt", lambda f: save_state(f, STATE, {"encoder": _layer(0)}), _read_state, False
    )
    for version, names in {
        "v2.1": ("meta/info.json", "meta/episodes.jsonl", "data/chunk-000/episode_000001.parquet"),
        "v3.0": ("meta/info.json", "meta/episodes/chunk-000/file-000.parquet"),
    }.items():
        for name in names:
            samples[f"lerobot {version}: {name}"] = Sample(
                name,
                lambda f, version=version: _write_lerobot(f, version),
                _read_lerobot,
                not name.endswith(".parquet"),
            )
    samples["studio: journal"] = Sample("journal.jsonl", _write_journal, _read_journal)
    for name in ("pretrained.json", "in-use"):
        samples[f"studio: {name}"] = Sample(f".cycleback/embeddings/{name}", _write_project, _read_project)
    samples |= _corpus_samples()
    samples["studio: job"] = Sample(".cycleback/jobs/1.json", _write_project, _read_jobs)
    return samples


def _read_fps(folder: Path) -> None:
    assert 0 < folder_fps(folder) < math.inf


def _annotation_sample(format: str, name: str, one_video: bool) -> Sample:
    return Sample(
        name,
        lambda folder: write_annotations(folder / name, _annotation(one_video), format=format),
        lambda folder: _read_annotations(folder, name),
    )


SAMPLES = _samples()
