from pathlib import Path

import numpy as np
import pytest

from cycleback.data import VideoRecord, load_sequence
from cycleback.errors import DataError


def sequence(tmp_path: Path, **arrays: object) -> VideoRecord:
    np.savez(tmp_path / "s.npz", **arrays)
    return VideoRecord("s", tmp_path / "s.npz", kind="sequence")


def test_features_and_times_are_read(tmp_path: Path) -> None:
    values = np.arange(12).reshape(4, 3)
    loaded = load_sequence(sequence(tmp_path, features=values, other=np.ones((4, 2)), times=[0, 0.5, 0.6, 2]))
    assert loaded.features.dtype == np.float32 and loaded.times.dtype == np.float64
    np.testing.assert_array_equal(loaded.features, values)
    np.testing.assert_array_equal(loaded.times, [0, 0.5, 0.6, 2])


@pytest.mark.parametrize(
    ("rate", "expected"), [({"fps": 10}, [0, 0.1]), ({"fps": [10.0]}, [0, 0.1]), ({}, [0, 1 / 30])]
)
def test_the_only_table_is_taken_and_the_rate_is_known(tmp_path: Path, rate: dict, expected: list) -> None:
    loaded = load_sequence(sequence(tmp_path, pose=np.ones((2, 5)), ids=np.arange(2), **rate))
    assert loaded.features.shape == (2, 5)
    np.testing.assert_allclose(loaded.times, expected)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            {"a": np.ones((4, 2)), "b": np.ones((4, 3))},
            r"no array 'features', and 2 arrays of two dimensions.*\(4, 3\)",
        ),
        ({"a": np.ones(4)}, r"and 0 arrays of two dimensions among \{'a': \(4,\)\}"),
        ({"features": np.ones((4, 2, 2))}, r"'features' must be numbers of shape .* got float64 \(4, 2, 2\)"),
        ({"features": np.ones((0, 2))}, r"got float64 \(0, 2\)"),
        ({"features": np.array([["x"]])}, r"got <U1 \(1, 1\)"),
        (
            {"features": np.ones((3, 2)), "times": [0, 1]},
            r"'times' must be 3 increasing seconds, got shape \(2,\)",
        ),
        ({"features": np.ones((3, 2)), "times": [0, 1, 1]}, r"'times' must be 3 increasing seconds"),
        ({"features": np.ones((3, 2)), "fps": 0}, r"'fps' must be one number above 0, got \[0\.\]"),
    ],
)
def test_what_is_no_sequence_is_an_error(tmp_path: Path, arrays: dict, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_sequence(sequence(tmp_path, **arrays))


def test_a_file_that_is_damaged_or_holds_objects_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read .*s\.npz.*allow_pickle"):
        load_sequence(sequence(tmp_path, features=np.array([{}], dtype=object)))
    (tmp_path / "s.npz").write_bytes(b"not a zip")
    with pytest.raises(DataError, match=r"cannot read .*s\.npz"):
        load_sequence(VideoRecord("s", tmp_path / "s.npz", kind="sequence"))
    with pytest.raises(ValueError, match="s is of kind 'video', not a sequence"):
        load_sequence(VideoRecord("s", tmp_path / "s.npz"))
