"""Other backends find what the exact search finds, and say what they lack."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from cycleback.errors import MissingDependencyError, UserError
from cycleback.search import (
    Filter,
    SearchIndex,
    add_videos,
    backend,
    find,
    hits,
    make_frame_query,
    open_backend,
)
from search.walks import walks


@pytest.fixture
def lance(monkeypatch: pytest.MonkeyPatch) -> str:
    """The LanceDB backend, used however few frames there are."""
    pytest.importorskip("lancedb", reason="lancedb is not installed")
    monkeypatch.setattr(hits, "NARROW_ROWS", 0)
    return "lancedb"


def test_an_exhaustive_search_equals_the_exact_one(index: SearchIndex, lance: str) -> None:
    opened = open_backend(lance, index)
    for frame in (0, 9):
        query = make_frame_query(index.corpus, "b2", frame=frame)
        for where in (Filter(), Filter(action="golf"), Filter(between=(0.2, 0.6))):
            options = {"k": 6, "per_video": 2, "apart": 0.3, "where": where}
            exact = find(index.corpus, query, **options)
            assert find(index.corpus, query, backend=opened, **options) == exact


def test_cells_of_rows_find_nearly_all(tmp_path: Path, lance: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "ALL_ROWS", 1000)
    videos = walks([f"v{number:03d}" for number in range(100)], size=8)
    add_videos(tmp_path / "index", videos)
    index = SearchIndex.load(tmp_path / "index")
    opened, shared = open_backend(lance, index), 0
    for name in list(videos)[:20]:
        query = make_frame_query(index.corpus, name, frame=10)
        found = find(index.corpus, query, k=5, backend=opened)
        shared += len({*found} & {*find(index.corpus, query, k=5)})
        assert len(found) == 5
    assert shared >= 90


def test_the_copy_is_made_once_and_anew_when_the_index_changes(
    index: SearchIndex, lance: str, tmp_path: Path
) -> None:
    pattern = "lance-*"
    open_backend(lance, index)
    (first,) = index.folder.glob(pattern)
    changed = first.stat().st_mtime_ns
    open_backend(lance, index)
    assert first.stat().st_mtime_ns == changed
    add_videos(index.folder, walks(["new"], seed=5))
    grown = SearchIndex.load(index.folder)
    query = make_frame_query(grown.corpus, "new", frame=3)
    hit = find(grown.corpus, query, own_video=True, backend=open_backend(lance, grown))[0]
    assert (hit.video, hit.frame) == ("new", 3)
    assert first not in list(index.folder.glob(pattern))


def test_an_add_of_nothing_new_keeps_the_copy(index: SearchIndex, lance: str, videos) -> None:
    open_backend(lance, index)
    before = sorted(index.folder.iterdir())
    add_videos(index.folder, videos)
    assert sorted(index.folder.iterdir()) == before


def test_a_replaced_video_is_found_anew(index: SearchIndex, lance: str) -> None:
    open_backend(lance, index)
    add_videos(index.folder, walks(["a0"], seed=7))
    changed = SearchIndex.load(index.folder)
    assert list(changed.manifest.videos) == list(index.manifest.videos)
    query = make_frame_query(changed.corpus, "a0", frame=4)
    first = find(changed.corpus, query, own_video=True, backend=open_backend(lance, changed))[0]
    assert (first.video, first.frame, first.distance) == ("a0", 4, 0.0)
    assert changed.manifest.key != index.manifest.key


def test_a_missing_package_is_one_line(index: SearchIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.import_module

    def missing(module: str) -> object:
        if module == "lancedb":
            raise ImportError(module)
        return real(module)

    monkeypatch.setattr("cycleback.errors.import_module", missing)
    with pytest.raises(MissingDependencyError, match=r"needs lancedb: pip install 'cycleback\[search\]'"):
        open_backend("lancedb", index)


def test_a_backend_that_finds_too_little_is_helped_by_the_exact_search(
    index: SearchIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Poor:
        def nearest_rows(self, query, count):
            return np.array([3], dtype=np.int64)

    monkeypatch.setattr(hits, "NARROW_ROWS", 0)
    query = make_frame_query(index.corpus, "b2", frame=4)
    assert find(index.corpus, query, backend=Poor()) == find(index.corpus, query)


def test_an_unknown_backend_is_refused(index: SearchIndex) -> None:
    assert open_backend("exact", index) is None
    with pytest.raises(UserError, match="unknown search backend 'sphinx'; expected exact or lancedb"):
        open_backend("sphinx", index)


def test_an_index_of_the_removed_backend_is_searched_with_the_other(index: SearchIndex, lance: str) -> None:
    old = index.folder / f"faiss-{index.manifest.key}"
    old.write_text("rows")
    with pytest.raises(UserError, match=r"the faiss backend was removed\. Use lancedb"):
        open_backend("faiss", index)
    query = make_frame_query(index.corpus, "b2", frame=4)
    assert find(index.corpus, query, backend=open_backend(lance, index)) == find(index.corpus, query)
    add_videos(index.folder, walks(["new"], seed=5))
    assert not old.exists()
