"""Measurements of other tools as records."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Literal, Optional

from fxscope._command import PathLike, call, option_words
from fxscope._record import Record, records


def import_(
    tool: Literal["fapp", "perf", "papi", "likwid"],
    *files: PathLike,
    machine: Optional[str] = None,
    program: Optional[str] = None,
    scaled: bool = False,
    output: Optional[PathLike] = None,
) -> list[Record]:
    """Return what another tool measured, as runs: of perf, ``perf stat``'s text, separated values or JSON. Files with different events are
    passes of one measurement, files with the same events repetitions, each a run. ``machine``: the one that was measured; by default
    A64FX. ``scaled``: accept counts of multiplexed events. ``output``: the file of the record; without it, the record lasts as long as the
    result."""
    keep = tempfile.TemporaryDirectory(prefix="fxscope-")
    path = Path(output) if output else Path(keep.name, "measured.fxr")
    options = option_words({"machine": machine, "program": program, "scaled": scaled, "output": path})
    call(["import", *options, tool, *files]).checked()
    return records(path, keep=keep)
