"""Pieces of HTML for notebooks: text and small charts, without scripts and without the network."""

from __future__ import annotations

import html
from collections.abc import Iterable

#: Height of a line of a chart, and widths of its parts, in pixels.
_LINE, _LABEL, _BAR, _TEXT = 18, 240, 240, 120

#: Most lines of a chart.
_MOST = 12


def text(word: object) -> str:
    """Return text with the special characters of HTML escaped."""
    return html.escape(str(word))


def paragraph(words: str) -> str:
    """Return a paragraph of text."""
    return f"<p>{text(words)}</p>"


def bars(title: str, lines: Iterable[tuple[str, float, str]]) -> str:
    """Return a chart with a bar for each line: a label, a value that is the bar's length, and the value as text. Bars of negative
    values are red. Empty without lines."""
    shown = list(lines)[:_MOST]
    if not shown:
        return ""
    most = max(abs(value) for _, value, _ in shown) or 1.0
    rows = "".join(_bar(place, label, value / most, words) for place, (label, value, words) in enumerate(shown))
    width, height = _LABEL + _BAR + _TEXT, _LINE * (len(shown) + 1)
    return (
        f'<svg role="img" width="{width}" height="{height}" font-family="sans-serif" font-size="12" fill="currentColor">'
        f'<title>{text(title)}</title><text x="0" y="13" font-weight="bold">{text(title)}</text>{rows}</svg>'
    )


def _bar(place: int, label: str, part: float, words: str) -> str:
    top = _LINE * (place + 1)
    length = max(1.0, abs(part) * _BAR)
    colour = "#c0504d" if part < 0 else "#4c78a8"
    return (
        f'<text x="{_LABEL - 6}" y="{top + 13}" text-anchor="end">{text(label)}</text>'
        f'<rect x="{_LABEL}" y="{top + 3}" width="{length:.1f}" height="{_LINE - 6}" fill="{colour}"/>'
        f'<text x="{_LABEL + length + 6:.1f}" y="{top + 13}">{text(words)}</text>'
    )
