import json
import sys
from pathlib import Path

import pytest
import torch

from cycleback.errors import CheckpointError, MissingDependencyError
from cycleback.training import read_log
from cycleback.training.log import PIXELS_PER_FRAME, draw_neighbors, draw_similarity


def test_nothing_is_written_unless_asked_for(tmp_path: Path, trainer) -> None:
    trainer(1).run(tmp_path)
    assert not (tmp_path / "tensorboard").exists()


def test_scalars_and_the_similarity_matrix_are_written(tmp_path: Path, trainer) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    trainer(4, log_every=2, tensorboard=True, select_every=2).run(tmp_path, evaluate_held_out=lambda: 0.5)
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    names = {"loss", "loss/tcc", "loss/tcn", "cycle_rate", "backwards", "learning_rate", "gradient_norm"}
    assert set(events.Tags()["scalars"]) == {*names, "held_out_cycle_rate"}
    assert [event.step for event in events.Scalars("loss")] == [2, 4]
    assert [image.width for image in events.Images("similarity")] == [6 * PIXELS_PER_FRAME] * 2


def test_the_nearest_frames_are_brightest() -> None:
    image = draw_similarity(torch.tensor([[0.0], [1.0]]), torch.tensor([[1.0], [3.0]]))
    cells = image[::PIXELS_PER_FRAME, ::PIXELS_PER_FRAME]
    torch.testing.assert_close(cells, torch.tensor([[2 / 3, 0.0], [1.0, 1 / 3]]))
    assert draw_similarity(torch.zeros(2, 1), torch.zeros(2, 1)).isfinite().all()


def test_a_missing_package_is_one_line(tmp_path: Path, trainer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(MissingDependencyError) as error:
        trainer(1, tensorboard=True).run(tmp_path)
    assert str(error.value) == "run.tensorboard needs tensorboard: pip install 'cycleback[track]'"


def test_a_strip_shows_frames_above_their_nearest_neighbours() -> None:
    shades = torch.arange(6, dtype=torch.uint8).reshape(2, 3, 1, 1, 1).expand(2, 3, 2, 2, 3)
    strip = draw_neighbors(shades, torch.tensor([[0.0], [1.0], [2.0]]), torch.tensor([[2.1], [0.1], [1.1]]))
    assert strip.shape == (4, 6, 3)
    assert strip[::2, ::2, 0].tolist() == [[0, 1, 2], [4, 5, 3]]


@pytest.mark.parametrize(
    "line", ["x", "3", '{"loss": 1}', '{"step": 1, "loss": "x"}', '{"step": -1}', "[" * 9999]
)
def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "log.jsonl").write_text(f'{{"step": 1}}\n{line}\n{{"step": 3}}\n')
    with pytest.raises(CheckpointError, match=r"log\.jsonl, line 2.*\. Remove this line"):
        read_log(tmp_path)


def test_a_log_line_cut_off_by_a_kill_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(json.dumps({"step": 1}) + '\n{"step": 2, "lo')
    assert read_log(tmp_path) == [{"step": 1}]
