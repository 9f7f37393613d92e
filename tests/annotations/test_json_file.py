import json

import pytest

from cycleback.annotations.json_file import read, write
from cycleback.errors import DataError


def test_what_is_not_known_is_not_written(drawn) -> None:
    written = json.loads(write([drawn(1)]))
    assert written["format"] == "cycleback-annotations"
    assert "null" not in write([drawn(1)])


def test_a_moment_without_a_time_names_its_place() -> None:
    text = '{"videos": [{"video": "a", "events": [{"name": "top", "at": {}}]}]}'
    with pytest.raises(DataError, match=r"x\.json, videos\[0\], events\[0\], at: no 'seconds' here"):
        read(text, "x.json")
