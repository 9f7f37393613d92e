"""An index grows, shrinks, and is never half-changed."""

import errno
import json
from pathlib import Path

import numpy as np
import pytest

from cycleback.data import VideoRecord
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import DataError, EmbeddingError, OutputExistsError, UserError
from cycleback.search import SearchIndex, add_videos, find, make_frame_query, remove_videos
from cycleback.search.index import select_new
from search.walks import walks


def with_file(path: Path, text: str, *, name: str | None = None, seed: int = 0) -> EmbeddingSet:
    """One video whose file is some text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    rows = np.random.default_rng(seed).normal(size=(9, 4))
    return EmbeddingSet.from_arrays({name or path.stem: rows}, paths={name or path.stem: path}, encoder="enc")


def killed(*_: object) -> None:
    """What a call looks like from outside when the program is stopped in it."""
    raise KeyboardInterrupt


def state(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


def test_an_index_grows_by_a_shard_an_add(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "index"
    assert add_videos(folder, walks(["a", "b"]), run="pretrained").added == ["a", "b"]
    add_videos(folder, walks(["c"], seed=1))
    index = SearchIndex.load(folder)
    assert list(index.manifest.videos) == ["a", "b", "c"]
    assert (index.manifest.shards, index.manifest.run) == (("shard-00001", "shard-00002"), "pretrained")
    np.testing.assert_array_equal(index.corpus.embeddings(2), walks(["c"], seed=1)["c"])
    assert isinstance(index.corpus.shards[0].embeddings.base, np.memmap)


def test_the_same_video_is_left_alone_and_a_changed_file_replaced(tmp_path: Path) -> None:
    folder, file = tmp_path / "index", tmp_path / "swing.mp4"
    add_videos(folder, with_file(file, "one"))
    assert add_videos(folder, with_file(file, "one")).unchanged == ["swing"]
    assert state(folder) == ["manifest.json", "shard-00001"]
    changed = with_file(file, "two", seed=1)
    assert add_videos(folder, changed).replaced == ["swing"]
    assert state(folder) == ["manifest.json", "shard-00002"]
    np.testing.assert_array_equal(SearchIndex.load(folder).corpus.embeddings(0), changed["swing"])


def test_another_video_of_the_same_name_is_refused(tmp_path: Path) -> None:
    folder, first = tmp_path / "index", tmp_path / "a" / "swing.mp4"
    add_videos(folder, with_file(first, "one"))
    other = with_file(tmp_path / "b" / "swing.mp4", "two")
    with pytest.raises(DataError, match=rf"holds another video named 'swing' \({first}\)"):
        add_videos(folder, other)
    assert add_videos(folder, other, replace_others=True).replaced == ["swing"]


def test_a_moved_video_gets_its_new_path(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    add_videos(folder, with_file(tmp_path / "a" / "swing.mp4", "one"))
    add_videos(folder, with_file(tmp_path / "b" / "swing.mp4", "one"))
    assert SearchIndex.load(folder).corpus.videos[0].path == str(tmp_path / "b" / "swing.mp4")


def test_only_new_records_need_embedding(tmp_path: Path) -> None:
    folder, old, new = tmp_path / "index", tmp_path / "old.mp4", tmp_path / "new.mp4"
    add_videos(folder, with_file(old, "one"))
    new.write_text("two")
    records = [VideoRecord(name="old", path=old), VideoRecord(name="new", path=new)]
    assert [record.name for record in select_new(folder, records)] == ["new"]
    assert select_new(tmp_path / "none", records) == records
    with pytest.raises(DataError, match="another video named 'old'"):
        select_new(folder, [VideoRecord(name="old", path=new)])


def test_another_encoder_is_refused_and_nothing_changes(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    add_videos(folder, walks(["a"]), run="runs/golf")
    before = state(folder)
    with pytest.raises(EmbeddingError, match=r"index by enc \(D=4\), the new videos by other \(D=4\)"):
        add_videos(folder, walks(["b"], encoder="other"))
    with pytest.raises(EmbeddingError, match=r"by enc \(D=7\)"):
        add_videos(folder, walks(["b"], size=7))
    assert state(folder) == before


def test_removed_videos_are_not_found_and_empty_shards_go(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    add_videos(folder, walks(["a", "b"]))
    add_videos(folder, walks(["c"], seed=1))
    assert remove_videos(folder, ["c", "a"]) == 1
    assert state(folder) == ["manifest.json", "shard-00001"]
    assert list(SearchIndex.load(folder).corpus.names) == ["b"]
    with pytest.raises(EmbeddingError, match=r"holds no video 'c'\. It has 1 videos"):
        remove_videos(folder, ["c"])


def test_an_index_without_videos_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    add_videos(folder, walks(["a"]))
    remove_videos(folder, ["a"])
    with pytest.raises(EmbeddingError, match=r"holds no videos\. Add some"):
        _ = SearchIndex.load(folder).corpus
    assert add_videos(folder, walks(["a"])).added == ["a"]


@pytest.mark.parametrize("victim", ["embeddings.embedding_set.write_index", "files.replace_folder"])
def test_a_killed_add_leaves_the_index_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, victim: str
) -> None:
    folder = tmp_path / "index"
    add_videos(folder, walks(["a"]))
    monkeypatch.setattr(f"cycleback.{victim}", killed)
    monkeypatch.setattr("cycleback.files.shutil.rmtree", lambda *_, **__: None)
    with pytest.raises(KeyboardInterrupt):
        add_videos(folder, walks(["b"], seed=1))
    monkeypatch.undo()
    assert any(name.startswith(".") for name in state(folder))
    assert list(SearchIndex.load(folder).corpus.names) == ["a"]
    add_videos(folder, walks(["c"], seed=1))
    assert state(folder) == ["manifest.json", "shard-00001", "shard-00002"]


def test_an_add_killed_before_the_manifest_is_cleared_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "index"
    monkeypatch.setattr("cycleback.search.index.Manifest.write", killed)
    with pytest.raises(KeyboardInterrupt):
        add_videos(folder, walks(["a"]))
    monkeypatch.undo()
    with pytest.raises(EmbeddingError, match="no search index in"):
        SearchIndex.load(folder)
    add_videos(folder, walks(["b"]))
    assert state(folder) == ["manifest.json", "shard-00001"]
    assert list(SearchIndex.load(folder).corpus.names) == ["b"]


@pytest.mark.parametrize(
    "victim", ["cycleback.embeddings.embedding_set.write_rows", "cycleback.files.os.replace"]
)
def test_a_full_disk_is_one_line_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, victim: str
) -> None:
    folder = tmp_path / "index"
    add_videos(folder, walks(["a"]))

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(victim, full)
    with pytest.raises(UserError, match=r"cannot write .*: No space left on device"):
        add_videos(folder, walks(["b"], seed=1))
    monkeypatch.undo()
    index = SearchIndex.load(folder)
    assert list(index.manifest.videos) == ["a"]
    assert find(index.corpus, make_frame_query(index.corpus, "a", frame=0), own_video=True)[0].distance == 0


def test_two_programs_cannot_change_an_index_at_once(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    folder = tmp_path / "index"
    add_videos(folder, walks(["a"]))
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(UserError, match="another program is changing"):
            add_videos(folder, walks(["b"]))
    assert add_videos(folder, walks(["b"], seed=1)).added == ["b"]


def test_a_folder_of_other_things_is_never_touched(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("dear")
    with pytest.raises(OutputExistsError, match=r"is not a search index \(it holds 'letters.txt'\)"):
        add_videos(tmp_path, walks(["a"]))
    with pytest.raises(OutputExistsError, match=r"letters.txt is a file"):
        add_videos(tmp_path / "letters.txt", walks(["a"]))
    assert [path.name for path in tmp_path.iterdir()] == ["letters.txt"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "Expecting"),
        ("[]", "not the manifest"),
        ('{"format": "cycleback-search", "version": 9}', "version 9"),
    ],
)
def test_a_damaged_manifest_is_one_line(tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(EmbeddingError, match=reason):
        SearchIndex.load(tmp_path)


def test_the_manifest_keeps_where_the_run_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runs" / "golf").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    add_videos("index", walks(["a"]), run="runs/golf")
    saved = json.loads((tmp_path / "index" / "manifest.json").read_text())
    assert saved["run"] == str(tmp_path / "runs" / "golf")
