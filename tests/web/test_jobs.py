"""Jobs of the studio in real processes: quick, fit, cancel, resume, and a server that is killed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient

from cycleback.errors import UserError
from cycleback.web.app import Studio, build_app
from cycleback.web.jobs import MAX_POINTS, Job, Jobs, draw_similarity, thin_curve
from cycleback.web.project import Project
from moving_clips import make_clips


def wait_for(condition: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def test_quick_embeds_the_videos_and_fit_learns_from_them(tmp_path: Path) -> None:
    (tmp_path / "broken.mp4").write_bytes(b"no video")  # is left out
    studio = Studio(Project.open(make_clips(tmp_path)))
    client = TestClient(build_app(studio), base_url="http://127.0.0.1")
    quick = client.post("/api/jobs", json={"kind": "quick"}).json()
    refused = client.post("/api/jobs", json={"kind": "quick"})
    assert refused.status_code == 422 and "still running" in refused.json()["error"]
    wait_for(lambda: client.get(f"/api/jobs/{quick['id']}").json()["state"] != "running")
    assert client.get(f"/api/jobs/{quick['id']}").json()["state"] == "done"
    assert studio.matches.embeddings.names == ("clip-0", "clip-1", "clip-2")

    fit = client.post("/api/jobs", json={"kind": "fit", "name": "mine", "updates": 12}).json()
    wait_for(lambda: client.get(f"/api/jobs/{fit['id']}").json()["state"] != "running")
    job = client.get(f"/api/jobs/{fit['id']}").json()
    assert job["state"] == "done" and job["curve"][-1][0] == 12, job
    assert np.shape(job["similarity"])[0] <= 32 and max(map(max, job["similarity"])) == 255
    assert (tmp_path / ".cycleback/runs/mine/recipe.toml").is_file()
    for each, run in ((quick, "pretrained"), (fit, str(tmp_path / ".cycleback/runs/mine"))):
        assert client.post(f"/api/jobs/{each['id']}/open", json={}).status_code == 200
        assert client.get("/api/embeddings").json()["run"] == run
    again = client.post("/api/jobs", json={"kind": "fit", "name": "mine"})
    assert again.status_code == 422 and "exists" in again.json()["error"]
    assert [each["id"] for each in client.get("/api/jobs").json()] == [fit["id"], quick["id"]]


def test_a_cancelled_fit_goes_on_where_it_stopped(tmp_path: Path) -> None:
    jobs = Jobs(Project.open(make_clips(tmp_path)))
    job = jobs.start("fit", settings=["optimizer.num_updates=3000"])
    assert job.run == "fit-1"
    wait_for(lambda: len(job.curve) > 1 or job.state != "running")
    jobs.cancel(job.id)
    wait_for(lambda: job.state != "running")
    assert job.state == "cancelled" and 0 < job.done < 3000, job
    stopped_at = job.curve[-1][0]
    recipe = tmp_path / ".cycleback/runs/fit-1/recipe.toml"
    recipe.write_text(recipe.read_text().replace("num_updates = 3000", f"num_updates = {stopped_at + 200}"))
    jobs.resume(job.id)
    wait_for(lambda: job.state != "running")
    assert job.state == "done" and job.curve[-1][0] == stopped_at + 200
    steps = [step for step, _, _ in job.curve]
    assert all(step >= stopped_at for step in steps[steps.index(stopped_at) :])  # not from the beginning


def test_a_killed_server_stops_its_job_and_forgets_nothing(tmp_path: Path) -> None:
    code = (
        "import sys, time\nfrom cycleback.web.jobs import Jobs\nfrom cycleback.web.project import Project\n"
        "jobs = Jobs(Project.open(sys.argv[1]))\n"
        "job = jobs.start('fit', settings=['optimizer.num_updates=9000'])\n"
        "print(jobs._processes[job.id].pid, flush=True)\n"
        "while not job.curve: time.sleep(0.05)\nprint('learning', flush=True)\ntime.sleep(600)\n"
    )
    make_clips(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        worker = int(server.stdout.readline())
        assert server.stdout.readline() == "learning\n"
        os.kill(server.pid, signal.SIGKILL)
    wait_for(lambda: not is_alive(worker))
    assert (tmp_path / ".cycleback/runs/fit-1/state.pt").is_file()  # it saved its state first
    (job,) = Jobs(Project.open(tmp_path)).all
    assert job.state == "cancelled" and job.can_resume and job.run == "fit-1"


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().split()[2]
    except OSError:
        return False
    return state != "Z"


def test_a_failed_job_tells_its_line(tmp_path: Path) -> None:
    jobs = Jobs(Project.open(tmp_path))
    job = jobs.start("quick")
    wait_for(lambda: job.state != "running")
    assert job.state == "failed" and "no videos" in job.message and "\n" not in job.message


def test_names_of_runs_cannot_leave_the_project(tmp_path: Path) -> None:
    jobs = Jobs(Project.open(tmp_path))
    for name in ("../x", "/etc", ".hidden", "a/b", "a\nb", "x" * 99):
        with pytest.raises(UserError, match="cannot be called"):
            jobs.start("fit", name)
    assert not jobs.all


def test_damaged_files_of_jobs_are_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / ".cycleback/jobs"
    folder.mkdir(parents=True)
    (folder / "1.json").write_text("{")
    (folder / "2.json").write_text(json.dumps({"id": "2", "kind": "quick", "run": "x", "colour": "blue"}))
    assert Jobs(Project.open(tmp_path)).all == []


def test_long_curves_are_thinned_evenly() -> None:
    job = Job("1", "fit", "r")
    for step in range(2000):
        job.take({"step": step, "loss": 1.0, "cycle_rate": 0.5, "similarity": [[0]]})
    steps = [step for step, _, _ in job.curve]
    assert len(steps) <= MAX_POINTS and steps[0] == 0 and steps[-1] == 1999 and steps == sorted(steps)
    assert thin_curve(job.curve) is job.curve


def test_similarity_is_bright_where_frames_are_near() -> None:
    clip = np.arange(64, dtype=np.float32)[:, None]
    grey = np.array(draw_similarity(clip, clip))
    assert grey.shape == (32, 32) and (grey.diagonal() == 255).all() and grey[0, -1] == 0
