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
from fxscope._comparison import Comparison, compare
from fxscope._import import import_
from fxscope._jitter import jitter
from fxscope._kernels import kernel, kernels
from fxscope._latency import Forecast, latency
from fxscope._machine import Machine
from fxscope._metric import Metric
from fxscope._pages import PageAdvice, PageChoice, pages
from fxscope._range import Range
from fxscope._record import Record, Region, load
from fxscope._run import run
from fxscope._sheet import Sheet
from fxscope._study import Study
from fxscope._sweep import Objective, Sweep
from fxscope._tune import Tuning, tune
from fxscope._validation import Validation, validate
from fxscope._verdict import Limit, Remedy, Verdict

__all__ = [
    "Advice",
    "Comparison",
    "Failed",
    "Forecast",
    "Limit",
    "Machine",
    "Metric",
    "Objective",
    "PageAdvice",
    "PageChoice",
    "ProgramFailed",
    "Range",
    "Record",
    "Region",
    "Remedy",
    "Sheet",
    "Study",
    "Sweep",
    "Tried",
    "Tuning",
    "Validation",
    "Verdict",
    "advise",
    "compare",
    "import_",
    "jitter",
    "kernel",
    "kernels",
    "latency",
    "load",
    "pages",
    "run",
    "tune",
    "validate",
]
