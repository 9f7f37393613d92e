"""Long work that the page asks for: `quick` embeds the videos as they are, `fit` trains on them first.

Each job runs in a process of its own, so that the page stays quick and a job can be cancelled. The process
prints one JSON object per line (`Report`), which the server collects. It stops as if by Ctrl-C when the
server is gone: a training then saves its state, and `resume` goes on from there. What is known of a job is a
file in `.cycleback/jobs`, so that a killed server forgets nothing.

    python -m cycleback.web.jobs FOLDER quick pretrained
    python -m cycleback.web.jobs FOLDER fit NAME optimizer.num_updates=500
"""

import _thread
import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from cycleback.errors import UserError
from cycleback.files import write_json
from cycleback.reading import read_text
from cycleback.web.project import Project

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cycleback.progress import Counter
    from cycleback.training import StepReport
    from cycleback.web.app import Studio

Kind = Literal["quick", "fit"]
State = Literal["running", "done", "failed", "cancelled"]
JOBS_FOLDER, RUNS_FOLDER = "jobs", "runs"  # in the state folder of a project
MAX_POINTS = 500  # of a curve; a longer one is thinned
MAX_JOBS_KEPT = 50  # in the list
SIMILARITY_FRAMES = 32  # per side of the small picture of similarity during training
SECONDS_BETWEEN_REPORTS = 0.5
SECONDS_TO_STOP = 30.0  # until a cancelled process that does not end by itself is killed
RUN_NAME = re.compile(r"[\w][\w .-]{0,60}")
Report = dict[str, Any]


@dataclass
class Job:
    """What is known of one job."""

    id: str
    kind: Kind
    run: str  # the encoder that a quick job uses, or the name of the run that a fit makes
    state: State = "running"
    stage: str = "starting"  # what is being done, in words for the user
    done: int = 0
    total: int = 0
    message: str = ""  # how it ended: the result or the one-line error
    started: float = field(default_factory=time.time)  # seconds since 1970
    seconds: float = 0.0
    curve: list[tuple[int, float, float]] = field(default_factory=list)  # (update, loss, cycle rate)
    similarity: list[list[int]] = field(default_factory=list)  # two videos of the last batch, 0 to 255
    settings: list[str] = field(default_factory=list)  # overrides of the default recipe
    __pydantic_config__: ClassVar = ConfigDict(extra="forbid", allow_inf_nan=False)

    @property
    def can_resume(self) -> bool:
        """Whether it was stopped before its end."""
        return self.state in ("cancelled", "failed")

    def take(self, report: Report) -> None:
        """Take in one line of its process."""
        if "loss" in report:
            self.curve.append((report["step"], report["loss"], report["cycle_rate"]))
            self.curve = thin_curve(self.curve)
            self.similarity = report["similarity"]
        for name in ("stage", "done", "total", "message", "state"):
            if name in report:
                setattr(self, name, report[name])


JOB = TypeAdapter(Job)


def thin_curve(curve: list[tuple[int, float, float]]) -> list[tuple[int, float, float]]:
    """Keep every other point of a curve that is too long, and its last."""
    return curve if len(curve) <= MAX_POINTS else curve[:-1:2] + curve[-1:]


class Jobs:
    """The jobs of a project. One runs at a time: two would only slow each other down."""

    def __init__(self, project: Project, *, encoder: str = "pretrained") -> None:
        self._project, self._encoder = project, encoder  # what `quick` embeds with
        self._lock = threading.RLock()
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._jobs = {job.id: job for job in self._read()}

    @property
    def all(self) -> list[Job]:
        """All jobs, the latest first."""
        with self._lock:
            return sorted(self._jobs.values(), key=lambda job: job.started, reverse=True)

    def find(self, id: str) -> Job:
        """Return the job with an id."""
        with self._lock:
            if id not in self._jobs:
                raise UserError(f"no job {id!r}; reload the page")
            return self._jobs[id]

    def encoder_of(self, job: Job) -> str:
        """Return the encoder that a job embeds with: a run folder, a name, or "pretrained"."""
        return str(self._project.state / RUNS_FOLDER / job.run) if job.kind == "fit" else job.run

    def start(self, kind: Kind, name: str = "", settings: Sequence[str] = ()) -> Job:
        """Start a job.

        Args:
            name: of the run that a fit makes; by default fit-1, fit-2 and so on.
            settings: overrides of the default recipe, as in `cycleback train`.
        """
        with self._lock:
            self._check_idle()
            run = self._name_run(name) if kind == "fit" else self._encoder
            id = f"{int(time.time() * 1000):x}"
            return self._launch(Job(id=id, kind=kind, run=run, settings=list(settings)))

    def resume(self, id: str) -> Job:
        """Start a cancelled or failed job again; a training goes on where it stopped."""
        with self._lock:
            job = self.find(id)
            self._check_idle()
            if not job.can_resume:
                raise UserError(f"job {id} is {job.state}: there is nothing to resume")
            job.state, job.stage, job.message = "running", "starting", ""
            return self._launch(job)

    def cancel(self, id: str) -> Job:
        """Stop a running job; a training saves its state first."""
        job, process = self.find(id), self._processes.get(id)
        if process is None:
            raise UserError(f"job {id} is {job.state}: there is nothing to cancel")
        job.stage = "stopping"
        process.send_signal(signal.SIGINT)
        killer = threading.Timer(SECONDS_TO_STOP, process.kill)
        killer.daemon = True
        killer.start()
        return job

    def close(self) -> None:
        """Stop all processes, as at the end of the server."""
        for process in list(self._processes.values()):
            process.send_signal(signal.SIGINT)

    def _check_idle(self) -> None:
        running = next((job for job in self._jobs.values() if job.state == "running"), None)
        if running is not None:
            raise UserError(f"{running.kind} is still running; wait for it, or cancel it first")

    def _name_run(self, name: str) -> str:
        runs = self._project.state / RUNS_FOLDER
        if not name:
            return next(each for n in range(1, 10**6) if not (runs / (each := f"fit-{n}")).exists())
        if not RUN_NAME.fullmatch(name):
            raise UserError(f"a run cannot be called {name!r}; use letters, digits, spaces, dots and dashes")
        if (runs / name).exists():
            raise UserError(f"a run {name!r} exists; choose another name, or resume it")
        return name

    def _launch(self, job: Job) -> Job:
        command = [sys.executable, "-m", "cycleback.web.jobs", str(self._project.folder), job.kind, job.run]
        process = subprocess.Popen(
            [*command, *job.settings],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # Ctrl-C in the terminal reaches it once, through the server
        )
        self._jobs[job.id], self._processes[job.id] = job, process
        self._write(job)
        threading.Thread(target=self._collect, args=(job, process), daemon=True).start()
        return job

    def _collect(self, job: Job, process: "subprocess.Popen[str]") -> None:
        """Take in what a process reports until it ends."""
        begin = time.monotonic() - job.seconds
        last: Report = {}
        with process:
            for report in _parse_reports(process.stdout or ()):
                last = report
                with self._lock:
                    job.take({**report, "state": "running"})  # until the process has ended
                    job.seconds = round(time.monotonic() - begin, 1)
        with self._lock:
            self._processes.pop(job.id, None)
            job.state = last.get("state") or ("cancelled" if job.stage == "stopping" else "failed")
            if "state" not in last and not job.message:  # it could not say how it ended
                job.message = f"the process ended with code {process.returncode}"
            self._write(job)

    def _write(self, job: Job) -> None:
        write_json(self._project.state / JOBS_FOLDER / f"{job.id}.json", asdict(job), overwrite=True)

    def _read(self) -> Iterator[Job]:
        """Yield the latest jobs; those of a server that was killed are cancelled, and can be resumed."""
        files = sorted((self._project.state / JOBS_FOLDER).glob("*.json"))
        for old in files[:-MAX_JOBS_KEPT]:
            old.unlink(missing_ok=True)
        for file in files[-MAX_JOBS_KEPT:]:
            with suppress(UserError, ValueError):  # a file that is no job is left alone
                job = JOB.validate_json(read_text(file))
                if job.id != file.stem or (job.kind == "fit" and not RUN_NAME.fullmatch(job.run)):
                    continue
                if job.state == "running":
                    job.state, job.message = "cancelled", "the studio was closed"
                yield job


def _parse_reports(lines: Iterable[str]) -> Iterator[Report]:
    """Yield the reports among the lines of a process; whatever else it prints is left out."""
    for line in lines:
        with suppress(ValueError):
            report = json.loads(line)
            if isinstance(report, dict):
                yield report


# ------------------------------------------------------------------------------------------------ routes


class JobItem(BaseModel):
    """One job as the page sees it."""

    id: str
    kind: Kind
    run: str
    state: State
    stage: str
    done: int
    total: int
    message: str
    started: float
    seconds: float
    can_resume: bool


class JobDetails(JobItem):
    """One job with its curves."""

    curve: list[tuple[int, float, float]]
    similarity: list[list[int]]


class JobRequest(BaseModel):
    """A job to start."""

    kind: Kind
    name: str = Field("", max_length=64)
    updates: int | None = Field(None, ge=10, le=100_000)


def routes(studio: "Studio") -> APIRouter:
    """Start, watch, cancel and resume jobs."""
    router, jobs = APIRouter(), studio.jobs

    @router.get("/jobs")
    def list_jobs() -> list[JobItem]:
        return [JobItem(**_describe(job)) for job in jobs.all]

    @router.post("/jobs")
    def start_job(request: JobRequest) -> JobItem:
        settings = [f"optimizer.num_updates={request.updates}"] if request.updates else []
        return JobItem(**_describe(jobs.start(request.kind, request.name, settings)))

    @router.get("/jobs/{id}")
    def show_job(id: str) -> JobDetails:
        return JobDetails(**_describe(jobs.find(id)))

    @router.post("/jobs/{id}/cancel")
    def cancel_job(id: str) -> JobItem:
        return JobItem(**_describe(jobs.cancel(id)))

    @router.post("/jobs/{id}/open")
    def open_job(id: str) -> JobItem:
        """Show the videos as this job embedded them."""
        job = jobs.find(id)
        studio.matches.store.use(jobs.encoder_of(job))
        return JobItem(**_describe(job))

    @router.post("/jobs/{id}/resume")
    def resume_job(id: str) -> JobItem:
        return JobItem(**_describe(jobs.resume(id)))

    return router


def _describe(job: Job) -> dict[str, Any]:
    return {**asdict(job), "can_resume": job.can_resume}


# ----------------------------------------------------------------------------- in the process of a job


class Reporter:
    """Prints reports, and numbers of progress not more often than the page can use."""

    def __init__(self) -> None:
        self._next = 0.0

    def say(self, **report: Any) -> None:
        """Print one report."""
        print(json.dumps(report), flush=True)

    def count(self, stage: str) -> "Counter":
        """Return a counter of a stage."""

        def report(done: int, total: int) -> None:
            if done >= total or self._is_due():
                self.say(stage=stage, done=done, total=total)

        return report

    def follow_training(self, name: str, total: int) -> "Callable[[StepReport], None]":
        """Return what to call after each update."""

        def report(step: "StepReport") -> None:
            if step.step >= total or self._is_due():
                videos = step.embeddings.detach().float().cpu().numpy()  # (B, T, D)
                self.say(
                    stage="training",
                    done=step.step,
                    total=total,
                    step=step.step,
                    loss=round(step.loss, 6),
                    cycle_rate=round(step.cycle_rate, 4),
                    similarity=draw_similarity(videos[0], videos[-1]),
                )

        return report

    def _is_due(self) -> bool:
        now = time.monotonic()
        is_due = now >= self._next
        self._next = now + SECONDS_BETWEEN_REPORTS if is_due else self._next
        return is_due


def draw_similarity(a: "NDArray[np.float32]", b: "NDArray[np.float32]") -> list[list[int]]:
    """Return how alike the frames of two clips (T, D) are: at most 32 rows of grey, 255 for the nearest."""
    import numpy as np

    from cycleback.alignment.distances import pairwise_squared, thin

    rows, columns = (thin(each.astype(np.float64), SIMILARITY_FRAMES) for each in (a, b))
    distances = np.sqrt(pairwise_squared(rows, columns))
    least, most = distances.min(), distances.max()
    shade = (most - distances) / max(most - least, 1e-12) * 255
    grey: list[list[int]] = shade.round().astype(int).tolist()
    return grey


def work(folder: Path, kind: str, run: str, settings: Sequence[str]) -> None:
    """Do a job: train if it is a fit, then embed the videos of the project."""
    from cycleback.web.embedded import ProjectEmbeddings

    project, reporter = Project.open(folder), Reporter()
    if kind == "fit":
        run = _train(project, project.state / RUNS_FOLDER / run, settings, reporter)
    ProjectEmbeddings(project).embed(run, progress=reporter.count("looking at the videos"))
    reporter.say(state="done", stage="done")


def _train(project: Project, output: Path, settings: Sequence[str], reporter: Reporter) -> str:
    """Train a run, or go on with it, and return its folder."""
    from cycleback.data import read_dataset
    from cycleback.progress import Progress
    from cycleback.recipe import RECIPE_FILE, load_recipe
    from cycleback.runs import saved_recipe, train

    progress = Progress(
        on_frames=reporter.count("decoding videos"),
        on_features=reporter.count("looking at the videos"),
        on_training=reporter.follow_training,
    )
    resume = (output / RECIPE_FILE).exists()
    if resume and saved_recipe(output).encoder.embedder == "pooled":  # trained, and then not better
        return str(output)
    recipe = None if resume else load_recipe(None, list(settings))
    for video in project.videos.values():
        video.look()
    playable = [video.name for video in project.videos.values() if not video.error]
    dataset = read_dataset(project.folder).subset(playable)
    state = train(dataset, output, recipe=recipe, resume=resume, progress=progress)
    if state.is_interrupted:
        raise KeyboardInterrupt
    verdict = "training did not help: the untrained streams are kept" if state.kept_untrained else "trained"
    reporter.say(message=f"{verdict}, {state.step} updates in {state.seconds:.0f} s")
    return str(output)


def stop_with_parent() -> None:
    """Interrupt this process when the server is gone: its end of the pipe then closes."""

    def watch() -> None:
        sys.stdin.read()
        _thread.interrupt_main()

    threading.Thread(target=watch, daemon=True).start()


def main(argv: Sequence[str]) -> int:
    """Do the job that the arguments name; the last report tells how it ended."""
    folder, kind, run, *settings = argv
    stop_with_parent()
    reporter = Reporter()
    try:
        work(Path(folder), kind, run, settings)
    except KeyboardInterrupt:
        reporter.say(state="cancelled", stage="stopped")
    except UserError as error:
        reporter.say(state="failed", stage="failed", message=str(error))
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
