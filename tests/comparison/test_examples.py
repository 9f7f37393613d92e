import numpy as np

from cycleback.comparison.examples import choose_videos, find_example
from cycleback.embeddings import EmbeddingSet


def ramps(lengths: dict[str, int], **facts: object) -> EmbeddingSet:
    arrays = {name: np.linspace(0, 1, length)[:, None] for name, length in lengths.items()}
    return EmbeddingSet.from_arrays(arrays, **facts)


def test_key_events_are_matched_and_held_against_the_truth() -> None:
    videos = ramps({"a": 11, "b": 21}, events={"a": {"top": 5}, "b": {"top": 12}})
    example = find_example({"tcc": videos}, ["a", "b"])
    assert dict(example.moments) == {"top": 5}
    (match,) = example.matches["tcc"]["b"]
    assert (match.frame, match.late) == (10, -2)


def test_without_events_moments_are_spread_over_the_video() -> None:
    example = find_example({"tcc": ramps({"a": 101, "b": 51})}, ["a", "b"])
    assert list(example.moments.values()) == [10, 26, 42, 58, 74, 90]
    assert [match.frame for match in example.matches["tcc"]["b"]] == [5, 13, 21, 29, 37, 45]
    assert all(match.late is None for match in example.matches["tcc"]["b"])


def test_videos_to_show_are_of_one_action_and_the_best_labelled_come_first() -> None:
    lengths = dict.fromkeys(["lone", "cup1", "cup2", "cup3"], 9)
    actions = {name: name[:3] for name in lengths}
    videos = ramps(lengths, actions=actions, events={"lone": {"x": 1}, "cup2": {"y": 1}})
    assert choose_videos(videos) == ["cup2", "cup1", "cup3"]
