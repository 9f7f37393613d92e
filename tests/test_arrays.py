import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from cycleback.arrays import array_checksum, open_npy, open_npz
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
        assert array_checksum(opened) == array_checksum(np.ascontiguousarray(each))


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
