"""Small corpora for tests, and a run that embeds them in no time: the stream motion needs no network."""

import tomllib
from pathlib import Path

from cycleback.embeddings.shards import SHARDS
from cycleback.models import save_encoder
from cycleback.recipe import RECIPE_FILE, Recipe, build_encoder, recipe_toml
from cycleback.recipe.sections import EncoderSettings


def write_run(folder: Path) -> Path:
    """Write a run folder whose encoder is the untrained stream motion."""
    recipe = Recipe(encoder=EncoderSettings(streams=("motion",), embedder="pooled"))
    folder.mkdir()
    (folder / RECIPE_FILE).write_text(recipe_toml(recipe))
    save_encoder(folder, build_encoder(recipe), tomllib.loads(recipe_toml(recipe))["encoder"])
    return folder


def read_shards(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Return the bytes of all shards, and when they were written, by file name."""
    paths = (folder / SHARDS).rglob("*")
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in paths if path.is_file()}


def read_bytes(folder: Path) -> dict[str, bytes]:
    """Return the bytes of all shards by file name."""
    return {name: content for name, (content, _) in read_shards(folder).items()}
