"""A corpus is embedded once, whatever the order, the number of workers and the faults on the way."""

import json
import os
import shutil
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from corpora import read_bytes, read_shards, write_run
from cycleback.corpus import embed_corpus, list_corpus
from cycleback.corpus.run import choose_pass, cut_passes, pack_corpus
from cycleback.corpus.settings import choose_sample, prepare_settings, read_settings
from cycleback.corpus.sources import Item
from cycleback.corpus.worker import MAX_DEATHS, Worker, clear_notes
from cycleback.embeddings.shards import open_shard, read_manifest, shard_path
from cycleback.errors import CheckpointError, EmbeddingError, OutputExistsError, UserError
from cycleback.files import hold_lock
from cycleback.models import fingerprint
from cycleback.runs import embed_videos, load_encoder
from moving_clips import make_clips


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five clips, of which one is no video, and a run."""
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "videos").mkdir()
    make_clips(folder / "videos", 4)
    (folder / "videos" / "broken.mp4").write_bytes(b"no video")
    write_run(folder / "run")
    return folder


@pytest.fixture(scope="module")
def embedded(corpus: Path) -> Path:
    """The corpus, embedded by two processes."""
    report = embed_corpus(
        corpus / "videos", corpus / "out", run=corpus / "run", workers=2, cache=corpus / "cache"
    )
    assert (report.new, len(report.failed)) == (4, 1)
    return corpus / "out"


def prepare(corpus: Path, output: Path, items: list[Item] | None = None, *, seed: int = 0) -> Worker:
    found = items or list_corpus(corpus / "videos")
    clear_notes(output)
    prepare_settings(
        output,
        found,
        run=str(corpus / "run"),
        device="cpu",
        precision=None,
        seed=seed,
        cache=corpus / "cache",
    )
    return Worker(output, cache=corpus / "cache")


def test_the_shards_hold_what_a_plain_embedding_holds(corpus: Path, embedded: Path) -> None:
    settings = read_settings(embedded)
    usable = [item.location for item in list_corpus(corpus / "videos") if item.name != "broken"]
    plain = embed_videos(
        load_encoder(corpus / "run"), usable, streams=settings.streams, cache=corpus / "cache"
    )
    packed = pack_corpus(embedded, corpus / "set")
    assert set(packed.names) == set(plain.names) and not packed.mirrored
    for name in plain:
        np.testing.assert_array_equal(packed[name], plain[name])
        np.testing.assert_array_equal(packed.times(name), plain.times(name))
    assert packed.streams == plain.streams and packed.encoder == plain.encoder
    encoder = load_encoder(corpus / "run")
    assert (
        settings.encoder
        == fingerprint(encoder)
        == open_shard(next(embedded.rglob("*/*/*.safetensors"))).facts.encoder
    )


def test_the_manifest_lists_every_video_and_the_error_of_the_broken_one(embedded: Path) -> None:
    rows = {row.name: row for row in read_manifest(embedded)}
    assert list(rows) == ["broken", "clip-0", "clip-1", "clip-2", "clip-3"]
    assert "is not a video" in rows["broken"].error and rows["broken"].frames == 0
    for name in list(rows)[1:]:
        shard = open_shard(shard_path(embedded, rows[name].id)).check()
        assert (
            (rows[name].frames, rows[name].size) == shard.embeddings.shape == (24, shard.embeddings.shape[1])
        )
        assert rows[name].digest == shard.digest and rows[name].seconds > 0


def test_a_second_run_does_nothing_twice(corpus: Path, embedded: Path) -> None:
    before, rows = read_shards(embedded), list(read_manifest(embedded))
    words: list[tuple[int, int, str]] = []
    report = embed_corpus(
        corpus / "videos",
        embedded,
        run=corpus / "run",
        workers=1,
        cache=corpus / "cache",
        progress=lambda *about: words.append(about),
    )
    assert report.new == 0 and read_shards(embedded) == before
    assert words[0][:2] == (4, 5) and words[-1][:2] == (5, 5) and "1 failed" in words[-1][2]
    again = list(read_manifest(embedded))
    assert [row.seconds for row in again[1:]] == [row.seconds for row in rows[1:]]


def test_neither_order_nor_passes_nor_the_start_change_a_byte(
    corpus: Path, embedded: Path, tmp_path: Path
) -> None:
    items = list_corpus(corpus / "videos")[::-1]
    worker = prepare(corpus, tmp_path / "out", items)
    for item in items:
        worker([item])
    assert read_bytes(tmp_path / "out") == read_bytes(embedded)
    assert (tmp_path / "out" / "recipe.json").read_text() == (embedded / "recipe.json").read_text()


def test_damaged_lost_and_replaced_videos_are_embedded_again(
    corpus: Path, embedded: Path, tmp_path: Path
) -> None:
    shutil.copytree(embedded, tmp_path / "out")
    shutil.copytree(corpus / "videos", tmp_path / "videos")
    expected, items = read_bytes(embedded), {item.name: item for item in list_corpus(tmp_path / "videos")}
    lost, damaged = (shard_path(tmp_path / "out", items[name].id) for name in ("clip-0", "clip-1"))
    lost.unlink()
    damaged.write_bytes(damaged.read_bytes()[:-40])
    shutil.copy(tmp_path / "videos" / "clip-3.mp4", tmp_path / "videos" / "clip-2.mp4")
    report = embed_corpus(
        tmp_path / "videos", tmp_path / "out", run=corpus / "run", workers=1, cache=corpus / "cache"
    )
    assert report.new == 3
    found = read_bytes(tmp_path / "out")
    same = [name for name in expected if name != f"{items['clip-2'].id}.safetensors"]
    assert {
        name: open_shard(shard_path(tmp_path / "out", name[:24])).embeddings.tobytes() for name in same
    } == {name: open_shard(shard_path(embedded, name[:24])).embeddings.tobytes() for name in same}
    copied, original = (open_shard(shard_path(tmp_path / "out", items[n].id)) for n in ("clip-2", "clip-3"))
    np.testing.assert_array_equal(copied.embeddings, original.embeddings)
    assert len(found) == len(expected)


def test_a_killed_worker_is_replaced(corpus: Path, embedded: Path, tmp_path: Path) -> None:
    """Kill worker processes by their number of the parent while they work."""
    killed: list[int] = []
    stop = threading.Event()

    def kill_children() -> None:
        while not stop.wait(0.05) and len(killed) < 2:
            for line in Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split():
                command = Path(f"/proc/{line}/cmdline").read_bytes()
                notes = list((tmp_path / "out" / "working").glob("*"))
                if b"spawn_main" in command and notes:
                    os.kill(int(line), signal.SIGKILL)
                    killed.append(int(line))
                    time.sleep(0.5)
                    break

    if not Path("/proc/self/task").is_dir():
        pytest.skip("needs /proc to find worker processes")
    killer = threading.Thread(target=kill_children)
    killer.start()
    try:
        report = embed_corpus(
            corpus / "videos", tmp_path / "out", run=corpus / "run", workers=1, cache=tmp_path / "cache"
        )
    finally:
        stop.set()
        killer.join()
    assert report.new == 4 and len(report.failed) == 1
    assert read_bytes(tmp_path / "out") == read_bytes(embedded)
    assert not list((tmp_path / "out" / "working").iterdir())


def test_a_video_that_ends_its_workers_is_given_up(corpus: Path, tmp_path: Path) -> None:
    worker = prepare(corpus, tmp_path)
    items = [item for item in list_corpus(corpus / "videos") if item.name != "broken"]
    (tmp_path / "working" / items[1].id).write_text("x" * MAX_DEATHS)
    (tmp_path / "working" / items[2].id).write_text("x" * (MAX_DEATHS - 1))
    rows = worker(items)
    assert [bool(row.error) for row in rows] == [False, True, False, False]
    assert f"ended its worker {MAX_DEATHS} times" in rows[1].error
    assert [row.id for row in worker(items)] == [item.id for item in items]


def test_a_fault_of_the_disk_is_no_fault_of_a_video(corpus: Path, tmp_path: Path) -> None:
    worker = prepare(corpus, tmp_path)
    item = list_corpus(corpus / "videos")[1]
    (tmp_path / "shards").mkdir()
    (tmp_path / "shards" / item.id[:2]).write_text("a file where a folder is needed")
    with pytest.raises(UserError, match="cannot write"):
        worker([item])


def test_the_sample_depends_on_names_and_seed_alone() -> None:
    items = [Item(f"video {number}", "file", "") for number in range(200)]
    chosen = choose_sample(items, seed=1, count=24)
    assert choose_sample(items[::-1], seed=1, count=24) == chosen != choose_sample(items, seed=2, count=24)
    kept = [item for item in items if item not in chosen[12:]]
    assert choose_sample(kept, seed=1, count=12) == chosen[:12]


def test_a_corpus_keeps_its_encoder(corpus: Path, embedded: Path, tmp_path: Path) -> None:
    with pytest.raises(EmbeddingError, match="begun with the run"):
        embed_corpus(corpus / "videos", embedded, run="pretrained", cache=corpus / "cache")
    with pytest.raises(EmbeddingError, match="begun with the precision float32"):
        embed_corpus(corpus / "videos", embedded, run=corpus / "run", precision="bfloat16")
    shutil.copytree(embedded, tmp_path / "out")
    content = json.loads((tmp_path / "out" / "recipe.json").read_text())
    content["encoder"] = "0" * 16
    del content["checksum"]
    (tmp_path / "out" / "recipe.json").write_text(json.dumps(content))
    with pytest.raises(CheckpointError, match="another one"):
        Worker(tmp_path / "out")


def test_foreign_folders_and_second_runs_are_refused(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").touch()
    with pytest.raises(OutputExistsError, match="it is no corpus"):
        embed_corpus(corpus / "videos", tmp_path / "other", run=corpus / "run")
    (tmp_path / "out").mkdir()
    with hold_lock(tmp_path / "out"), pytest.raises(UserError, match="another run embeds"):
        embed_corpus(corpus / "videos", tmp_path / "out", run=corpus / "run")


def test_passes_cover_the_corpus_and_stay_few() -> None:
    items = [Item(str(number), "file", "") for number in range(1000)]
    for workers in (1, 7, 2000):
        passes = cut_passes(items, workers=workers)
        assert [item for each in passes for item in each] == items
        assert len(passes) >= min(4 * workers, 63)
    assert choose_pass(10_000_000, workers=8) == 500
