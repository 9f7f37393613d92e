"""`cycleback evaluate` on a run, on embedding sets, and on what it must refuse."""

import json
from pathlib import Path

import numpy as np
import pytest

from cycleback.embeddings import EmbeddingSet
from cycleback.runs import run_split


@pytest.fixture
def sets(tmp_path: Path) -> dict[str, Path]:
    """Saved embeddings of training videos and of others, whose progress is uneven and known."""
    rng, folders = np.random.default_rng(0), {}
    for part, names in (("train", "abcdef"), ("held_out", "uvwx")):
        arrays, events = {}, {}
        for name in names:
            progress = np.linspace(0, 1, 40) ** rng.uniform(0.5, 2)
            arrays[name] = np.stack([progress, progress**2], axis=1) + 0.01 * rng.normal(size=(40, 2))
            events[name] = {
                event: int(np.abs(progress - at).argmin()) for event, at in zip("xy", (0.3, 0.7), strict=True)
            }
        folders[part] = EmbeddingSet.from_arrays(arrays, events=events, fps=25).save(tmp_path / part)
    return folders


def test_a_run_is_evaluated_on_the_videos_it_held_out(command, rendered: Path, run_folder: Path) -> None:
    result = command("evaluate", run_folder, "--data", rendered, "--json", "--no-few-shot")
    assert result.code == 0
    rows, split = json.loads(result.out), run_split(run_folder)
    assert list(rows) == [run_folder.name, "time-only"]
    counts = rows[run_folder.name]["counts"]
    assert counts["videos"] == len(split["held_out"]) and counts["train_videos"] == len(split["train"])


def test_the_table_ends_with_the_next_command(command, sets) -> None:
    result = command("evaluate", sets["held_out"], "--train", sets["train"])
    assert result.code == 0
    assert "time-only" in result.out and "† not better than time-only" in result.out
    assert "95 % interval of the error, frames: held_out" in result.out
    assert result.out.splitlines()[-1] == f"next: cycleback align u x --embeddings {sets['held_out']}"


def test_json_has_all_scores_of_both_rows(command, sets) -> None:
    rows = json.loads(command("evaluate", sets["held_out"], "--train", sets["train"], "--json").out)
    ours, blind = rows["held_out"], rows["time-only"]
    assert ours["event_error_frames"] < blind["event_error_frames"]
    assert list(ours["few_shot"]) == ["1", "2", "3", "5"] and list(ours["precision_at"]) == ["5", "10", "15"]
    assert len(ours["intervals"]["tau"]) == 2 and ours["robust"] == {}


def test_the_markdown_file_shows_intervals_and_is_not_replaced_unasked(command, sets, tmp_path) -> None:
    table = tmp_path / "table.md"
    words = ("evaluate", sets["held_out"], "--markdown", table)
    assert command(*words).code == 0
    assert "95 % of 1,000 resamples" in table.read_text("utf-8")
    again = command(*words)
    assert (again.code, again.err) == (
        2,
        f"error: {table} exists. Add --overwrite, or choose another name with -o.\n",
    )
    assert command(*words, "--no-intervals", "--overwrite").code == 0
    assert "resamples" not in table.read_text("utf-8")


def test_protocol_and_seed_are_those_asked_for(command, sets) -> None:
    words = (
        "evaluate",
        sets["held_out"],
        "--train",
        sets["train"],
        "--no-few-shot",
        "--no-intervals",
        "--json",
    )
    rows = [json.loads(command(*words, *more).out)["held_out"] for more in ((), ("--protocol", "reference"))]
    assert [row["protocol"] for row in rows] == ["linear", "reference"]
    assert rows[0]["intervals"] == {} and rows[0]["few_shot"] == {} and rows[0]["tau"] != rows[1]["tau"]
    drawn = [json.loads(command(*words, "--seed", seed).out)["held_out"] for seed in (0, 0, 1, 2, 3)]
    shares = [row["phase_accuracy_by_fraction"]["0.1"] for row in drawn]
    assert shares[0] == shares[1] and len(set(shares)) > 1


def test_videos_on_both_sides_are_refused_unless_allowed(command, sets) -> None:
    words = ("evaluate", sets["train"], "--train", sets["train"], "--no-few-shot", "--json")
    refused = command(*words)
    assert refused.code == 2 and len(refused.err.splitlines()) == 1
    assert "'a' is also trained on ('a': the same name, and 5 more" in refused.err
    rows = json.loads(command(*words, "--allow-overlap").out)
    assert rows["train"]["counts"]["videos_in_both"] == 6


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["{run}"], "{run} is a run: name the folder of its videos with --data"),
        (["{run}", "--data", "x", "--train", "y"], "leave out --train"),
        (["{held_out}", "--data", "x"], "--data needs a run folder, but {held_out} has no recipe.toml"),
        (["{held_out}", "--protocol", "svm"], "unknown protocol 'svm'; expected linear, paper or reference"),
        (["{held_out}", "--span", "touch"], "--span expects two key events such as address,impact"),
        (
            ["{held_out}", "--span", "touch,never"],
            "no held-out video has both events of the span touch,never",
        ),
        (["nowhere"], "nowhere"),
        (["{run}", "--data", "nowhere"], "nowhere"),
    ],
)
def test_wrong_input_is_one_line(command, sets, run_folder: Path, words, message) -> None:
    places = {"run": run_folder, **sets}
    result = command("evaluate", *(word.format(**places) for word in words))
    assert result.code == 2 and len(result.err.splitlines()) == 1
    assert message.format(**places) in result.err


def test_a_set_with_a_doubled_name_is_one_line(command, sets) -> None:
    index = sets["held_out"] / "index.json"
    content = json.loads(index.read_text("utf-8"))
    content["videos"][1]["name"] = content["videos"][0]["name"]
    index.write_text(json.dumps(content), "utf-8")
    result = command("evaluate", sets["held_out"])
    assert result.code == 2 and len(result.err.splitlines()) == 1 and "doubled" in result.err


def test_a_single_video_has_dashes_and_no_next_command(command, sets, tmp_path) -> None:
    EmbeddingSet.load(sets["held_out"]).subset(["u"]).save(tmp_path / "one")
    result = command("evaluate", tmp_path / "one", "--train", sets["train"], "--no-few-shot")
    assert result.code == 0 and "next:" not in result.out
    rows = json.loads(command("evaluate", tmp_path / "one", "--train", sets["train"], "--json").out)
    assert rows["one"]["tau"] is None and rows["one"]["phase_accuracy"] > 0.5
