from pathlib import Path

import pytest

from cycleback.errors import DataError
from cycleback.prepare.tfrecord import count_records, iter_records
from prepare.formats import record_bytes


def write(path: Path, *records: bytes) -> Path:
    path.write_bytes(b"".join(record_bytes(data) for data in records))
    return path


def test_records_come_back_in_order(tmp_path: Path) -> None:
    records = [b"first", b"", bytes(range(256)) * 70]
    path = write(tmp_path / "a.tfrecord", *records)
    assert list(iter_records(path)) == records
    assert count_records(path) == 3


def test_an_empty_file_has_no_records(tmp_path: Path) -> None:
    assert count_records(write(tmp_path / "a.tfrecord")) == 0


@pytest.mark.parametrize(("kept", "end"), [(8, 12), (20, 26), (30, 38), (140, 142)])
def test_a_cut_off_file_is_named_with_its_sizes(tmp_path: Path, kept: int, end: int) -> None:
    path = write(tmp_path / "a.tfrecord", b"0123456789", b"x" * 100)  # 26 and 116 bytes
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(DataError, match=rf"a\.tfrecord: cut off: .* to byte {end}, the file has {kept}\."):
        list(iter_records(path))


def test_a_changed_byte_of_the_data_is_found(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tfrecord", b"0123456789")
    damaged = bytearray(path.read_bytes())
    damaged[15] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(DataError, match="checksum of the 10 bytes from byte 12 does not fit"):
        list(iter_records(path))
    assert len(list(iter_records(path, check_data=False))) == 1


def test_another_kind_of_file_is_no_tfrecord(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(b"<html>404 Not Found</html>")
    with pytest.raises(DataError, match=r"no record begins at byte 0.*no TFRecord file"):
        count_records(path)


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read .*gone\.tfrecord: No such file"):
        count_records(tmp_path / "gone.tfrecord")


def test_files_of_tensorboard_are_read(tmp_path: Path) -> None:
    writer = pytest.importorskip("tensorboard.summary.writer.record_writer")
    path = tmp_path / "events"
    with path.open("wb") as stream:
        records = writer.RecordWriter(stream)
        records.write(b"abc" * 9000)
        records.write(b"end")
        records.flush()
    assert list(iter_records(path)) == [b"abc" * 9000, b"end"]
