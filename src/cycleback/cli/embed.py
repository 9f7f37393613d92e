"""`cycleback embed`: embed every frame of every video."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast, get_args

import typer

from cycleback.cli.bars import counter, progress_bars
from cycleback.cli.inputs import PRETRAINED, list_inputs, print_streams
from cycleback.cli.options import Device, Json, Overwrite, Run
from cycleback.cli.output import print_result

if TYPE_CHECKING:
    from cycleback.embeddings import EmbeddingSet
    from cycleback.embeddings.poses import PoseCache
    from cycleback.models import Encoder, Precision

MAX_LISTED = 20  # videos that failed


def embed(
    videos: Annotated[
        str,
        typer.Argument(
            help="Folder of videos, frame folders or .npz sequences; with --on also a .txt list, .tar or URL."
        ),
    ],
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
    on: Annotated[
        str | None,
        typer.Option(
            help="Embed a large corpus, resumably: on local processes, on ray, or on a cluster at HOST:PORT."
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Use so many workers with --on (default: one per GPU or core).", min=1)
    ] = None,
    pack: Annotated[
        Path | None, typer.Option("--set", help="Write all embeddings to this embedding set, too, with --on.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Embed videos with a trained run, an exported model, or the pretrained base of the package.

    Example: cycleback embed golf/ --run runs/golf -o golf.emb

    Example: cycleback embed golf/ -o golf.emb --poses golf.poses

    Example: cycleback embed golf/ --on local -o golf.corpus --set golf.emb

    Example: cycleback embed golf/ --run golf.onnx -o golf.emb
    """
    from cycleback.embeddings.folder import check_set_folder
    from cycleback.errors import ConfigError
    from cycleback.exported import is_exported

    inputs = list_inputs([videos], run)
    if on is not None:
        if poses is not None or part != "all" or overwrite:
            raise ConfigError("--on continues what is there: use it without --poses, --part and --overwrite")
        if is_exported(run):
            raise ConfigError(f"{run} is an exported model: embed a corpus with the run it was made from")
        corpus = Corpus(videos, run, output, on, workers, device, _check_precision(precision, device))
        return _embed_corpus(corpus, pack, inputs=inputs, as_json=as_json)
    if workers is not None or pack is not None or not Path(videos).is_dir():
        _explain_on(videos)
    check_set_folder(output, overwrite=overwrite, inputs=inputs)
    if poses is not None:
        _check_poses(poses, output, inputs)
    chosen: dict[str, Any] = {"part": part, "device": device, "precision": precision}
    if is_exported(run):
        embeddings = _embed_exported(Path(videos), run, **chosen, poses=poses)
    else:
        wanted = None if poses is None else _Poses(poses, overwrite, inputs)
        embeddings = _embed(Path(videos), run, **chosen, poses=wanted)
    print_streams(embeddings)
    embeddings.save(output, overwrite=overwrite)
    frames = sum(len(embeddings[name]) for name in embeddings.names)
    print_result(
        {"embeddings": str(output), "videos": len(embeddings), "frames": frames},
        f"{len(embeddings)} videos, {frames} frames: {output}",
        ["evaluate", output],
        as_json=as_json,
    )


def _check_poses(poses: Path, output: Path, inputs: Sequence[Path]) -> None:
    from cycleback.embeddings.poses import check_poses_folder
    from cycleback.errors import UserError

    check_poses_folder(poses, inputs=inputs)
    if poses.resolve().is_relative_to(output.resolve()):
        raise UserError(f"--poses {poses} lies in the embedding set {output}: give another folder")


def _explain_on(videos: str) -> None:
    """Refuse what only a corpus can be."""
    from cycleback.corpus.sources import LIST, TAR, is_url
    from cycleback.errors import ConfigError

    path = Path(videos)
    if path.is_dir():
        raise ConfigError("--workers and --set need --on local, --on ray or the address of a cluster")
    if is_url(videos) or path.suffix.lower() in (LIST, TAR):
        raise ConfigError(f"{videos} is embedded as a corpus: add --on local, or --on ray")


def _check_precision(precision: str | None, device: str | None) -> "Precision | None":
    """Refuse a precision or a device that there is none of."""
    from cycleback.errors import ConfigError
    from cycleback.models import Precision
    from cycleback.runs import choose_device

    if precision not in (None, *get_args(Precision)):
        raise ConfigError(f"--precision must be {' or '.join(get_args(Precision))}, got {precision!r}")
    choose_device(device)
    return cast("Precision | None", precision)


class Corpus(NamedTuple):
    """What the user typed about a corpus."""

    videos: str
    run: str
    output: Path
    on: str
    workers: int | None
    device: str | None
    precision: "Precision | None"


def _embed_corpus(corpus: Corpus, pack: Path | None, *, inputs: list[Path], as_json: bool) -> None:
    """Embed a corpus, list the videos that failed, and copy all to an embedding set if asked for."""
    from cycleback.corpus import embed_corpus
    from cycleback.corpus.run import pack_corpus
    from cycleback.embeddings.folder import check_set_folder
    from cycleback.files import check_output

    check_output(corpus.output, overwrite=True, inputs=inputs)
    if pack is not None:
        check_set_folder(pack, overwrite=True, inputs=[*inputs, corpus.output])
    with progress_bars() as bars:
        report = embed_corpus(
            corpus.videos,
            corpus.output,
            run=corpus.run,
            on=corpus.on,
            workers=corpus.workers,
            device=corpus.device,
            precision=corpus.precision,
            progress=lambda done, total, note: bars.move("embedding", done, total, note),
        )
        if pack is not None:
            pack_corpus(report.folder, pack, overwrite=True, progress=counter(bars, "packing"))
    for row in report.failed[:MAX_LISTED]:
        print(f"failed: {row.name}: {row.error}", file=sys.stderr)
    if len(report.failed) > MAX_LISTED:
        print(
            f"and {len(report.failed) - MAX_LISTED} more: see {report.folder}/manifest.jsonl", file=sys.stderr
        )
    whole = len(report.rows) - len(report.failed)
    facts = {
        "corpus": str(corpus.output),
        "videos": whole,
        "new": report.new,
        "frames": report.frames,
        "failed": {row.name: row.error for row in report.failed},
        "set": None if pack is None else str(pack),
    }
    words = f"{whole} videos ({report.new} new), {report.frames} frames, {len(report.failed)} failed"
    again = ["embed", corpus.videos, "--on", corpus.on, "-o", corpus.output, "--set", f"{corpus.output}.emb"]
    following = again if pack is None else ["evaluate", pack]
    where = corpus.output if pack is None else pack
    print_result(facts, f"{words}: {where}", following if whole else None, as_json=as_json)


def _embed_exported(
    directory: Path,
    run: str,
    *,
    part: str,
    device: str | None,
    precision: str | None,
    poses: Path | None,
) -> "EmbeddingSet":
    """Embed with an exported model: nothing here imports torch."""
    from cycleback.errors import UserError
    from cycleback.exported import check_options, embed_exported

    check_options(run, device=device, precision=precision)
    if part != "all" or poses is not None:
        option = "--poses" if poses is not None else "--part"
        raise UserError(f"{run} is an exported model, which has no {option}; name the run it was made from")
    with progress_bars() as bars:
        return embed_exported(run, directory, progress=counter(bars, "embedding"))


class _Poses(NamedTuple):
    """Where to write poses."""

    folder: Path
    overwrite: bool
    inputs: list[Path]


def _embed(
    directory: Path,
    run: str,
    *,
    part: str,
    device: str | None,
    precision: str | None,
    poses: _Poses | None,
) -> "EmbeddingSet":
    """Embed with a run, and write poses if they are wanted."""
    from cycleback.data.folder import select_records
    from cycleback.embeddings.poses import write_poses
    from cycleback.runs import embed_videos, load_encoder, select_part

    kind = _check_precision(precision, device)
    videos, encoder = select_part(directory, run, part), load_encoder(run)
    with progress_bars() as bars:
        if poses is not None:
            show = counter(bars, "finding people")
            cache = _open_poses(encoder, device)
            records, _ = select_records(videos)
            write_poses(
                cache,
                records,
                poses.folder,
                overwrite=poses.overwrite,
                inputs=poses.inputs,
                only_own=True,
                progress=show,
            )
        return embed_videos(
            encoder,
            videos,
            device=device,
            precision=kind,
            progress=counter(bars, "embedding"),
        )


def _open_poses(encoder: "Encoder", device: str | None) -> "PoseCache":
    """Return a cache of poses; the frames decoded for them are used again by the encoder."""
    from cycleback.data import FrameCache
    from cycleback.embeddings.poses import PoseCache
    from cycleback.runs import choose_device

    return PoseCache(FrameCache(size=encoder.frame_size, fit=encoder.fit), choose_device(device))
