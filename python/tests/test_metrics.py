"""Metrics and rules of the user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

import fxscope

TRIAD = fxscope.kernel("triad-l1")
HALF = fxscope.Metric("half", "seconds / 2", "s")
RULE = """
subject = "mine"
[[rule]]
name = "half_of_it"
title = "half of the time"
when = ["half > 0"]
share = "half / seconds"
says = "Half of the time is {half}."
evidence = ["half"]
source = "Arithmetic."
[[rule.try]]
do = "Wait for the other half."
"""


def test_own_metrics_are_columns_and_own_rules_judge(tmp_path: Path) -> None:
    record = fxscope.run(TRIAD, "passes=20")
    frame = record.frame("thread", metrics=[HALF, fxscope.Metric("elements", "flop / 2", "elements")])
    assert (frame["half"] * 2 == frame["seconds"]).all()
    assert list(frame["elements"])[1] == 2048 * 20
    assert "half" not in record
    (tmp_path / "rule.toml").write_text(RULE)
    judged = record.with_([HALF], [tmp_path / "rule.toml"]).verdict
    assert judged is not None and {limit.rule: limit.share for limit in judged.limits}["half_of_it"] == 0.5


def test_own_metrics_are_objectives_of_sweeps(tmp_path: Path) -> None:
    sweep = fxscope.Sweep(
        TRIAD, arguments=["passes={passes}"], factors={"passes": [20, 40]}, metrics=[HALF], objectives=[fxscope.Objective("half", "least")]
    )
    study = sweep.run(tmp_path, progress=False)
    frame = study.frame()
    assert (frame["half"] * 2 == frame["seconds"]).all() and "half" in study.record(1)


def test_wrong_formulas_are_refused() -> None:
    record = fxscope.run(TRIAD, "passes=20")
    with pytest.raises(fxscope.Failed, match="half: no event, constant or metric is called 'secnds'"):
        record.with_([fxscope.Metric("half", "secnds / 2", "s")])
    with pytest.raises(fxscope.Failed, match="gflops: a second metric has this name"):
        record.with_([fxscope.Metric("gflops", "flop", "FLOP")])
