"""How much faster a run is whose intervals a worker of a Dask cluster times as well (docs/clusters.md).

Usage: python python/bench/intervals.py TIMES PROGRAM [ARGUMENT...]

Times ``fxscope run --jobs 1``, the same run with ``--jobs 2`` and one worker on this host, and two runs with ``--jobs 1`` at once, in turn, and compares what
they have counted. The two runs at once show what the host's second core adds to programs that share nothing, which is the most that a worker can add.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Optional

from distributed import Client, LocalCluster

from fxscope import _intervals
from fxscope._command import call


def main() -> None:
    """Measure, and print seconds and ratios."""
    times, program = int(sys.argv[1]), sys.argv[2:]
    with_worker, at_once = [], []
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        for _ in range(times):
            alone, alone_counts = _run(program, None)
            together, counts = _run(program, client)
            if counts != alone_counts:
                sys.exit("the counts differ")
            with_worker.append(alone / together)
            both = _two_at_once(program)
            at_once.append(2 * alone / both)
            print(
                f"{alone:8.2f} s alone {together:8.2f} s with a worker ({with_worker[-1]:.2f} times as fast)"
                f" {both:8.2f} s two at once ({at_once[-1]:.2f} times)",
                flush=True,
            )
    print(f"median {statistics.median(with_worker):.2f} times with a worker, {statistics.median(at_once):.2f} times two at once")


def _two_at_once(program: list[str]) -> float:
    """Return the seconds of two runs that share nothing but the host."""
    begin = time.perf_counter()
    with ThreadPoolExecutor(2) as pool:
        for run in [pool.submit(_run, program, None) for _ in range(2)]:
            run.result()
    return time.perf_counter() - begin


def _run(program: list[str], client: Optional[Client]) -> tuple[float, str]:
    """Return the seconds of a run, and its counts."""
    jobs = 2 if client else 1
    with tempfile.TemporaryDirectory() as folder:
        record = str(Path(folder, "run.fxr"))
        command = ["run", "--quiet", f"--jobs={jobs}", "-o", record, "--", *program]
        begin = time.perf_counter()
        (_intervals.run(command, client) if client else call(command)).checked()
        seconds = time.perf_counter() - begin
        return seconds, call(["report", "--format", "csv", record]).checked().output


if __name__ == "__main__":
    main()
