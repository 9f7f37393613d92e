"""`report.html`: one self-contained page with the table, the pictures and the before/after video."""

import base64
import html
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Any

from cycleback.applications import keep_own_pace, locate_videos, match_reference, write_synced
from cycleback.applications.plots import draw_similarity, draw_tsne, shared_events
from cycleback.embeddings import EmbeddingSet

COLUMNS = {
    "event_error_frames": ("Key-event error, frames", "{:.1f}", "lower"),
    "event_error_ms": ("Key-event error, ms", "{:.0f}", "lower"),
    "pce1": ("Within 1 frame", "{:.0%}", "higher"),
    "pce3": ("Within 3 frames", "{:.0%}", "higher"),
    "tau": ("Kendall's tau", "{:.3f}", "higher"),
    "cycle_rate": ("Cycle-consistent", "{:.0%}", "higher"),
    "phase_accuracy": ("Phase accuracy", "{:.0%}", "higher"),
}
ROW_NAMES = {
    "trained": "Cycleback, trained without labels",
    "time-only": "Time only: frame i of n is i/n",
    "untrained": "Same network, untrained",
    "frozen": "Frozen ImageNet features",
}
SHOWN_VIDEOS = 4


def write_page(out: Path, report: Mapping[str, Any], *, sets: Mapping[str, EmbeddingSet]) -> Path:
    """Write the page and the video it plays.

    Args:
        out: the demo's folder.
        report: what `report.json` holds.
        sets: row name -> embeddings of the held-out videos.
    """
    names = list(sets["trained"].names)
    video = write_before_after(out / "before_after.mp4", sets["trained"], names[:SHOWN_VIDEOS])
    pictures = {"similarity": draw_pair(sets, names[0], names[1]), "tsne": draw_map(sets)}
    for name, picture in pictures.items():
        (out / f"{name}.png").write_bytes(picture)
    page = Template((Path(__file__).parent / "report.html").read_text("utf-8")).substitute(
        headline=_headline(report["rows"]),
        seconds=f"{report['seconds']:.0f}",
        loss=html.escape(report["loss"]),
        held_out=len(names),
        table=_table(report["rows"]),
        video=_data_url(video.read_bytes(), "video/mp4"),
        **{name: _data_url(picture, "image/png") for name, picture in pictures.items()},
    )
    path = out / "report.html"
    path.write_text(page, "utf-8")
    return path


def draw_pair(sets: Mapping[str, EmbeddingSet], a: str, b: str) -> bytes:
    """The similarity matrix of two held-out videos, by frozen features and by what was learned."""
    trained, frozen = sets["trained"], sets["frozen"]
    panels = {
        "before: frozen ImageNet features": (frozen[a], frozen[b]),
        "after: learned without labels": (trained[a], trained[b]),
    }
    return draw_similarity(panels, events=shared_events(trained.events(a), trained.events(b)))


def draw_map(sets: Mapping[str, EmbeddingSet]) -> bytes:
    """The t-SNE map of all held-out videos whose phases are known, before and after."""
    trained, frozen = sets["trained"], sets["frozen"]
    phases = {name: trained.phases(name) for name in trained.names}
    known = {name: phase for name, phase in phases.items() if phase is not None}
    maps = {"before": [frozen[name] for name in known], "after": [trained[name] for name in known]}
    return draw_tsne(maps, list(known.values()), phase_names=_phase_names(trained))


def write_before_after(path: Path, embeddings: EmbeddingSet, names: list[str]) -> Path:
    """Two rows of the same clips: as filmed above, at the pace of the first below."""
    videos = locate_videos(embeddings, names)
    synced = match_reference(embeddings, names, reference=names[0])
    length = len(synced[0])
    filmed = [indices[:length] for indices in keep_own_pace(embeddings, names)]
    captions = [f"as filmed: {name}" for name in names] + [f"in sync: {name}" for name in names]
    return write_synced(
        path,
        videos + videos,
        filmed + synced,
        captions=captions,
        columns=len(names),
        height=160,
        overwrite=True,
    )


def _headline(rows: Mapping[str, Mapping[str, Any]]) -> str:
    ours = rows["trained"]["event_error_frames"]
    others = {name: row["event_error_frames"] for name, row in rows.items() if name != "trained"}
    best = min(others, key=lambda name: others[name])
    return (
        f"On videos it never saw, Cycleback lands key events {ours:.1f} frames from the truth (median). "
        f"The best row without learning ({best}) misses by {others[best]:.1f}."
    )


def _table(rows: Mapping[str, Mapping[str, Any]]) -> str:
    head = "".join(
        f"<th>{title}<small>{better} is better</small></th>" for title, _, better in COLUMNS.values()
    )
    body = "".join(f"<tr><td>{ROW_NAMES[name]}</td>{_cells(rows, name)}</tr>" for name in rows)
    return f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cells(rows: Mapping[str, Mapping[str, Any]], name: str) -> str:
    cells = []
    for key, (_, pattern, better) in COLUMNS.items():
        values = [row[key] for row in rows.values() if row[key] is not None]
        value = rows[name][key]
        is_best = value is not None and value == (min(values) if better == "lower" else max(values))
        text = "–" if value is None else pattern.format(value)
        cells.append(f'<td class="best">{text}</td>' if is_best else f"<td>{text}</td>")
    return "".join(cells)


def _phase_names(embeddings: EmbeddingSet) -> list[str]:
    events = embeddings.event_names
    return [f"before “{events[0]}”", *(f"after “{event}”" for event in events)] if events else []


def _data_url(content: bytes, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
