"""An index made of an embedded corpus, whose files are those that docs/scale.md describes."""

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from cycleback.corpus.settings import Settings
from cycleback.embeddings import EmbeddingSet
from cycleback.embeddings.shards import ManifestRow, ShardFacts, video_id, write_manifest, write_shard
from cycleback.errors import DataError, EmbeddingError
from cycleback.files import write_json
from cycleback.reading import seal
from cycleback.search import SearchIndex, add_corpus, add_videos, find, make_frame_query
from search.walks import walks

STREAMS = {"motion": 1.0, "pose": 0.25}


def write_corpus(folder: Path, videos: EmbeddingSet) -> Path:
    """Write a corpus by hand, with a line of a video that failed."""
    settings = asdict(Settings("pretrained", "enc", "float32", "cpu", 0, streams=STREAMS))
    folder.mkdir(exist_ok=True)
    content = {"format": "cycleback-corpus", "version": 1, **settings, "sample": []}
    write_json(folder / "recipe.json", seal(content), overwrite=True)
    rows = [ManifestRow(video_id("bad"), "bad", error="it cannot be decoded")]
    for name in videos:
        facts = ShardFacts(name, videos.action(name), f"/videos/{name}.mp4", encoder="enc")
        rows.append(write_shard(folder, facts, videos[name], videos.times(name)).row())
    write_manifest(folder, rows)
    return folder


def test_an_index_of_a_corpus_finds_what_an_index_of_the_set_finds(
    tmp_path: Path, videos: EmbeddingSet
) -> None:
    counts: list[tuple[int, int]] = []
    corpus = write_corpus(tmp_path / "corpus", videos)
    changes = add_corpus(tmp_path / "index", corpus, progress=lambda *n: counts.append(n))
    assert changes.added == list(videos) and counts[-1] == (len(videos), len(videos))
    index = SearchIndex.load(tmp_path / "index")
    assert index.manifest.run == "pretrained" and index.corpus.streams == STREAMS
    assert not index.corpus.as_filmed
    add_videos(tmp_path / "other", videos)
    other = SearchIndex.load(tmp_path / "other").corpus
    query = make_frame_query(other, "b2", frame=7)
    found = find(index.corpus, query, k=30, per_video=2)
    assert [replace(hit, path=None) for hit in found] == find(other, query, k=30, per_video=2)
    assert found[0].path == Path(f"/videos/{found[0].video}.mp4")


def test_only_what_is_new_in_a_grown_corpus_is_added(tmp_path: Path, videos: EmbeddingSet) -> None:
    names = list(videos)
    add_corpus(tmp_path / "index", write_corpus(tmp_path / "corpus", videos.subset(names[:4])))
    changes = add_corpus(tmp_path / "index", write_corpus(tmp_path / "corpus", videos))
    assert (changes.unchanged, changes.added) == (names[:4], names[4:])
    index = SearchIndex.load(tmp_path / "index")
    assert [len(shard.videos) for shard in index.corpus.shards] == [4, len(names) - 4]
    changed = write_corpus(tmp_path / "corpus", walks(names, seed=3))  # the same files, embedded anew
    assert add_corpus(tmp_path / "index", changed).replaced == names


def test_a_corpus_of_another_encoder_or_with_damage_leaves_the_index_as_it_was(
    tmp_path: Path, videos: EmbeddingSet
) -> None:
    corpus = write_corpus(tmp_path / "corpus", videos)
    add_videos(tmp_path / "index", walks(["z"], encoder="other"))
    before = SearchIndex.load(tmp_path / "index").manifest
    with pytest.raises(EmbeddingError, match="different encoders cannot be compared"):
        add_corpus(tmp_path / "index", corpus)
    shard = next(corpus.rglob("*.safetensors"))
    content = bytearray(shard.read_bytes())
    content[-3] ^= 1
    shard.write_bytes(content)
    with pytest.raises(EmbeddingError, match="changed or damaged"):
        add_corpus(tmp_path / "new", corpus)
    assert not (tmp_path / "new").exists()
    assert SearchIndex.load(tmp_path / "index").manifest == before
    with pytest.raises((EmbeddingError, DataError), match=r"recipe\.json"):
        add_corpus(tmp_path / "new", tmp_path)
