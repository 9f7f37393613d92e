import subprocess
import sys
from pathlib import Path

import pytest

from cycleback.errors import VideoError
from cycleback.synth.worker import Job, run_jobs


def job(path: Path) -> Job:
    return Job(path=str(path), seed=0, level="easy", size=48, fps=30.0, anomaly=None)


def test_a_failing_job_names_its_file_and_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    below = tmp_path / "file" / "a.mp4"
    reason = "VideoError: .*(File exists|Not a directory)"
    with pytest.raises(VideoError, match=rf"could not write {below}: {reason}"):
        run_jobs([job(below), job(tmp_path / "b.mp4")], workers=2)


def test_truths_come_back_in_the_order_of_the_jobs(tmp_path: Path) -> None:
    jobs = [Job(**vars(job(tmp_path / f"{seed}.mp4")) | {"seed": seed}) for seed in (4, 2, 3)]
    truths = run_jobs(jobs, workers=2)
    assert [truth["seed"] for truth in truths] == [4, 2, 3]


def test_a_worker_loads_no_heavy_library() -> None:
    code = "import cycleback.synth.worker, sys; print({'torch', 'scipy', 'PIL', 'av'} & set(sys.modules))"
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
