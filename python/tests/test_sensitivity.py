"""Analysis of sensitivity: against a function whose indices are known, and of a machine."""

from __future__ import annotations

import math
from pathlib import Path

import pandas
import pytest

import fxscope

ANGLE = fxscope.Range(-math.pi, math.pi)


def ishigami(x: float, y: float, z: float) -> float:
    """The usual function for tests of such analyses (Ishigami and Homma, 1990), a = 7, b = 0.1."""
    return math.sin(x) + 7 * math.sin(y) ** 2 + 0.1 * z**4 * math.sin(x)


def study_of_ishigami(folder: Path, sweep: fxscope.Sweep) -> fxscope.Study:
    """Write results as if runs of the sweep had taken as many seconds as the function says."""
    sampling = sweep.sampling()
    assert sampling is not None
    lines = [
        {"run": number, "region": "all", **point, "state": "done", "message": "", "record": "", "seconds": ishigami(**point)}  # type: ignore[arg-type]
        for number, point in enumerate(sampling.distinct(), 1)
    ]
    pandas.DataFrame(lines).to_csv(folder / "results.csv", index=False)
    return fxscope.Study(folder, sweep, "")


def test_indices_of_sobol_are_those_of_the_function(tmp_path: Path) -> None:
    sweep = fxscope.Sweep("x", factors={"x": ANGLE, "y": ANGLE, "z": ANGLE}, design="saltelli", samples=4096)
    found = study_of_ishigami(tmp_path, sweep).sensitivity()
    # Variances: V1 = (1 + b pi^4/5)^2 / 2, V2 = a^2/8, V13 = 8 b^2 pi^8 / 225.
    first, second, third = (1 + 0.1 * math.pi**4 / 5) ** 2 / 2, 49 / 8, 8 * 0.01 * math.pi**8 / 225
    whole = first + second + third
    expected = {"x": (first, first + third), "y": (second, second), "z": (0.0, third)}
    for name, (alone, total) in expected.items():
        assert found.loc[name, "S1"] == pytest.approx(alone / whole, abs=0.03)
        assert found.loc[name, "ST"] == pytest.approx(total / whole, abs=0.03)
        assert found["ST"][name] == pytest.approx(total / whole, abs=2 * found["ST_conf"][name])
    assert list(found.index) == ["x", "y", "z"]


def test_effects_of_morris_find_what_matters(tmp_path: Path) -> None:
    sweep = fxscope.Sweep("x", factors={"x": ANGLE, "y": ANGLE, "z": ANGLE}, design="morris", samples=400)
    found = study_of_ishigami(tmp_path, sweep).sensitivity()
    # At levels of 1/3, sin(y)^2 changes by 3/4 over 2/3 of the range.
    assert found.loc["y", "mu_star"] == pytest.approx(7 * 0.75 / (2 / 3), rel=0.01)
    assert found.loc["y", "mu"] == pytest.approx(0, abs=1.0)
    assert (found["mu_star_conf"] >= 0).all()


def test_a_machine_is_analysed_by_the_same_path(tmp_path: Path) -> None:
    sweep = fxscope.Sweep(
        fxscope.kernel("triad-l1"),
        arguments=["passes={passes}"],
        set={"tlb.l1_entries": "{entries}", "clock.core_hz": "{hz}"},
        factors={"passes": fxscope.Range(10, 80, integer=True), "entries": [16, 32], "hz": fxscope.Range(1e9, 4e9, scale="log", integer=True)},
        design="morris",
        samples=4,
        region="triad",
    )
    study = sweep.run(tmp_path, progress=False)
    # Trajectories of four points each, of which some are the same.
    assert len(study.frame()) <= 16
    found = study.sensitivity()
    # The TLB is large enough; the time is proportional to passes and to the clock's period.
    assert found.loc["entries", "mu_star"] == 0
    assert found["mu_star"]["passes"] > 0 and found["mu_star"]["hz"] > 0
    assert study.sensitivity("flop").index[0] == "passes"


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    sweep = fxscope.Sweep("x", factors={"x": ANGLE, "y": ANGLE, "z": ANGLE}, design="morris", samples=4)
    study = study_of_ishigami(tmp_path, sweep)
    frame = pandas.read_csv(tmp_path / "results.csv")
    frame.loc[1, "seconds"] = float("nan")
    frame.to_csv(tmp_path / "results.csv", index=False)
    with pytest.raises(ValueError, match=r"1 runs have no value of 'seconds' \(run 2\)"):
        study.sensitivity()
    with pytest.raises(KeyError, match="no value 'gflops'"):
        study.sensitivity("gflops")
    with pytest.raises(ValueError, match="the design is 'full'"):
        fxscope.Study(tmp_path, fxscope.Sweep("x"), "").sensitivity()
    with pytest.raises(ValueError, match="needs a number of samples"):
        fxscope.Sweep("x", factors={"x": ANGLE}, design="morris").plan()
