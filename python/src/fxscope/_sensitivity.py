"""Which factors matter: Sobol's indices and Morris' elementary effects, by SALib."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Union

import pandas

from fxscope._command import Word
from fxscope._optional import module
from fxscope._range import Range

#: Levels of each factor in Morris' design.
_LEVELS = 4

Point = dict[str, Word]


class Sampling:
    """Points at which factors are tried, and what the values there say about each factor."""

    def __init__(
        self, design: str, factors: Mapping[str, Union[Sequence[Word], Range]], samples: int, seed: int
    ) -> None:
        self._design, self._factors, self._seed = design, factors, seed
        # All factors are sampled from 0 to 1 and then turned into values: ranges that are logarithmic, and lists, need no more.
        self._problem = {"num_vars": len(factors), "names": list(factors), "bounds": [[0.0, 1.0]] * len(factors)}
        if design == "saltelli":
            sample = module("SALib.sample.sobol", "sensitivity").sample
            self._parts = sample(self._problem, samples, calc_second_order=False, seed=seed)
        else:
            sample = module("SALib.sample.morris", "sensitivity").sample
            self._parts = sample(self._problem, samples, num_levels=_LEVELS, seed=seed)

    def points(self) -> list[Point]:
        """Return all points, in the order of the analysis; some may be the same."""
        names = list(self._factors)
        return [{name: _value(self._factors[name], float(part)) for name, part in zip(names, line)} for line in self._parts]

    def distinct(self) -> list[Point]:
        """Return each point once."""
        return list({key_of(point): point for point in self.points()}.values())

    def analyse(self, value: Callable[[Point], float], confidence: float) -> pandas.DataFrame:
        """Return what the values of the points say: a line for each factor, those that matter most first."""
        numpy = module("numpy", "sensitivity")
        values = numpy.array([value(point) for point in self.points()], dtype=float)
        if self._design == "saltelli":
            analyse = module("SALib.analyze.sobol", "sensitivity").analyze
            found = analyse(self._problem, values, calc_second_order=False, conf_level=confidence, seed=self._seed)
            columns = ["ST", "ST_conf", "S1", "S1_conf"]
        else:
            analyse = module("SALib.analyze.morris", "sensitivity").analyze
            found = analyse(self._problem, self._parts, values, conf_level=confidence, num_levels=_LEVELS, seed=self._seed)
            columns = ["mu_star", "mu_star_conf", "mu", "sigma"]
        index = pandas.Index(list(self._factors), name="factor")
        frame = pandas.DataFrame({column: numpy.asarray(found[column], dtype=float) for column in columns}, index=index)
        return frame.sort_values(columns[0], ascending=False, kind="stable")


def values_by_point(frame: pandas.DataFrame, factors: Sequence[str], metric: str) -> Callable[[Point], float]:
    """Return a function that gives the value of a metric at a point, from the results of runs."""
    if metric not in frame:
        raise KeyError(f"the results have no value '{metric}'")
    failed = frame[metric].isna()
    if failed.any():
        runs = ", ".join(map(str, frame.loc[failed, "run"].head(5)))
        raise ValueError(f"{int(failed.sum())} runs have no value of '{metric}' (run {runs}): the analysis needs all")
    found = {key_of(dict(zip(factors, line[:-1]))): float(line[-1]) for line in frame[[*factors, metric]].itertuples(index=False)}
    return lambda point: found[key_of(point)]


def _value(values: Union[Sequence[Word], Range], part: float) -> Word:
    if isinstance(values, Range):
        return values.at(part)
    return values[min(int(part * len(values)), len(values) - 1)]


def key_of(point: Mapping[str, Any]) -> str:
    """Return what makes points the same: numbers by their first twelve digits, since not every reader of results has them all."""
    return json.dumps({name: _plain(value) for name, value in point.items()})


def _plain(value: Any) -> str:
    try:
        return f"{float(value):.12g}"
    except ValueError:
        return str(value)
