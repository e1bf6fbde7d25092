"""Comparison of runs."""

from __future__ import annotations

import json
from typing import Any

import pandas

from fxscope._command import call
from fxscope._record import WHOLE, Record


def compare(*records: Record, region: str = WHOLE) -> pandas.DataFrame:
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
    return frame.loc[order].sort_values("run", kind="stable", ignore_index=True)
