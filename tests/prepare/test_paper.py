from cycleback.prepare.paper import PENN_ACTION, POURING, fewer_than_the_paper, more_than_the_paper

PHASES = [4, 3, 2, 3, 6, 3, 4, 2, 2, 2, 4, 3, 4]  # "Number of phases" of the paper's table, Penn Action


def test_events_make_the_papers_number_of_phases() -> None:
    assert [len(action.events) + 1 for action in PENN_ACTION.values()] == PHASES
    assert len(POURING.events) + 1 == 5


def test_counts_add_up_to_the_table() -> None:
    assert sum(action.train for action in PENN_ACTION.values()) == 1160
    assert sum(action.val for action in PENN_ACTION.values()) == 966


def test_counts_are_compared_both_ways() -> None:
    found = {"squat": {"train": 113, "val": 117}}
    expected = {"squat": PENN_ACTION["squat"]}
    assert fewer_than_the_paper(found, expected) == ["squat train: 113 of the paper's 114 videos"]
    assert more_than_the_paper(found, expected) == ["squat val 117, paper 116"]
