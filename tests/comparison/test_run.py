import json
import re
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from comparison.quick import POSES, QUICK
from cycleback.cli.output import print_reports
from cycleback.comparison import Comparison, TrainingStopped, compare
from cycleback.comparison.rows import load_snapshots
from cycleback.data import read_dataset
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import DataError, OutputExistsError, UserError
from cycleback.evaluation import evaluate
from cycleback.evaluation.scores import columns
from cycleback.models import fingerprint
from cycleback.progress import Progress
from cycleback.runs import embed_videos, load_encoder, saved_recipe, train
from cycleback.training import StepReport


def no_learning(method: str, total: int) -> Callable[[object], None]:
    raise AssertionError(f"{method} was trained again")


def again(made: Comparison, videos: Path, cache: Path, **changes: object) -> Comparison:
    settings = {
        "methods": ["tcc", "supervised"],
        "overrides": QUICK,
        "progress": Progress(on_training=no_learning),
    }
    return compare(videos, made.output, cache=cache, **settings | changes)


def test_the_report_has_every_row_and_the_numbers_of_evaluate(
    made: Comparison, videos: Path, frame_cache: Path
) -> None:
    written = json.loads((made.output / "report.json").read_text())
    assert list(written["rows"]) == ["tcc", "supervised", "time-only", "untrained", "frozen", "streams"]
    dataset, encoder = read_dataset(videos), load_encoder(made.output / "runs" / "tcc")
    seen, held_out = (
        embed_videos(encoder, dataset.split(part), cache=frame_cache) for part in ("train", "val")
    )
    expected = evaluate(seen, held_out).to_json()
    found = written["rows"]["tcc"]["report"]
    assert {key: found[key] for key in expected if key != "robust"} == {
        key: expected[key] for key in expected if key != "robust"
    }


def test_every_method_of_how_many_and_every_update_is_heard_of(made: Comparison, heard: list[str]) -> None:
    assert [word for word in heard if "/" in word] == [f"{done}/6" for done in range(7)]
    assert heard.count("tcc") == heard.count("supervised") == 8


def test_perturbed_videos_and_other_splits_have_their_columns(made: Comparison) -> None:
    row = made.content["rows"]["time-only"]
    assert set(row["report"]["robust"]) == {"cropped", "speed", "lead-in"}
    assert set(row["report"]["robust"]["speed"]) == {"event_error_frames", "event_error_frames_dtw", "tau"}
    assert made.content["splits"] == ["val_slow"]
    assert row["splits"]["val_slow"]["event_error_frames"] is not None
    page = (made.output / "report.html").read_text()
    assert all(f">{group}</th>" in page for group in ("cropped", "speed", "lead-in", "split val_slow"))


def test_the_page_is_self_contained_and_says_what_each_picture_is(made: Comparison) -> None:
    page = (made.output / "report.html").read_text()
    assert not re.findall(r'(?:src|href)="(?!data:|#)', page)
    assert not re.findall(r"<img(?![^>]*alt=\"[^\"]+\")", page)
    assert page.count("data:image/png;base64,") == 2
    assert page.count("data:image/svg+xml;base64,") == 3
    assert page.count("data:image/jpeg;base64,") == 4 + 2 * 4
    assert "$" not in re.sub(r"base64,[^\"]*", "", page)


def test_a_snapshot_is_the_encoder_after_that_many_updates(
    made: Comparison, videos: Path, frame_cache: Path, tmp_path: Path
) -> None:
    kept = load_snapshots(made.output / "snapshots" / "tcc")
    assert list(kept) == [1, 2]
    seen: list[str] = []

    class Stop(Exception):
        pass

    def stop(report) -> None:
        if report.step == 3:
            seen.append(fingerprint(load_encoder(tmp_path / "run")))
            raise Stop

    recipe, progress = saved_recipe(made.output / "runs" / "tcc"), Progress(on_training=lambda *_: stop)
    with pytest.raises(Stop):
        train(videos, tmp_path / "run", recipe=recipe, cache=frame_cache, progress=progress)
    assert seen == [fingerprint(kept[2])]


def test_a_second_call_trains_nothing_and_finds_the_same(
    made: Comparison, videos: Path, frame_cache: Path
) -> None:
    second = again(made, videos, frame_cache)
    assert all(row.is_reused for row in second.rows.values())
    assert second.content["rows"] == json.loads(json.dumps(made.content["rows"]))


def test_another_protocol_measures_again_but_does_not_train(poses: Path, tmp_path: Path) -> None:
    settings = {"methods": ["tcc"], "overrides": POSES, "perturb": False}
    compare(poses, tmp_path / "out", **settings)
    quiet = Progress(on_training=no_learning)
    second = compare(poses, tmp_path / "out", protocol="paper", progress=quiet, **settings)
    assert second.rows["tcc"].report.protocol == "paper"
    assert not second.rows["tcc"].is_reused
    assert second.rows["tcc"].updates == 4


def test_other_settings_are_refused_unless_told_to_train_again(
    made: Comparison, videos: Path, frame_cache: Path, tmp_path: Path
) -> None:
    copy = Comparison(shutil.copytree(made.output, tmp_path / "copy"), made.rows, made.content)
    changed = (*QUICK, "optimizer.num_updates=2")
    with pytest.raises(OutputExistsError, match=r"with optimizer.num_updates=8, not 2\. Add --overwrite"):
        again(copy, videos, frame_cache, overrides=changed)
    with pytest.raises(AssertionError, match="tcc was trained again"):
        again(copy, videos, frame_cache, overrides=changed, overwrite=True)


def test_a_stopped_comparison_goes_on_to_the_same_weights(poses: Path, tmp_path: Path) -> None:
    steps: list[int] = []

    def listening(stop_at: int | None, steps: list[int]) -> Progress:
        def hear(report: StepReport) -> None:
            if report.step == stop_at:
                raise KeyboardInterrupt
            steps.append(report.step)

        return Progress(on_training=lambda method, total: hear)

    settings = {"methods": ["tcc"], "overrides": POSES, "perturb": False}
    with pytest.raises(KeyboardInterrupt):
        compare(poses, tmp_path / "parts", progress=listening(3, steps), **settings)
    compare(poses, tmp_path / "parts", progress=listening(None, steps), **settings)
    compare(poses, tmp_path / "whole", **settings)
    assert steps == [1, 2, 3, 4]
    whole, parts = (load_encoder(tmp_path / name / "runs" / "tcc") for name in ("whole", "parts"))
    assert fingerprint(whole) == fingerprint(parts)


def test_a_signal_stops_the_comparison_with_an_error_of_its_own(poses: Path, tmp_path: Path) -> None:
    def interrupt(report: StepReport) -> None:
        if report.step == 2:
            signal.raise_signal(signal.SIGINT)

    settings = {"methods": ["tcc"], "overrides": POSES, "perturb": False}
    progress = Progress(on_training=lambda method, total: interrupt)
    with pytest.raises(TrainingStopped, match="training of tcc stopped at update 2 of 4"):
        compare(poses, tmp_path / "out", progress=progress, **settings)
    assert compare(poses, tmp_path / "out", **settings).rows["tcc"].updates == 4


def test_a_row_no_better_than_time_only_carries_a_dagger_everywhere(
    made: Comparison, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    print_reports({name: row.report for name, row in made.rows.items()})
    tau = f"{made.content['rows']['tcc']['report']['tau']:.3f}"
    printed = capsys.readouterr().out
    (line,) = [line for line in printed.splitlines() if line.split()[:1] == ["tcc"]]
    assert f" {tau}†" in line
    assert "† not better than time-only: no sign of learning in that column." in printed
    page, text = ((made.output / name).read_text() for name in ("report.html", "report.md"))
    assert f'<td class="below">{tau}<sup title="not better than time-only">†</sup>' in page
    line = next(line for line in text.splitlines() if line.startswith("| TCC | "))
    assert re.search(rf"\| {tau} (\[[^]]*\] )?† \|", line)


def test_a_folder_of_another_version_is_refused_in_one_line(poses: Path, tmp_path: Path) -> None:
    (tmp_path / "comparison.json").write_text('{"made_by": "cycleback compare"}')
    with pytest.raises(OutputExistsError, match=r"was made by another version of cycleback\. Choose"):
        compare(poses, tmp_path)


def test_videos_without_labels_get_the_half_that_needs_none(
    videos: Path, frame_cache: Path, tmp_path: Path
) -> None:
    bare = shutil.copytree(videos, tmp_path / "bare", ignore=shutil.ignore_patterns("labels.csv"))
    made = compare(
        bare, tmp_path / "out", methods=["supervised"], overrides=QUICK, perturb=False, cache=frame_cache
    )
    assert made.content["warnings"][0] == "supervised: left out, no training video has key events."
    row = made.content["rows"]["frozen"]["report"]
    assert row["event_error_frames"] is None
    assert row["cycle_rate"] is not None
    page = (made.output / "report.html").read_text()
    assert 'id="examples"' in page
    assert 'id="errors"' not in page


def test_sequences_are_compared_without_pictures_of_frames(poses: Path, tmp_path: Path) -> None:
    made = compare(poses, tmp_path / "out", methods=["tcc", "tcn"], overrides=POSES)
    assert made.content["how"]["recipe"].startswith("poses ")
    assert made.content["curves"]["tcc"]
    assert set(EmbeddingSet.load(made.output / "embeddings" / "frozen").names) == set(
        EmbeddingSet.load(made.output / "embeddings" / "tcc").names
    )
    page = (made.output / "report.html").read_text()
    assert "image/jpeg" not in page
    assert 'id="similarity"' in page
    assert made.content["snapshots"] == [0, 1, 4]


def test_several_actions_are_shown_one_by_one_below_their_mean(poses: Path, tmp_path: Path) -> None:
    labels = ["video,event,frame"]
    for number in range(16):
        action = tmp_path / "data" / ("cup" if number < 8 else "jar")
        action.mkdir(parents=True, exist_ok=True)
        shift = np.linspace(0, 3, 40 + number)[:, None] + np.arange(4)
        np.savez(action / f"clip_{number}.npz", features=np.sin(shift))
        labels += [f"{action.name}/clip_{number},top,{10 + number}"]
    (tmp_path / "data" / "labels.csv").write_text("\n".join(labels))
    made = compare(tmp_path / "data", tmp_path / "out", methods=["tcc"], overrides=POSES, perturb=False)
    assert set(made.content["rows"]["tcc"]["report"]["by_action"]) == {"cup", "jar"}
    page = (made.output / "report.html").read_text()
    assert "<summary>cup</summary>" in page
    assert "raw vectors" in page
    assert "10 % of labels" in page
    assert "frozen (raw vectors)" in page


def test_a_row_whose_training_does_not_help_says_that_it_keeps_the_untrained_streams(
    videos: Path, frame_cache: Path, tmp_path: Path
) -> None:
    short = ("optimizer.num_updates=2", "optimizer.batch_size=2")
    settings = {"methods": ["match"], "recipe": "demo", "overrides": short, "cache": frame_cache}
    made = compare(videos, tmp_path / "out", **settings)
    match, streams = made.rows["match"], made.rows["streams"]
    assert match.kept_untrained and not streams.kept_untrained
    title = "match (kept the untrained streams)"
    assert made.content["rows"]["match"]["title"] == title and made.content["snapshots"] == []
    assert f"| {title} | " in (tmp_path / "out" / "report.md").read_text()
    assert f'<th scope="row">{title}</th>' in (tmp_path / "out" / "report.html").read_text()
    assert compare(videos, tmp_path / "out", **settings).rows["match"].kept_untrained  # as it was saved
    # pose sees nobody, so the recipe without it has the same distances
    reports = [row.report.to_json() for row in (match, streams)]
    for place in ("event_error_frames", "event_error_frames_dtw", "tau", "robust/speed/tau"):
        (column,) = columns(place.split("/")[-1], under=place.rpartition("/")[0])
        assert column.value(reports[0]) == pytest.approx(column.value(reports[1]), abs=1e-3)
    seen = embed_videos("pretrained", read_dataset(videos).split("train"), cache=frame_cache)
    expected = embed_videos("pretrained", read_dataset(videos).split("val"), cache=frame_cache, alike=seen)
    found = EmbeddingSet.load(tmp_path / "out" / "embeddings" / "streams")
    assert found.mirrored == expected.mirrored
    np.testing.assert_allclose(found["pouring_003"], expected["pouring_003"], atol=1e-5)


def test_a_folder_that_is_no_comparison_is_refused(videos: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(OutputExistsError, match=r"holds 'thesis\.tex', which no comparison made"):
        compare(videos, tmp_path, overrides=QUICK, overwrite=True)
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match=r"cannot make .*file/out: Not a directory"):
        compare(videos, tmp_path / "file" / "out", overrides=QUICK)


def test_one_held_out_video_is_too_few(poses: Path, tmp_path: Path) -> None:
    rows = [f"clip_{number},{'val' if number == 0 else 'train'}" for number in range(8)]
    shutil.copytree(poses, tmp_path / "data")
    (tmp_path / "data" / "splits.csv").write_text("\n".join(["video,split", *rows]))
    with pytest.raises(DataError, match="needs 2 held-out videos of one action, got 1"):
        compare(tmp_path / "data", tmp_path / "out")
    assert not (tmp_path / "out").exists()
