from typing import Any

import pytest

from cycleback.prepare.sequence_example import MalformedMessageError, parse_sequence_example
from prepare.formats import entry, example_bytes, feature, field


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
    assert example.context == {"name": [b"clip"], "label": [-1, 2**40], "score": [0.5, -2.0]}
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
        (field(1, entry("a", field(2, field(1, b"123")))), "a float is not 4 bytes"),
        (field(1, field(1, field(1, b"\xff\xfe"))), "not UTF-8"),
    ],
)
def test_other_bytes_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(MalformedMessageError, match=message):
        parse_sequence_example(data)
