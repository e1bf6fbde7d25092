"""What a sweep on a cluster costs the host that has the scheduler and the sweep, without the runs themselves (docs/clusters.md).

Usage: python python/bench/tasks.py PLAN.toml RECORD.fxr [WORKERS]

Gives a Dask cluster of this host a task for each run of the plan, which returns the given record at once, and writes the records.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import Any

import psutil
from distributed import Client, LocalCluster

from fxscope import distributed
from fxscope._command import call


def main() -> None:
    """Measure, and print seconds and bytes."""
    plan, record = Path(sys.argv[1]), Path(sys.argv[2])
    workers = int(sys.argv[3]) if len(sys.argv) > 3 else 2
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        words = ["sweep", "-o", folder, str(plan), "--dry-run", "--format", "json"]
        wanted = json.loads(call(words).checked().output)
        listed = time.perf_counter() - begin
        _measure(plan, Path(folder), wanted, record.read_bytes(), workers)
    print(f"list of runs         {listed:8.2f} s")


def _measure(plan: Path, folder: Path, wanted: list[Any], record: bytes, workers: int) -> None:
    os.environ["FXSCOPE_RECORD"] = str(Path(sys.argv[2]).absolute())
    distributed._make = stub  # type: ignore[assignment]
    with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        here = psutil.Process()
        begin, before = time.perf_counter(), here.cpu_times()
        written = 0
        for files in distributed._made(plan, wanted, client):
            for name, content in files.items():
                distributed._replace(folder / name, content)
                written += len(content)
        after = here.cpu_times()
        cpu = after.user + after.system - before.user - before.system
        print(f"runs                 {len(wanted):8d}")
        print(f"wall time            {time.perf_counter() - begin:8.2f} s")
        print(f"scheduler and sweep  {cpu:8.2f} s of a core, {1e3 * cpu / len(wanted):.2f} ms for each run")
        sent = len(zlib.compress(record, distributed.COMPRESSION)) * len(wanted)
        print(f"records              {written / 1e6:8.1f} MB written, {sent / 1e6:.1f} MB sent")


def stub(_plan: str, _names: list[str], _contents: list[bytes], record: str) -> dict[str, bytes]:
    """Stand for a run: return a record."""
    content = Path(os.environ["FXSCOPE_RECORD"]).read_bytes()
    return {record: zlib.compress(content, distributed.COMPRESSION)}


if __name__ == "__main__":
    main()
