"""How busy a sweep of short runs keeps the processors, and how it scales with workers of a Dask cluster (docs/clusters.md).

Usage: python python/bench/sweep.py [RUNS [WORKERS…]]

Makes RUNS runs (200 by default) of Triad from L1 on this host; then, for each number of WORKERS, on as many workers of a cluster of this
host. Busy is the share of the processors' time that other programs leave.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from distributed import Client, LocalCluster

import fxscope


def main() -> None:
    """Measure, and print seconds and shares."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    plan = fxscope.Sweep(fxscope.kernel("triad-l1"), arguments=["passes={passes}"], factors={"passes": list(range(2000, 2000 + runs))})
    wall, used, idle = _measured(lambda folder: plan.run(folder, progress=False))
    print(f"this host    {wall:7.1f} s, processors {used / (used + idle):.1%} busy", flush=True)
    for workers in map(int, sys.argv[2:]):
        with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
            wall, _, _ = _measured(lambda folder: plan.run(folder, progress=False, client=client))
            print(f"workers: {workers:3} {wall:7.1f} s", flush=True)


def _measured(make: Callable[[str], object]) -> tuple[float, float, float]:
    """Return how long it takes, the processor time of its processes, and how long processors are idle meanwhile, s."""
    with tempfile.TemporaryDirectory() as folder:
        begin, used, idle = time.perf_counter(), _used(), _idle()
        make(folder)
        return time.perf_counter() - begin, _used() - used, _idle() - idle


def _used() -> float:
    """Return the processor time of this process and of those that it has started and that have ended, s."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _idle() -> float:
    """Return how long the processors of this host have been idle, s."""
    return float(Path("/proc/uptime").read_text(encoding="ascii").split()[1])


if __name__ == "__main__":
    main()
