import csv
import json
import subprocess
import sys
from pathlib import Path

import av
import numpy as np
import pytest

from cycleback.errors import OutputExistsError, VideoError
from cycleback.synth import ANOMALIES, EVENTS, SynthVideo, render_video, video_seed, write_dataset
from cycleback.synth.dataset import Job, run_job, run_jobs

Written = tuple[Path, list[SynthVideo]]


def rows(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_the_folder_holds_videos_labels_and_truth(written: Written) -> None:
    folder, videos = written
    names = [f"pouring_{index:03d}.mp4" for index in range(5)]
    assert sorted(path.name for path in folder.iterdir()) == [
        "anomalies.csv",
        "labels.csv",
        *names,
        "truth.json",
    ]
    assert [video.path for video in videos] == [folder / name for name in names]


def test_labels_are_the_key_events(written: Written) -> None:
    folder, videos = written
    header, *labels = rows(folder / "labels.csv")
    assert header == ["video", "event", "frame"]
    assert [(v, e, int(f)) for v, e, f in labels] == [
        (video.name, event, frame) for video in videos for event, frame in video.events.items()
    ]
    assert [event for video, event, _ in labels if video == "pouring_000"] == list(EVENTS)


def test_files_decode_to_as_many_frames_as_the_truth_says(written: Written) -> None:
    _, videos = written
    for video in videos:
        with av.open(str(video.path)) as file:
            assert sum(1 for _ in file.decode(video=0)) == video.num_frames
            assert file.streams.video[0].average_rate == video.fps
            assert file.streams.audio[0].rate == 44_100 and file.streams.audio[0].channels == 1


def test_files_look_like_the_arrays(written: Written) -> None:
    _, videos = written
    rendered = render_video(videos[1].seed, level="hard", size=48)
    with av.open(str(videos[1].path)) as file:
        decoded = np.stack([frame.to_ndarray(format="rgb24") for frame in file.decode(video=0)])
    assert np.abs(decoded.astype(int) - rendered.frames).mean() < 8
    assert rendered.take.events == videos[1].events


def test_the_truth_has_one_fill_and_one_pitch_a_frame(written: Written) -> None:
    folder, videos = written
    truth = json.loads((folder / "truth.json").read_text("utf-8"))
    assert {key: truth[key] for key in ("seed", "level", "size", "fps")} == {
        "seed": 7, "level": "hard", "size": 48, "fps": 30.0,
    }  # fmt: skip
    for video in videos:
        entry = truth["videos"][video.name]
        assert len(entry["fill"]) == len(entry["pitch"]) == video.num_frames
        assert entry["seed"] == video.seed == video_seed(7, videos.index(video))


def test_the_last_videos_go_wrong_each_kind_in_turn(written: Written) -> None:
    folder, videos = written
    header, *wrong = rows(folder / "anomalies.csv")
    assert header == ["video", "anomaly", "start_frame", "end_frame"]
    assert [row[:2] for row in wrong] == [[f"pouring_00{2 + i}", kind] for i, kind in enumerate(ANOMALIES)]
    assert [video.anomaly for video in videos] == [None, None, *ANOMALIES]
    assert [(int(start), int(end)) for *_, start, end in wrong] == [v.anomaly_range for v in videos[2:]]


def test_processes_and_number_of_videos_change_nothing(written: Written, tmp_path: Path) -> None:
    folder, _ = written
    calls: list[tuple[int, int]] = []
    settings = {"seed": 7, "level": "hard", "size": 48}
    write_dataset(tmp_path / "two", videos=2, jobs=2, progress=lambda *done: calls.append(done), **settings)
    assert calls == [(1, 2), (2, 2)]
    for name in ("pouring_000.mp4", "pouring_001.mp4"):
        assert (tmp_path / "two" / name).read_bytes() == (folder / name).read_bytes()
    assert not (tmp_path / "two" / "anomalies.csv").exists()


def test_memory_left_by_others_changes_nothing(tmp_path: Path) -> None:
    generator, found = np.random.default_rng(0), set()
    for number in range(5):
        waste = [generator.integers(1, 256, size, dtype=np.uint8) for size in range(1000, 300_000, 5000)]
        del waste  # not zero for whoever gets it next, such as x264
        path = tmp_path / f"{number}.mp4"
        run_job(Job(str(path), video_seed(0, 5), "hard", size=112, fps=30.0, anomaly=None))
        found.add(path.read_bytes())
    assert len(found) == 1


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    for overwrite in (False, True):
        with pytest.raises(OutputExistsError, match=r"mine exists\. Add --overwrite|mine has no truth\.json"):
            write_dataset(tmp_path / "mine", videos=1, overwrite=overwrite)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "precious"


def test_only_a_rendered_folder_to_which_nothing_was_added_is_replaced(tmp_path: Path) -> None:
    write_dataset(tmp_path / "set", videos=2, size=48)
    write_dataset(tmp_path / "set", videos=1, size=48, overwrite=True)
    names = ["labels.csv", "pouring_000.mp4", "truth.json"]
    assert sorted(p.name for p in (tmp_path / "set").iterdir()) == names
    assert [p.name for p in tmp_path.iterdir()] == ["set"]
    (tmp_path / "set" / "mine.mp4").write_text("precious")
    with pytest.raises(OutputExistsError, match=r"set holds 'mine\.mp4', which this program did not write"):
        write_dataset(tmp_path / "set", videos=1, size=48, overwrite=True)


def test_a_file_in_the_way_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputExistsError, match=r"file is a file, not a folder"):
        write_dataset(tmp_path / "file", videos=1, overwrite=True)


def test_nothing_is_left_when_writing_stops(tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    for jobs in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            write_dataset(tmp_path / "half", videos=3, size=48, jobs=jobs, progress=stop)
        assert list(tmp_path.iterdir()) == []


def test_seeds_of_videos_never_meet() -> None:
    seeds = {video_seed(seed, index) for seed in range(40) for index in range(40)}
    assert len(seeds) == 1600


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"videos": 0}, "videos must be 1 or more, got 0"),
        ({"anomalies": 4}, r"anomalies must be between 0 and videos \(3\), got 4"),
        ({"jobs": 0}, "jobs must be 1 or more, or None for one per core, got 0"),
        ({"seed": -2}, "seed must be 0 or more, got -2"),
        ({"level": "medium"}, "level must be one of easy, hard, got 'medium'"),
        ({"size": 20}, "size must be an even number of pixels from 48 on, got 20"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_written(
    settings: dict, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        write_dataset(tmp_path / "new", **{"videos": 3} | settings)
    assert list(tmp_path.iterdir()) == []


def job(path: Path) -> Job:
    return Job(path=str(path), seed=0, level="easy", size=48, fps=30.0, anomaly=None)


def test_a_failing_job_names_its_file_and_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    below = tmp_path / "file" / "a.mp4"
    reason = "UserError: .*file is a file, not a folder"
    with pytest.raises(VideoError, match=rf"could not write {below}: {reason}"):
        run_jobs([job(below), job(tmp_path / "b.mp4")], workers=2)


def test_truths_come_back_in_the_order_of_the_jobs(tmp_path: Path) -> None:
    jobs = [Job(**vars(job(tmp_path / f"{seed}.mp4")) | {"seed": seed}) for seed in (4, 2, 3)]
    truths = run_jobs(jobs, workers=2)
    assert [truth["seed"] for truth in truths] == [4, 2, 3]


def test_a_worker_loads_no_heavy_library() -> None:
    code = "import cycleback.synth.dataset, sys; print({'torch', 'scipy', 'PIL', 'av'} & set(sys.modules))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "set()"


def test_a_script_needs_no_main_guard(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from cycleback.synth import write_dataset\n"
        f"print(len(write_dataset({str(tmp_path / 'set')!r}, videos=2, size=48, jobs=2)))\n"
    )
    output = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert (output.stdout, output.stderr) == ("2\n", "")
