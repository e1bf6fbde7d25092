"""Search for the arguments, options, machine keys or macros with which a program does best."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, Union

import pandas

from fxscope import _search
from fxscope._build import Builder, names_in
from fxscope._command import Failed, Option, PathLike, Word
from fxscope._html import bars, paragraph
from fxscope._machine import Machine
from fxscope._metric import Metrics
from fxscope._record import WHOLE, Record
from fxscope._search import Point, Space
from fxscope._sensitivity import key_of
from fxscope._study import Study
from fxscope._sweep import Objective, Sweep

if TYPE_CHECKING:
    from distributed import Client

#: Metrics of which small values are better.
_SMALL = ("seconds", "cycles", "energy", "instructions")

#: The factor of a sweep that names the program of a point.
_BINARY = "binary"


@dataclass
class Trial:
    """A point of the space that was tried."""

    point: Point
    #: Its point in the sweep; None if it could not be built.
    run: Optional[Point] = None
    #: The objective; None if it failed.
    value: Optional[float] = None
    #: Why it failed.
    message: str = ""


class Tuning:
    """What a search has found."""

    def __init__(self, trials: Sequence[Trial], objective: Objective, study: Optional[Study]) -> None:
        #: All points in the order in which they were tried.
        self.trials = tuple(trials)
        #: What was best.
        self.objective = objective
        #: The runs as a sweep; None if none could be built.
        self.study = study

    @property
    def best(self) -> Trial:
        """The best point; the first one, if several are as good."""
        known = [trial for trial in self.trials if trial.value is not None]
        if not known:
            message = self.trials[0].message if self.trials else "the space is empty"
            raise Failed(f"no run has succeeded: {message}", 1)
        sign = 1.0 if is_small(self.objective) else -1.0
        return min(known, key=lambda trial: sign * (trial.value or 0.0))

    def record(self) -> Record:
        """Return the record of the best run."""
        run = self.best.run
        assert self.study is not None and run is not None
        return self.study.record(_results(self.study, run, self.objective.metric)[key_of(run)][0])

    def frame(self) -> pandas.DataFrame:
        """Return a line for each point that was tried: the point, the objective, and why it failed."""
        lines = [{**trial.point, self.objective.metric: trial.value, "message": trial.message} for trial in self.trials]
        return pandas.DataFrame(lines)

    def __str__(self) -> str:
        point = " ".join(f"{name}={value}" for name, value in self.best.point.items())
        return f"{point}: {self.objective.metric} {self.best.value:.6g}, best of {len(self.trials)}"

    def __repr__(self) -> str:
        return f"<tuning of {len(self.trials)} points>"

    def _repr_html_(self) -> str:
        frame = self.frame()
        best = frame.sort_values(self.objective.metric, ascending=is_small(self.objective)).dropna(subset=[self.objective.metric])
        metric, names = self.objective.metric, self.trials[0].point
        runs = [run for _, run in best.iterrows()]
        lines = [(", ".join(f"{name}={run[name]}" for name in names), float(run[metric]), f"{run[metric]:.4g}") for run in runs]
        return paragraph(str(self)) + bars(f"{metric}, best first", lines)


def tune(
    program: PathLike,
    space: Space,
    objective: Union[str, Objective] = "seconds",
    *,
    folder: PathLike,
    arguments: Sequence[Word] = (),
    machine: Union[str, Machine, None] = None,
    options: Mapping[str, Option] = {},
    set: Mapping[str, Word] = {},
    env: Mapping[str, Word] = {},
    inputs: Sequence[PathLike] = (),
    region: str = WHOLE,
    metrics: Metrics = (),
    build: Optional[Sequence[Word]] = None,
    sources: Sequence[PathLike] = (),
    trials: int = 64,
    batch: Optional[int] = None,
    seed: int = 1,
    jobs: Optional[int] = None,
    client: Optional[Client] = None,
    progress: Optional[bool] = None,
) -> Tuning:
    """Find the point of a space with which a program does best.

    ``space``: for each name its values, or a :class:`Range`. A name in braces stands for its value, in arguments, options, variables and
    machine keys as in a :class:`Sweep`, and in ``build``: a command that makes the file ``program`` (also ``{program}``) from ``sources``,
    in a temporary copy of them. Programs and runs are kept in ``folder`` by their content: a search that was interrupted continues with the
    same call.

    If the space has no more than ``trials`` points, all are tried; otherwise Optuna chooses ``trials`` of them, ``batch`` at a time (by
    default as many as run at a time), the same ones for the same ``seed``. ``client``: of a Dask cluster that makes the runs.
    """
    wanted = objective if isinstance(objective, Objective) else Objective(objective)
    maximize = not is_small(wanted)
    folder = Path(folder)
    builder = None if build is None else Builder(build, sources, os.fspath(program), folder / "programs")
    path = program if builder is None else folder / "programs" / f"{{{_BINARY}}}" / program
    base = Sweep(
        path, arguments=arguments, machine=machine, options=options, set=set, env=env, inputs=inputs, region=region, metrics=metrics,
        objectives=[wanted], design="list", title="tuning",
    )
    runner = _Runner(base, space, builder, folder, jobs, client, progress)
    runner.check(build or ())
    points = _search.all_points(space, trials)
    search: Union[_search.Exhaustive, _search.Optuna]
    if points is not None:
        search = _search.Exhaustive(points)
    else:
        search = _search.Optuna(space, trials, batch or jobs or os.cpu_count() or 1, seed, maximize)
    for batch_of_points in search.batches():
        search.learn([trial.value for trial in runner.tried(batch_of_points)])
    return Tuning(runner.trials, wanted, runner.study())


def is_small(objective: Objective) -> bool:
    """Whether small values of an objective are better."""
    if objective.goal is None and objective.metric not in _SMALL:
        raise ValueError(f"objective '{objective.metric}': say which values are better: Objective('{objective.metric}', 'most') or 'least'")
    return objective.goal in (None, "least")


@dataclass
class _Runner:
    """Builds and runs points, and keeps what they gave."""

    sweep: Sweep
    space: Space
    builder: Optional[Builder]
    folder: Path
    jobs: Optional[int]
    client: Optional[Client]
    progress: Optional[bool]
    trials: list[Trial] = field(default_factory=list)

    def check(self, build: Sequence[Word]) -> None:
        """Refuse names that change nothing."""
        known = names_in(build) | self._of_run()
        unused = [name for name in self.space if name not in known]
        if unused:
            raise ValueError(f"'{unused[0]}' changes nothing: write {{{unused[0]}}} in an argument, option, variable, key or the build command")

    def tried(self, points: Sequence[Point]) -> list[Trial]:
        """Build and run points."""
        trials = [self._built(point) for point in points]
        self.trials += trials
        runs = [trial.run for trial in trials if trial.run is not None]
        study = self._study(runs) if runs else None
        for trial in trials:
            if study is not None and trial.run is not None:
                _, trial.value, trial.message = _results(study, trial.run, self._metric)[key_of(trial.run)]
        return trials

    def study(self) -> Optional[Study]:
        """Return all runs as one sweep; they are kept already."""
        runs = [trial.run for trial in self.trials if trial.run is not None]
        self.progress = False
        return self._study(runs) if runs else None

    @property
    def _metric(self) -> str:
        return self.sweep.objectives[0].metric

    def _built(self, point: Point) -> Trial:
        if self.builder is None:
            return Trial(point, dict(point))
        try:
            binary = self.builder.built(point)
        except Failed as error:
            return Trial(point, message=str(error))
        used = self._of_run()
        return Trial(point, {**{name: value for name, value in point.items() if name in used}, _BINARY: binary})

    def _of_run(self) -> set[str]:
        """Return the names that the run itself uses."""
        one = self.sweep
        lists = [word for option in one.options.values() for word in (option if isinstance(option, (list, tuple)) else [option])]
        words = [one.program, *one.arguments, *one.set.values(), *one.env.values(), *one.inputs, *lists]
        return names_in([word for word in words if word is not None])

    def _study(self, runs: Sequence[Point]) -> Study:
        distinct = list({key_of(run): run for run in runs}.values())
        factors: dict[str, list[Word]] = {name: list(dict.fromkeys(run[name] for run in distinct)) for name in distinct[0]}
        return _replaced(self.sweep, factors, distinct).run(self.folder, self.jobs, client=self.client, progress=self.progress)


def _replaced(sweep: Sweep, factors: Mapping[str, Sequence[Word]], points: Sequence[Mapping[str, Word]]) -> Sweep:
    return replace(sweep, factors=factors, points=points)


def _results(study: Study, run: Mapping[str, Any], metric: str) -> dict[str, tuple[int, Optional[float], str]]:
    """Return for each point of a sweep the number of its run, its value and why it failed."""
    frame = study.frame()
    values = frame[metric] if metric in frame else pandas.Series([None] * len(frame))
    found = {}
    for line, value in zip(frame.to_dict("records"), values):
        message = line["message"] if isinstance(line["message"], str) else ""
        point = {name: line[name] for name in run}
        found[key_of(point)] = (int(line["run"]), None if pandas.isna(value) else float(value), message)
    return found
