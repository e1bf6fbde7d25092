"""Results of sweeps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Optional, overload

import pandas

from fxscope import _charts, _sensitivity
from fxscope._command import PathLike
from fxscope._html import bars
from fxscope._optional import module
from fxscope._record import Record, load

if TYPE_CHECKING:
    import polars
    import xarray

    from fxscope._sweep import Sweep

#: Columns of the results that are neither factors nor values.
_OTHER = ("run", "region", "machine", "state", "message", "record")


class Study:
    """The results of a sweep."""

    def __init__(self, folder: Path, sweep: Sweep, text: str) -> None:
        #: The folder with records, tables and the page.
        self.folder = folder
        self._sweep = sweep
        self._text = text

    @overload
    def frame(self, region: Optional[str] = ..., *, backend: Literal["pandas"] = ...) -> pandas.DataFrame: ...

    @overload
    def frame(self, region: Optional[str] = ..., *, backend: Literal["polars"]) -> polars.DataFrame: ...

    def frame(self, region: Optional[str] = None, *, backend: Literal["pandas", "polars"] = "pandas") -> Any:
        """Return a line for each run: its factors, whether it is ``done`` or ``failed``, metrics and events of a region; by
        default, of the one that is judged. ``backend``: whose data frame."""
        frame = self.all()
        wanted = frame["region"].isna() | (frame["region"] == (region or self._sweep.region))
        # The copy has its columns side by side in memory, so that more can be added.
        frame = frame[wanted].reset_index(drop=True).copy()
        return frame if backend == "pandas" else module("polars", "polars").from_pandas(frame)

    def all(self) -> pandas.DataFrame:
        """Return a line for each run and region."""
        return pandas.read_csv(self.folder / "results.csv", dtype=dict.fromkeys(("message", "record"), "string"))

    def to_parquet(self, path: PathLike) -> None:
        """Write all results, a line for each run and region, as a Parquet file."""
        module("pyarrow", "parquet")
        self.all().to_parquet(path, engine="pyarrow", index=False)

    def dataset(self, region: Optional[str] = None) -> xarray.Dataset:
        """Return the results of a sweep of all combinations as an xarray: a dimension for each factor, a variable for each metric and
        event. Runs that failed have no values (NaN)."""
        factors = list(self._sweep.factors)
        frame = self.frame(region)
        if not factors or frame.duplicated(factors).any() or len(frame) != _combinations(frame, factors):
            raise ValueError("only a sweep with all combinations of its factors' values (design 'full') is a grid")
        module("xarray", "xarray")
        values = frame.drop(columns=[name for name in _OTHER if name in frame])
        found: xarray.Dataset = values.set_index(factors).to_xarray()
        return found.assign_attrs(title=self._sweep.title, region=region or self._sweep.region)

    def sensitivity(self, metric: Optional[str] = None, region: Optional[str] = None, confidence: float = 0.95) -> pandas.DataFrame:
        """Return which factors matter for a metric, those that matter most first; by default, for the first objective. The sweep's design
        decides how: ``saltelli`` gives Sobol's indices, the share of the variance that a factor makes with all others (``ST``) and by
        itself (``S1``); ``morris`` the mean size of its elementary effects over the whole range (``mu_star``), their mean and their standard
        deviation. Columns ``…_conf`` have half of the widths of their confidence intervals."""
        sampling = self._sweep.sampling()
        if sampling is None:
            raise ValueError(f"the design is '{self._sweep.design}': use design='saltelli' or 'morris' with a number of samples")
        wanted = metric or self._sweep.objectives[0].metric
        value = _sensitivity.values_by_point(self.frame(region), list(self._sweep.factors), wanted)
        return sampling.analyse(value, confidence)

    def chart(
        self, x: Optional[str] = None, y: Optional[str] = None, color: Optional[str] = None, scale: Literal["linear", "log"] = "linear"
    ) -> Any:
        """Return a chart of Altair: a line for each value of ``color``. By default, the first objective by the first factor, a line for each
        value of the second one. ``scale``: of ``x``."""
        factors = [*self._sweep.factors, None, None]
        across = x or factors[0]
        if across is None:
            raise ValueError("name what is across: the sweep has no factors")
        lines = color or (factors[1] if x is None else None)
        return _charts.of_study(self.frame(), across, y or self._sweep.objectives[0].metric, lines, scale)

    def record(self, run: int) -> Record:
        """Return the record of a run by its number."""
        frame = self.all()
        lines = frame[(frame["run"] == run) & (frame["state"] == "done")]
        if lines.empty:
            raise KeyError(f"run {run} has no record")
        return load(self.folder / str(lines["record"].iloc[0]), self._sweep.metrics)[-1]

    def __str__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        metric = self._sweep.objectives[0].metric
        columns = ["run", *self._sweep.factors, "state", *(one.metric for one in self._sweep.objectives)]
        frame = self.frame()
        table = frame[[name for name in columns if name in frame]].to_html(index=False, max_rows=30)
        if metric not in frame:
            return table
        known = frame[frame[metric].notna()]
        labels = [", ".join(f"{name}={run[name]}" for name in self._sweep.factors) for _, run in known.iterrows()]
        lines = [(label, float(value), f"{value:.4g}") for label, value in zip(labels, known[metric])]
        return bars(f"{metric}, first runs", lines) + table


def _combinations(frame: pandas.DataFrame, factors: list[str]) -> int:
    """Return how many combinations the values of the factors have."""
    number = 1
    for name in factors:
        number *= frame[name].nunique(dropna=False)
    return number
