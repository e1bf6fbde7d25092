"""A performance laboratory for A64FX-class processors.

>>> import fxscope
>>> record = fxscope.run("./stream", cpus="12-23")
>>> record.seconds, record["gflops"]
>>> record.verdict.limits[0].title
>>> record.loops().head()

A run is a process of its own: the simulated program has no access to the Python process, and other threads continue.
"""

from fxscope._advice import Advice, Tried, advise
from fxscope._command import Failed, ProgramFailed
from fxscope._comparison import compare
from fxscope._machine import Machine
from fxscope._record import Limit, Record, Region, Remedy, Verdict, load
from fxscope._run import run
from fxscope._sweep import Objective, Range, Study, Sweep

__all__ = [
    "Advice",
    "Failed",
    "Limit",
    "Machine",
    "Objective",
    "ProgramFailed",
    "Range",
    "Record",
    "Region",
    "Remedy",
    "Study",
    "Sweep",
    "Tried",
    "Verdict",
    "advise",
    "compare",
    "load",
    "run",
]
