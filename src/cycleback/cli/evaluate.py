"""`cycleback evaluate`: what an embedding is worth, beside one that never saw a pixel."""

from pathlib import Path
from typing import Annotated

import typer

from cycleback.cli.output import print_json, print_next, print_reports


def evaluate(
    embeddings: Annotated[Path, typer.Argument(help="Embedding set of held-out videos.")],
    train: Annotated[
        Path | None, typer.Option(help="Embedding set of training videos, for phase classification.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Kendall's tau, key-event error, cycle-consistency rate, phase accuracy.

    Example: cycleback evaluate held_out.emb --train train.emb
    """
    from cycleback.embeddings import EmbeddingSet
    from cycleback.evaluation import evaluate as evaluate_set
    from cycleback.evaluation import time_only_embeddings

    held_out = EmbeddingSet.load(embeddings)
    seen = EmbeddingSet.load(train) if train is not None else None
    rows = {
        embeddings.name: evaluate_set(seen, held_out),
        "time-only": evaluate_set(
            time_only_embeddings(seen) if seen else None, time_only_embeddings(held_out)
        ),
    }
    if as_json:
        print_json({name: report.to_json() for name, report in rows.items()})
        return
    print_reports(rows)
    names = held_out.names
    print_next(
        f"{len(names)} videos of {embeddings}",
        f"cycleback align {names[0]} {names[-1]} --embeddings {embeddings}" if len(names) > 1 else None,
    )
