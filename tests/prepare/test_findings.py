from cycleback.prepare.findings import Findings


def test_each_kind_is_one_line_with_its_count_and_first_case() -> None:
    findings = Findings()
    findings.add("videos without labels", "a")
    findings.add("videos without labels", "b")
    findings.add("odd names", "c")
    assert findings.lines() == ("videos without labels: 2 (first: a)", "odd names: 1 (c)")
