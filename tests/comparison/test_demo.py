import base64
import dataclasses
import json
import re
from pathlib import Path

import pytest

from cycleback.comparison import DemoReport, run_demo
from cycleback.comparison.demo import write_demo_reading
from cycleback.errors import OutputExistsError, UserError
from cycleback.evaluation import Report
from cycleback.progress import Progress
from cycleback.recipe import Recipe
from cycleback.recipe.sections import DataSettings, EncoderSettings
from cycleback.training.settings import OptimizerSettings
from cycleback.video import probe

KEYS = {"tau", "event_error_frames", "event_error_ms", "pce1", "pce3", "cycle_rate", "phase_accuracy"}
QUICK = Recipe(
    data=DataSettings(frame_size=64),
    encoder=EncoderSettings(streams=("appearance", "motion")),  # as in the recipe `demo`
    optimizer=OptimizerSettings(num_updates=3, batch_size=2),
)


@pytest.fixture(scope="module")
def stages() -> list[str]:
    return []


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, stages: list[str]) -> tuple[Path, DemoReport]:
    out = tmp_path_factory.mktemp("demo") / "out"
    progress = Progress(
        on_render=lambda done, total: stages.append("render"),
        on_features=lambda done, total: stages.append("features"),
        on_training=lambda name, total: lambda report: stages.append("learn"),
        on_report=lambda done, total: stages.append("report"),
    )
    return out, run_demo(out, seed=1, videos=8, recipe=QUICK, progress=progress)


def test_the_report_has_every_row_and_number(made: tuple[Path, DemoReport]) -> None:
    written = json.loads((made[0] / "report.json").read_text())
    assert set(written) == {"seconds", "loss", "pair_error", "streams", "kept_untrained", "rows"}
    assert list(written["rows"]) == ["time-only", "frozen", "streams", "trained"]
    assert written["loss"] == "match + 0.2 tcc" and set(written["streams"]) == {"appearance", "motion"}
    assert all(set(row) >= KEYS for row in written["rows"].values())
    assert all(row["event_error_frames"] is not None for row in written["rows"].values())


def test_the_rows_are_measured_on_videos_that_were_not_trained_on(made: tuple[Path, DemoReport]) -> None:
    split = json.loads((made[0] / "run" / "videos.json").read_text())
    assert not set(split["train"]) & set(split["held_out"])
    assert len(split["held_out"]) == 2


def test_the_page_is_self_contained(made: tuple[Path, DemoReport]) -> None:
    page = (made[0] / "report.html").read_text()
    assert not re.findall(r'(?:src|href)="(?!data:|#)', page)
    assert page.count("data:image/png;base64,") == 2
    assert "$" not in re.sub(r"base64,[^\"]*", "", page)


def test_the_video_in_the_page_is_the_before_and_after_grid(made: tuple[Path, DemoReport]) -> None:
    out = made[0]
    embedded = re.search(r'src="data:video/mp4;base64,([^"]*)"', (out / "report.html").read_text())
    assert base64.b64decode(embedded[1]) == (out / "before_after.mp4").read_bytes()
    assert probe(out / "before_after.mp4").codec == "h264"


def test_every_stage_is_heard_of(made: tuple[Path, DemoReport], stages: list[str]) -> None:
    assert set(stages) == {"render", "features", "learn", "report"}
    assert stages.count("learn") == 3


def test_the_time_only_row_is_what_it_says(made: tuple[Path, DemoReport]) -> None:
    row = made[1].rows["time-only"]
    assert row.tau > 0.99
    assert row.cycle_rate == 1.0


def test_a_training_that_does_not_help_is_told_in_its_row(made: tuple[Path, DemoReport]) -> None:
    report, page = made[1], (made[0] / "report.html").read_text()
    assert report.kept_untrained  # after three updates
    assert '<th scope="row">streams, trained (kept the untrained streams)</th>' in page
    assert report.rows["trained"].event_error_frames == report.rows["streams"].event_error_frames


def test_the_words_say_what_training_adds_or_does_not() -> None:
    counts = {"train_videos": 60}
    rows = {
        "time-only": Report(event_error_frames=13.0),
        "frozen": Report(event_error_frames=12.0),
        "streams": Report(event_error_frames=1.0, pce3=0.79, tau=0.4, precision5=0.5),
        "trained": Report(event_error_frames=2.0, pce3=0.7, tau=0.8, precision5=0.6, counts=counts),
    }
    report = DemoReport(60.0, "tcc", rows, 2.0, {"motion": 1.0, "appearance": 0.35})
    words = write_demo_reading(report)
    assert "1.0 frames from the truth (median), and 79% of them to within 3 frames" in words[0]
    assert "two by two, without any other video, they are 2.0 frames off" in words[1]
    assert "they are 2.0 frames off (1.0 before), and 70% are within 3 frames (79% before)" in words[2]
    assert "follow the order of time better (tau 0.80, 0.40 before), and 60% of them show" in words[2]
    assert "motion 1, appearance 0.35" in words[3]
    worse = rows | {"trained": dataclasses.replace(rows["trained"], tau=0.3)}
    told = write_demo_reading(dataclasses.replace(report, rows=worse))[2]
    assert "follow the order of time no better (tau 0.30, 0.40 before)" in told
    kept = write_demo_reading(dataclasses.replace(report, kept_untrained=True))[2]
    assert kept == "Training on 60 videos did not help: the run kept the untrained streams."


def test_an_existing_folder_is_kept_unless_told_otherwise(made: tuple[Path, DemoReport]) -> None:
    with pytest.raises(OutputExistsError, match=r"exists\. Add --overwrite"):
        run_demo(made[0], videos=8, recipe=dataclasses.replace(QUICK))
    assert (made[0] / "report.html").exists()


def test_a_folder_that_is_no_demo_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(OutputExistsError, match=r"has no videos, so this program did not make it"):
        run_demo(tmp_path, videos=8, recipe=QUICK, overwrite=True)
    (tmp_path / "videos").mkdir()
    with pytest.raises(OutputExistsError, match=r"holds 'thesis\.tex', which this program did not write"):
        run_demo(tmp_path, videos=8, recipe=QUICK, overwrite=True)
    assert (tmp_path / "thesis.tex").read_text() == "precious"


def test_someones_folder_called_videos_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "videos").mkdir()
    (tmp_path / "videos" / "wedding.mp4").write_text("precious")
    with pytest.raises(OutputExistsError, match=r"videos has no truth\.json"):
        run_demo(tmp_path, videos=8, recipe=QUICK, overwrite=True)
    assert (tmp_path / "videos" / "wedding.mp4").read_text() == "precious"


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match=r"cannot make .*file/demo: Not a directory"):
        run_demo(tmp_path / "file" / "demo", videos=8, recipe=QUICK)
