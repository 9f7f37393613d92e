import pytest

import cycleback.models
from cycleback.models import BASES, EMBEDDERS, Base, Embedder, ResNet50, SmallBase, build_base, build_embedder
from cycleback.models.pooling_embedders import PooledEmbedder


def test_names_build_their_classes_with_options() -> None:
    base = build_base("small", width=2)
    assert isinstance(base, SmallBase) and base.channels == 8
    embedder = build_embedder("pooled", 8, grid=2)
    assert isinstance(embedder, PooledEmbedder) and embedder.grid == 2


def test_a_misspelt_base_gets_a_guess() -> None:
    with pytest.raises(
        ValueError, match=r"no base 'efficientnet-lite'\. Did you mean 'efficientnet_lite0'\?"
    ):
        build_base("efficientnet-lite")


def test_an_unknown_embedder_gets_the_list() -> None:
    with pytest.raises(
        ValueError, match=r"there is no embedder 'xyz'\. Known: conv, gru, mlp, pooled, transformer\."
    ):
        build_embedder("xyz", 8)


def test_tables_hold_bases_and_embedders() -> None:
    assert all(issubclass(kind, Base) for kind in BASES.values())
    assert all(issubclass(kind, Embedder) for kind in EMBEDDERS.values())


def test_public_names_are_sorted_and_exist() -> None:
    names = cycleback.models.__all__
    assert all(hasattr(cycleback.models, name) for name in names)
    assert len(set(names)) == len(names)


def test_recipes_can_write_nothing_as_an_empty_value() -> None:
    base = build_base("resnet50", weights="", layer="layer1[0]", strides="")
    assert isinstance(base, ResNet50) and base.strides == "v1"
    embedder = build_embedder("conv", 8, reduce_channels=0, conv_channels=[4], fc_channels=[4])
    assert (
        embedder.state_dict().keys()
        == build_embedder("conv", 8, conv_channels=[4], fc_channels=[4]).state_dict().keys()
    )
