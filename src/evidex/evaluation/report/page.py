"""The report: one HTML file that needs nothing but itself."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from importlib.metadata import version
from pathlib import Path

from evidex.checked import to_table
from evidex.data.datasets import load_dataset
from evidex.evaluation.noisy import NoisySplit
from evidex.evaluation.report.files import write_files
from evidex.evaluation.report.lexicon_table import lexicon_table
from evidex.evaluation.report.markup import figure, pairs_table, paper_table, recall_table, score_table, signed, text
from evidex.evaluation.report.paper_rows import PaperRow, rows_of
from evidex.evaluation.report.plan import Plan
from evidex.evaluation.report.report_figures import Drawing, draw
from evidex.evaluation.report.results import Number, RecallRow, Results, ScoreRow
from evidex.evaluation.report.setting_pairs import setting_pairs, without_places
from evidex.evaluation.report.words import (
    ABLATION_WORDS,
    LEXICON_WORDS,
    comparison_words,
    figure_words,
    how_to_read,
    refinement_words,
    uncertainty_words,
)
from evidex.files import write_atomic

_BASELINES = ("max_similarity", "margin", "entropy")
_CONDITIONS = {"clean": "the clean split", "noisy": "the noisy split"}


def write_report(plan: Plan, parts: Sequence[Results]) -> Path:
    """Write ``report.html``, the numbers beside it as CSV and JSON, and the figures as PNG; a part is a dataset."""
    output = parts[0].place.output
    files = write_files(parts, output / "tables")
    drawings = draw(parts, output / "figures")
    sections = [*_tables(parts), *_figures(parts, drawings), _settings(parts, files)]
    style = resources.files("evidex.evaluation.report").joinpath("page.css").read_text(encoding="utf-8")
    links = "".join(f'<a href="#{anchor}">{text(short)}</a>' for anchor, short, _, _ in sections)
    body = "".join(
        f'<section id="{anchor}"><h2>{text(title)}</h2>{content}</section>' for anchor, _, title, content in sections
    )
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{text(plan.title)}</title><style>{style}</style></head><body>"
        f"<header><h1>{text(plan.title)}</h1>{_lead(parts)}{_cards(parts)}</header>"
        f'<nav aria-label="Contents"><div><a href="#how-to-read">How to read</a>{links}</div></nav>'
        f'<main><section id="how-to-read"><h2>How to read this</h2>{_listed(how_to_read(plan))}</section>{body}</main>'
        f"<footer>evidex {version('evidex')}, torch {version('torch')}, Python {platform.python_version()}. "
        "Every number and figure above comes from the runs listed under Settings, except the blocks marked as the "
        "paper's.</footer></body></html>\n"
    )
    path = output / "report.html"
    write_atomic(path, page)
    return path


Part = tuple[str, str, str, str]  # anchor, short name, title, content


def _each(parts: Sequence[Results], content: Callable[[Results], str]) -> str:
    """``content`` of every dataset, below its name where there are several."""
    if len(parts) == 1:
        return content(parts[0])
    return "".join(f'<h3 class="dataset">{text(part.place.title)}</h3>{content(part)}' for part in parts)


def _lead(parts: Sequence[Results]) -> str:
    lines = []
    for part in parts:
        found = part.measured(part.our_jobs()[0].digest, "clean")
        lines.append(
            f"{part.place.title}, split “{found['split']}”: {found['images']:,} images, {found['captions']:,} captions"
            f"; {len(part.work.jobs)} models; seeds {', '.join(map(str, part.plan.seeds))}."
        )
    return "".join(f'<p class="lead">{text(line)}</p>' for line in lines)


def _cards(parts: Sequence[Results]) -> str:
    return "".join(_cards_of(part, f", {part.place.title}" if len(parts) > 1 else "") for part in parts)


def _cards_of(results: Results, where: str) -> str:
    plan = results.plan
    clean, noisy = (_row(results, condition, plan.ours).cells[6] for condition in _CONDITIONS)
    refined = _row(results, "noisy", plan.refinement.name).cells[6]
    gain = (refined.mean or 0.0) - (noisy.mean or 0.0)
    u, other, name = _best_baseline(results)
    cards = [
        (_number(clean), f"RSUM of {plan.ours}, clean{where}"),
        (_number(noisy), f"RSUM of {plan.ours}, noisy{where}"),
        (signed(gain), f"RSUM by RS-TTA of {plan.refinement.ratio:.0%} of the queries, noisy{where}"),
        (
            f"{u:.3f} <small>/ {other:.3f}</small>",
            f"AUROC of u for wrong answers to text queries / best baseline ({name}){where}",
        ),
    ]
    shown = "".join(f'<div class="card"><b>{number}</b><span>{text(what)}</span></div>' for number, what in cards)
    return f'<div class="cards">{shown}</div>'


def _tables(parts: Sequence[Results]) -> list[Part]:
    plan, sections = parts[0].plan, []
    for anchor, roman, condition in (("table-1", "I", "clean"), ("table-2", "II", "noisy")):
        content = f"<p>{text(comparison_words(plan))}</p>" + _comparison(parts, condition) + _quoted(rows_of(roman))
        sections.append((anchor, f"Table {roman}", f"Table {roman}: retrieval on {_CONDITIONS[condition]}", content))
    if parts[0].work.ablation:
        note = f"<p>{text(ABLATION_WORDS)}</p>"
        content = note + _each(parts, _ablation) + _quoted(rows_of("III", "IV"))
        sections.append(("table-3", "Tables III/IV", "Tables III and IV: what each part of the loss adds", content))
    content = (
        f"<p>{text(refinement_words(plan))}</p>"
        + _each(parts, lambda part: recall_table(part.refinement(), label="method", delta=True))
        + _quoted(rows_of("V", "VI"))
    )
    sections.append(("table-5", "Tables V/VI", "Tables V and VI: RS-TTA against generic augmentation", content))
    content = f"<p>{text(uncertainty_words(plan.ours))}</p>" + _each(parts, _uncertainty)
    sections.append(("uncertainty-table", "Uncertainty", "What each uncertainty score is worth", content))
    content = f"<p>{text(LEXICON_WORDS)}</p>" + _each(parts, _lexicon)
    return [*sections, ("lexicon", "Lexicon", "The lexicon, and what it did to captions", content)]


def _comparison(parts: Sequence[Results], condition: str) -> str:
    return _each(parts, lambda part: recall_table(part.comparison(condition), label="method"))


def _lexicon(results: Results) -> str:
    place, noise = results.place, results.plan.noise
    return lexicon_table(NoisySplit(load_dataset(place.dataset_path, place.split), noise.seed))


def _ablation(results: Results) -> str:
    return "".join(
        f"<h3>{text(words.capitalize())}</h3>{recall_table(results.ablation(condition), label='loss')}"
        for condition, words in _CONDITIONS.items()
    )


def _uncertainty(results: Results) -> str:
    scores = results.scores()
    ours = results.plan.ours
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
    return f"{shown}<details><summary>Clean split, and the other methods</summary>{others}</details>"


def _figures(parts: Sequence[Results], drawings: Mapping[str, Sequence[Drawing]]) -> list[Part]:
    plan = parts[0].plan
    rival = plan.rival_model()
    words = figure_words(f"{plan.ours}, seed {parts[0].our_jobs()[0].seed}", "" if rival is None else rival.name)
    return [
        (anchor, words[anchor].short, words[anchor].title, figure(pictures, text(words[anchor].caption)))
        for anchor, pictures in drawings.items()
    ]


def _settings(parts: Sequence[Results], files: Sequence[Path]) -> Part:
    first = parts[0]
    config = first.our_jobs()[0].config
    loaded = {"loaded from": first.our_jobs()[0].path}
    exact = json.dumps(loaded if config is None else without_places(to_table(config), first), indent=1)
    plan = json.dumps(to_table(first.plan), indent=1, ensure_ascii=False)
    runs = [(job.label, digest) for part in parts for digest, job in part.work.jobs.items()]
    listed = ", ".join(f"tables/{path.name}" for path in files)
    content = (
        pairs_table(setting_pairs(parts))
        + f"<p>Numbers for other programs: {text(listed)}; pictures: figures/.</p>"
        + f"<details><summary>All settings of {text(first.plan.ours)}</summary><pre>{text(exact)}</pre></details>"
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
