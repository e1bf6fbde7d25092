"""Laboratories: page sizes, slower memory, noise of operating systems, and the model against measurements."""

from __future__ import annotations

from pathlib import Path

import pytest

import fxscope

CHASE = fxscope.kernel("chase")
FOOTPRINT = "footprint=1048576"

#: Two ranks: one sends to the other, then both add up.
TWO_RANKS = """fxscope program,1
threads,12
rank,compute_ns,call,bytes,partner,copy_ns
0,400000,send,64,1,500
0,0,allreduce,8,,1000
1,300000,recv,,0,900
1,100000,allreduce,8,,1000
"""


def test_pages_that_are_advised_take_the_least_time() -> None:
    advice = fxscope.pages(fxscope.kernel("triad-mem"), "n=400000", "passes=1", pages=["bss=64KiB"])
    best = advice.best
    assert advice.now.pages["bss"] == "64KiB" and best is not None and best.pages["bss"] == "2MiB"
    assert best.simulated is not None and advice.now.simulated is not None
    assert best.change == pytest.approx(best.simulated / advice.now.simulated - 1)
    frame = advice.frame()
    assert list(frame["pages.bss"])[:2] == ["64KiB", "2MiB"] and len(frame) == 1 + len(advice.choices)
    assert frame["simulated.walks"][1] < frame["simulated.walks"][0]
    assert "bss" in set(advice.segments()["segment"])
    assert "64KiB" in advice._repr_html_() and str(advice) == "\n".join(advice.says)


def test_pages_of_a_recorded_run_are_those_of_its_program() -> None:
    record = fxscope.run(fxscope.kernel("triad-l1"), "passes=5")
    advice = fxscope.pages(record)
    assert advice.best is None and advice.now.simulated is not None
    with pytest.raises(ValueError, match="arguments with a program only"):
        fxscope.pages(record, "passes=10")


def test_slowdowns_follow_the_formulas_of_their_methods() -> None:
    forecast = fxscope.latency(CHASE, FOOTPRINT, latencies=[300, 500])
    counts, seconds = forecast.json["counts"], forecast.json["seconds"]
    expected = [1 + counts["misses"] * (latency - forecast.base) * 1e-9 / seconds for latency in (300, 500)]
    assert forecast.latencies == (300, 500) and forecast.slowdowns("0") == pytest.approx(expected)
    frame = forecast.frame().set_index(["latency_ns", "method"])
    assert frame.loc[(500, "0"), "slowdown"] == pytest.approx(expected[1])
    assert forecast.trusted is not None and "300 ns" in forecast._repr_html_()
    assert forecast.intervals()["end_seconds"].iloc[-1] == pytest.approx(seconds)
    with pytest.raises(KeyError, match="'9' predicts nothing here; there is 0, 1"):
        forecast.slowdowns("9")


def test_a_record_is_predicted_as_its_program(tmp_path: Path) -> None:
    record = fxscope.run(CHASE, FOOTPRINT, interval="100us")
    assert fxscope.latency(record, latencies=[300]).slowdowns() == fxscope.latency(CHASE, FOOTPRINT, latencies=[300]).slowdowns()
    with pytest.raises(ValueError, match="not a record"):
        fxscope.latency(record, check=True)


def test_a_check_has_what_slower_memory_takes_in_a_simulation() -> None:
    checked = fxscope.latency(CHASE, FOOTPRINT, latencies=[300], check=True, no_cache=True)
    added = 300 - checked.base
    slower = fxscope.run(CHASE, FOOTPRINT, set={"memory.added_ns": added})
    assert checked.simulated is not None and checked.frame()["simulated"].notna().all()
    assert checked.simulated[0] == pytest.approx(slower.seconds / checked.json["seconds"], rel=1e-3)


def test_noise_costs_nothing_where_there_is_none() -> None:
    quiet = fxscope.jitter("silent", nodes=[1, 64], phases=100, network="ideal")
    assert list(quiet.frame()["slowdown"]) == [1, 1] and list(quiet.frame()["cores"]) == [48, 48 * 64]
    with pytest.raises(KeyError, match="no table 'other'; there is By size"):
        quiet.frame("other")


def test_noise_is_a_sheet_of_tables_and_plots() -> None:
    noisy = fxscope.jitter("linux-250hz", nodes=[1, 64], phases=100)
    assert noisy.frame("By size").equals(noisy.frame()) and noisy.frame()["slowdown"].is_monotonic_increasing
    assert "linux-250hz" in noisy.title and noisy.title in str(noisy) and noisy.title in noisy._repr_html_()
    chart = noisy.chart().to_dict()
    assert chart["encoding"]["x"]["title"] == "nodes"
    curves = noisy.curves()
    efficiency = curves[(curves["plot"] == "Efficiency by size") & (curves["x"] == 64)]["y"].iloc[0]
    assert efficiency == pytest.approx(100 * noisy.frame()["efficiency"][1])
    remedies = fxscope.jitter("linux-250hz", nodes=[64], phases=100, remedies=True)
    assert any("lighter daemons" in set(frame.iloc[:, 0]) for frame in remedies.tables.values())
    with pytest.raises(ValueError, match="leave out program or remedies"):
        fxscope.jitter("silent", program="x.csv", remedies=True)


def test_a_recorded_program_takes_its_longest_chain_of_work_and_messages(tmp_path: Path) -> None:
    (tmp_path / "program.csv").write_text(TWO_RANKS)
    sheet = fxscope.jitter("silent", program=tmp_path / "program.csv", nodes=[1, 64], network="ideal", repeat=2)
    # Rank 1 waits for the message of rank 0, copies it and works; then both copy the sum.
    assert list(sheet.frame()["run"]) == [400_000 + 900 + 100_000 + 1000] * 2
    with pytest.raises(fxscope.Failed, match="none.csv"):
        fxscope.jitter("silent", program=tmp_path / "none.csv")


def test_rows_of_validation_have_the_error_of_the_model(tmp_path: Path) -> None:
    found = fxscope.validate("latency-0001", cache=tmp_path)
    (row,) = found.frame().to_dict("records")
    assert row["measured"] == 5 and row["error"] == pytest.approx(100 * (row["simulated"] / 5 - 1))
    assert found.is_expected and found.families().loc["latency", "rows"] == 1
    assert found.accuracy().loc["together", "rows"] == 1 and "latency-0001, rows: 1." in found._repr_html_()
    with pytest.raises(fxscope.Failed, match="unknown suite 'none'"):
        fxscope.validate("none")
