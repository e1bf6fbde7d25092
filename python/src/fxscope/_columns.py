"""Values of threads, CMGs and processes: columns that the command writes as arrays of NumPy."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Optional

import numpy
import pandas

from fxscope._command import call

#: For each kind of part, the columns that identify one.
PARTS: Mapping[str, tuple[str, ...]] = {
    "process": ("process",),
    "cmg": ("process", "cmg"),
    "thread": ("process", "thread", "node", "cpu"),
}


def read(path: Path, by: str, region: Optional[str], own: Sequence[str], words: Sequence[str]) -> pandas.DataFrame:
    """Return metrics and events of the parts of a run: a line for each part of each region, or of one. ``own``: options for metrics of the
    user's own; ``words``: which run of the file, by default the last one."""
    with tempfile.TemporaryDirectory(prefix="fxscope-") as folder:
        file = Path(folder, "values.npz")
        wanted = [] if region is None else [f"--region={region}"]
        call(["report", "--format=numpy", f"--by={by}", f"--output={file}", *own, *words, *wanted, path]).checked()
        with numpy.load(file, allow_pickle=False) as arrays:
            columns = dict(arrays)
    return _frame(columns, by, named=region is None)


def _frame(columns: dict[str, Any], by: str, named: bool) -> pandas.DataFrame:
    runs = columns.pop("run")
    places = {name: columns.pop(name) for name in ("region", *PARTS[by])}
    if not named:
        del places["region"]
    index = pandas.MultiIndex.from_arrays(list(places.values()), names=list(places))
    frame = pandas.DataFrame(columns, index=index if len(places) > 1 else index.get_level_values(0))
    last = runs == runs.max(initial=0)
    return frame if last.all() else frame[last]
