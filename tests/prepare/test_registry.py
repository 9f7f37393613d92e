from pathlib import Path

import pytest

import cycleback.prepare
from cycleback.errors import ConfigError, DataError
from cycleback.prepare import PREPARERS, prepare
from cycleback.prepare.registry import option_names


def test_names_are_public() -> None:
    assert tuple(PREPARERS) == ("pouring", "penn-action", "golfdb", "penn-poses", "lerobot")
    assert all(hasattr(cycleback.prepare, name) for name in cycleback.prepare.__all__)


def test_unknown_name_is_refused_with_the_list(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"no data set is called 'kinetics'\. Known: pouring, penn-action, golfdb, penn-poses"
    ):
        prepare("kinetics", tmp_path, tmp_path / "out")
    with pytest.raises(DataError, match=r"no data set is called 'penn-pose'\. Did you mean 'penn-poses'"):
        prepare("penn-pose", tmp_path, tmp_path / "out")


@pytest.mark.parametrize("name", PREPARERS)
def test_a_missing_or_empty_source_is_one_line(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"no {name} at .*gone: it does not exist"):
        prepare(name, tmp_path / "gone", tmp_path / "out")
    (tmp_path / "in").mkdir()
    with pytest.raises(DataError, match=r"[Ee]xpected"):
        prepare(name, tmp_path / "in", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["pouring", "penn-action", "golfdb"])
def test_a_file_is_not_a_folder(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match=f"file is a file. Pass the folder that contains {name}"):
        prepare(name, tmp_path / "file", tmp_path / "out")


@pytest.mark.parametrize("name", PREPARERS)
def test_unknown_option_is_refused_with_the_list(name: str, tmp_path: Path) -> None:
    listed = ", ".join(option_names(name))
    with pytest.raises(ConfigError, match=f"{name} has no option 'progress'. Known: {listed}"):
        prepare(name, tmp_path, tmp_path / "out", options={"progress": None})
