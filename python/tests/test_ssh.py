"""Sweeps on hosts reached by SSH: a real server on this host (`make ssh-test`)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import fxscope
from fxscope import distributed

pytestmark = pytest.mark.skipif("FXSCOPE_SSH" not in os.environ, reason="make ssh-test starts a server")


def test_results_are_those_of_a_sweep_here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sweep = fxscope.Sweep(fxscope.kernel("triad-l1"), arguments=["passes={passes}"], factors={"passes": [20, 21, 22]})
    here = sweep.run(tmp_path / "here", progress=False)
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "plan.toml").write_text(sweep.plan(tmp_path / "there"))
    plan = str(tmp_path / "there" / "plan.toml")
    assert distributed.main(["--on", "ssh:127.0.0.1", "-o", str(tmp_path / "there"), plan]) == 0
    assert capsys.readouterr().out == str(here)
    assert (tmp_path / "here" / "results.csv").read_bytes() == (tmp_path / "there" / "results.csv").read_bytes()
