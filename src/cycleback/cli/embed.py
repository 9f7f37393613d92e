"""`cycleback embed`: embed every frame of every video."""

from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from cycleback.cli.bars import counter, progress_bars
from cycleback.cli.inputs import PRETRAINED
from cycleback.cli.options import Device, Json, Overwrite, Run
from cycleback.cli.output import print_result


def embed(
    directory: Annotated[Path, typer.Argument(help="Folder of videos, frame folders or .npz sequences.")],
    run: Run = PRETRAINED,
    output: Annotated[Path, typer.Option("-o", "--output", help="Write this embedding set.")] = Path(
        "embeddings"
    ),
    part: Annotated[str, typer.Option(help="Embed this part of the split: all, train or held_out.")] = "all",
    device: Device = None,
    precision: Annotated[
        str | None,
        typer.Option(help="Use float32 or bfloat16 (default: bfloat16 on a GPU, else float32)."),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Embed videos with a trained run, or with the pretrained base that comes with the package.

    Example: cycleback embed golf/ --run runs/golf -o golf.emb
    """
    from cycleback.errors import ConfigError
    from cycleback.files import check_output
    from cycleback.models import Precision
    from cycleback.runs import embed_videos, select_part

    check_output(output, overwrite=overwrite)
    if precision not in (None, *get_args(Precision)):
        raise ConfigError(f"--precision must be {' or '.join(get_args(Precision))}, got {precision!r}")
    videos = select_part(directory, run, part)
    with progress_bars() as bars:
        embeddings = embed_videos(
            run,
            videos,
            device=device,
            precision=cast(Precision | None, precision),
            progress=counter(bars, "embedding"),
        )
    embeddings.save(output, overwrite=overwrite)
    frames = sum(len(embeddings[name]) for name in embeddings.names)
    print_result(
        {"embeddings": str(output), "videos": len(embeddings), "frames": frames},
        f"{len(embeddings)} videos, {frames} frames: {output}",
        f"cycleback evaluate {output}",
        as_json=as_json,
    )
