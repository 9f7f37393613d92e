"""`cycleback anomalies`: which takes went wrong, and where."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cycleback.cli.good_takes import check_comparable, names_not_among, note_if_trained_on
from cycleback.cli.inputs import PRETRAINED, embedded, embedded_or_saved
from cycleback.cli.options import Embeddings, Json, Overwrite, Picture, Run, Table, Videos
from cycleback.cli.output import print_json, print_next
from cycleback.errors import UserError

if TYPE_CHECKING:
    from cycleback.applications.anomalies import AnomalyScores
    from cycleback.embeddings import EmbeddingSet


def anomalies(
    good: Annotated[
        Path, typer.Option(help="Takes that went well, at least 5: folder of videos, or embedding set.")
    ],
    videos: Videos = None,
    run: Run = PRETRAINED,
    embeddings: Embeddings = None,
    looks: Annotated[
        bool, typer.Option("--looks", help="Compare plain looks too: sees what a trained run ignores.")
    ] = False,
    false_alarms: Annotated[
        float, typer.Option(help="Share of good frames that may be flagged.", min=0.001, max=0.5)
    ] = 0.05,
    output: Table = Path("anomalies.csv"),
    picture: Picture = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Find where videos leave the way good takes go; a score for every frame, a picture of the oddest.

    Example: cycleback anomalies new/ --good good/ --run runs/pouring --picture odd.png
    """
    from cycleback.applications import anomaly_rows, fit_typical
    from cycleback.files import TABLE_SUFFIXES, check_output, write_bytes, write_table

    check_output(output, overwrite=overwrite, suffixes=TABLE_SUFFIXES)
    if picture is not None:
        check_output(picture, overwrite=overwrite, suffixes=[".png"])
    if looks and (embeddings is not None or (good / "index.json").is_file()):
        raise UserError("--looks needs the videos: give folders of videos instead of embedding sets")
    known = [embedded_or_saved(good, run=run)]
    views = [embedded(videos, run=run, embeddings=embeddings)]
    check_comparable(known[0], views[0])
    if looks and run != PRETRAINED:
        views.append(embedded(videos))
        known.append(embedded_or_saved(good, run=PRETRAINED))
    note_if_trained_on(known[0], run)
    typical = fit_typical(*known)
    found = {
        name: typical.score(*(view[name] for view in views), false_alarms=false_alarms)
        for name in names_not_among(known[0], views[0])
    }
    image = None if picture is None else _picture_of_oddest(found, views[0], known[0])
    rows = [row for name, each in found.items() for row in anomaly_rows(name, each, views[0].times(name))]
    write_table(output, rows, overwrite=overwrite)
    if picture is not None and image is not None:
        write_bytes(picture, image, overwrite=overwrite)
    if as_json:
        print_json({"table": str(output), "good_takes": len(typical.names), "videos": _summary(found)})
        return
    _print_verdicts(found, views[0])
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


def _print_verdicts(found: "dict[str, AnomalyScores]", videos: "EmbeddingSet") -> None:
    """A line a video, and a line a span where something differs."""
    for name, each in found.items():
        peak = float(each.scores.max())
        normal = f"good takes stay below {each.peak_threshold:.1f}"
        print(f"{name}: {each.verdict} (highest score {peak:.1f}, {normal})")
        if each.verdict == "something differs":
            times = videos.times(name)
            for first, last in each.spans:
                print(f"  frames {first}-{last}  {times[first]:.2f}-{times[last]:.2f} s")


def _picture_of_oddest(
    found: "dict[str, AnomalyScores]", videos: "EmbeddingSet", good: "EmbeddingSet"
) -> bytes:
    """The video with the highest score, beside the good frames it is matched to."""
    from cycleback.applications import paths_of
    from cycleback.applications.curve_pictures import anomaly_picture, shown_frames
    from cycleback.video import read_frames

    name = max(found, key=lambda each: float(found[each].scores.max()))
    scores, shown = found[name], shown_frames(found[name])
    matched = [(good.names[take], frame) for take, frame in scores.matches[shown].tolist()]
    files = dict(zip(good.names, paths_of(good, good.names), strict=True))
    return anomaly_picture(
        scores,
        videos.times(name),
        shown=shown,
        take=list(read_frames(paths_of(videos, [name])[0], shown)),
        typical=[read_frames(files[take], [frame])[0] for take, frame in matched],
        title=f"{name}: {scores.verdict}",
    )
