"""The report: one HTML file that needs nothing but itself."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from importlib import resources
from importlib.metadata import version
from pathlib import Path

from evidex.checked import to_table
from evidex.evaluation.report.files import write_files
from evidex.evaluation.report.jobs import Work
from evidex.evaluation.report.markup import figure, pairs_table, paper_table, recall_table, score_table, signed, text
from evidex.evaluation.report.paper_rows import PaperRow, rows_of
from evidex.evaluation.report.plan import Plan
from evidex.evaluation.report.report_figures import Drawing, draw
from evidex.evaluation.report.results import Number, RecallRow, Results, ScoreRow
from evidex.evaluation.report.setting_pairs import setting_pairs, without_places
from evidex.evaluation.report.words import (
    ABLATION_WORDS,
    comparison_words,
    figure_words,
    how_to_read,
    refinement_words,
    uncertainty_words,
)
from evidex.evaluation.report.work import ReportPlace
from evidex.files import write_atomic

_BASELINES = ("max_similarity", "margin", "entropy")
_CONDITIONS = {"clean": "the clean split", "noisy": "the noisy split"}


def write_report(plan: Plan, work: Work, place: ReportPlace) -> Path:
    """Write ``report.html``, the numbers beside it as CSV and JSON, and the figures as PNG."""
    results = Results(plan, work, place)
    files = write_files(results, place.output / "tables")
    drawings = draw(results, place.output / "figures")
    sections = [*_tables(results), *_figures(results, drawings), _settings(results, files)]
    style = resources.files("evidex.evaluation.report").joinpath("page.css").read_text(encoding="utf-8")
    links = "".join(f'<a href="#{anchor}">{text(short)}</a>' for anchor, short, _, _ in sections)
    body = "".join(
        f'<section id="{anchor}"><h2>{text(title)}</h2>{content}</section>' for anchor, _, title, content in sections
    )
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{text(plan.title)}</title><style>{style}</style></head><body>"
        f"<header><h1>{text(plan.title)}</h1>{_lead(results)}{_cards(results)}</header>"
        f'<nav aria-label="Contents"><div><a href="#how-to-read">How to read</a>{links}</div></nav>'
        f'<main><section id="how-to-read"><h2>How to read this</h2>{_listed(how_to_read(plan))}</section>{body}</main>'
        f"<footer>evidex {version('evidex')}, torch {version('torch')}, Python {platform.python_version()}. "
        "Every number and figure above comes from the runs listed under Settings, except the blocks marked as the "
        "paper's.</footer></body></html>\n"
    )
    path = place.output / "report.html"
    write_atomic(path, page)
    return path


Part = tuple[str, str, str, str]  # anchor, short name, title, content


def _lead(results: Results) -> str:
    found = results.measured(results.our_jobs()[0].digest, "clean")
    words = (
        f"{found['dataset']}, split “{found['split']}”: {found['images']:,} images, {found['captions']:,} captions; "
        f"{len(results.work.jobs)} models; seeds {', '.join(map(str, results.plan.seeds))}."
    )
    return f'<p class="lead">{text(words)}</p>'


def _cards(results: Results) -> str:
    plan = results.plan
    clean, noisy = (_row(results, condition, plan.ours).cells[6] for condition in _CONDITIONS)
    refined = _row(results, "noisy", plan.refinement.name).cells[6]
    gain = (refined.mean or 0.0) - (noisy.mean or 0.0)
    u, other, name = _best_baseline(results)
    cards = [
        (_number(clean), f"RSUM of {plan.ours}, clean"),
        (_number(noisy), f"RSUM of {plan.ours}, noisy"),
        (signed(gain), f"RSUM by RS-TTA of {plan.refinement.ratio:.0%} of the queries, noisy"),
        (
            f"{u:.3f} <small>/ {other:.3f}</small>",
            f"AUROC of u for wrong answers to text queries / best baseline ({name})",
        ),
    ]
    shown = "".join(f'<div class="card"><b>{number}</b><span>{text(what)}</span></div>' for number, what in cards)
    return f'<div class="cards">{shown}</div>'


def _tables(results: Results) -> list[Part]:
    plan = results.plan
    parts: list[Part] = []
    for anchor, roman, condition in (("table-1", "I", "clean"), ("table-2", "II", "noisy")):
        note = f"<p>{text(comparison_words(plan))}</p>"
        content = note + recall_table(results.comparison(condition), label="method") + _quoted(rows_of(roman))
        parts.append((anchor, f"Table {roman}", f"Table {roman}: retrieval on {_CONDITIONS[condition]}", content))
    if results.work.ablation:
        parts.append(
            ("table-3", "Tables III/IV", "Tables III and IV: what each part of the loss adds", _ablation(results))
        )
    content = (
        f"<p>{text(refinement_words(plan))}</p>"
        + recall_table(results.refinement(), label="method", delta=True)
        + _quoted(rows_of("V", "VI"))
    )
    parts.append(("table-5", "Tables V/VI", "Tables V and VI: RS-TTA against generic augmentation", content))
    parts.append(("uncertainty-table", "Uncertainty", "What each uncertainty score is worth", _uncertainty(results)))
    return parts


def _ablation(results: Results) -> str:
    blocks = "".join(
        f"<h3>{text(words.capitalize())}</h3>{recall_table(results.ablation(condition), label='loss')}"
        for condition, words in _CONDITIONS.items()
    )
    return f"<p>{text(ABLATION_WORDS)}</p>" + blocks + _quoted(rows_of("III", "IV"))


def _uncertainty(results: Results) -> str:
    scores = results.scores()
    ours = results.plan.ours
    note = f"<p>{text(uncertainty_words(ours))}</p>"
    shown = "".join(
        f"<h3>{title}, noisy split</h3>{score_table(_pick(scores, ours, 'noisy', direction))}"
        for direction, title in (("i2t", "Image queries"), ("t2i", "Text queries"))
    )
    others = "".join(
        f"<h3>{text(model)}, {title}, {condition} split</h3>{score_table(_pick(scores, model, condition, direction))}"
        for model in results.work.comparison
        for condition in _CONDITIONS
        for direction, title in (("i2t", "image queries"), ("t2i", "text queries"))
        if (model, condition) != (ours, "noisy")
    )
    return f"{note}{shown}<details><summary>Clean split, and the other methods</summary>{others}</details>"


def _figures(results: Results, drawings: Mapping[str, Sequence[Drawing]]) -> list[Part]:
    first = f"{results.plan.ours}, seed {results.our_jobs()[0].seed}"
    return [
        (anchor, words.short, words.title, figure(drawings[anchor], text(words.caption)))
        for anchor, words in figure_words(first).items()
        if anchor in drawings
    ]


def _settings(results: Results, files: Sequence[Path]) -> Part:
    config = results.our_jobs()[0].config
    loaded = {"loaded from": results.our_jobs()[0].path}
    exact = json.dumps(loaded if config is None else without_places(to_table(config), results), indent=1)
    plan = json.dumps(to_table(results.plan), indent=1, ensure_ascii=False)
    runs = [(job.label, digest) for digest, job in results.work.jobs.items()]
    listed = ", ".join(f"tables/{path.name}" for path in files)
    content = (
        pairs_table(setting_pairs(results))
        + f"<p>Numbers for other programs: {text(listed)}; pictures: figures/.</p>"
        + f"<details><summary>All settings of {text(results.plan.ours)}</summary><pre>{text(exact)}</pre></details>"
        + f"<details><summary>The benchmark's plan</summary><pre>{text(plan)}</pre></details>"
        + f"<details><summary>Models and their folders under models/</summary>{pairs_table(runs)}</details>"
    )
    return ("settings", "Settings", "Settings", content)


def _quoted(rows: Sequence[PaperRow]) -> str:
    wrong = sum(not row.consistent for row in rows)
    note = (
        f"In {wrong} rows the printed RSUM is not the sum of the six recalls; they are quoted as printed and flagged."
        if wrong
        else "In every row the printed RSUM is the sum of the six recalls, but for rounding."
    )
    return (
        '<details class="paper"><summary>The paper\'s own numbers, for reference (CLIP ViT-B/32, RSICD and RSITMD)'
        f"</summary><p>Quoted from the paper as printed, not measured here. {note}</p>{paper_table(rows)}</details>"
    )


def _listed(lines: Sequence[str]) -> str:
    return f'<ul class="read">{"".join(f"<li>{text(line)}</li>" for line in lines)}</ul>'


def _row(results: Results, condition: str, name: str) -> RecallRow:
    return next(row for row in results.comparison(condition) if row.name == name)


def _best_baseline(results: Results) -> tuple[float, float, str]:
    """AUROC at R@1 of u and of the best baseline, text queries, noisy split."""
    rows = {row.score: row.cells[0].mean or 0.0 for row in _pick(results.scores(), results.plan.ours, "noisy", "t2i")}
    best = max(_BASELINES, key=lambda name: rows[name])
    return rows["vacuity"], rows[best], best.replace("_", " ")


def _pick(scores: Sequence[ScoreRow], model: str, condition: str, direction: str) -> list[ScoreRow]:
    return [row for row in scores if (row.model, row.condition, row.direction) == (model, condition, direction)]


def _number(number: Number) -> str:
    spread = "" if number.spread is None else f" <small>± {number.spread:.2f}</small>"
    return f"{number.mean or 0.0:.2f}{spread}"
