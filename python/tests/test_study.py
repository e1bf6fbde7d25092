"""Results of sweeps as xarray, charts, other tables and in notebooks."""

from __future__ import annotations

import re
import xml.etree.ElementTree as xml
from pathlib import Path

import pandas
import polars
import pytest

import fxscope

TRIAD = fxscope.kernel("triad-l1")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> fxscope.Study:
    """Two numbers of passes, two sizes of a TLB that is large enough."""
    sweep = fxscope.Sweep(
        TRIAD,
        arguments=["passes={passes}"],
        set={"tlb.l1_entries": "{entries}"},
        factors={"passes": [20, 40], "entries": [16, 32]},
        region="triad",
    )
    return sweep.run(tmp_path_factory.mktemp("study"), progress=False)


def charts_in(html: str) -> list[xml.Element]:
    """Return the charts in HTML, which must be well-formed and need no network."""
    assert "http" not in html and "<script" not in html
    return [xml.fromstring(one) for one in re.findall(r"<svg.*?</svg>", html, re.DOTALL)]


def test_a_grid_has_a_dimension_for_each_factor(study: fxscope.Study) -> None:
    data = study.dataset()
    assert dict(data.sizes) == {"passes": 2, "entries": 2}
    # Two operations for each of 2048 elements.
    assert data["flop"].sel(passes=40, entries=16).item() == 2 * 2048 * 40
    assert data["seconds"].dims == ("passes", "entries") and data.attrs["region"] == "triad"


def test_only_grids_become_xarray(tmp_path: Path) -> None:
    sweep = fxscope.Sweep(
        TRIAD, arguments=["passes={a}", "n={b}"], factors={"a": [1, 2], "b": [1024, 2048]}, design="one-at-a-time"
    )
    with pytest.raises(ValueError, match="all combinations"):
        sweep.run(tmp_path).dataset()


def test_tables_of_other_libraries_have_the_same_values(study: fxscope.Study, tmp_path: Path) -> None:
    frame = study.frame()
    other = study.frame(backend="polars")
    assert isinstance(other, polars.DataFrame) and other["flop"].to_list() == frame["flop"].to_list()
    record = study.record(1).frame("thread", backend="polars")
    assert record.columns[:3] == ["region", "process", "thread"]
    study.to_parquet(tmp_path / "all.parquet")
    read = pandas.read_parquet(tmp_path / "all.parquet")
    assert len(read) == 8 and list(read["seconds"]) == list(study.all()["seconds"])


def test_charts_show_what_was_asked_for(study: fxscope.Study) -> None:
    chart = study.chart().to_dict()
    assert chart["encoding"]["x"]["field"] == "passes" and chart["encoding"]["y"]["field"] == "seconds"
    assert chart["encoding"]["color"]["field"] == "entries"
    (values,) = chart["datasets"].values()
    assert [line["passes"] for line in values] == [20, 20, 40, 40]
    assert study.chart("passes", "gflops", scale="log").to_dict()["encoding"]["x"]["scale"]["type"] == "log"
    with pytest.raises(KeyError, match="no column 'other'"):
        study.chart("other")


def test_charts_of_a_record() -> None:
    record = fxscope.run(TRIAD, "passes=20", interval="5us")
    parts = record.chart().to_dict()
    (values,) = parts["datasets"].values()
    triad = [line["seconds"] for line in values if line["region"] == "triad"]
    assert sum(triad) == pytest.approx(record.region("triad")["seconds"], rel=1e-9)
    charts = [record.chart("threads", "gflops"), record.chart("loops"), record.chart("intervals", "INST_RETIRED")]
    ups = [chart.to_dict()["encoding"]["y"]["field"] for chart in charts]
    assert ups == ["gflops", "loop", "INST_RETIRED"]
    with pytest.raises(ValueError, match="no chart 'pie'; there is accounting"):
        record.chart("pie")  # type: ignore[arg-type]


def test_notebooks_show_verdicts_and_charts_without_the_network(study: fxscope.Study) -> None:
    record = study.record(1)
    html = record._repr_html_()
    verdict = record.verdict
    assert verdict is not None and verdict.limits[0].title in html
    charts = charts_in(html)
    assert [chart[0].text for chart in charts] == ["What limits it", "Where the time went"]
    assert [chart[0].text for chart in charts_in(study._repr_html_())] == ["seconds, first runs"]
    comparison = fxscope.compare(study.record(1), study.record(3), region="triad")
    (chart,) = charts_in(comparison._repr_html_())
    assert str(chart[0].text).startswith("Run 2 against run 1: 0.5")
    advice = fxscope.advise(fxscope.kernel("ill"), "illness=remote", cpus="12,24")
    assert "Time that remedies save" in [chart[0].text for chart in charts_in(advice._repr_html_())]


def test_words_of_programs_do_not_become_html(tmp_path: Path) -> None:
    program = tmp_path / "<b>x.elf"
    program.write_bytes(TRIAD.read_bytes())
    record = fxscope.run(program, "passes=1")
    assert "&lt;b&gt;x.elf" in record._repr_html_() and "<b>x" not in record._repr_html_()


def test_progress_counts_runs_that_are_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sweep = fxscope.Sweep(TRIAD, arguments=["passes={word}"], factors={"word": [1, "none"]})
    sweep.run(tmp_path, progress=True)
    assert "2/2" in capsys.readouterr().err
    sweep.run(tmp_path, progress=False)
    assert capsys.readouterr().err == ""


def test_kernels_are_found_by_name() -> None:
    assert "triad-l1" in fxscope.kernels()
    assert all(fxscope.kernel(name).read_bytes().startswith(b"\x7fELF") for name in fxscope.kernels())
    with pytest.raises(KeyError, match="there is triad-l2, triad-l1"):
        fxscope.kernel("triad-l")
