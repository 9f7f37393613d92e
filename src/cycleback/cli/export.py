"""`cycleback export`: write a model for programs without torch."""

from pathlib import Path
from typing import Annotated

import typer

from cycleback.cli.bars import counter, progress_bars
from cycleback.cli.inputs import check_choice, list_inputs
from cycleback.cli.options import Json, Overwrite
from cycleback.cli.output import print_result


def export(
    run: Annotated[str, typer.Argument(help="Run folder, model name such as golf-lite, or 'pretrained'.")],
    to: Annotated[str, typer.Option(help="Write this format: onnx.")] = "onnx",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write this folder (default: NAME.onnx).")
    ] = None,
    videos: Annotated[
        Path | None,
        typer.Option(
            help="Compare with torch on these videos (default: those of the run, or rendered ones)."
        ),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write a model as ONNX, which runs without torch and in browsers, and compare it with torch.

    Example: cycleback export runs/golf --to onnx -o golf.onnx

    Example: cycleback embed golf/ --run golf.onnx -o golf.emb
    """
    check_choice("format", to, ("onnx",))
    output = output or Path(f"{Path(run).name}.onnx")
    from cycleback.export import export_onnx
    from cycleback.files import check_output

    check_output(output, overwrite=True, inputs=list_inputs([str(videos)] if videos else None, run))
    with progress_bars() as bars:
        model = export_onnx(
            run, output, videos=videos, overwrite=overwrite, progress=counter(bars, "exporting")
        )
    worst = max(model.parity.values())
    print_result(
        {"model": str(output), "files": sorted(model.files), "parity": dict(model.parity)},
        f"{len(model.files)} networks, at most {worst:.1e} from torch: {output}",
        ["embed", videos or "VIDEOS", "--run", output],
        as_json=as_json,
    )
