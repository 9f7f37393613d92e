"""Options that commands share: one name, one meaning, one sentence of help."""

from pathlib import Path
from typing import Annotated

import typer

Videos = Annotated[
    list[str] | None, typer.Argument(help="Videos, a folder of them, or names in the embedding set.")
]
Run = Annotated[str, typer.Option(help="Run folder, a model's name such as golf-lite, or 'pretrained'.")]
Embeddings = Annotated[Path | None, typer.Option(help="Embedding set that holds the videos.")]
Method = Annotated[str, typer.Option(help="Alignment: dtw (never runs back) or nearest.")]
Protocol = Annotated[str, typer.Option(help="linear, paper or reference.")]
Level = Annotated[str, typer.Option(help="How much the videos differ: easy or hard.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1 … (default: a GPU if there is one).")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same result.", min=0)]
Table = Annotated[Path, typer.Option("-o", "--output", help="Table to write: .csv or .json.")]
Picture = Annotated[Path | None, typer.Option(help="Picture to write: .png.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
