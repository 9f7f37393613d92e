"""Every file that the program reads, damaged at random: it is read right, or refused in one line.

`CYCLEBACK_FUZZ=2000 python -m pytest tests/fuzz` tries that many damages of each file.
"""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from cycleback.errors import UserError
from fuzz.mutations import FOREIGN, byte_changes, change_bytes, change_values, value_changes
from fuzz.samples import SAMPLES, Sample

EXAMPLES = int(os.environ.get("CYCLEBACK_FUZZ", "16"))
MAX_MESSAGE = 10_000
tries = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate, Phase.target),  # a damage is small already: making it smaller takes minutes
)


class Folders(dict[str, Path]):
    """A folder of each sample."""

    def __repr__(self) -> str:
        return "folders"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    return Folders({name: tmp_path_factory.mktemp("sample") for name in SAMPLES})


def valid_content(sample: Sample, folder: Path) -> bytes:
    """Return the content of the valid file, which is put aside when the folder is made."""
    kept = folder.with_name(f"{folder.name}.kept")
    if not kept.exists():
        sample.write(folder)
        kept.write_bytes((folder / sample.target).read_bytes())
    return kept.read_bytes()


def read_damaged(sample: Sample, folder: Path, content: bytes) -> None:
    (folder / sample.target).write_bytes(content)
    try:
        sample.read(folder)
    except UserError as error:
        assert "\n" not in str(error) and 10 < len(str(error)) < MAX_MESSAGE


@pytest.mark.parametrize("name", SAMPLES)
def test_whole_files_are_read_and_foreign_ones_refused(folders: Folders, name: str) -> None:
    sample = SAMPLES[name]
    content = valid_content(sample, folders[name])
    (folders[name] / sample.target).write_bytes(content)
    sample.read(folders[name])
    for foreign in FOREIGN:
        read_damaged(sample, folders[name], foreign)


@pytest.mark.parametrize("name", SAMPLES)
@tries
@given(changes=byte_changes)
def test_damaged_bytes(folders: Folders, name: str, changes) -> None:
    content = valid_content(SAMPLES[name], folders[name])
    read_damaged(SAMPLES[name], folders[name], change_bytes(content, changes))


@pytest.mark.parametrize("name", [name for name, sample in SAMPLES.items() if sample.has_values])
@tries
@given(changes=value_changes)
def test_wrong_values(folders: Folders, name: str, changes) -> None:
    sample = SAMPLES[name]
    content = valid_content(sample, folders[name])
    read_damaged(sample, folders[name], change_values(Path(sample.target).name, content, changes))
