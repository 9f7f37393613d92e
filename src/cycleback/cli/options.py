"""Options that several commands share: one name, one meaning, one sentence of help."""

from pathlib import Path
from typing import Annotated

import typer

from cycleback.ranges import MAX_SEED

METHODS = ("auto", "dtw", "nearest")
LEVELS = ("easy", "hard")
Videos = Annotated[
    list[str] | None, typer.Argument(help="Videos, a folder of videos, or names in the embedding set.")
]
Run = Annotated[str, typer.Option(help="Use this run folder, model name such as golf-lite, or 'pretrained'.")]
Embeddings = Annotated[Path | None, typer.Option(help="Use a saved embedding set instead of videos.")]
Method = Annotated[
    str,
    typer.Option(help="Align by auto (leaves out lead-ins and lead-outs), dtw (joins the ends) or nearest."),
]
Pins = Annotated[
    list[str] | None,
    typer.Option(
        "--pin", help="Set a match by hand, frames of A and B such as 12:30, or 1.5s:2.0s; repeatable."
    ),
]
NoPins = Annotated[
    bool, typer.Option("--no-pins", help="Leave out the pins of pins.csv in the folder of the videos.")
]
Protocol = Annotated[str, typer.Option(help="Evaluate by the protocol linear, paper or reference.")]
Repetitions = Annotated[
    bool,
    typer.Option(
        "--repetitions", help="Take each repetition of a video, such as ten push-ups, as a video of its own."
    ),
]
Overlap = Annotated[
    bool,
    typer.Option("--allow-overlap", help="Allow videos or persons in both training and held-out sets."),
]
Level = Annotated[str, typer.Option(help="Choose how much the videos differ: easy or hard.")]
Device = Annotated[str | None, typer.Option(help="Compute on cpu, cuda or cuda:1 (default: a GPU, if any).")]
Seed = Annotated[
    int, typer.Option(help="Set the random seed; equal seeds give equal results.", min=0, max=MAX_SEED)
]
Table = Annotated[Path, typer.Option("-o", "--output", help="Write the table to this .csv or .json file.")]
Picture = Annotated[Path | None, typer.Option(help="Write a picture to this .png file.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Overwrite existing output.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]
