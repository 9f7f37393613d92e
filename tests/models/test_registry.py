import pytest

import cycleback.models
from cycleback.models import (
    BASES,
    EMBEDDERS,
    Base,
    Embedder,
    PooledEmbedder,
    SmallBase,
    build_base,
    build_embedder,
)


def test_names_build_their_classes_with_options() -> None:
    base = build_base("small", width=2)
    assert isinstance(base, SmallBase) and base.channels == 8
    embedder = build_embedder("pooled", 8, grid=2)
    assert isinstance(embedder, PooledEmbedder) and embedder.grid == 2


def test_a_misspelt_base_gets_a_guess_and_the_list() -> None:
    guess = r"no base 'efficientnet-lite'\. Did you mean 'efficientnet_lite0'\? "
    with pytest.raises(ValueError, match=guess + "Known: efficientnet_lite0, resnet50, small, timm"):
        build_base("efficientnet-lite")


def test_an_unknown_embedder_gets_the_list() -> None:
    with pytest.raises(ValueError, match=r"there is no embedder 'xyz'\. Known: conv, gru, mlp, pooled\."):
        build_embedder("xyz", 8)


def test_tables_hold_bases_and_embedders() -> None:
    assert all(issubclass(kind, Base) for kind in BASES.values())
    assert all(issubclass(kind, Embedder) for kind in EMBEDDERS.values())


def test_public_names_are_sorted_and_exist() -> None:
    names = cycleback.models.__all__
    assert all(hasattr(cycleback.models, name) for name in names)
    assert len(set(names)) == len(names)
