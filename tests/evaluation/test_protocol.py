import pytest

from cycleback.evaluation import PROTOCOLS
from cycleback.evaluation import protocol as module
from cycleback.evaluation.protocol import Protocol, named_protocol


def test_every_protocol_goes_by_its_name():
    assert [(name, protocol.name) for name, protocol in PROTOCOLS.items()] == [
        (name, name) for name in ("linear", "paper", "reference")
    ]


def test_the_text_of_the_paper_and_its_program_are_two_protocols():
    paper, program = PROTOCOLS["paper"], PROTOCOLS["reference"]
    assert (paper.tau_variant, paper.tau_stride, paper.first_videos) == ("strict", 1, False)
    assert (program.tau_variant, program.tau_stride, program.first_videos) == ("b", 5, True)
    assert (program.tau_undefined, program.progression_shift) == ("drop", -1)
    assert program.few_shot_videos == tuple(range(1, 11))


def test_every_protocol_is_in_the_table_of_the_documentation():
    head = next(line for line in module.__doc__.splitlines() if "linear (default)" in line)
    assert all(name in head for name in PROTOCOLS)


def test_a_protocol_of_ones_own_is_taken_as_it_is():
    own = Protocol("own", classifier="svm", tau_stride=2)
    assert named_protocol(own) is own


def test_an_unknown_name_is_an_error_that_lists_the_known_ones():
    with pytest.raises(ValueError, match="one of linear, paper, reference, got 'svm'"):
        named_protocol("svm")
