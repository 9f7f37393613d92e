"""Growth of time and memory with videos, frames, the length of a video and the size of a set."""

from collections.abc import Iterator
from functools import partial

from cycleback.evaluation import evaluate
from speed_clock import CPU, Found, Setting, attempted, seconds
from speed_embedding import by_length
from speed_evaluation import paper_sized
from speed_training import timed_step


def steps(setting: Setting, sizes: list[tuple[int, int]]) -> Iterator[Found]:
    """Measure time and memory of the step for each (videos, frames)."""
    for videos, frames in sizes:
        recipe = setting.recipe(f"data.frames_per_video={frames}")
        run = partial(timed_step, setting.best_eager_rung, recipe, videos=videos, setting=setting, repeats=7)
        row = attempted(f"step of {videos} videos of {frames} frames", run, setting)
        if row is not None:
            yield {"videos": videos, "frames": frames, **row}


def evaluations(setting: Setting) -> Iterator[Found]:
    """Measure seconds per report on parts of the set, with the same share of every action."""
    videos = paper_sized(setting)
    evaluate(None, videos.subset(videos.names[:3]))  # compiles
    for share in (4, 2) if setting.is_smoke else (16, 8, 4):
        part = videos.subset(videos.names[::share])
        yield {
            "videos": len(part.names),
            "seconds": seconds(partial(evaluate, None, part), device=CPU),
        }


def measure(setting: Setting) -> Iterator[Found]:
    """Measure every curve."""
    smoke, rung = setting.is_smoke, setting.best_eager_rung
    counts, lengths = ((2, 3), (6, 8)) if smoke else ((2, 4, 8, 16, 32), (10, 20, 40, 80))
    frames = 6 if smoke else 20
    yield {"rung": rung, "by_videos": list(steps(setting, [(count, frames) for count in counts]))}
    yield {"by_frames": list(steps(setting, [(setting.videos, length) for length in lengths]))}
    small = setting.recipe("encoder.base=small", "encoder.train_base=all")
    sizes = (8, 16) if smoke else (100, 300, 1_000, 3_000, 10_000, 20_000)
    yield {"by_length": list(by_length(small, setting, sizes))}
    yield {"by_set": list(evaluations(setting))}
