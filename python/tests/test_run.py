"""Runs and records: what they count, and how they fail."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import fxscope

KERNELS = Path(__file__).parents[2] / "kernels" / "prebuilt"
TRIAD = KERNELS / "triad-l1.elf"


@pytest.fixture(scope="module")
def record() -> fxscope.Record:
    """A run of Triad from L1."""
    return fxscope.run(TRIAD, "passes=20")


def test_a_run_counts_and_has_a_verdict(record: fxscope.Record) -> None:
    assert record.machine == "a64fx" and record.exit_code == 0
    assert record.arguments == ("passes=20",)
    # Two operations for each of 2048 elements and 20 passes.
    assert record.regions["triad"]["flop"] == 2 * 2048 * 20
    assert record.seconds == record["seconds"] > 0
    verdict = record.regions["triad"].verdict
    assert verdict is not None and verdict.limits[0].rule == "l1_bandwidth"
    assert verdict.limits[0].title in str(verdict) and verdict.limits[0].title in verdict._repr_html_()
    assert record.output.startswith("triad-l1 ok")


def test_the_parts_of_the_time_add_up(record: fxscope.Record) -> None:
    region = record.region("triad")
    assert region.accounting.sum() == pytest.approx(region["seconds"], rel=1e-9)


def test_frames_have_a_line_for_each_part(record: fxscope.Record) -> None:
    total = record.frame()
    assert list(total.index) == ["all", "triad"]
    assert total.loc["triad", "instructions"] == record.regions["triad"]["instructions"]
    threads = record.frame("thread")
    assert list(threads.index.get_level_values("cpu")) == [12, 12]
    loops = record.loops()
    assert loops.loc[0, "function"] == "triad_kernel"
    assert record.region("triad").table().loc["A01", "unit"] == "s"


def test_frames_have_the_values_of_the_record() -> None:
    record = fxscope.run(KERNELS / "triad-threads.elf", "threads=2", "n=4096", "passes=1", threads=2)
    for by, member in {"thread": "threads", "cmg": "cmgs", "process": "processes"}.items():
        frame = record.frame(by)  # type: ignore[call-overload]
        parts = [{**part.get("events", {}), **part["metrics"]} for region in record.json["regions"] for part in region[member]]
        assert len(frame) == len(parts) and set(frame.columns) == {name for part in parts for name in part}
        for (_, line), part in zip(frame.iterrows(), parts):
            assert line.dropna().to_dict() == part
    region = record.regions["triad"].frame("thread")
    assert region.equals(record.frame("thread").loc["triad"]) and region.index.names == ["process", "thread", "node", "cpu"]
    assert record.frame("thread")["CPU_CYCLES"].dtype == "int64"


def test_runs_of_one_file_keep_their_frames(tmp_path: Path) -> None:
    runs = [fxscope.run(TRIAD, f"passes={passes}", output=tmp_path / "runs.fxr") for passes in (20, 40)]
    runs += fxscope.load(tmp_path / "runs.fxr")
    flop = [run.frame("thread").loc["triad"]["flop"].iloc[0] for run in runs]
    assert flop == [2 * 2048 * passes for passes in (20, 40, 20, 40)]


def test_threads_have_a_core_each() -> None:
    record = fxscope.run(KERNELS / "triad-threads.elf", "threads=4", "n=4096", "passes=1", threads=4)
    assert record["cores_used"] == 4
    assert len(record.frame("thread").loc["all"]) == 4


def test_options_have_the_names_of_the_command_line() -> None:
    record = fxscope.run(TRIAD, "passes=20", cpus="13", interval="5us", data=False, pages=["bss=64KiB", "data=64KiB"])
    assert set(record.frame("thread").index.get_level_values("cpu")) == {13}
    intervals = record.intervals()
    assert intervals["CPU_CYCLES"].sum() == record["cycles"]


def test_a_changed_machine_changes_the_time() -> None:
    base = fxscope.Machine("a64fx")
    slow = base.with_({"clock.core_hz": 1_000_000_000})
    assert base.settings == {} and "a64fx" in fxscope.Machine.list() and "core_hz" in base.show()
    times = [fxscope.run(TRIAD, "passes=20", machine=machine).region("triad")["seconds"] for machine in (base, slow)]
    assert times[1] == pytest.approx(2 * times[0], rel=0.01)


def test_a_record_that_is_kept_can_be_loaded(tmp_path: Path) -> None:
    kept = fxscope.run(TRIAD, "passes=20", output=tmp_path / "run.fxr")
    (loaded,) = fxscope.load(tmp_path / "run.fxr")
    assert loaded.json["regions"] == kept.json["regions"]


def test_runs_are_compared_by_the_time_of_their_parts(tmp_path: Path) -> None:
    short = fxscope.run(TRIAD, "passes=20")
    long = fxscope.run(TRIAD, "passes=40")
    frame = fxscope.compare(short, long, region="triad")
    expected = short.region("triad")["seconds"] - long.region("triad")["seconds"]
    assert frame["difference"].abs().is_monotonic_decreasing
    assert abs(frame["difference"].sum()) == pytest.approx(abs(expected), rel=1e-6)
    assert frame["speedup"].iloc[0] == pytest.approx(
        short.region("triad")["seconds"] / long.region("triad")["seconds"], rel=1e-6
    )


def test_advice_has_the_verdict_and_what_was_tried() -> None:
    advice = fxscope.advise(KERNELS / "ill.elf", "illness=remote", cpus="12,24")
    best = max(advice.tried, key=lambda one: one.gains["remote"])
    assert advice.verdicts["remote"].limits[0].rule == "remote_memory"
    # A request over the ring takes 128 cycles more than the 256 of the own memory.
    assert best.gains["remote"] == pytest.approx(128 / 384, abs=0.03)
    assert list(advice.frame()["gain"])[0] == advice.tried[0].gain == max(one.gain or 0.0 for one in advice.tried)


def test_a_program_that_fails_keeps_its_record(tmp_path: Path) -> None:
    with pytest.raises(fxscope.ProgramFailed) as failed:
        fxscope.run(TRIAD, "wrong=1")
    assert failed.value.status == failed.value.record.exit_code != 0
    assert "wrong=1" in str(failed.value)
    assert fxscope.run(TRIAD, "wrong=1", check=False).exit_code == failed.value.status


def test_messages_of_the_command_become_exceptions() -> None:
    calls: dict[str, Callable[[], object]] = {
        "/nowhere/program": lambda: fxscope.run("/nowhere/program"),
        "no.key": lambda: fxscope.run(TRIAD, set={"no.key": 1}),
        "--volume": lambda: fxscope.run(TRIAD, volume=11),
        "/nowhere/run.fxr": lambda: fxscope.load("/nowhere/run.fxr"),
    }
    for message, call in calls.items():
        with pytest.raises(fxscope.Failed, match=message):
            call()
    record = fxscope.run(TRIAD, "passes=20", set={"prefetch.l1": False})
    for name, message in {"gflop_s": "there is gflops", "xyzzy": "no metric or event 'xyzzy'"}.items():
        with pytest.raises(KeyError, match=message):
            record[name]
    with pytest.raises(KeyError, match="this run has all"):
        record.region("other")
    with pytest.raises(ValueError, match="data=True"):
        record.data()


@pytest.mark.parametrize("to_group", [False, True], ids=["process", "group"])
def test_an_interrupt_ends_the_run(tmp_path: Path, to_group: bool) -> None:
    """Terminals and Jupyter interrupt all processes of a group."""
    script = f"import fxscope; fxscope.run({str(TRIAD)!r}, 'passes=100000000', output={str(tmp_path / 'run.fxr')!r})"
    process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True, start_new_session=True)
    time.sleep(5)
    (os.killpg if to_group else os.kill)(process.pid, signal.SIGINT)
    error = process.communicate(timeout=60)[1]
    assert "KeyboardInterrupt" in error
    assert (tmp_path / "run.fxr").exists(), "what was counted until then is kept"


def test_counters_of_perf_are_compared_with_the_model(tmp_path: Path) -> None:
    (tmp_path / "perf.csv").write_text("3000000,,r0011,1000000,100.00,,\n2000000,,r0008,1000000,100.00,,\n")
    (measured,) = fxscope.import_("perf", tmp_path / "perf.csv", program="triad")
    assert measured["cycles"] == 3e6 and measured["instructions"] == 2e6
    assert fxscope.load(measured.path)[0].program == measured.program
