"""How busy a sweep of short runs keeps the processors, and how it scales with workers of a Dask cluster (docs/clusters.md).

Usage: python python/bench/sweep.py [RUNS [WORKERS…]]

Makes RUNS runs (200 by default) of Triad from L1 on this host; then, for each number of WORKERS, on as many workers of a cluster of this
host. Processors are kept busy while there are as many runs at a time as the host has: that does not depend on what else it does.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable

import psutil
from distributed import Client, LocalCluster

import fxscope


def main() -> None:
    """Measure, and print seconds and shares."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    plan = fxscope.Sweep(fxscope.kernel("triad-l1"), arguments=["passes={passes}"], factors={"passes": list(range(2000, 2000 + runs))})
    with _Runs() as at_a_time:
        wall = _measured(lambda folder: plan.run(folder, progress=False))
    print(f"this host    {wall:7.1f} s, all processors have a run for {at_a_time.share(os.cpu_count() or 1):.1%} of the time", flush=True)
    for workers in map(int, sys.argv[2:]):
        with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
            wall = _measured(lambda folder: plan.run(folder, progress=False, client=client))
            print(f"workers: {workers:3} {wall:7.1f} s", flush=True)


def _measured(make: Callable[[str], object]) -> float:
    """Return how long it takes, s."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        make(folder)
        return time.perf_counter() - begin


class _Runs:
    """Looks how many runs there are at a time: processes of the processes of this one."""

    def __init__(self) -> None:
        self._seen: list[int] = []
        self._ended = threading.Event()
        self._watcher = threading.Thread(target=self._watch)

    def __enter__(self) -> _Runs:
        self._watcher.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        self._watcher.join()

    def share(self, number: int) -> float:
        """Return in which share of the time there were at least so many runs."""
        return sum(1 for runs in self._seen if runs >= number) / len(self._seen)

    def _watch(self) -> None:
        here = psutil.Process()
        while not self._ended.wait(0.02):
            try:
                self._seen.append(sum(len(sweep.children()) for sweep in here.children()))
            except psutil.NoSuchProcess:
                continue


if __name__ == "__main__":
    main()
