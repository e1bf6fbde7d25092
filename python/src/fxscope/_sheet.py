"""Results as sheets: tables, sentences and plots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

import pandas

from fxscope._html import paragraph, text
from fxscope._optional import module


class Sheet:
    """Tables, sentences and plots under a title."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        #: All results, as the command's ``--format json`` has them.
        self.json = found

    @property
    def title(self) -> str:
        """What it shows."""
        return str(self.json["title"])

    @property
    def tables(self) -> Mapping[str, pandas.DataFrame]:
        """Its tables by title."""
        return {table["title"]: pandas.DataFrame(table["rows"]) for table in self.json["tables"]}

    @property
    def notes(self) -> Mapping[str, tuple[str, ...]]:
        """Sentences by title."""
        return {title: tuple(sentences) for title, sentences in self.json["notes"].items()}

    def frame(self, title: Optional[str] = None) -> pandas.DataFrame:
        """Return a table; by default, the first one."""
        tables = self.tables
        if title is None:
            return next(iter(tables.values()))
        if title not in tables:
            raise KeyError(f"no table '{title}'; there is {', '.join(tables)}")
        return tables[title]

    def curves(self) -> pandas.DataFrame:
        """Return the points of all plots: title of the plot, label of the curve, ``x`` and ``y``."""
        points = [
            (plot["title"], curve["label"], *point)
            for plot in self.json["plots"]
            for curve in plot["curves"]
            for point in curve["points"]
        ]
        return pandas.DataFrame(points, columns=["plot", "curve", "x", "y"])

    def chart(self, title: Optional[str] = None) -> Any:
        """Return a plot as a chart of Altair; by default, the first one."""
        altair = module("altair", "charts")
        plots = {plot["title"]: plot for plot in self.json["plots"]}
        wanted = title or next(iter(plots), None)
        if wanted not in plots:
            raise KeyError(f"no plot '{title}'; there is {', '.join(plots)}" if plots else "there are no plots")
        plot, curves = plots[wanted], self.curves()
        return (
            altair.Chart(curves[curves["plot"] == wanted], title=wanted)
            .mark_line(point=True)
            .encode(
                x=altair.X("x:Q", title=plot["across"]), y=altair.Y("y:Q", title=plot["up"]), color=altair.Color("curve:N", title=None)
            )
        )

    def __str__(self) -> str:
        return "\n\n".join([self.title, *(f"{title}\n{frame.to_string(index=False)}" for title, frame in self.tables.items())])

    def _repr_html_(self) -> str:
        tables = "".join(paragraph(title) + frame.to_html(index=False) for title, frame in self.tables.items())
        notes = "".join(paragraph(sentence) for sentences in self.notes.values() for sentence in sentences)
        return f"<p><b>{text(self.title)}</b></p>{tables}{notes}"
