"""Sweeps: plans, results and records."""

from __future__ import annotations

from pathlib import Path

import pytest

import fxscope

TRIAD = Path(__file__).parents[2] / "kernels" / "prebuilt" / "triad-l1.elf"


def plan(**changes: object) -> fxscope.Sweep:
    """Two numbers of passes, two sizes of a TLB that is large enough."""
    keys: dict[str, object] = {
        "arguments": ["passes={passes}"],
        "set": {"tlb.l1_entries": "{entries}"},
        "factors": {"passes": [20, 40], "entries": [16, 32]},
        "region": "triad",
        "title": "Triad",
    }
    return fxscope.Sweep(TRIAD, **{**keys, **changes})  # type: ignore[arg-type]


def test_results_have_factors_and_values(tmp_path: Path) -> None:
    study = plan().run(tmp_path / "study", jobs=2)
    frame = study.frame()
    assert list(zip(frame["passes"], frame["entries"])) == [(20, 16), (20, 32), (40, 16), (40, 32)]
    assert list(frame["flop"]) == [2 * 2048 * passes for passes in frame["passes"]]
    assert set(frame["state"]) == {"done"}
    assert "passes matters most" in str(study)
    assert "passes" in study._repr_html_()
    record = study.record(3)
    assert record.arguments == ("passes=40",) and record.settings == {"tlb.l1_entries": "16"}
    assert record.region("triad")["seconds"] == frame["seconds"][2]
    assert len(study.all()) == 8 and len(study.frame("all")) == 4


def test_a_folder_can_move(tmp_path: Path) -> None:
    study = plan().run(tmp_path / "study")
    (tmp_path / "study").rename(tmp_path / "moved")
    study.folder = tmp_path / "moved"
    assert study.record(1).arguments == ("passes=20",)


def test_ranges_and_objectives(tmp_path: Path) -> None:
    varied = plan(
        factors={"passes": fxscope.Range(10, 100, scale="log", integer=True), "entries": [16]},
        design="latin-hypercube",
        samples=4,
        objectives=[fxscope.Objective("seconds"), fxscope.Objective("gflops", "most")],
    )
    frame = varied.run(tmp_path / "study").frame()
    assert len(frame) == 4 and frame["passes"].between(10, 100).all()


def test_machines_of_ones_own_are_found_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / "machine.toml").write_text(
        'extends = "a64fx"\n[clock]\ncore_hz = 1_000_000_000\nsource = "a test"\nevidence = "assumed"\nwould_close = "nothing"\n'
    )
    monkeypatch.chdir(tmp_path)
    machine = fxscope.Machine("slow").with_({"prefetch.l1": False})
    frame = plan(machine=machine).run("study").frame()
    assert set(frame["state"]) == {"done"} and set(frame["clock_hz"].round()) == {1e9}


def test_failed_runs_are_results(tmp_path: Path) -> None:
    frame = plan(factors={"passes": [20, "none"], "entries": [16]}).run(tmp_path / "study").frame()
    assert list(frame["state"]) == ["done", "failed"]
    assert "exit status" in frame["message"][1]


def test_a_wrong_plan_raises(tmp_path: Path) -> None:
    with pytest.raises(fxscope.Failed, match="changes nothing"):
        plan(arguments=[]).run(tmp_path / "study")
