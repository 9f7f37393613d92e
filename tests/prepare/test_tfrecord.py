"""CRC-32C against the published vectors (RFC 3720, B.4) and against its definition."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cycleback.errors import DataError
from cycleback.prepare.tfrecord import (
    BLOCK_BYTES,
    MalformedMessageError,
    count_records,
    crc32c,
    iter_records,
    masked_crc32c,
    parse_sequence_example,
)
from prepare.formats import entry, example_bytes, feature, field, record_bytes, slow_crc32c, slow_masked


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
    with pytest.raises(
        DataError, match=rf"a\.tfrecord: cut off: .* needs {end} bytes, the file has {kept}\."
    ):
        list(iter_records(path))


def test_a_changed_byte_of_the_data_is_found(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tfrecord", b"0123456789")
    damaged = bytearray(path.read_bytes())
    damaged[15] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(DataError, match="wrong checksum of the 10 bytes from byte 12"):
        list(iter_records(path))
    assert len(list(iter_records(path, check_data=False))) == 1


def test_another_kind_of_file_is_no_tfrecord(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(b"<html>404 Not Found</html>")
    with pytest.raises(DataError, match=r"no record at byte 0.*not a TFRecord file"):
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


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
    ],
)
def test_known_checksums(data: bytes, expected: int) -> None:
    assert crc32c(data) == expected


@pytest.mark.parametrize("size", [BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 60 * BLOCK_BYTES + 77])
def test_blocks_give_the_checksum_of_the_bit_by_bit_definition(size: int) -> None:
    data = np.random.default_rng(size).bytes(size)
    assert crc32c(data) == slow_crc32c(data)
    assert crc32c(memoryview(data)[1:]) == slow_crc32c(data[1:])


def test_masked_checksum_is_the_one_of_tfrecords() -> None:
    assert masked_crc32c(b"123456789").to_bytes(4, "little") == slow_masked(b"123456789")


def google_message() -> Any:
    """tensorflow/core/example/{feature,example}.proto, built at run time by Google's own library."""
    descriptor_pb2 = pytest.importorskip("google.protobuf.descriptor_pb2")
    from google.protobuf import descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="example.proto", package="t", syntax="proto3")
    kinds = {"bytes": 12, "float": 2, "int64": 3, "string": 9}

    def message(name: str, **fields: str) -> None:
        """Fields are numbered from 1; a star before the kind means repeated."""
        made = file.message_type.add(name=name)
        for number, (key, kind) in enumerate(fields.items(), start=1):
            bare = kind.removeprefix("*")
            one = made.field.add(name=key, number=number, label=3 if kind != bare else 1)
            one.type = kinds.get(bare, 11)
            if bare not in kinds:
                one.type_name = f".t.{bare}"

    for name, value in (("Bytes", "bytes"), ("Float", "float"), ("Int64", "int64")):
        message(f"{name}List", value=f"*{value}")
    message("Feature", bytes_list="BytesList", float_list="FloatList", int64_list="Int64List")
    message("FeatureList", feature="*Feature")
    message("Entry", key="string", value="Feature")
    message("ListEntry", key="string", value="FeatureList")
    message("Features", feature="*Entry")
    message("FeatureLists", feature_list="*ListEntry")
    message("SequenceExample", context="Features", feature_lists="FeatureLists")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("t.SequenceExample"))


def test_reads_what_googles_library_writes() -> None:
    written = google_message()()
    name = written.context.feature.add(key="name")
    name.value.bytes_list.value.append(b"clip")
    written.context.feature.add(key="label").value.int64_list.value.extend([-1, 2**40])
    written.context.feature.add(key="score").value.float_list.value.extend([0.5, -2.0])
    steps = written.feature_lists.feature_list.add(key="frame_labels").value
    for label in (0, 300):
        steps.feature.add().int64_list.value.append(label)
    example = parse_sequence_example(written.SerializeToString())
    assert example.context == {"name": [b"clip"], "label": [-1, 2**40], "score": []}
    assert example.feature_lists == {"frame_labels": [[0], [300]]}


def test_clip_comes_back() -> None:
    example = parse_sequence_example(example_bytes("clip", [b"one", b"two"], [0, 4]))
    assert example.context == {"name": [b"clip"], "len": [2], "label": [-1]}
    assert example.feature_lists == {"video": [[b"one"], [b"two"]], "frame_labels": [[0], [4]]}


def test_numbers_may_come_one_by_one() -> None:
    context = entry("label", feature([3, -7], packed=False))
    assert parse_sequence_example(field(1, context)).context == {"label": [3, -7]}


def test_unknown_fields_are_passed_over() -> None:
    data = b"\x78\x05" + b"\x7d" + b"four" + field(1, entry("len", feature([9]))) + b"\x79" + b"8 bytes!"
    assert parse_sequence_example(data).context == {"len": [9]}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x0a\x7f", "127 bytes from byte 2, but there are only 2"),
        (b"\xff" * 12, "without an end at byte 0 of 12"),
        (b"\x0b", "wire type 3"),
        (b"\x08\x05", r"a number \(5\)"),
        (field(1, field(1, field(1, b"\xff\xfe"))), "not UTF-8"),
    ],
)
def test_other_bytes_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(MalformedMessageError, match=message):
        parse_sequence_example(data)
