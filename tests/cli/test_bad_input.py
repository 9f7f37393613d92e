"""What can be wrong with the input of any command: one line on stderr, exit code 2, nothing written."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from cycleback.embeddings import EmbeddingSet
from cycleback.reading import seal

AND_OUTPUT = {
    "align": "align {a} {b}",
    "sync": "sync {a} {b}",
    "transfer labels": "transfer labels {labels} {videos}",
    "transfer sound": "transfer sound {a} {b}",
    "anomalies": "anomalies {a} --good {videos}",
    "progress": "progress {a} --reference {b}",
    "plot map": "plot map {videos}",
    "plot similarity": "plot similarity {a} {b}",
    "plot progress": "plot progress {videos}",
    "plot evolution": "plot evolution {run}",
    "embed": "embed {videos}",
}
SUFFIXES = {"align": "csv", "transfer labels": "csv", "anomalies": "csv", "progress": "csv", "embed": "emb"}
SUFFIXES |= {"sync": "mp4", "transfer sound": "mp4"}


@pytest.fixture
def fill(rendered: Path, run_folder: Path, tmp_path: Path):
    """Words of a command line, with the paths of the tests in their places."""
    (tmp_path / "labels.csv").write_text("video,event,frame\npouring_000,start,3\n")
    (tmp_path / "file").write_text("mine")
    names = {"a": rendered / "pouring_000.mp4", "b": rendered / "pouring_001.mp4", "videos": rendered}
    names |= {"run": run_folder, "labels": tmp_path / "labels.csv", "tmp": tmp_path}
    return lambda text: [word.format(**names) for word in text.split()]


def refused(result, message: str, folder: Path) -> None:
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert [line for line in result.err.splitlines() if line.startswith("error: ")] == [
        result.err.splitlines()[-1]
    ]
    assert (folder / "file").read_text() == "mine"
    assert not [path for path in folder.iterdir() if path.name not in ("file", "labels.csv")]


@pytest.mark.parametrize("name", AND_OUTPUT)
def test_an_output_that_exists_is_kept(command, fill, tmp_path: Path, name: str) -> None:
    taken = tmp_path / f"taken.{SUFFIXES.get(name, 'png')}"
    taken.write_text("mine")
    result = command(*fill(AND_OUTPUT[name]), "-o", taken)
    assert result.err == f"error: {taken} exists. Add --overwrite, or choose another name with -o.\n"
    assert (result.code, taken.read_text()) == (2, "mine")


@pytest.mark.parametrize("name", [*AND_OUTPUT, "compare", "synth", "search add", "train", "demo"])
def test_an_output_below_a_file_is_refused_before_any_work(command, fill, tmp_path: Path, name: str) -> None:
    others = {"compare": "compare --data {videos}", "train": "train {videos}", "demo": "demo"}
    place = [tmp_path / "file" / "sub" / f"x.{SUFFIXES.get(name, 'png')}"]
    if name in ("synth", "search add"):
        result = command(*name.split(), *place, *([] if name == "synth" else fill("{videos}")))
    else:
        result = command(*fill((AND_OUTPUT | others)[name]), "-o", *place)
    refused(result, str(place[0]), tmp_path)
    assert len(result.err.splitlines()) == 1


@pytest.mark.parametrize(
    "words",
    [
        "align {a} {b} -o {tmp}/t.csv --picture {tmp}/file/p.png",
        "progress {a} --reference {b} -o {tmp}/t.csv --picture {tmp}/file/p.png",
        "anomalies {a} --good {videos} -o {tmp}/t.csv --picture {tmp}/file/p.png",
        "search query {videos} pouring_000@1 --sheet {tmp}/file/p.png",
        "search query {videos} pouring_000@1 --clips {tmp}/file/sub",
        "sync {a} {b} --edits {tmp}/file/e.csv",
        "evaluate {run} --data {videos} --markdown {tmp}/file/t.md",
    ],
)
def test_so_is_any_other_file_below_a_file(command, fill, tmp_path: Path, words: str) -> None:
    refused(command(*fill(words)), "file is a file, not a folder", tmp_path)


@pytest.mark.parametrize(
    "words",
    [
        "align x y --embeddings {tmp}/set --run {run}",
        "sync --embeddings {tmp}/set --run {run}",
        "plot map --embeddings {tmp}/set --run {run}",
        "transfer sound x y --embeddings {tmp}/set --run {run}",
    ],
)
def test_embeddings_of_another_run_are_refused(
    command, fill, tmp_path: Path, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arrays = {"x": np.eye(3), "y": np.eye(3)}
    EmbeddingSet.from_arrays(arrays, encoder="other").save(tmp_path / "set")
    result = command(*fill(words))
    assert result.code == 2
    assert result.err.startswith(
        f"error: different encoders cannot be compared: {tmp_path / 'set'} by other, "
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "labels.csv", "set"]


@pytest.mark.parametrize(
    "words",
    [
        "align golf/a tennis/b",
        "align golf/a golf/c tennis/b",
        "sync",
        "transfer sound golf/a tennis/b",
        "anomalies golf/a --good {tmp}/set",
        "progress tennis/b --reference golf/a",
        "plot similarity golf/a tennis/b",
        "plot progress",
    ],
)
def test_videos_of_another_action_are_refused(
    command, fill, tmp_path: Path, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = ("golf/a", "golf/c", "tennis/b")
    actions = {name: name.split("/")[0] for name in names}
    EmbeddingSet.from_arrays({name: np.eye(3) for name in names}, actions=actions).save(tmp_path / "set")
    result = command(*fill(f"{words} --embeddings {{tmp}}/set"))
    assert (result.code, len(result.err.splitlines())) == (2, 1)
    assert "shows 'golf'" in result.err and "tennis/b shows 'tennis'" in result.err
    assert ": pass videos of the same action" in result.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "labels.csv", "set"]


def test_a_folder_of_several_actions_is_not_played_in_sync(command, rendered: Path, tmp_path: Path) -> None:
    for action, number in (("golf", 0), ("tennis", 1)):
        (tmp_path / "videos" / action).mkdir(parents=True)
        (tmp_path / "videos" / action / "a.mp4").symlink_to(rendered / f"pouring_00{number}.mp4")
    result = command("sync", tmp_path / "videos", "-o", tmp_path / "x.mp4")
    assert result.err == f"error: {tmp_path / 'videos'} holds golf, tennis: name the folder of one action\n"


def test_an_unknown_precision_is_refused(command, fill, tmp_path: Path) -> None:
    result = command(*fill("embed {videos} -o {tmp}/set.emb --precision float16"))
    expected = "error: --precision must be float32 or bfloat16, got 'float16'"
    assert (result.code, result.err.strip()) == (2, expected)
    assert not (tmp_path / "set.emb").exists()


ODD_NAMES = ["[red]", "[bold", "-dash", "http:host?x", "a$b$c", "<b>&amp;", "ä é", "²", "x%03d", "a;b'c\"d"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_are_names(
    command, rendered: Path, run_folder: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Markup, addresses, formulas and patterns in the name of a video mean nothing."""
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    for number, stem in enumerate((name, "other")):
        shutil.copy(rendered / f"pouring_00{number}.mp4", f"in/{stem}.mp4")
    Path("labels.csv").write_text("video,event,frame\nother,[/start],3\n")
    videos = [f"./in/{name}.mp4", "in/other.mp4"]
    for words in (
        ["data", "check", "in"],
        ["embed", "in", "--run", run_folder, "-o", "set"],
        ["align", *videos, "--run", run_folder, "-o", "t.csv", "--picture", "p.png"],
        ["sync", *videos, "--run", run_folder, "-o", f"./{name} out.mp4"],
        ["transfer", "labels", "labels.csv", "--embeddings", "set", "--format", "elan", "-o", "eaf"],
        ["search", "query", "set", "other@1"],
    ):
        result = command(*words)
        assert result.code == 0, result.err
    assert Path(f"eaf/{name}.eaf").is_file()
    assert name in result.out  # the hit


@pytest.mark.parametrize("name", [b"bad\xff", b"two\nlines", b"\x1b[31m"])
@pytest.mark.parametrize(
    "words", ["sync {0} {1}", "embed {2}", "data check {2}", "train {2}", "align {0} {1}"]
)
def test_names_that_cannot_be_shown_are_refused_in_one_line(
    command, rendered: Path, tmp_path: Path, words: str, name: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    video = tmp_path / "in" / os.fsdecode(name + b".mp4")
    video.parent.mkdir()
    shutil.copy(rendered / "pouring_000.mp4", video)
    shutil.copy(rendered / "pouring_001.mp4", video.parent / "other.mp4")
    result = command(
        *(word.format(video, video.parent / "other.mp4", video.parent) for word in words.split())
    )
    assert (result.code, result.out) == (2, "")
    assert len(result.err.splitlines()) == 1
    assert "not UTF-8. Rename it." in result.err


@pytest.mark.parametrize("name", ["../../x", "/tmp/x", "a/../../x"])
def test_names_in_a_set_lead_nowhere(command, tmp_path: Path, name: str) -> None:
    arrays = {"a": np.random.default_rng(0).normal(size=(20, 4)), name: np.ones((20, 4))}
    EmbeddingSet.from_arrays(arrays, events={"a": {"start": 3}}, fps=10.0).save(tmp_path / "set")
    (tmp_path / "labels.csv").write_text("video,event,frame\na,start,3\n")
    (tmp_path / "deep" / "er").mkdir(parents=True)
    words = ["transfer", "labels", tmp_path / "labels.csv", "--embeddings", tmp_path / "set"]
    result = command(*words, "--format", "elan", "-o", tmp_path / "deep" / "er" / "out")
    assert (result.code, len(result.err.splitlines())) == (2, 1)
    assert "the name leads out of that folder" in result.err
    assert not list(tmp_path.rglob("*.eaf"))


def test_a_manifest_leads_nowhere(command, tmp_path: Path) -> None:
    EmbeddingSet.from_arrays({"a": np.eye(3), "b": np.eye(3)}).save(tmp_path / "set")
    assert command("search", "add", tmp_path / "index", "--embeddings", tmp_path / "set").code == 0
    manifest = tmp_path / "index" / "manifest.json"
    content = json.loads(manifest.read_text().replace("shard-00001", "../set"))
    manifest.write_text(json.dumps(seal(content)))
    result = command("search", "info", tmp_path / "index")
    assert result.code == 2
    assert "'a' is in '../set', which is no part of the index" in result.err


@pytest.mark.filterwarnings("always:left out pipe")
def test_a_pipe_does_not_hang(command, rendered: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.mp4")
    shutil.copy(rendered / "pouring_000.mp4", tmp_path)
    words = ("sync", tmp_path / "pipe.mp4", tmp_path / "pouring_000.mp4", "-o", tmp_path / "out.mp4")
    for code, result in ((2, command(*words)), (0, command("embed", tmp_path, "-o", tmp_path / "set"))):
        assert (result.code, result.err.count("pipe.mp4 is a pipe or a device, not a file")) == (code, 1)


@pytest.mark.parametrize(
    "text", ["ffconcat version 1.0\nfile {0}\n", "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\n{0}\n"]
)
def test_playlists_are_refused(command, rendered: Path, tmp_path: Path, text: str) -> None:
    shutil.copy(rendered / "pouring_000.mp4", tmp_path / "a.mp4")
    (tmp_path / "list.mp4").write_text(text.format("a.mp4"))
    result = command("sync", tmp_path / "list.mp4", tmp_path / "a.mp4", "-o", tmp_path / "out.mp4")
    assert (result.code, len(result.err.splitlines())) == (2, 1)
    assert "list.mp4 is" in result.err
