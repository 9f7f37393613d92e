"""`report.html` and `report.md`: the content of `report.json` for people.

The page is one file without scripts or links to other files; `page.html` holds its frame and its style.
"""

import html
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

from cycleback.comparison.figures import (
    Match,
    Scenes,
    Thumbnails,
    data_url,
    draw_curves,
    draw_errors,
    draw_few_shot,
)
from cycleback.comparison.methods import BASELINES
from cycleback.evaluation import TIME_ONLY
from cycleback.evaluation.scores import (
    DAGGER,
    HEADLINE,
    INTERVALS,
    LEGEND,
    ROBUST,
    Column,
    Rows,
    columns,
    html_table,
    known_columns,
    markdown_table,
)
from cycleback.files import write_text

Content = Mapping[str, Any]
Section = tuple[str, str, str]  # key, title and HTML
TABLE_3 = ("tcc-mse", "tcc-classification", "tcc")
SHARES = tuple(f"phase_accuracy_by_fraction/{share}" for share in ("0.1", "0.5", "1.0"))
TABLE_LEGEND = f"{LEGEND.format(baseline=TIME_ONLY)} Bold: the best of the others. {INTERVALS}".replace(
    " %", "\u00a0%"
)
KEY_EVENTS = (
    "<p>Event error: each key event of a video is mapped to every other video by its nearest frame (or by "
    "dynamic time warping, DTW) and compared with the truth; the median is shown. Tau measures order only, "
    f"and {TIME_ONLY} wins it by construction.</p>"
)
NO_KEY_EVENTS = (
    "<p>Without key events, only order (tau) and cycle-consistency can be measured; "
    f"{TIME_ONLY} is near perfect in both by construction.</p>"
)
PERTURBED = (
    "The same held-out videos, each cut at both ends (cropped), played at half to double speed (speed), or "
    "after a still picture of its background (lead-in)."
)
SUPERVISED = (
    '<p class="note">The share of labels is that of the classifier on top. A supervised row has learned from '
    "the labels of all training videos before.</p>"
)
FEW_SHOT = (
    "Phase accuracy against the number of labelled training videos, one line per method",
    "A classifier on frozen embeddings, trained with few labelled videos; mean and spread over seeded draws.",
)
ERRORS = (
    "Cumulative share of key events within k frames of the truth, one line per method",
    "Key events of each held-out video mapped to every other by the nearest frame. Higher is better, most "
    "of all on the left.",
)
CURVES = (
    "Training loss of each method and share of training frames that cycle back, against updates",
    "Losses of different methods have different scales: read each by itself. Running means.",
)


def write_page(folder: Path, content: Content, *, scenes: Scenes) -> None:
    """Write `report.html` and `report.md`."""
    how = content["how"]
    counts = ", ".join(f"{count} {split}" for split, count in how["videos"].items())
    page = render_page(
        f"Methods compared on {content['title']}",
        lead=f"Videos: {counts}. Recipe {how['recipe'].split()[0]}, seed {how['seed']}.",
        intro=_reading(content),
        sections=_sections(content, scenes),
    )
    write_text(folder / "report.html", page, overwrite=True)
    write_text(folder / "report.md", to_markdown(content), overwrite=True)


def render_page(title: str, *, lead: str, intro: str, sections: Sequence[Section]) -> str:
    """Return a whole page; sections without content are left out."""
    kept = [section for section in sections if section[2]]
    body = "".join(f'<section id="{key}"><h2>{head}</h2>{text}</section>' for key, head, text in kept)
    return Template(resources.files(__package__).joinpath("page.html").read_text("utf-8")).substitute(
        title=html.escape(title),
        lead=html.escape(lead),
        nav=" ".join(f'<a href="#{key}">{head}</a>' for key, head, _ in kept),
        body=intro + body,
    )


def figure(content: bytes, kind: str, *, alt: str, caption: str) -> str:
    """Return a picture with its caption."""
    return (
        f'<figure><img src="{data_url(content, kind)}" alt="{html.escape(alt)}">'
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
    )


def reading_list(sentences: Sequence[str]) -> str:
    """Return the results in sentences, the first in larger type."""
    items = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in sentences)
    return f'<ul class="reading">{items}</ul>'


def scores_section(scores: Rows, titles: Mapping[str, str], *, is_labelled: bool = True) -> str:
    """Return the table of headline scores with its explanation and legend."""
    caption = "Scores of every method on held-out videos"
    headline = columns(*HEADLINE, brief=True)
    table = html_table(headline, scores, caption=caption, titles=titles, baselines=BASELINES)
    return f'{KEY_EVENTS if is_labelled else NO_KEY_EVENTS}{table}<p class="note">{TABLE_LEGEND}</p>'


def _sections(content: Content, scenes: Scenes) -> list[Section]:
    rows, scores, titles = content["rows"], _scores(content), _titles(content)
    stages = "As training goes on" if scenes.snapshots else "One pair of videos"
    main = scores_section(scores, titles, is_labelled=content["is_labelled"])
    return [
        ("scores", "Scores on held-out videos", main),
        ("robust", "Perturbed videos and other splits", _robust_section(content, scores, titles)),
        ("paper", "The paper’s tables", _paper_section(content, scores, titles)),
        ("few-shot", "Few labelled videos", _chart(draw_few_shot(rows), *FEW_SHOT)),
        ("errors", "Distribution of errors", _chart(draw_errors(rows), *ERRORS)),
        ("similarity", stages, _similarity(content, scenes)),
        ("map", "Held-out frames on a map", _map(content, scenes)),
        ("examples", "Alignment examples", _examples(scenes, titles)),
        ("curves", "Training", _chart(draw_curves(content["curves"], rows), *CURVES)),
        ("how", "How it was made", _how(content)),
    ]


def _scores(content: Content) -> dict[str, dict[str, Any]]:
    """Return row -> scores on the held-out videos, with those of other splits under "splits"."""
    return {name: {**row["report"], "splits": row["splits"]} for name, row in content["rows"].items()}


def _titles(content: Content) -> dict[str, str]:
    return {name: row["title"] for name, row in content["rows"].items()}


def _reading(content: Content) -> str:
    warnings = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in content["warnings"])
    box = f'<div class="warnings" role="note"><ul>{warnings}</ul></div>' if warnings else ""
    return reading_list(content["reading"]) + box


def _robust_columns(content: Content, scores: Rows) -> list[Column]:
    """Return the scores of the videos as filmed, of each perturbation, and of every other split."""
    kinds = dict.fromkeys(kind for row in scores.values() for kind in row.get("robust") or {})
    places = {kind: f"robust/{kind}" for kind in kinds}
    places |= {f"split {split}": f"splits/{split}" for split in content["splits"]}
    places = {"as filmed": "", **places} if places else {}
    return [
        column
        for group, under in places.items()
        for column in columns(*ROBUST, brief=True, under=under, group=group)
    ]


def _robust_section(content: Content, scores: Rows, titles: Mapping[str, str]) -> str:
    table = html_table(
        _robust_columns(content, scores),
        scores,
        caption="Scores on perturbed videos and other splits",
        titles=titles,
        baselines=BASELINES,
        intervals=False,
    )
    text = PERTURBED if any(row.get("robust") for row in scores.values()) else ""
    text += " A method that only counts frames fails here." if text and content["is_labelled"] else ""
    if content["splits"]:
        text += f" Other splits are scored by themselves: {', '.join(content['splits'])}."
    return f"<p>{html.escape(text.strip())}</p>{table}" if table else ""


def _paper_tables(scores: Rows, under: str = "") -> list[tuple[str, list[Column], Rows]]:
    """Return title, columns and rows of tables 3 to 6 of the paper, printed as there."""
    phases = [replace(column, pattern="{:.2%}") for column in columns(*SHARES, under=under)]
    accuracy = [replace(column, pattern="{:.2%}") for column in columns("phase_accuracy", under=under)]
    order = [replace(column, pattern="{:.4f}") for column in columns("progression", "tau", under=under)]
    variants = {name: scores[name] for name in TABLE_3 if name in scores}
    ablation = {**variants, TIME_ONLY: scores[TIME_ONLY]} if len(variants) > 1 else {}
    return [
        ("Phase classification (tables 4 and 5)", phases, scores),
        ("Phase progression and Kendall’s tau (table 6)", order, scores),
        ("Variants of the cycle loss (table 3)", [*accuracy, *order], ablation),
    ]


def _paper_section(content: Content, scores: Rows, titles: Mapping[str, str]) -> str:
    """Return the tables of the mean over actions, and those of each action in a fold."""
    if not content["is_labelled"]:
        return ""
    parts = []
    for title, scored, rows in _paper_tables(scores):
        table = html_table(scored, rows, caption=title, titles=titles, baselines=BASELINES)
        parts.append(f"<h3>{html.escape(title)}</h3>{table}" if table else "")
    if any("supervised" in row["losses"] for row in content["rows"].values()):
        parts.insert(1, SUPERVISED)
    folds = []
    for action in dict.fromkeys(name for row in scores.values() for name in row.get("by_action") or {}):
        tables = _paper_tables(scores, under=f"by_action/{action}")
        scored = [column for _, some, _ in tables[:2] for column in some]
        caption = f"Action {action}"
        table = html_table(scored, scores, caption=caption, titles=titles, baselines=BASELINES)
        folds.append(f"<details><summary>{html.escape(action or 'no action')}</summary>{table}</details>")
    return "".join(parts) + ("<h3>By action</h3>" + "".join(folds) if folds else "")


def _chart(picture: bytes | None, alt: str, caption: str) -> str:
    return "" if picture is None else figure(picture, "image/svg+xml", alt=alt, caption=caption)


def _similarity(content: Content, scenes: Scenes) -> str:
    best, (a, b) = content["rows"][content["best"]]["title"], scenes.pair
    caption = f"{best}. A: {a}, B: {b}, both held out. Bright: similar; white line: the alignment by DTW"
    caption += "; rings: where key events truly meet." if content["is_labelled"] else "."
    points = len(scenes.snapshots) or 1
    alt = f"Similarity matrices of two held-out videos by {best} at {points} points of training"
    return figure(scenes.similarity, "image/png", alt=alt, caption=caption)


def _map(content: Content, scenes: Scenes) -> str:
    colour = "the true phase" if content["is_labelled"] else "time in the video (dark: early)"
    alt = f"t-SNE maps of the frames of held-out videos, coloured by {colour}"
    caption = f"t-SNE of held-out frames, coloured by {colour}"
    caption += "; some as pictures." if scenes.thumbs else "."
    return figure(scenes.frame_map, "image/png", alt=alt, caption=caption)


def _examples(scenes: Scenes, titles: Mapping[str, str]) -> str:
    """Return film strips: the reference above, then the matches of each row."""
    example, thumbs = scenes.example, scenes.thumbs
    if thumbs is None:
        return ""
    head = "".join(f'<th scope="col">{html.escape(title)}</th>' for title in example.moments)
    moments = [Match(frame, None) for frame in example.moments.values()]
    body = _strip("reference", example.reference, moments, thumbs=thumbs)
    for row, videos in example.matches.items():
        title, span = html.escape(titles[row]), len(example.moments) + 1
        body += f'<tr class="group"><th scope="rowgroup" colspan="{span}">{title}</th></tr>'
        body += "".join(_strip("", video, matches, thumbs=thumbs) for video, matches in videos.items())
    return (
        "<p>Moments of a reference video above; below, the frames matched to them in other held-out videos. "
        "The number is the frame; the signed number says how many frames late (+) or early (−) it is, where "
        'the truth is known.</p><div class="scroll"><table class="strips"><caption>Moments of the reference, '
        f"and the frames matched to them</caption><thead><tr><td></td>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _strip(heading: str, video: str, matches: Sequence[Match], *, thumbs: Thumbnails) -> str:
    name = html.escape(video)
    cells = "".join(
        f'<td><img src="{thumbs.data_url(video, match.frame)}" alt="{name}, frame {match.frame}">'
        f"<small>{match.frame}{_lateness(match)}</small></td>"
        for match in matches
    )
    return f'<tr><th scope="row">{heading}<small>{name}</small></th>{cells}</tr>'


def _lateness(match: Match) -> str:
    if match.late is None:
        return ""
    kind = "hit" if abs(match.late) <= 3 else "miss"
    text = f"{match.late:+d}".replace("-", "−") if match.late else "±0"
    return f' <b class="{kind}">{text}</b>'


def _how(content: Content) -> str:
    how, rows = content["how"], content["rows"]
    trained = [
        f"{r['title']} {r['seconds']:.0f} s ({r['updates']} updates)" for r in rows.values() if r["updates"]
    ]
    facts = {
        "Command": f"<code>{html.escape(how['command'] or 'cycleback.comparison.compare')}</code>",
        "Data": html.escape(how["data"]),
        "Key events": html.escape(", ".join(how["key_events"]) or "none labelled"),
        "Recipe": html.escape(how["recipe"]),
        "Protocol": html.escape(how["protocol"]),
        "Seed": str(how["seed"]),
        "Training": html.escape("; ".join(trained) or "none"),
        "This run": f"{how['seconds']:.0f} s on {html.escape(how['device'])}",
        "Versions": html.escape(", ".join(f"{name} {number}" for name, number in how["versions"].items())),
    }
    listed = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in facts.items())
    return (
        f"<dl>{listed}</dl><details><summary>Settings that all rows share (each row has its own loss.weights)"
        f"</summary><pre>{html.escape(content['recipe'])}</pre></details>"
        '<p class="note">All scores: report.json beside this page.</p>'
    )


def to_markdown(content: Content) -> str:
    """Return the sentences and tables without the pictures."""
    scores, titles, how = _scores(content), _titles(content), content["how"]
    parts = [f"# Methods compared on {content['title']}", *content["reading"]]
    parts += [f"> {warning}" for warning in content["warnings"]]
    tables = [
        ("Scores on held-out videos", columns(*HEADLINE, brief=True), scores),
        ("Perturbed videos and other splits", _robust_columns(content, scores), scores),
        *_paper_tables(scores),
    ]
    for place, (title, scored, rows) in enumerate(tables):
        if known_columns(scored, rows):
            table = markdown_table(scored, rows, titles=titles, intervals=place == 0, bold=True)
            parts += [f"## {title}", table]
    parts.append(f"{DAGGER} not better than {TIME_ONLY}. Bold: the best of the others.")
    parts.append(f"Recipe {how['recipe']}, seed {how['seed']}, protocol {how['protocol']}, {how['device']}.")
    return "\n\n".join(parts) + "\n"
