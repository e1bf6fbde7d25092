"""Comparison of runs."""

from __future__ import annotations

import json
from typing import Any

import pandas

from fxscope._command import call
from fxscope._html import bars
from fxscope._record import WHOLE, Record


class Comparison(pandas.DataFrame):
    """How runs compare with the first one: a table, which notebooks show with a chart."""

    def _repr_html_(self) -> str:
        charts = []
        for run, lines in self.groupby("run"):
            title = f"Run {run} against run 1: {lines['speedup'].iloc[0]:.3f} times as fast; differences in s"
            parts = zip(lines["part"], lines["difference"])
            charts.append(bars(title, [(str(part), float(value), f"{value:+.3g}") for part, value in parts if value != 0]))
        return "".join(charts) + pandas.DataFrame(self).to_html(index=False)


def compare(*records: Record, region: str = WHOLE) -> Comparison:
    """Return how fast runs are compared with the first one, and what makes the difference: a line for each other run and part of
    the time, the largest difference first, in s; negative where it takes less than in the first run."""
    words = ["compare", "--format", "json", "--region", region, *(str(record.path) for record in records)]
    found: dict[str, Any] = json.loads(call(words).checked().output)
    lines = []
    for number, result in enumerate(found["results"], 2):
        for part in result["differences"]:
            line = {"run": number, "speedup": result["speedup"], "part": part["title"], "difference": part["difference"]}
            lines.append(line)
    frame = pandas.DataFrame(lines, columns=["run", "speedup", "part", "difference"])
    order = frame["difference"].abs().sort_values(ascending=False, kind="stable").index
    return Comparison(frame.loc[order].sort_values("run", kind="stable", ignore_index=True))
