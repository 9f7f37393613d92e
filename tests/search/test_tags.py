"""Tags of videos, from tables and from words."""

from pathlib import Path

import pytest

from cycleback.data import read_dataset
from cycleback.errors import DataError, EmbeddingError, UserError
from cycleback.search import Filter, SearchIndex, find, make_frame_query, parse_tags, read_tags, retag_videos
from cycleback.search.tags import collect_tags


def test_a_table_gives_each_video_its_tags_and_empty_cells_give_none(tmp_path: Path) -> None:
    table = tmp_path / "tags.csv"
    table.write_text("Video;Golfer;Day\nmonday/a.mp4; kim ;1\nb;;2\n")
    assert read_tags(table, ["monday/a", "b", "c"]) == {
        "monday/a": {"golfer": "kim", "day": "1"},
        "b": {"day": "2"},
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,golfer\na,kim\n", "no column 'video'"),
        ("video,golfer\nab,kim\n", r"line 2: there is no video 'ab'\. Did you mean 'abc'\?"),
        ("video,golfer\nabc,kim\nabc.mp4,lee\n", r"line 3: a second row of 'abc'; expected one per video"),
    ],
)
def test_a_wrong_table_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "tags.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        read_tags(tmp_path / "tags.csv", ["abc", "xyz"])


def test_words_are_tags() -> None:
    assert parse_tags(["Golfer=o'neill", "day = a=b"]) == {"golfer": "o'neill", "day": "a=b"}
    for words, message in (
        (["kim"], "'kim' is not a tag; expected KEY=VALUE"),
        (["a=1", "A=2"], "given twice"),
    ):
        with pytest.raises(UserError, match=message):
            parse_tags(words)


def test_a_folder_has_its_people_and_its_tags(tmp_path: Path) -> None:
    for name in ("a.mp4", "b.mp4", "c.mp4"):
        (tmp_path / name).touch()
    (tmp_path / "people.csv").write_text("video,person\na,kim\nb,lee\n")
    (tmp_path / "tags.csv").write_text("video,day\nb,1\n")
    records = read_dataset(tmp_path).records
    expected = {"a": {"person": "kim"}, "b": {"person": "lee", "day": "1"}}
    assert collect_tags(tmp_path, records) == expected
    assert collect_tags([tmp_path / "a.mp4"], records[2:]) == {}


def test_tags_of_an_index_change_and_unknown_ones_are_named(index: SearchIndex) -> None:
    assert sorted(
        retag_videos(index.folder, {"b2": {"day": "1"}, "c0": {"day": "2"}, "no": {"day": "3"}})
    ) == [
        "b2",
        "c0",
    ]
    assert retag_videos(index.folder, {"b2": {"day": "1"}}) == []
    corpus = SearchIndex.load(index.folder).corpus
    query = make_frame_query(corpus, "a0", frame=3)
    assert [hit.video for hit in find(corpus, query, where=Filter(tags={"day": "1"}))] == ["b2"]
    with pytest.raises(EmbeddingError, match=r"no video with the tag day=3 \(tags day: 1, 2\)"):
        find(corpus, query, where=Filter(tags={"day": "3"}))
    with pytest.raises(EmbeddingError, match=r"no video with the tag golfer=kim \(no video has it\)"):
        find(corpus, query, where=Filter(tags={"golfer": "kim"}))
