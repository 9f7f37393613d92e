from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import cycleback
from cycleback.errors import CheckpointError
from cycleback.models import Encoder, save_encoder
from cycleback.recipe import Recipe, build_encoder, recipe_toml
from cycleback.recipe.sections import ConvSettings, EncoderSettings
from cycleback.runs import PRETRAINED, find_run, folder, load_encoder, published_models, run_split

CONV = ConvSettings(conv_channels=(4,), fc_channels=(4,), embedding_size=3)
TINY = Recipe(encoder=EncoderSettings(streams=("appearance",), base="small", embedder="conv", conv=CONV))
MakeModel = Callable[[Path], Encoder]


@pytest.fixture
def make_model() -> MakeModel:
    """Writes a tiny model into a folder."""

    def make(folder: Path) -> Encoder:
        torch.manual_seed(0)
        encoder = build_encoder(TINY).eval()
        save_encoder(folder, encoder, {}, half=True)
        (folder / "recipe.toml").write_text(recipe_toml(TINY))
        (folder / "videos.json").write_text('{"train": ["a", "b"], "held_out": ["c"]}')
        return encoder

    return make


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty place for models, in an empty working folder."""
    monkeypatch.setattr(folder, "FOLDERS", (tmp_path / "installed", tmp_path / "checkout"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "installed"


def test_models_are_found_in_the_package_and_at_the_root_of_a_checkout(
    models: Path, make_model: MakeModel
) -> None:
    assert published_models() == {}
    make_model(models.parent / "checkout" / "golf")
    make_model(models.parent / "checkout" / "both")
    make_model(models / "both")
    (models / "notes").mkdir()
    assert published_models() == {"golf": models.parent / "checkout" / "golf", "both": models / "both"}


def test_the_places_are_those_of_this_checkout() -> None:
    root = Path(__file__).resolve().parents[2]
    assert (root / "src" / "cycleback" / "published", root / "models") == folder.FOLDERS


def test_a_run_folder_goes_before_a_model_of_the_same_name(models: Path, make_model: MakeModel) -> None:
    make_model(models / "golf")
    Path("golf").mkdir()  # of videos, perhaps
    assert find_run("golf") == models / "golf"
    make_model(Path("golf"))
    assert find_run("golf") == Path("golf")


def test_a_folder_that_is_no_run_is_left_to_whoever_opens_it(models: Path) -> None:
    Path("clips").mkdir()
    assert find_run("clips") == Path("clips")
    with pytest.raises(CheckpointError, match=r"no run in clips \(looked for recipe\.toml\)"):
        load_encoder("clips")


def test_an_encoder_is_loaded_by_name_in_the_precision_it_works_in(
    models: Path, make_model: MakeModel
) -> None:
    exact, loaded = make_model(models / "golf"), load_encoder("golf")
    assert {parameter.dtype for parameter in loaded.parameters()} == {torch.float32}
    pictures = torch.rand(5, 3, 32, 32)
    first, second = (
        torch.cat(list(each.embed_stream([each.features(pictures)]))) for each in (exact, loaded)
    )
    assert 0 < (first - second).norm() < 0.01 * first.norm()


def test_the_videos_of_a_model_are_known_by_its_name(models: Path, make_model: MakeModel) -> None:
    make_model(models / "golf")
    assert run_split("golf") == {"train": ["a", "b"], "held_out": ["c"]}


def test_a_typo_is_guessed(models: Path, make_model: MakeModel) -> None:
    make_model(models / "golf-lite")
    with pytest.raises(CheckpointError) as caught:
        cycleback.load_encoder("gulf-lite")
    assert str(caught.value) == (
        "no run in gulf-lite (looked for recipe.toml). Did you mean 'golf-lite'? "
        "Train one: cycleback train VIDEOS -o gulf-lite"
    )


def test_without_any_model_the_error_names_what_there_is(models: Path) -> None:
    with pytest.raises(CheckpointError, match=r"no run in runs/golf .*Known: pretrained\. Train"):
        load_encoder("runs/golf")
    assert load_encoder(PRETRAINED).embedding_size > 100


def test_the_pretrained_encoder_has_no_videos(models: Path) -> None:
    with pytest.raises(CheckpointError, match="'pretrained' has no training videos; pass a run folder"):
        run_split(PRETRAINED)
