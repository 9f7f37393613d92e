"""Shards and manifests, compared with the safetensors library and with plain embedding sets."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from cycleback.embeddings import EmbeddingSet
from cycleback.embeddings.shards import (
    MANIFEST,
    ManifestRow,
    ShardFacts,
    find_shard,
    open_shard,
    pack_shards,
    read_manifest,
    shard_path,
    write_manifest,
    write_shard,
)
from cycleback.errors import EmbeddingError

CHANCE = np.random.default_rng(3)
VIDEOS = {
    "cup/a": ShardFacts("cup/a", "cup", "/v/cup/a.mp4", 25.0, {"top": 2}, "abc", True, "10/7"),
    "ü b": ShardFacts("ü b", "", "s3://x/ü b.mp4", 30.0, {}, "abc", False, "11/8", "cut short"),
}
ROWS = {
    n: CHANCE.normal(size=(length, 3)).astype(np.float32) for n, length in zip(VIDEOS, (5, 4), strict=True)
}
TIMES = {name: np.arange(len(rows)) / VIDEOS[name].fps for name, rows in ROWS.items()}


def write_corpus(folder: Path) -> list[ManifestRow]:
    rows = [write_shard(folder, VIDEOS[n], ROWS[n], TIMES[n]).row(seconds=0.5) for n in VIDEOS]
    broken = ManifestRow("0", "broken", error="it is not a video")
    rows.append(replace(broken, id=ShardFacts("broken").id))
    write_manifest(folder, rows)
    return rows


def test_a_shard_is_a_safetensors_file_that_tells_all(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    for name, facts in VIDEOS.items():
        path = shard_path(tmp_path, facts.id)
        arrays = load_file(path)
        np.testing.assert_array_equal(arrays["embeddings"], ROWS[name])
        np.testing.assert_array_equal(arrays["times"], TIMES[name])
        shard = open_shard(path).check()
        assert shard.facts == facts
        assert isinstance(shard.embeddings, np.memmap)
        np.testing.assert_array_equal(shard.embeddings, ROWS[name])
        np.testing.assert_array_equal(shard.times, TIMES[name])


def test_the_same_video_gives_the_same_bytes(tmp_path: Path) -> None:
    for folder in (tmp_path / "one", tmp_path / "two"):
        write_corpus(folder)
    for facts in VIDEOS.values():
        one, two = (shard_path(tmp_path / n, facts.id).read_bytes() for n in ("one", "two"))
        assert one == two


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path) -> None:
    rows = write_corpus(tmp_path)
    assert list(read_manifest(tmp_path)) == rows
    assert rows[0].frames == 5 and rows[0].size == 3
    assert rows[0].bytes == shard_path(tmp_path, rows[0].id).stat().st_size


def test_any_changed_byte_of_a_shard_is_found(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    path = shard_path(tmp_path, VIDEOS["cup/a"].id)
    whole = path.read_bytes()
    missed = []
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        try:
            shard = open_shard(path).check()
        except EmbeddingError:
            continue
        is_equal = shard.facts == VIDEOS["cup/a"] and np.array_equal(shard.embeddings, ROWS["cup/a"])
        missed += [] if is_equal else [place]
    assert not missed
    for length in (0, 7, 100, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(EmbeddingError):
            open_shard(path)
        assert find_shard(tmp_path, "cup/a", stamp="10/7") is None


def test_a_shard_of_another_file_is_not_found(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    assert find_shard(tmp_path, "cup/a", stamp="10/7") is not None
    assert find_shard(tmp_path, "cup/a", stamp="10/8") is None
    assert find_shard(tmp_path, "cup/b", stamp="10/7") is None


def test_a_packed_corpus_is_the_set_of_its_videos(tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus")
    packed = pack_shards(tmp_path / "corpus", tmp_path / "set", streams={"motion": 1.0})
    expected = EmbeddingSet.from_arrays(
        ROWS,
        times=TIMES,
        events={name: facts.events for name, facts in VIDEOS.items()},
        actions={name: facts.action for name, facts in VIDEOS.items()},
        paths={name: facts.path for name, facts in VIDEOS.items()},
        fps={name: facts.fps for name, facts in VIDEOS.items()},
        encoder="abc",
        streams={"motion": 1.0},
        mirrored=["cup/a"],
    )
    expected.save(tmp_path / "expected")
    for file in ("embeddings.npy", "times.npy"):
        one, two = ((tmp_path / n / file).read_bytes() for n in ("set", "expected"))
        assert one == two
    index, other = (json.loads((tmp_path / n / "index.json").read_text()) for n in ("set", "expected"))
    assert index == other
    assert packed.mirrored == ("cup/a",)


def test_a_set_is_not_packed_from_a_manifest_of_other_shards(tmp_path: Path) -> None:
    rows = write_corpus(tmp_path / "corpus")
    write_manifest(tmp_path / "corpus", [replace(rows[0], digest="0" * 64)])
    with pytest.raises(EmbeddingError, match="not the one that the manifest names"):
        pack_shards(tmp_path / "corpus", tmp_path / "set")
    write_manifest(tmp_path / "corpus", rows[2:])
    with pytest.raises(EmbeddingError, match="every video failed"):
        pack_shards(tmp_path / "corpus", tmp_path / "set")
    (tmp_path / "corpus" / MANIFEST).unlink()
    with pytest.raises(EmbeddingError, match="no corpus in"):
        pack_shards(tmp_path / "corpus", tmp_path / "set")
    assert not (tmp_path / "set").exists()
