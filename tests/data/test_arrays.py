"""Arrays on disk: written row by row, and never used with a changed byte."""

import os
from pathlib import Path

import numpy as np
import pytest

from cycleback.data import arrays as module
from cycleback.data.arrays import compute_checksum, open_array, write_array, write_rows


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_VERIFIED", {})


def test_rows_that_were_added_come_back_and_numpy_reads_the_file(tmp_path: Path) -> None:
    expected = np.random.default_rng(0).normal(size=(700, 3, 5)).astype(np.float16)
    with write_rows(tmp_path / "a.npy", np.float16, (3, 5), with_checksum=True) as append:
        for start in (0, 300, 301):
            append(expected[start : {0: 300, 300: 301, 301: 700}[start]])
    found = open_array(tmp_path / "a.npy", np.float16, (700, 3, None))
    assert found is not None and isinstance(found, np.memmap)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), expected)
    assert open_array(tmp_path / "a.npy", np.float16, (699, 3, 5)) is None
    assert open_array(tmp_path / "a.npy", np.float32, (700, 3, 5)) is None


@pytest.mark.parametrize("size", [10, 5000, 40_000])
def test_any_changed_byte_is_found(tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK_PAGES", 2)
    path = tmp_path / "a.npy"
    write_array(path, np.random.default_rng(1).integers(0, 256, size, dtype=np.uint8), with_checksum=True)
    content = path.read_bytes()
    for place in np.random.default_rng(2).integers(0, len(content), 60).tolist():
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        module._VERIFIED.clear()
        assert open_array(path, np.uint8, (size,)) is None, place
    path.write_bytes(content)
    module._VERIFIED.clear()
    assert open_array(path, np.uint8, (size,)) is not None


def test_swapped_and_lost_pages_are_found() -> None:
    content = np.random.default_rng(3).integers(0, 256, 5 * 4096 + 17, dtype=np.uint8)
    swapped = content.copy()
    swapped[:4096], swapped[4096:8192] = content[4096:8192], content[:4096]
    lost = content.copy()
    lost[8192:12288] = 0
    assert len({compute_checksum(each) for each in (content, swapped, lost, content[:-1])}) == 4


def test_a_file_without_a_checksum_is_of_an_earlier_version(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(5))
    assert open_array(tmp_path / "a.npy", np.int64, (5,)) is not None
    os.truncate(tmp_path / "a.npy", 140)
    assert open_array(tmp_path / "a.npy", np.int64, (5,)) is None
