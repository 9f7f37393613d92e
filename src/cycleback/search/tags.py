"""Tags of videos, to search some of them only: who acts, which camera, which day.

tags.csv in a folder of videos has a column `video` and one per tag; `person` of people.csv is a tag, too.
An empty cell is no tag.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from cycleback.data.folder import Videos, names_folder
from cycleback.data.records import NameIndex, VideoRecord
from cycleback.errors import DataError, UserError
from cycleback.search.corpus import Tags
from cycleback.tables import read_table

TAGS_FILE = "tags.csv"


def parse_tags(words: Sequence[str]) -> dict[str, str]:
    """Split words such as `golfer=kim` into tags."""
    tags: dict[str, str] = {}
    for word in words:
        key, equals, value = (part.strip() for part in word.partition("="))
        if not (key and equals and value):
            raise UserError(f"{word!r} is not a tag; expected KEY=VALUE, such as golfer=kim")
        if key.lower() in tags:
            raise UserError(f"the tag {key!r} was given twice: a video has one value of it")
        tags[key.lower()] = value
    return tags


def read_tags(path: Path | str, names: Collection[str]) -> dict[str, Tags]:
    """Read the tags of the videos `names` from a table; rows of other videos are refused."""
    index, found = NameIndex(names), dict[str, Tags]()
    for line, row in read_table(path, ("video",)):
        name = index.match(row["video"])
        if name is None:
            hint = index.suggest(row["video"], otherwise=f"There are {len(names)} videos.")
            raise DataError(f"{path}, line {line}: there is no video {row['video']!r}. {hint}")
        if name in found:
            raise DataError(f"{path}, line {line}: a second row of {name!r}; expected one per video")
        found[name] = {key: value for key, value in row.items() if key not in ("video", "") and value}
    return found


def collect_tags(videos: Videos, records: Sequence[VideoRecord]) -> dict[str, Tags]:
    """Return the tags of the records of what a user named, from its folder."""
    tags: dict[str, Tags] = {record.name: {"person": record.person} for record in records if record.person}
    path = Path(videos) / TAGS_FILE if isinstance(videos, str | Path) and names_folder(videos) else None
    written: Mapping[str, Tags] = {}
    if path is not None and path.is_file():
        written = read_tags(path, [record.name for record in records])
    return {name: {**tags.get(name, {}), **written.get(name, {})} for name in {*tags, *written}}
