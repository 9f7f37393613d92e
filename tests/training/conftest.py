from collections.abc import Callable
from pathlib import Path

import pytest

from cycleback.training import Trainer
from training.tiny import make_trainer


@pytest.fixture
def trainer() -> Callable[..., Trainer]:
    return make_trainer


@pytest.fixture
def folder(tmp_path: Path) -> Callable[[str], Path]:
    """Make an empty run folder."""

    def make(name: str) -> Path:
        (tmp_path / name).mkdir()
        return tmp_path / name

    return make
