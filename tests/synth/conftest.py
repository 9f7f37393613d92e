"""Takes and small data sets that several tests look at; small frames, so that they cost little."""

from pathlib import Path

import numpy as np
import pytest

from cycleback.synth import RenderedVideo, SynthVideo, Take, plan_take, render_video, write_dataset
from cycleback.synth.levels import LEVELS


@pytest.fixture(scope="session", params=sorted(LEVELS))
def takes(request: pytest.FixtureRequest) -> list[Take]:
    """Thirty takes of one level."""
    return [plan_take(seed, level=request.param) for seed in range(30)]


@pytest.fixture(scope="session")
def video() -> RenderedVideo:
    return render_video(5, size=64)


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[SynthVideo]]:
    """Five hard videos, the last three of which go wrong, written by one process."""
    folder = tmp_path_factory.mktemp("synth") / "pouring"
    return folder, write_dataset(folder, videos=5, seed=7, level="hard", size=48, anomalies=3, jobs=1)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
