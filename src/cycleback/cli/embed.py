"""`cycleback embed`: embed every frame of every video."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from cycleback.cli.bars import counter, progress_bars
from cycleback.cli.inputs import PRETRAINED, list_inputs, print_streams
from cycleback.cli.options import Device, Json, Overwrite, Run
from cycleback.cli.output import print_result

if TYPE_CHECKING:
    from cycleback.embeddings.poses import PoseCache
    from cycleback.models import Encoder


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
    poses: Annotated[
        Path | None,
        typer.Option(help="Write the body key points of a person in each video to this folder, too."),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Embed videos with a trained run, or with the pretrained base that comes with the package.

    Example: cycleback embed golf/ --run runs/golf -o golf.emb

    Example: cycleback embed golf/ -o golf.emb --poses golf.poses
    """
    from cycleback.data.folder import select_records
    from cycleback.embeddings.folder import check_set_folder
    from cycleback.embeddings.poses import write_poses
    from cycleback.errors import ConfigError
    from cycleback.models import Precision
    from cycleback.runs import choose_device, embed_videos, load_encoder, select_part

    inputs = list_inputs([str(directory)], run)
    check_set_folder(output, overwrite=overwrite, inputs=inputs)
    if precision not in (None, *get_args(Precision)):
        raise ConfigError(f"--precision must be {' or '.join(get_args(Precision))}, got {precision!r}")
    choose_device(device)  # raises, if there is none of that name
    videos, encoder = select_part(directory, run, part), load_encoder(run)
    with progress_bars() as bars:
        if poses is not None:
            show = counter(bars, "finding people")
            cache = _open_poses(encoder, device)
            records, _ = select_records(videos)
            write_poses(cache, records, poses, overwrite=overwrite, inputs=inputs, progress=show)
        embeddings = embed_videos(
            encoder,
            videos,
            device=device,
            precision=cast(Precision | None, precision),
            progress=counter(bars, "embedding"),
        )
    print_streams(embeddings)
    embeddings.save(output, overwrite=overwrite)
    frames = sum(len(embeddings[name]) for name in embeddings.names)
    print_result(
        {"embeddings": str(output), "videos": len(embeddings), "frames": frames},
        f"{len(embeddings)} videos, {frames} frames: {output}",
        ["evaluate", output],
        as_json=as_json,
    )


def _open_poses(encoder: "Encoder", device: str | None) -> "PoseCache":
    """Return a cache of poses; the frames decoded for them are used again by the encoder."""
    from cycleback.data import FrameCache
    from cycleback.embeddings.poses import PoseCache
    from cycleback.runs import choose_device

    return PoseCache(FrameCache(size=encoder.frame_size, fit=encoder.fit), choose_device(device))
