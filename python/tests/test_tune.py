"""Search: all of a small space, a part of a large one, programs that are built, and searches that continue."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import fxscope

TRIAD = fxscope.kernel("triad-l1")
COMPILER = "aarch64-linux-gnu-gcc"

#: Sums in one chain or several: the more chains, the faster.
SOURCE = """
#include <stdio.h>
int main(void) {
    double sums[CHAINS] = {0};
    for (int i = 0; i < 4096 / CHAINS; i++)
        for (int k = 0; k < CHAINS; k++) sums[k] += 1.0 + i;
    double all = 0;
    for (int k = 0; k < CHAINS; k++) all += sums[k];
    return all < 0;
}
"""


def test_all_of_a_small_space_is_tried(tmp_path: Path) -> None:
    found = fxscope.tune(
        TRIAD, {"passes": [40, 20, 80], "entries": [16, 32]}, folder=tmp_path,
        arguments=["passes={passes}"], set={"tlb.l1_entries": "{entries}"}, progress=False,
    )
    assert len(found.trials) == 6 and found.best.point == {"passes": 20, "entries": 16}
    assert found.record().arguments == ("passes=20",)
    assert found.best.value == found.record().seconds == found.frame()["seconds"].min()
    assert str(found).startswith("passes=20 entries=16: seconds ") and "<svg" in found._repr_html_()


def test_rates_are_better_when_large_and_failures_are_trials(tmp_path: Path) -> None:
    found = fxscope.tune(
        TRIAD, {"n": [1024, 2048, "none"]}, fxscope.Objective("gflops", "most"), folder=tmp_path, arguments=["n={n}", "passes=20"],
        region="triad", progress=False,
    )
    values = [trial.value for trial in found.trials]
    assert found.best.value == max(value for value in values if value is not None)
    assert values[2] is None and "exit status" in found.trials[2].message
    with pytest.raises(ValueError, match="say which values are better"):
        fxscope.tune(TRIAD, {"n": [1024]}, "gflops", folder=tmp_path, arguments=["n={n}"])
    with pytest.raises(ValueError, match="'n' changes nothing"):
        fxscope.tune(TRIAD, {"n": [1024]}, folder=tmp_path)


def test_optuna_searches_large_spaces_and_continues(tmp_path: Path) -> None:
    def search(trials: int) -> fxscope.Tuning:
        return fxscope.tune(
            TRIAD, {"passes": fxscope.Range(10, 2000, integer=True, scale="log")}, folder=tmp_path, arguments=["passes={passes}"],
            trials=trials, batch=2, progress=False,
        )

    first = search(6)
    records = {file: file.stat().st_mtime_ns for file in (tmp_path / "records").iterdir()}
    more = search(8)
    assert [trial.point for trial in more.trials[:6]] == [trial.point for trial in first.trials]
    assert all(file.stat().st_mtime_ns == at for file, at in records.items())
    assert more.best.point == {"passes": more.frame()["passes"].min()}


@pytest.mark.skipif(shutil.which(COMPILER) is None, reason=f"needs {COMPILER}")
def test_programs_are_built_once_for_each_set_of_macros(tmp_path: Path) -> None:
    source = tmp_path / "sums.c"
    source.write_text(SOURCE)
    command = [COMPILER, "-O1", "-static", "-DCHAINS={chains}", "-o", "{program}", "sums.c"]

    def search() -> fxscope.Tuning:
        return fxscope.tune(
            "sums.elf", {"chains": [1, 8, "wrong"], "entries": [16, 32]}, folder=tmp_path / "study", build=command, sources=[source],
            set={"tlb.l1_entries": "{entries}"}, progress=False,
        )

    found = search()
    assert found.best.point["chains"] == 8
    assert [trial.value is None for trial in found.trials] == [False] * 4 + [True] * 2
    assert "exit status 1" in found.trials[4].message and COMPILER in found.trials[4].message
    programs = {file: file.stat().st_mtime_ns for file in (tmp_path / "study" / "programs").rglob("*.elf")}
    assert len(programs) == 2
    again = search()
    assert again.frame().equals(found.frame())
    assert all(file.stat().st_mtime_ns == at for file, at in programs.items())
    source.write_text(SOURCE + "\n")
    search()
    assert len(list((tmp_path / "study" / "programs").rglob("*.elf"))) == 4
