"""What a run from Python costs more than one from the command line (docs/python.md).

Usage: python python/bench/run.py [NUMBER [PROGRAM [ARGUMENTS]]]

Runs a program NUMBER times in turn both ways, by default 50 times Triad from L1 with 20 passes, and prints medians.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import fxscope
from fxscope._command import executable


def main() -> None:
    """Measure, and print milliseconds."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    words = sys.argv[2:] or [str(fxscope.kernel("triad-l1")), "passes=20"]
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder, "run.fxr")

        def from_shell() -> None:
            record.unlink(missing_ok=True)
            command = [executable(), "run", "--quiet", "-o", str(record), "--", *words]
            subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True)

        ways: dict[str, Callable[[], object]] = {"command line": from_shell, "fxscope.run": lambda: fxscope.run(*words)}
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for _ in range(number):
            for name, way in ways.items():
                taken[name].append(_time(way))
    medians = {name: [1e3 * statistics.median(one) for one in zip(*times)] for name, times in taken.items()}
    for name, (wall, processor) in medians.items():
        print(f"{name:14} {wall:8.1f} ms, {processor:8.1f} ms of a core")
    wall, processor = (more - less for less, more in zip(*medians.values()))
    print(f"{'difference':14} {wall:8.1f} ms, {processor:8.1f} ms of a core")


def _time(way: Callable[[], object]) -> tuple[float, float]:
    """Return the time and the processor time that a call takes, with its processes, s."""
    begin, before = time.perf_counter(), _processor()
    way()
    return time.perf_counter() - begin, _processor() - before


def _processor() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


if __name__ == "__main__":
    main()
