"""add, query, info and remove: on a trained run, on no run at all, and on what users get wrong."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cycleback.embeddings import EmbeddingSet
from cycleback.reading import seal
from cycleback.video import probe, read_frames


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, rendered: Path, run_folder: Path, cache: Path) -> Path:
    """An index of four of the five rendered videos."""
    from cycleback.cli.main import main

    index = tmp_path_factory.mktemp("search") / "pouring.index"
    videos = [str(rendered / f"pouring_00{number}.mp4") for number in range(4)]
    assert main(["search", "add", str(index), *videos, "--run", str(run_folder)]) == 0
    return index


@pytest.fixture
def index(made: Path, tmp_path: Path) -> Path:
    """A copy a test may change."""
    return Path(shutil.copytree(made, tmp_path / "copy.index"))


def test_info_lists_the_videos_and_the_run(command, made: Path, run_folder: Path) -> None:
    facts = json.loads(command("search", "info", made, "--json").out)
    assert facts["names"] == [f"pouring_00{number}" for number in range(4)]
    assert (facts["videos"], facts["run"]) == (4, str(run_folder))
    assert "pouring_003" in command("search", "info", made).out


def test_adding_again_embeds_only_what_is_new(command, index: Path, rendered: Path) -> None:
    result = json.loads(command("search", "add", index, rendered, "--json").out)
    assert (result["added"], len(result["unchanged"]), result["videos"]) == (["pouring_004"], 4, 5)
    again = command("search", "add", index, rendered)
    assert again.code == 0
    assert "5 unchanged; 5 videos" in again.out


def test_a_frame_of_an_indexed_video_needs_no_run(command, index: Path, rendered: Path) -> None:
    manifest = json.loads((index / "manifest.json").read_text())
    (index / "manifest.json").write_text(json.dumps(seal(manifest | {"run": "/gone"})))
    result = command("search", "query", index, "pouring_001#12", "--json")
    hits = json.loads(result.out)["hits"]
    assert sorted(hit["video"] for hit in hits) == ["pouring_000", "pouring_002", "pouring_003"]
    assert [hit["distance"] for hit in hits] == sorted(hit["distance"] for hit in hits)
    by_file = command("search", "query", index, f"{rendered / 'pouring_001.mp4'}#12", "--json")
    assert json.loads(by_file.out)["hits"] == hits


def test_another_video_is_embedded_with_the_run_of_the_index(command, made: Path, rendered: Path) -> None:
    result = command("search", "query", made, f"{rendered / 'pouring_004.mp4'}@1.5", "--json")
    found = json.loads(result.out)
    assert (result.code, len(found["hits"])) == (0, 4)
    assert found["query"]["frame"] == 45


def test_an_image_stands_for_its_past_too(command, made: Path, rendered: Path, tmp_path: Path) -> None:
    frame = read_frames(rendered / "pouring_002.mp4", [0])[0]
    Image.fromarray(frame).save(tmp_path / "first.png")
    found = json.loads(command("search", "query", made, tmp_path / "first.png", "-k", 1, "--json").out)
    assert found["notes"] == ["an image has no past: it is used for all context frames"]
    assert found["hits"][0]["similarity"] > 0.5


def test_fewer_videos_than_asked_for_is_said(command, made: Path) -> None:
    out = command("search", "query", made, "pouring_000@1").out
    assert "asked for 8 hits, there are 3" in out
    assert "--sheet" in out.splitlines()[-1]


def test_sheet_and_clips_are_written_and_never_replaced_unasked(command, made: Path, tmp_path: Path) -> None:
    sheet, folder = tmp_path / "s.png", tmp_path / "c"
    words = ("search", "query", made, "pouring_000@1", "--sheet", sheet, "--clips", folder)
    assert command(*words, "--seconds", 0.5, "-k", 2).code == 0
    with Image.open(sheet) as picture:
        assert picture.width > 3 * 100
    clips = sorted(folder.iterdir())
    assert len(clips) == 2 and probe(clips[0]).num_frames <= 16
    refused = command(*words)
    assert refused.code == 2
    assert refused.err.startswith(f"error: {sheet} exists. Add --overwrite")


def test_a_folder_or_a_set_is_searched_without_an_index(command, rendered: Path, tmp_path: Path) -> None:
    assert command("embed", rendered, "-o", tmp_path / "set").code == 0
    words = ("pouring_000@1", "-k", 2, "--per-video", 2, "--json")
    in_folder = json.loads(command("search", "query", rendered, *words).out)["hits"]
    in_set = json.loads(command("search", "query", tmp_path / "set", *words).out)["hits"]
    assert len(in_folder) == 2
    assert [(hit["video"], hit["frame"]) for hit in in_set] == [(h["video"], h["frame"]) for h in in_folder]


def test_an_embedding_set_is_added_as_it_is(command, tmp_path: Path) -> None:
    EmbeddingSet.from_arrays({"a": np.eye(3), "b": np.eye(3)}).save(tmp_path / "set")
    assert command("search", "add", tmp_path / "i", "--embeddings", tmp_path / "set").code == 0
    hits = json.loads(command("search", "query", tmp_path / "i", "a#1", "--json").out)["hits"]
    assert [(hit["video"], hit["frame"], hit["distance"]) for hit in hits] == [("b", 1, 0.0)]


def test_videos_are_removed(command, index: Path) -> None:
    assert "1 removed, 3 left" in command("search", "remove", index, "pouring_003").out
    assert json.loads(command("search", "info", index, "--json").out)["videos"] == 3
    assert command("search", "remove", index, "pouring_003").code == 2


def test_the_same_name_elsewhere_needs_a_prefix(command, index: Path, rendered: Path, tmp_path: Path) -> None:
    other = tmp_path / "pouring_000.mp4"
    shutil.copy(rendered / "pouring_004.mp4", other)
    refused = command("search", "add", index, other)
    assert (refused.code, "holds another video named 'pouring_000'" in refused.err) == (2, True)
    added = json.loads(command("search", "add", index, other, "--prefix", "tuesday/", "--json").out)
    assert added["added"] == ["tuesday/pouring_000"]


def test_another_encoder_is_refused_before_any_work(command, index: Path, rendered: Path) -> None:
    result = command("search", "add", index, rendered, "--run", "pretrained")
    assert result.code == 2
    assert f"cannot be compared: {index} by " in result.err and ", pretrained by " in result.err


def test_a_run_that_has_moved_is_asked_for(command, index: Path, rendered: Path, run_folder: Path) -> None:
    manifest = json.loads((index / "manifest.json").read_text())
    (index / "manifest.json").write_text(json.dumps(seal(manifest | {"run": "/gone"})))
    words = ("search", "query", index, f"{rendered / 'pouring_004.mp4'}#3")
    assert (
        command(*words).err == "error: the run folder /gone does not exist. Give its new path with --run.\n"
    )
    assert command(*words, "--run", run_folder).code == 0


def test_a_new_video_is_searched_for_in_a_saved_set_of_weighed_streams(
    command, rendered: Path, tmp_path: Path
) -> None:
    shutil.copy(rendered / "pouring_000.mp4", tmp_path / "new.mp4")
    assert command("embed", rendered, "-o", tmp_path / "set").code == 0
    result = command("search", "query", tmp_path / "set", f"{tmp_path / 'new.mp4'}#20", "--json")
    assert result.code == 0
    best = json.loads(result.out)["hits"][0]
    assert (best["video"], best["frame"]) == ("pouring_000", 20)


@pytest.mark.parametrize(
    ("moment", "message"),
    [
        ("pouring_000#9999", "pouring_000 has no frame 9999"),
        ("pouring_000@999", "pouring_000 has no frame at 999 s"),
        ("pouring_000", "which moment of pouring_000? Write pouring_000@2.5"),
        ("nothing.mp4@1", "'nothing.mp4' is neither a video in"),
        ("nothing.png", "'nothing.png' is neither a video in"),
        ("{broken}", "cannot read the image"),
    ],
)
def test_a_moment_that_is_not_there_is_one_line(
    command, made: Path, tmp_path: Path, moment: str, message: str
) -> None:
    (tmp_path / "broken.png").write_text("no picture")
    result = command("search", "query", made, moment.format(broken=tmp_path / "broken.png"))
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: ") and message in result.err
    assert len(result.err.splitlines()) == 1


def test_places_that_hold_no_index_are_one_line(command, tmp_path: Path) -> None:
    missing = command("search", "query", tmp_path / "none", "a@1")
    assert missing.err.startswith(f"error: no search index at {tmp_path / 'none'}. Make one with")
    (tmp_path / "empty").mkdir()
    assert "no videos in" in command("search", "query", tmp_path / "empty", "a@1").err
    assert "no videos in" in command("search", "add", tmp_path / "i", tmp_path / "empty").err
    assert "no search index in" in command("search", "info", tmp_path / "empty").err
    assert "no videos given" in command("search", "add", tmp_path / "i").err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty"]


def test_wrong_words_are_one_line(command, made: Path, rendered: Path) -> None:
    words = ("search", "query", made, "pouring_000#3")
    assert "unknown search backend 'x'" in command(*words, "--backend", "x").err
    assert "the faiss backend was removed" in command(*words, "--backend", "faiss").err
    assert "got 0.9 0.1" in command(*words, "--between", 0.9, 0.1).err
    assert "no video of action 'golf'" in command(*words, "--action", "golf").err
    needs = command("search", "query", rendered, "pouring_000#3", "--backend", "lancedb")
    assert "the lancedb backend needs a search index" in needs.err


def test_tags_and_times_restrict_a_query(command, index: Path, rendered: Path, tmp_path: Path) -> None:
    table = tmp_path / "takes.csv"
    table.write_text("video,hand\npouring_000.mp4,left\npouring_002,left\npouring_003,right\n")
    videos = [rendered / f"pouring_00{number}.mp4" for number in range(4)]
    assert command("search", "add", index, *videos, "--tags", table).code == 0

    def hits(*options: str) -> list[dict[str, object]]:
        return json.loads(command("search", "query", index, "pouring_001@1", *options, "--json").out)["hits"]

    assert sorted(hit["video"] for hit in hits("--tag", "hand=left")) == ["pouring_000", "pouring_002"]
    late = hits("--tag", "hand=right", "--time", "2", "2.5", "--per-video", "3", "--apart", "0.1")
    assert late and all(hit["video"] == "pouring_003" and 2 <= hit["seconds"] <= 2.5 for hit in late)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("query", "INDEX", "pouring_001@1", "--tag", "left"), "'left' is not a tag; expected KEY=VALUE"),
        (("query", "INDEX", "pouring_001@1", "--tag", "hand=left"), "no video with the tag hand=left"),
        (
            ("query", "INDEX", "pouring_001@1", "--time", "3", "1"),
            "seconds must be two times, from < to, got 3",
        ),
        (
            ("add", "INDEX", "x.mp4", "--from-corpus", "."),
            "--from-corpus takes its videos, names and run from",
        ),
        (("add", "INDEX", "--from-corpus", "."), "recipe.json"),
        (("add", "INDEX", "--from-corpus", ".", "--tags", "none.csv"), "none.csv"),
    ],
)
def test_wrong_tags_times_and_corpora_are_one_line(command, made: Path, words, message: str) -> None:
    before = (made / "manifest.json").read_bytes()
    result = command("search", *(str(made) if word == "INDEX" else word for word in words))
    assert result.code == 2 and message in result.err and result.err.count("\n") == 1
    assert (made / "manifest.json").read_bytes() == before
