"""`report.html` and `report.md`: what `report.json` holds, to be read."""

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cycleback.comparison import columns
from cycleback.comparison.figures import curves_figure, error_figure, few_shot_figure
from cycleback.comparison.scenes import Scenes
from cycleback.comparison.tables import DAGGER, LEGEND, Column, html_table, markdown_table, shown
from cycleback.comparison.template import PAGE
from cycleback.comparison.thumbnails import data_url
from cycleback.files import write_text

Content = Mapping[str, Any]
ROBUST_TEXT = (
    "The same held-out videos, each cut at both ends (cropped), played at half to double speed (speed), or "
    "after a still picture of its background (lead-in)."
)
TAUGHT = (
    '<p class="note">The share of labels is that of the classifier on top. A supervised row has learned from '
    "the labels of all training videos before, whatever the share.</p>"
)
COUNTING_FAILS = " A method that only counts frames fails here."


def write_page(folder: Path, content: Content, *, scenes: Scenes) -> None:
    """Write `report.html` and `report.md`."""
    sections = [section for section in _sections(content, scenes) if section[2]]
    nav = " ".join(f'<a href="#{key}">{title}</a>' for key, title, _ in sections)
    body = _reading(content) + "".join(
        f'<section id="{key}"><h2>{title}</h2>{text}</section>' for key, title, text in sections
    )
    page = PAGE.substitute(title=html.escape(content["title"]), lead=_lead(content), nav=nav, body=body)
    write_text(folder / "report.html", page, overwrite=True)
    write_text(folder / "report.md", markdown(content), overwrite=True)


def _sections(content: Content, scenes: Scenes) -> list[tuple[str, str, str]]:
    """Key, title and content of each section; those without content are left out."""
    rows = content["rows"]
    return [
        ("scores", "Scores on held-out videos", _scores(content)),
        ("robust", "What survives", _robust(content)),
        ("paper", "The paper’s tables", _paper_tables(content)),
        ("few-shot", "Few labelled videos", _chart(few_shot_figure(rows), *FEW_SHOT)),
        ("errors", "How far off", _chart(error_figure(rows), *ERRORS)),
        (
            "similarity",
            "As training goes on" if scenes.snapshots else "One pair of videos",
            _similarity(content, scenes),
        ),
        ("map", "Held-out frames on a map", _map(content, scenes)),
        ("examples", "Alignment examples", _examples(scenes)),
        ("curves", "Training", _chart(curves_figure(content["curves"], rows), *CURVES)),
        ("how", "How it was made", _how(content)),
    ]


FEW_SHOT = (
    "Phase accuracy against the number of labelled training videos, one line a method",
    "A classifier on frozen embeddings, taught with few labelled videos; mean and spread over seeded draws.",
)
ERRORS = (
    "Cumulative share of key events within k frames of the truth, one line a method",
    "Key events of each held-out video carried to every other by the nearest frame. Higher is better, most "
    "of all on the left.",
)
CURVES = (
    "Training loss of each method and share of training frames that cycle back, against updates",
    "Losses of different methods have different scales: read each by itself. Running means.",
)


def _lead(content: Content) -> str:
    how = content["how"]
    counts = ", ".join(f"{count} {html.escape(part)}" for part, count in how["videos"].items())
    return f"Videos: {counts}. Recipe {html.escape(how['recipe'].split()[0])}, seed {how['seed']}."


def _reading(content: Content) -> str:
    said = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in content["reading"] if sentence)
    found = "".join(f"<li>{html.escape(warning)}</li>" for warning in content["warnings"])
    box = f'<div class="warnings" role="note"><ul>{found}</ul></div>' if found else ""
    return f'<ul class="reading">{said}</ul>{box}'


def _scores(content: Content) -> str:
    table = html_table(columns.HEADLINE, content["rows"], caption="Scores of every method on held-out videos")
    explained = (
        "<p>Key-event error: each key event of a video is carried to every other video by its nearest frame "
        "(or by dynamic time warping, DTW) and held against the truth; the median counts. Tau asks for the "
        "order only, and time only wins it by construction.</p>"
        if content["is_labelled"]
        else "<p>Without key events only order (tau) and cycle-consistency can be measured; time only is "
        "near perfect in both by construction.</p>"
    )
    return f'{explained}{table}<p class="note">{LEGEND}</p>'


def _robust(content: Content) -> str:
    table = html_table(
        columns.robust(content["rows"], content["parts"]), content["rows"], caption="Scores on changed videos"
    )
    text = ROBUST_TEXT if any(row["report"]["robust"] for row in content["rows"].values()) else ""
    text += COUNTING_FAILS if text and content["is_labelled"] else ""
    other = f" Split {', '.join(content['parts'])}: measured by itself." if content["parts"] else ""
    return f"<p>{text}{html.escape(other)}</p>{table}" if table else ""


def _paper_tables(content: Content) -> str:
    """Tables 3 to 6 in shape: the mean over actions, and each action in a fold."""
    rows = content["rows"]
    if not content["is_labelled"]:
        return ""
    parts = [_titled(title, html_table(found, of, caption=title)) for title, found, of in _tables(rows)]
    if any("supervised" in row["losses"] for row in rows.values()):
        parts.insert(1, TAUGHT)
    folds = []
    for action in columns.actions(rows):
        place = ("report", "by_action", action)
        found = [*columns.classification(place), *columns.ordering(place)]
        table = html_table(found, rows, caption=f"Action {action}")
        folds.append(f"<details><summary>{html.escape(action or 'no action')}</summary>{table}</details>")
    return "".join(parts) + ("<h3>By action</h3>" + "".join(folds) if folds else "")


def _tables(rows: Mapping[str, Any]) -> list[tuple[str, Sequence[Column], Mapping[str, Any]]]:
    return [
        ("Phase classification (tables 4 and 5)", columns.classification(), rows),
        ("Phase progression and Kendall’s tau (table 6)", columns.ordering(), rows),
        ("Ways to close a cycle (table 3)", columns.ablation(), columns.ablated(rows)),
    ]


def _titled(title: str, table: str) -> str:
    return f"<h3>{html.escape(title)}</h3>{table}" if table else ""


def _chart(picture: bytes | None, alt: str, caption: str) -> str:
    return "" if picture is None else _figure(data_url(picture, "image/svg+xml"), alt, caption)


def _figure(address: str, alt: str, caption: str) -> str:
    return (
        f'<figure><img src="{address}" alt="{html.escape(alt)}">'
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
    )


def _similarity(content: Content, scenes: Scenes) -> str:
    best, (a, b) = content["rows"][content["best"]]["title"], scenes.pair
    caption = f"{best}. A: {a}, B: {b}, both held out. Bright: alike; white line: the alignment by DTW"
    caption += "; rings: where key events truly meet." if content["is_labelled"] else "."
    points = len(scenes.snapshots) or 1
    alt = f"Similarity matrices of two held-out videos by {best} at {points} points of training"
    return _figure(data_url(scenes.similarity, "image/png"), alt, caption)


def _map(content: Content, scenes: Scenes) -> str:
    colour = "the true phase" if content["is_labelled"] else "time in the video (dark: early)"
    alt = f"t-SNE maps of the frames of held-out videos, coloured by {colour}"
    return _figure(
        data_url(scenes.frame_map, "image/png"),
        alt,
        f"t-SNE of held-out frames, coloured by {colour}; some as pictures."
        if scenes.strips
        else f"t-SNE of held-out frames, coloured by {colour}.",
    )


def _examples(scenes: Scenes) -> str:
    if not scenes.strips:
        return ""
    return (
        "<p>Moments of a reference video above; below, the frames matched to them in other held-out videos. "
        "The number is the frame, the sign how many frames it is late (+) or early (−) where the truth is "
        f"known.</p>{scenes.strips}"
    )


def _how(content: Content) -> str:
    how, rows = content["how"], content["rows"]
    learned = [
        f"{r['title']} {r['seconds']:.0f} s ({r['updates']} updates)" for r in rows.values() if r["updates"]
    ]
    facts = {
        "Command": f"<code>{html.escape(how['command'] or 'cycleback.comparison.compare')}</code>",
        "Data": html.escape(how["data"]),
        "Key events": html.escape(", ".join(how["key_events"]) or "none labelled"),
        "Recipe": html.escape(how["recipe"]),
        "Protocol": html.escape(how["protocol"]),
        "Seed": str(how["seed"]),
        "Learning": html.escape("; ".join(learned) or "nothing"),
        "This run": f"{how['seconds']:.0f} s on {html.escape(how['device'])}",
        "Versions": html.escape(", ".join(f"{name} {number}" for name, number in how["versions"].items())),
    }
    listed = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in facts.items())
    recipe = html.escape(content["recipe"])
    return (
        f"<dl>{listed}</dl><details><summary>Every setting the rows share (each row has its own loss.weights)"
        f"</summary><pre>{recipe}</pre></details>"
        '<p class="note">All numbers: report.json beside this page.</p>'
    )


def markdown(content: Content) -> str:
    """The words and tables without the pictures."""
    rows = content["rows"]
    parts = [
        f"# Methods compared on {content['title']}\n",
        *(f"{line}\n" for line in content["reading"] if line),
    ]
    parts += [f"> {warning}\n" for warning in content["warnings"]]
    parts += ["## Scores on held-out videos\n", markdown_table(columns.HEADLINE, rows)]
    parts.append(f"{DAGGER} not better than time only. Bold: the best of the others.\n")
    robust = columns.robust(rows, content["parts"])
    tables = [("What survives", robust, rows), *_tables(rows)]
    for title, found, of in tables:
        if shown(found, of):
            parts += [f"## {title}\n", markdown_table(found, of)]
    how = content["how"]
    parts.append(
        f"Recipe {how['recipe']}, seed {how['seed']}, protocol {how['protocol']}, {how['device']}.\n"
    )
    return "\n".join(parts)
