import pytest

from cycleback.data.names import NameIndex, natural_key, without_suffix

NAMES = ("train/cup/a", "train/cup/b", "val/cup/b", "K87g_254.0_259.0", "top")


def test_numbers_sort_by_value() -> None:
    names = ["clip10", "clip2", "clip1", "10", "9", "b1/x", "clip2b"]
    assert sorted(names, key=natural_key) == ["9", "10", "b1/x", "clip1", "clip2", "clip2b", "clip10"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a.mp4", "a"), ("a.MOV", "a"), ("x_259.0", "x_259.0"), ("p.npz", "p"), ("n.txt", "n.txt")],
)
def test_only_suffixes_of_videos_are_taken_off(name: str, expected: str) -> None:
    assert without_suffix(name) == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("train/cup/a", "train/cup/a"),
        ("a.mp4", "train/cup/a"),
        ("cup/a", "train/cup/a"),
        (r"train\cup\a.mov", "train/cup/a"),
        ("./top.MP4", "top"),
        ("K87g_254.0_259.0.mp4", "K87g_254.0_259.0"),
        ("K87g_254.0_259.0", "K87g_254.0_259.0"),
        ("b", None),
        ("c", None),
        ("", None),
    ],
)
def test_a_written_name_finds_its_video(written: str, expected: str | None) -> None:
    assert NameIndex(NAMES).match(written) == expected


def test_a_full_name_wins_over_the_end_of_another() -> None:
    assert NameIndex(["a", "x/a"]).match("a.mp4") == "a"


def test_the_closest_name_is_offered_when_one_is_close() -> None:
    index = NameIndex(["pouring_001", "pouring_020"])
    assert index.closest("pouring_021.mp4") == "pouring_020"
    assert index.closest("zzz") is None
