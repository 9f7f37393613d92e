"""Fixtures every test folder may use."""

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real videos, which is never part of the repository."""
    folder = Path(os.environ.get("CYCLEBACK_DATA", REPOSITORY.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"real videos are not here ({folder}); set CYCLEBACK_DATA")
    return folder
