"""How much faster a run is whose intervals a worker of a Dask cluster times as well (docs/clusters.md).

Usage: python python/bench/intervals.py TIMES PROGRAM [ARGUMENT...]

Times ``fxscope run --jobs 1`` and the same run with ``--jobs 2`` and one worker on this host, in turn, and compares what they have counted.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Optional

from distributed import Client, LocalCluster

from fxscope import _intervals
from fxscope._command import call


def main() -> None:
    """Measure, and print seconds and ratios."""
    times, program = int(sys.argv[1]), sys.argv[2:]
    ratios = []
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        for _ in range(times):
            alone, alone_counts = _run(program, None)
            together, counts = _run(program, client)
            if counts != alone_counts:
                sys.exit("the counts differ")
            ratios.append(alone / together)
            print(f"{alone:8.2f} s alone {together:8.2f} s with a worker {ratios[-1]:6.2f} times as fast")
    print(f"median {statistics.median(ratios):.2f} times as fast")


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
