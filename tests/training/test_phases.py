from pathlib import Path

import numpy as np
import pytest
import torch

from cycleback.data import VideoRecord
from cycleback.errors import DataError
from cycleback.training.phases import label_phases


def record(name: str, action: str = "", **events: float) -> VideoRecord:
    return VideoRecord(name=name, path=Path(name), action=action, events=events)


def times_of(*records: VideoRecord, frames: int = 6) -> dict[str, np.ndarray]:
    return {record.name: np.arange(frames) / 30 for record in records}


def test_each_action_has_phases_of_its_own() -> None:
    videos = [record("a", "pour", touch=2, lift=4), record("b", "bowl", throw=3)]
    labels = label_phases(videos, times_of(*videos), batch_size=2)
    assert labels.num_phases == 5
    assert torch.equal(labels.videos[0], torch.tensor([2, 2, 3, 3, 4, 4]))
    assert torch.equal(labels.videos[1], torch.tensor([0, 0, 0, 1, 1, 1]))


def test_a_video_that_lacks_an_event_is_unlabelled() -> None:
    videos = [record("a", touch=2, lift=4), record("b", touch=1), record("c", touch=1, lift=2)]
    labels = label_phases(videos, times_of(*videos), batch_size=2)
    assert torch.equal(labels.videos[1], torch.full((6,), -1))


def test_batches_that_could_have_no_label_are_refused() -> None:
    videos = [record("a", touch=2), record("b"), record("c")]
    with pytest.raises(DataError, match=r"2 of 3 training videos of the data set lack .* \(the first: b\)"):
        label_phases(videos, times_of(*videos), batch_size=2)


def test_an_action_without_labels_is_named() -> None:
    videos = [record("a", "pour", touch=2), record("b", "bowl")]
    with pytest.raises(DataError, match="1 of 1 training videos of action 'bowl' lack key events"):
        label_phases(videos, times_of(*videos), batch_size=4)
