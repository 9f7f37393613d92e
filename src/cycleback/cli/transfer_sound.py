"""`cycleback transfer sound`: the sound of one video for another that is silent."""

from pathlib import Path
from typing import Annotated

import typer

from cycleback.cli.checks import check_choice
from cycleback.cli.inputs import PRETRAINED, check_one_action, embedded
from cycleback.cli.options import Embeddings, Json, Overwrite, Run
from cycleback.cli.output import print_json, print_next

SOUND_METHODS = ("smooth", "blocks")


def sound(
    source: Annotated[str, typer.Argument(help="Video with the sound, or its name in the embedding set.")],
    target: Annotated[str, typer.Argument(help="Video to be given it, or its name in the embedding set.")],
    run: Run = PRETRAINED,
    embeddings: Embeddings = None,
    method: Annotated[str, typer.Option(help="smooth, or blocks as in the paper.")] = "smooth",
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Video to write, or .wav (default: TARGET-with-sound.mp4)."),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Give a video the sound of another that shows the same action; needs no training.

    Example: cycleback transfer sound pour.mp4 silent.mp4 -o heard.mp4
    """
    from cycleback.applications import transfer_sound, write_with_sound
    from cycleback.applications.sound import check_sound_pair
    from cycleback.applications.sound_track import SOUND_SUFFIXES
    from cycleback.data.selection import name_files
    from cycleback.files import check_output

    check_choice("method of sound transfer", method, SOUND_METHODS)
    path = output or Path(f"{Path(target).stem}-with-sound.mp4")
    check_output(path, overwrite=overwrite, suffixes=SOUND_SUFFIXES)
    names = [source, target]
    if embeddings is None:
        check_sound_pair(Path(source), Path(target))
        names = name_files([Path(source), Path(target)])
    found = embedded([source, target], run=run, embeddings=embeddings)
    check_one_action(found)
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
