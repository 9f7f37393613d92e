from cycleback.evaluation import Report, to_markdown

BLIND = Report(tau=0.99, event_error_frames=12.0, pce1=0.06)
GOOD = Report(tau=0.9, event_error_frames=4.25, pce1=0.2)


def cells(table: str, row: str) -> list[str]:
    line = next(line for line in table.splitlines() if line.startswith(f"| {row} |"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_numbers_that_do_not_beat_time_only_carry_a_dagger():
    table = to_markdown({"time-only": BLIND, "tcc": GOOD})
    assert cells(table, "time-only") == ["time-only", "12.0", "0.060", "0.9900"]
    assert cells(table, "tcc") == ["tcc", "4.2", "0.200", "0.9000 †"]
    assert "† not better than time-only" in table


def test_an_equal_number_does_not_beat_time_only():
    table = to_markdown({"time-only": BLIND, "same": BLIND})
    assert cells(table, "same") == ["same", "12.0 †", "0.060 †", "0.9900 †"]


def test_without_daggers_there_is_no_legend():
    assert "†" not in to_markdown({"time-only": BLIND, "best": Report(tau=1.0)})
    assert "†" not in to_markdown({"tcc": GOOD})


def test_another_row_can_be_the_one_to_beat():
    table = to_markdown({"frozen base": GOOD, "tcc": BLIND}, baseline="frozen base")
    assert cells(table, "tcc") == ["tcc", "12.0 †", "0.060 †", "0.9900"]
    assert "† not better than frozen base" in table


def test_a_missing_number_is_a_dash_and_an_empty_column_is_left_out():
    table = to_markdown({"time-only": BLIND, "new": Report(tau=0.5)})
    assert cells(table, "new") == ["new", "–", "–", "0.5000 †"]
    assert "progression" not in table


def test_all_lines_of_the_table_have_the_same_cells():
    lines = to_markdown({"time-only": BLIND, "tcc": GOOD}).split("\n\n")[0].splitlines()
    assert len(lines) == 4 and len({line.count("|") for line in lines}) == 1


def test_undefined_pairs_are_said():
    counts = {"tau_undefined": 4, "pairs": 6}
    assert "tau is undefined for 4 of 6 pairs (counted as 0)" in to_markdown({"a": Report(counts=counts)})
    for protocol, words in (("reference", "left out"), ("paper", "counted as -1")):
        table = to_markdown({"a": Report(counts=counts, protocol=protocol)})
        assert f"a: tau is undefined for 4 of 6 pairs ({words})" in table


def test_pairs_matched_backwards_are_said_with_what_to_do():
    table = to_markdown({"a": Report(tau=0.1, counts={"pairs": 12, "pairs_backwards": 8})})
    assert "a: 8 of 12 pairs are matched backwards in time." in table and "loss.weights.order=0.3" in table
    few = to_markdown({"a": Report(tau=0.9, counts={"pairs": 100, "pairs_backwards": 5})})
    assert "backwards" not in few


def test_training_videos_among_the_held_out_are_said():
    table = to_markdown({"a": Report(tau=0.5, counts={"videos_in_both": 2})})
    assert "a: 2 held-out videos are among the training videos" in table


def test_an_embedder_that_can_count_frames_is_flagged() -> None:
    table = to_markdown({"gru": Report(tau=0.9, can_count_frames=True), "time-only": Report(tau=0.99)})
    assert "gru: this embedder can count frames" in table


def test_new_columns_are_marked_too():
    blind, good = Report(precision5=0.5, few_shot1=0.4), Report(precision5=0.4, few_shot1=0.6)
    table = to_markdown({"time-only": blind, "tcc": good})
    assert cells(table, "tcc") == ["tcc", "0.600", "0.400 †"]


def test_intervals_are_shown_when_asked_for():
    rows = {"tcc": Report(event_error_frames=3.0, pce1=0.2, intervals={"event_error_frames": (2.5, 4.0)})}
    assert cells(to_markdown(rows, intervals=True), "tcc") == ["tcc", "3.0 [2.5, 4.0]", "0.200"]
    assert "95 % of 1,000 resamples" in to_markdown(rows, intervals=True)
    assert cells(to_markdown(rows), "tcc") == ["tcc", "3.0", "0.200"]


def test_robust_scores_have_a_column_for_each_perturbation():
    blind = Report(robust={"cropped": {"event_error_frames": 9.0}, "speed": {"event_error_frames": None}})
    good = Report(robust={"cropped": {"event_error_frames": 9.5}, "lead-in": {"event_error_frames": 2.0}})
    table = to_markdown({"time-only": blind, "tcc": good})
    assert "| cropped: event error, frames ↓ | lead-in: event error, frames ↓ |" in table
    assert cells(table, "tcc") == ["tcc", "9.5 †", "2.0"] and cells(table, "time-only")[2] == "–"
