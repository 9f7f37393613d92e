"""`cycleback anomalies`: which takes went wrong, and where."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cycleback.cli.checks import check_free
from cycleback.cli.good_takes import embedded_or_saved, good_takes, new_takes, note_if_trained_on
from cycleback.cli.inputs import embedded
from cycleback.cli.output import print_json, print_next
from cycleback.errors import UserError

if TYPE_CHECKING:
    from cycleback.applications.anomalies import AnomalyScores
    from cycleback.embeddings import EmbeddingSet


def anomalies(
    good: Annotated[
        Path, typer.Option(help="Takes that went well, at least 5: folder of videos, or embedding set.")
    ],
    videos: Annotated[
        list[str] | None, typer.Argument(help="Videos, a folder of them, or names in the set.")
    ] = None,
    run: Annotated[str, typer.Option(help="Run folder, or 'pretrained'.")] = "pretrained",
    embeddings: Annotated[Path | None, typer.Option(help="Embedding set that holds the videos.")] = None,
    looks: Annotated[
        bool, typer.Option("--looks", help="Compare plain looks too: sees what a trained run ignores.")
    ] = False,
    false_alarms: Annotated[
        float, typer.Option(help="Share of good frames that may be flagged.", min=0.001, max=0.5)
    ] = 0.05,
    output: Annotated[Path, typer.Option("-o", "--output", help="Table to write: .csv or .json.")] = Path(
        "anomalies.csv"
    ),
    picture: Annotated[Path | None, typer.Option(help="Picture of the oddest video to write: .png.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Find where videos leave the way good takes go; a score for every frame.

    Example: cycleback anomalies new/ --good good/ --run runs/pouring --picture odd.png
    """
    from cycleback.applications import write_table
    from cycleback.applications.anomalies import anomaly_rows
    from cycleback.applications.typical import fit_typical
    from cycleback.files import write_bytes

    for path in filter(None, (output, picture)):
        check_free(path, overwrite=overwrite)
    if looks and (embeddings is not None or (good / "index.json").is_file()):
        raise UserError("--looks needs the videos: give folders of videos instead of embedding sets")
    takes = [embedded(videos or [], run=run, embeddings=embeddings)]
    known = [good_takes(good, takes[0], run=run)]
    if looks and run != "pretrained":
        takes.append(embedded(videos or []))
        known.append(embedded_or_saved(good, run="pretrained"))
    note_if_trained_on(known[0], run)
    typical = fit_typical(*known)
    found = {
        name: typical.score(*(view[name] for view in takes), false_alarms=false_alarms)
        for name in new_takes(takes[0], known[0])
    }
    image = None if picture is None else _picture_of_oddest(found, takes[0], known[0])
    rows = [row for name, each in found.items() for row in anomaly_rows(name, each, takes[0].times(name))]
    write_table(output, rows, overwrite=overwrite)
    if picture is not None and image is not None:
        write_bytes(picture, image, overwrite=overwrite)
    if as_json:
        print_json({"table": str(output), "good_takes": len(typical.names), "videos": _summary(found)})
        return
    _print_verdicts(found, takes[0])
    odd = sum(each.verdict != "typical" for each in found.values())
    shown = "" if picture is None else f", the oddest in {picture}"
    print_next(f"{odd} of {len(found)} videos differ from {len(typical.names)} good takes: {output}{shown}")


def _summary(found: "dict[str, AnomalyScores]") -> dict[str, Any]:
    return {
        name: {
            "verdict": each.verdict,
            "peak_frame": each.peak,
            "peak_score": round(float(each.scores.max()), 4),
            "threshold": round(each.threshold, 4),
            "spans": [list(span) for span in each.spans],
        }
        for name, each in found.items()
    }


def _print_verdicts(found: "dict[str, AnomalyScores]", takes: "EmbeddingSet") -> None:
    """A line a video, and a line a span where something differs."""
    for name, each in found.items():
        peak = float(each.scores.max())
        normal = f"good takes stay below {each.peak_threshold:.1f}"
        print(f"{name}: {each.verdict} (highest score {peak:.1f}, {normal})")
        if each.verdict == "something differs":
            times = takes.times(name)
            for first, last in each.spans:
                print(f"  frames {first}-{last}  {times[first]:.2f}-{times[last]:.2f} s")


def _picture_of_oddest(
    found: "dict[str, AnomalyScores]", takes: "EmbeddingSet", good: "EmbeddingSet"
) -> bytes:
    """The take with the highest score, beside the good frames it is matched to."""
    from cycleback.applications import paths_of
    from cycleback.applications.curve_pictures import anomaly_picture, shown_frames
    from cycleback.video import read_frames

    name = max(found, key=lambda each: float(found[each].scores.max()))
    scores, shown = found[name], shown_frames(found[name])
    matched = [(good.names[take], frame) for take, frame in scores.matches[shown].tolist()]
    files = dict(zip(good.names, paths_of(good, good.names), strict=True))
    return anomaly_picture(
        scores,
        takes.times(name),
        shown=shown,
        take=list(read_frames(paths_of(takes, [name])[0], shown)),
        typical=[read_frames(files[take], [frame])[0] for take, frame in matched],
        title=f"{name}: {scores.verdict}",
    )
