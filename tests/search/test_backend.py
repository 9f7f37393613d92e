"""Other backends find what the exact search finds, and say what they lack."""

import importlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cycleback.errors import EmbeddingError, MissingDependencyError, UserError
from cycleback.search import (
    Filter,
    SearchIndex,
    add_videos,
    backend,
    find,
    hits,
    make_frame_query,
    open_backend,
    remove_videos,
    retag_videos,
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


def count_rows(index: SearchIndex) -> dict[int, int]:
    """Rows of each shard in the table on disk."""
    table = pytest.importorskip("lancedb").connect(str(index.folder / "lance-1")).open_table("frames")
    shards = table.search().select(["shard"]).to_arrow()["shard"].to_numpy()
    return dict(zip(*(part.tolist() for part in np.unique(shards, return_counts=True)), strict=True))


def test_the_table_is_made_once_and_grows_and_shrinks_with_the_index(index: SearchIndex, lance: str) -> None:
    open_backend(lance, index)
    before = count_rows(index)
    assert sum(before.values()) == index.corpus.num_frames and len(before) == 3
    files = {path: path.stat().st_mtime_ns for path in (index.folder / "lance-1").rglob("*.lance")}
    open_backend(lance, index)
    added = walks(["new", "newer"], seed=5)
    add_videos(index.folder, added)
    grown = SearchIndex.load(index.folder)
    query = make_frame_query(grown.corpus, "new", frame=3)
    hit = find(grown.corpus, query, own_video=True, backend=open_backend(lance, grown))[0]
    assert (hit.video, hit.frame) == ("new", 3)
    assert count_rows(index) == {**before, 4: added.num_frames}
    assert {path: path.stat().st_mtime_ns for path in files if path.exists()} == files  # not written again
    open_backend(lance, index)  # opened before the add: it must not take the new rows away
    assert 4 in count_rows(index)
    remove_videos(index.folder, ["new", "newer"])
    open_backend(lance, SearchIndex.load(index.folder))
    assert count_rows(index) == before


TAGGED = (
    Filter(tags={"golfer": "o'neill"}),
    Filter(tags={"golfer": "kim", "day": "1"}),
    Filter(seconds=(0.5, 1.25)),
    Filter(action="golf", seconds=(-1, 0.3), tags={"day": "2"}),
    Filter(action="bowl", between=(0.25, 0.5), names="b[0-3]"),
)


@pytest.mark.parametrize("where", TAGGED)
def test_filters_do_the_same_with_and_without_a_table(index: SearchIndex, lance: str, where: Filter) -> None:
    names = [*index.manifest.videos]
    people = ("kim", "o'neill")
    tags = {name: {"golfer": people[i % 2], "day": str(i % 3)} for i, name in enumerate(names)}
    open_backend(lance, index)
    assert sorted(retag_videos(index.folder, tags)) == sorted(names)
    tagged = SearchIndex.load(index.folder)
    corpus, opened = tagged.corpus, open_backend(lance, tagged)
    query = make_frame_query(corpus, "c3", frame=5)
    options = {"k": 30, "per_video": 3, "apart": 0.2, "where": where}
    expected = find(corpus, query, **options)
    assert find(corpus, query, backend=opened, **options) == expected
    passing = set()  # frames that pass, by the words of the filter
    for video in corpus.videos:
        times = corpus.times(corpus.number(video.name))
        part = (times - times[0]) / (times[-1] - times[0])
        fits = (part >= where.between[0]) & (part <= where.between[1])
        if where.seconds is not None:
            fits &= (times >= where.seconds[0]) & (times <= where.seconds[1])
        is_video = where.action in (None, video.action) and where.tags.items() <= tags[video.name].items()
        passing |= {(video.name, frame) for frame in np.flatnonzero(fits & is_video)}
    assert {(hit.video, hit.frame) for hit in expected} <= passing and expected
    starts = dict(zip(corpus.names, corpus.starts, strict=True))
    rows = opened.nearest_rows(query.vector, 10_000, replace(where, names="*"))
    assert {*rows.tolist()} == {int(starts[name]) + int(frame) for name, frame in passing}


def test_a_damaged_table_is_one_line(index: SearchIndex, lance: str) -> None:
    open_backend(lance, index)
    for path in (index.folder / "lance-1").rglob("*.manifest"):
        path.write_bytes(b"nothing")
    add_videos(index.folder, walks(["new"], seed=5))
    with pytest.raises(EmbeddingError, match=r"cannot use .*lance-1: .*Delete that folder; it is made again"):
        open_backend(lance, SearchIndex.load(index.folder))


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
        def nearest_rows(self, query, count, where):
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
