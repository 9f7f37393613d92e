import inspect

import pytest

import cycleback.losses as losses


def test_all_names_exist_and_are_documented():
    assert sorted(losses.__all__) == losses.__all__
    assert all(inspect.getdoc(getattr(losses, name)) for name in losses.__all__)


@pytest.mark.parametrize("name", ["TCCLoss", "TCNLoss"])
def test_needs_are_the_keywords_of_forward(name):
    loss = getattr(losses, name)
    keywords = list(inspect.signature(loss.forward).parameters)[2:]
    assert loss.needs == set(keywords)
