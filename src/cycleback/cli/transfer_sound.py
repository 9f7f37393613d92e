"""`cycleback transfer sound`: the sound of one video for another that is silent."""

from pathlib import Path
from typing import Annotated

import typer

from cycleback.cli.checks import check_choice, check_free
from cycleback.cli.inputs import embedded
from cycleback.cli.output import print_json, print_next

SOUND_METHODS = ("smooth", "blocks")


def sound(
    source: Annotated[str, typer.Argument(help="Video with the sound, or its name in the embedding set.")],
    target: Annotated[str, typer.Argument(help="Video to be given it, or its name in the embedding set.")],
    run: Annotated[str, typer.Option(help="Run folder, or 'pretrained'.")] = "pretrained",
    embeddings: Annotated[Path | None, typer.Option(help="Embedding set that holds both videos.")] = None,
    method: Annotated[str, typer.Option(help="smooth, or blocks as in the paper.")] = "smooth",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Video to write, or .wav for the sound alone.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Give a video the sound of another that shows the same action; works with no training at all.

    Example: cycleback transfer sound pour.mp4 silent.mp4 -o heard.mp4
    """
    from cycleback.applications.sound import check_sound_pair, transfer_sound
    from cycleback.applications.sound_track import check_sound_output, write_with_sound
    from cycleback.selection import file_names

    check_choice("method of sound transfer", method, SOUND_METHODS)
    path = output or Path(f"{Path(target).stem}-with-sound.mp4")
    check_sound_output(path)
    check_free(path, overwrite=overwrite)
    names = [source, target]
    if embeddings is None:
        check_sound_pair(Path(source), Path(target))
        names = file_names([Path(source), Path(target)])
    found = embedded([source, target], run=run, embeddings=embeddings)
    heard = transfer_sound(found, *names, method=method)  # type: ignore[arg-type]
    video = found.path(names[1])
    assert video is not None  # transfer_sound has read it
    write_with_sound(path, video, heard.audio, overwrite=overwrite)
    sure = float(heard.confidence.mean())
    if as_json:
        print_json(
            {"output": str(path), "source": source, "target": target, "method": method}
            | {"seconds": round(heard.audio.duration_s, 3), "mean_confidence": round(sure, 4)}
        )
        return
    print_next(f"{target} with the sound of {source}, mean confidence {sure:.2f}: {path}")
