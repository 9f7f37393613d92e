from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from cycleback.config import apply_override, build, parse_override, read_toml, to_toml
from cycleback.errors import ConfigError


@dataclass(frozen=True)
class Inner:
    rate: float = 0.1
    sizes: tuple[int, ...] = (1, 2)
    kind: Literal["a", "b"] = "a"
    weights: dict[str, float] = field(default_factory=lambda: {"x": 1.0})


@dataclass(frozen=True)
class Outer:
    count: int = 3
    name: str = "n"
    flag: bool = False
    limit: float | None = None
    inner: Inner = field(default_factory=Inner)

    def __post_init__(self) -> None:
        if self.count < 0:
            raise ValueError(f"count must be positive, got {self.count}")


def write(folder: Path, text: str) -> Path:
    path = folder / "run.toml"
    path.write_text(text)
    return path


def load_config(cls: type[Outer], path: Path | None, overrides: Sequence[str] = ()) -> Outer:
    values = {} if path is None else read_toml(path)
    for override in overrides:
        apply_override(values, override)
    return build(cls, values, source="overrides")


def test_defaults_then_file_then_overrides(tmp_path: Path) -> None:
    path = write(tmp_path, "count = 5\n[inner]\nrate = 1e-3\nkind = 'b'\n")
    config = load_config(Outer, path, ["inner.rate=2", "name=hello"])
    assert config == Outer(count=5, name="hello", inner=Inner(rate=2.0, kind="b"))


def test_a_partial_section_keeps_the_other_keys(tmp_path: Path) -> None:
    config = load_config(Outer, write(tmp_path, "[inner]\nrate = 0.5\n"))
    assert config.inner.sizes == (1, 2)


def test_toml_round_trip_is_exact(tmp_path: Path) -> None:
    config = Outer(
        name='quo"te\\', flag=True, limit=1e-9, inner=Inner(sizes=(7,), weights={"x": 0.25, "y": 3.0})
    )
    assert load_config(Outer, write(tmp_path, to_toml(config))) == config


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("inner.rat=1", "there is no key 'inner.rat'. Did you mean 'inner.rate'?"),
        ("zzz=1", "there is no key 'zzz'. Known: count, name, flag, limit, inner."),
        ("count=1.5", "count must be a whole number, got 1.5"),
        ("flag=1", "flag must be true or false, got 1"),
        ("inner.kind=c", "inner.kind must be one of 'a', 'b', got 'c'"),
        (
            "inner.sizes=[1,'x']",
            "inner.sizes must be a list of at most 64 values, each a whole number",
        ),
        ("inner=3", "inner is a section, got 3"),
        ("count=-1", "count must be positive, got -1"),
        ("count", "override 'count' is not of the form section.key=value"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_value(override: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        load_config(Outer, None, [override])
    assert message in str(error.value)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no recipe file at .*absent\.toml"):
        load_config(Outer, tmp_path / "absent.toml")


def test_a_file_that_is_not_toml_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"run\.toml is not a TOML file"):
        load_config(Outer, write(tmp_path, "count 3"))


def test_override_values_are_toml_and_bare_words_are_text() -> None:
    assert parse_override("a.b=[1, 2]") == (["a", "b"], [1, 2])
    assert parse_override("a=word") == (["a"], "word")
    assert parse_override("a=1e-3") == (["a"], 1e-3)


def test_a_key_of_a_table_changes_alone_and_a_table_given_whole_replaces_it(tmp_path: Path) -> None:
    path = write(tmp_path, "[inner]\nweights = { x = 0.5, y = 2.0 }\n")
    assert load_config(Outer, path, ["inner.weights.y=3"]).inner.weights == {"x": 0.5, "y": 3.0}
    assert load_config(Outer, path, ["inner.weights={ y = 3 }"]).inner.weights == {"y": 3.0}


def test_a_value_is_not_a_section() -> None:
    with pytest.raises(ConfigError, match=r"override 'count\.x=1': 'count' is not a section"):
        load_config(Outer, None, ["count=2", "count.x=1"])
