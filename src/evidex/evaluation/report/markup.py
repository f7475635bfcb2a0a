"""Pieces of the report's page: tables, figures, settings."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Sequence

from evidex.evaluation.report.paper_rows import PaperRow
from evidex.evaluation.report.report_figures import Drawing
from evidex.evaluation.report.results import PARTS, Number, RecallRow, ScoreRow
from evidex.evaluation.table import SCORE_TITLES

_RECALL_HEAD = ("R@1", "R@5", "R@10", "R@1", "R@5", "R@10")
SCORE_HEADS = (
    ("wrong@1", True),
    ("wrong@10", True),
    ("degraded", True),
    ("class gone", True),
    ("out of domain", True),
    ("AURC@1", False),
    ("AURC@10", False),
)


def text(value: str) -> str:
    return html.escape(value, quote=True)


def recall_table(rows: Sequence[RecallRow], *, label: str, delta: bool = False) -> str:
    """Rows of measured recall; ``delta`` adds the change of RSUM against the first row."""
    parts = bool(rows and rows[0].parts)
    best = [_best((row.cells[i].mean for row in rows), higher=True, decimals=2) for i in range(7)]
    lines = []
    for row in rows:
        ticks = "".join(f'<td class="tick">{"✓" if part else "–"}</td>' for part in row.parts)
        cells = "".join(_cell(number, best[i], 2) for i, number in enumerate(row.cells))
        change = _change(row, rows[0]) if delta else ""
        mark = ' class="ours"' if row.ours else ""
        note = f"<small>{text(row.note)}</small>" if row.note else ""
        lines.append(f'<tr{mark}><th scope="row">{text(row.name)}{note}</th>{ticks}{cells}{change}</tr>')
    return _scrolled(_recall_head(label, parts, delta) + f"<tbody>{''.join(lines)}</tbody>")


def _recall_head(label: str, parts: bool, delta: bool) -> str:
    names = "".join(f'<th rowspan="2" class="tick">{name}</th>' for name in PARTS) if parts else ""
    change = '<th rowspan="2">Δ RSUM</th>' if delta else ""
    first = (
        f'<tr><th rowspan="2" class="name">{text(label)}</th>{names}<th colspan="3" class="group">image → text</th>'
        f'<th colspan="3" class="group">text → image</th><th rowspan="2">RSUM</th>{change}</tr>'
    )
    return f"<thead>{first}<tr>{''.join(f'<th>{name}</th>' for name in _RECALL_HEAD)}</tr></thead>"


def paper_table(rows: Sequence[PaperRow]) -> str:
    """Rows of the paper as it prints them, by dataset."""
    parts = bool(rows and rows[0].parts)
    lines, dataset = [], ""
    for row in rows:
        if row.dataset != dataset:
            dataset = row.dataset
            noisy = "Noisy " if row.table in ("II", "V", "VI") else ""
            span = 9 + (4 if parts else 0)
            title = f"{noisy}{dataset} test, Table {row.table} of the paper"
            lines.append(f'<tr class="block"><th colspan="{span}" scope="colgroup">{text(title)}</th></tr>')
        ticks = "".join(f'<td class="tick">{"✓" if part else "–"}</td>' for part in row.parts)
        cells = "".join(f"<td>{text(value)}</td>" for value in row.values[:6])
        flag = (
            ""
            if row.consistent
            else f' <span class="flag" title="sum of the six: {row.sum_of_recalls:.2f}">≠ sum</span>'
        )
        name = f'<th scope="row">{text(row.method)}</th><td class="words">{text(row.backbone)}</td>'
        lines.append(f"<tr>{name}{ticks}{cells}<td>{text(row.values[6])}{flag}</td></tr>")
    names = "".join(f'<th rowspan="2" class="tick">{name}</th>' for name in PARTS if name != "KL") if parts else ""
    head = (
        f'<thead><tr><th rowspan="2" class="name">method</th><th rowspan="2" class="words">backbone</th>{names}'
        '<th colspan="3" class="group">image → text</th><th colspan="3" class="group">text → image</th>'
        f'<th rowspan="2">RSUM</th></tr><tr>{"".join(f"<th>{name}</th>" for name in _RECALL_HEAD)}</tr></thead>'
    )
    return _scrolled(head + f"<tbody>{''.join(lines)}</tbody>")


def score_table(rows: Sequence[ScoreRow]) -> str:
    """One row a score; columns that were not measured are left out."""
    shown = [i for i in range(len(SCORE_HEADS)) if any(row.cells[i].mean is not None for row in rows)]
    best = {i: _best((row.cells[i].mean for row in rows), higher=SCORE_HEADS[i][1], decimals=3) for i in shown}
    head = "".join(f"<th>{SCORE_HEADS[i][0]} {'↑' if SCORE_HEADS[i][1] else '↓'}</th>" for i in shown)
    lines = []
    for row in rows:
        mark = ' class="ours"' if row.score == "vacuity" else ""
        cells = "".join(_cell(row.cells[i], best[i], 3) for i in shown)
        lines.append(f'<tr{mark}><th scope="row">{text(SCORE_TITLES.get(row.score, row.score))}</th>{cells}</tr>')
    thead = f'<thead><tr><th class="name">score</th>{head}</tr></thead>'
    return _scrolled(f"{thead}<tbody>{''.join(lines)}</tbody>")


def pairs_table(pairs: Iterable[tuple[str, str]]) -> str:
    """Names and what they are set to."""
    lines = "".join(f'<tr><th scope="row">{text(k)}</th><td class="words">{text(v)}</td></tr>' for k, v in pairs)
    return _scrolled(f"<tbody>{lines}</tbody>", extra=" pairs")


def words_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows of sentences, which are HTML already."""
    head = "".join(f'<th class="words">{text(name)}</th>' for name in heads)
    cells = ("".join(f'<td class="words">{cell}</td>' for cell in row) for row in rows)
    lines = "".join(f"<tr>{row}</tr>" for row in cells)
    return _scrolled(f"<thead><tr>{head}</tr></thead><tbody>{lines}</tbody>")


def figure(drawings: Sequence[Drawing], caption: str) -> str:
    """Pictures inside the page itself, below the name of their dataset where there are several."""
    images, dataset = "", ""
    for drawing in drawings:
        if drawing.dataset != dataset:
            dataset = drawing.dataset
            images += f"<h3>{text(dataset)}</h3>"
        content = base64.b64encode(drawing.path.read_bytes()).decode()
        images += f'<img alt="{text(drawing.words)}" src="data:image/png;base64,{content}">'
    return f'<figure><div class="plate">{images}</div><figcaption>{caption}</figcaption></figure>'


def _cell(number: Number, best: str, decimals: int) -> str:
    if number.mean is None:
        return "<td>–</td>"
    mean = f"{number.mean:.{decimals}f}"
    shown = f"<b>{mean}</b>" if mean == best else mean
    spread = "" if number.spread is None else f"<small> ± {number.spread:.{decimals}f}</small>"
    return f"<td>{shown}{spread}</td>"


def _change(row: RecallRow, first: RecallRow) -> str:
    if row is first or row.cells[6].mean is None or first.cells[6].mean is None:
        return "<td>–</td>"
    return f"<td>{signed(row.cells[6].mean - first.cells[6].mean)}</td>"


def signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def _best(values: Iterable[float | None], *, higher: bool, decimals: int) -> str:
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return ""
    return f"{max(known) if higher else min(known):.{decimals}f}"


def _scrolled(content: str, extra: str = "") -> str:
    return f'<div class="scroll" tabindex="0"><table class="numbers{extra}">{content}</table></div>'
