"""Arrays on disk: those of anybody, and our own, which are never used with a changed byte."""

import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from cycleback import arrays as module
from cycleback.arrays import (
    checksum_array,
    checksum_bytes,
    open_array,
    open_npy,
    open_npz,
    write_array,
    write_rows,
)
from cycleback.errors import DataError


def npy(array: np.ndarray, **options: bool) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def claim(shape: tuple[int, ...], dtype: str = "<f4") -> bytes:
    """Return an .npy whose header claims a shape, with sixteen bytes of data."""
    stream = io.BytesIO()
    header = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue() + bytes(16)


def zipped(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return path


def test_an_array_comes_back_memory_mapped_in_either_order(tmp_path: Path) -> None:
    array = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    for each in (array, np.asfortranarray(array), array[:0]):
        (tmp_path / "a.npy").write_bytes(npy(each))
        opened = open_npy(tmp_path / "a.npy", np.float32, 2, explain=DataError)
        np.testing.assert_array_equal(opened, each)
        assert checksum_array(opened) == checksum_array(np.ascontiguousarray(each))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "damaged"),
        (b"\x89PNG\r\n\x1a\n" + bytes(40), "damaged"),
        (npy(np.ones((2, 2))), r"expected float32 with 2 dimensions, got float64 \(2, 2\)"),
        (npy(np.ones((2, 2), np.float32))[:-1], r"needs 144 bytes, the file has 143"),
        (npy(np.ones((2, 2), np.float32)) + b"x", r"needs 144 bytes, the file has 145"),
        (claim((2**62, 2**62)), "it is damaged"),
        (claim((-4, 1)), r"shape \(-4, 1\)"),
        (npy(np.array([[{}]], dtype=object), allow_pickle=True), "got object"),
        (npy(np.ones((2, 2), np.float32)).replace(b"(2, 2)", b"((((("), "damaged"),
    ],
)
def test_what_is_no_such_array_is_one_line(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(DataError, match=words) as caught:
        open_npy(tmp_path / "a.npy", np.float32, 2, explain=DataError)
    assert "\n" not in str(caught.value)


def test_only_the_arrays_that_are_read_must_be_right(tmp_path: Path) -> None:
    strange = npy(np.array([{}], dtype=object), allow_pickle=True)
    path = zipped(tmp_path / "a.npz", right=npy(np.arange(6).reshape(2, 3)), strange=strange)
    with open_npz(path, explain=DataError) as archive:
        assert archive.headers["right"].shape == (2, 3)
        np.testing.assert_array_equal(archive.read("right"), np.arange(6).reshape(2, 3))
        with pytest.raises(DataError, match="'strange' must hold numbers, got object"):
            archive.read("strange")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (claim((10**9, 10**9)), "expected at most"),
        (claim((10**8,)), "claims to be float32"),
        (claim((4,)) + b"x", "holds more than"),
        (claim((3,), "<c8"), "must hold numbers, got complex64"),
        (claim((3,), "<U4"), "must hold numbers, got <U4"),
    ],
)
def test_a_claimed_size_fills_no_memory(tmp_path: Path, content: bytes, words: str) -> None:
    with (
        open_npz(zipped(tmp_path / "a.npz", a=content), explain=DataError) as archive,
        pytest.raises(DataError, match=words),
    ):
        archive.read("a")


def test_a_flipped_byte_of_a_member_is_noticed(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", a=np.zeros(1000))
    content = bytearray((tmp_path / "a.npz").read_bytes())
    content[4000] ^= 1
    (tmp_path / "a.npz").write_bytes(content)
    with (
        open_npz(tmp_path / "a.npz", explain=DataError) as archive,
        pytest.raises(DataError, match="Bad CRC-32"),
    ):
        archive.read("a")


@pytest.mark.parametrize("content", [b"", b"PK\x05\x06" + bytes(18), b"\x89PNG", b"\x80\x04."])
def test_what_is_no_archive_is_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(DataError) as caught, open_npz(tmp_path / "a.npz", explain=DataError):
        pass
    assert "\n" not in str(caught.value)


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
    assert len({checksum_bytes(each) for each in (content, swapped, lost, content[:-1])}) == 4


def test_a_file_without_a_checksum_is_of_an_earlier_version(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(5))
    assert open_array(tmp_path / "a.npy", np.int64, (5,)) is not None
    os.truncate(tmp_path / "a.npy", 140)
    assert open_array(tmp_path / "a.npy", np.int64, (5,)) is None
