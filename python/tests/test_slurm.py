"""Sweeps as jobs of Slurm: a real one, of one node (`make slurm-test`)."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import fxscope

pytestmark = pytest.mark.skipif("FXSCOPE_SLURM" not in os.environ, reason="make slurm-test starts a Slurm")


def plan(passes: list[int]) -> fxscope.Sweep:
    return fxscope.Sweep(
        fxscope.kernel("triad-l1"), arguments=["passes={passes}"], factors={"passes": passes, "n": [1024, 2048]}, options={},
        env={"N": "{n}"},
    )


def on_slurm(folder: Path, sweep: fxscope.Sweep) -> str:
    """Make the runs of a sweep on two jobs, from a shell's command line."""
    folder.mkdir()
    (folder / "plan.toml").write_text(sweep.plan(folder))
    words = [sys.executable, "-m", "fxscope.distributed", "--on", "slurm:jobs=2,memory=1GB,walltime=00:10:00", "-o", str(folder)]
    done = subprocess.run([*words, str(folder / "plan.toml")], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def jobs() -> list[str]:
    listed = subprocess.run(["squeue", "--noheader", "--states=running", "--format=%i"], capture_output=True, text=True, check=True)
    return listed.stdout.split()


def test_results_are_those_of_a_sweep_here(tmp_path: Path) -> None:
    said = on_slurm(tmp_path / "there", plan([20, 40]))
    here = plan([20, 40]).run(tmp_path / "here", progress=False)
    assert (tmp_path / "here" / "results.csv").read_bytes() == (tmp_path / "there" / "results.csv").read_bytes()
    assert said == str(here)
    assert jobs() == []


def test_a_job_that_is_cancelled_loses_nothing(tmp_path: Path) -> None:
    cancelled: list[str] = []

    def cancel() -> None:
        for _ in range(300):
            time.sleep(0.2)
            if running := jobs():
                subprocess.run(["scancel", running[0]], check=True)
                cancelled.append(running[0])
                return

    canceller = threading.Thread(target=cancel)
    canceller.start()
    on_slurm(tmp_path / "there", plan([2000, 2001, 2002]))
    canceller.join()
    plan([2000, 2001, 2002]).run(tmp_path / "here", progress=False)
    assert len(cancelled) == 1
    assert (tmp_path / "here" / "results.csv").read_bytes() == (tmp_path / "there" / "results.csv").read_bytes()
