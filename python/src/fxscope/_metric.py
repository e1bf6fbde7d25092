"""Metrics and rules of the user's own."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Union

import tomli_w

from fxscope._command import PathLike


@dataclass(frozen=True)
class Metric:
    """A metric: a formula over events, other metrics and constants of the machine (docs/own-metrics.md).

    >>> Metric("bytes_per_flop", "memory_gbs / gflops", "B/FLOP")
    """

    name: str
    formula: str
    unit: str
    #: Title in tables; by default, the name.
    title: str = ""
    #: How threads are combined: the formula of the sums of their counts, or the mean, sum or maximum of their values.
    total: Literal["sum", "mean", "add", "max"] = "sum"


Metrics = Sequence[Union[Metric, PathLike]]


@contextmanager
def own_words(metrics: Metrics, rules: Sequence[PathLike]) -> Iterator[list[str]]:
    """Give the options of the command line for metrics and files with rules; they hold while the block runs."""
    own = [one for one in metrics if isinstance(one, Metric)]
    files = [str(one) for one in metrics if not isinstance(one, Metric)]
    with tempfile.TemporaryDirectory(prefix="fxscope-") as folder:
        if own:
            path = Path(folder, "metrics.toml")
            path.write_text(_table(own), encoding="utf-8")
            files.append(str(path))
        yield [f"--metric-file={file}" for file in files] + [f"--rule-file={file}" for file in rules]


def _table(metrics: Sequence[Metric]) -> str:
    lines = [
        {"name": one.name, "title": one.title or one.name, "unit": one.unit, "formula": one.formula, "total": one.total}
        for one in metrics
    ]
    return tomli_w.dumps({"group": "own", "title": "Own metrics", "metric": lines})
