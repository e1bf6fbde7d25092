"""Sweeps: many runs with settings that vary."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Optional, Union

import pandas
import tomli_w

from fxscope._command import Failed, Option, PathLike, Word, call
from fxscope._machine import Machine
from fxscope._record import WHOLE, Record, read

if TYPE_CHECKING:
    from distributed import Client

Design = Literal["full", "one-at-a-time", "latin-hypercube", "list"]


@dataclass(frozen=True)
class Range:
    """Values from one number to another."""

    begin: float
    end: float
    #: Number of values; a Latin hypercube takes as many as it has runs.
    steps: Optional[int] = None
    #: "linear": equal differences; "log": equal factors.
    scale: Literal["linear", "log"] = "linear"
    #: Whether values are rounded.
    integer: bool = False

    def plan(self) -> dict[str, Any]:
        """Return its keys in a plan."""
        keys = {"from": self.begin, "to": self.end, "steps": self.steps, "scale": self.scale, "integer": self.integer}
        return {key: value for key, value in keys.items() if value is not None}


@dataclass(frozen=True)
class Objective:
    """A metric or event that should be small ("least") or large ("most"); by default, rates are better when large."""

    metric: str
    goal: Optional[Literal["least", "most"]] = None


@dataclass(frozen=True)
class Sweep:
    """A plan: a program whose arguments, options, variables and machine keys vary. The name of a factor in braces stands for its
    value.

    >>> plan = Sweep("./stream", arguments=["n={n}"], set={"l2.bytes": "{l2}"},
    ...              factors={"n": [10**5, 10**6], "l2": Range(2**22, 2**24, steps=3, scale="log", integer=True)})
    >>> study = plan.run("study")
    >>> study.frame().plot(x="l2", y="gflops", kind="scatter")
    """

    program: PathLike
    arguments: Sequence[Word] = ()
    #: A name, a :class:`Machine`, or the folder of a machine of your own.
    machine: Union[str, Machine, None] = None
    options: Mapping[str, Option] = field(default_factory=dict)
    set: Mapping[str, Word] = field(default_factory=dict)
    env: Mapping[str, Word] = field(default_factory=dict)
    inputs: Sequence[PathLike] = ()
    factors: Mapping[str, Union[Sequence[Word], Range]] = field(default_factory=dict)
    design: Design = "full"
    #: Number of runs and seed of a Latin hypercube.
    samples: Optional[int] = None
    seed: int = 1
    #: The runs of a list.
    points: Sequence[Mapping[str, Word]] = ()
    region: str = WHOLE
    objectives: Sequence[Objective] = (Objective("seconds"),)
    title: str = "sweep"

    def plan(self, folder: PathLike = ".") -> str:
        """Return the plan as the text of a file in ``folder`` for ``fxscope sweep``."""
        plan: dict[str, Any] = {"title": self.title, "design": self.design, "seed": self.seed, "region": self.region}
        if self.samples is not None:
            plan["samples"] = self.samples
        options = {name.replace("_", "-"): _option(value) for name, value in self.options.items() if value is not None}
        machine = self.machine if isinstance(self.machine, Machine) else Machine(self.machine or "")
        if machine.name:
            options["machine"] = _relative(machine.name, folder) if Path(machine.name).is_dir() else machine.name
        plan["run"] = {
            "program": _relative(self.program, folder),
            "arguments": [str(one) for one in self.arguments],
            "options": options,
            "set": {**machine.settings, **self.set},
            "environment": dict(self.env),
            "inputs": [_relative(one, folder) for one in self.inputs],
        }
        factors = self.factors.items()
        plan["factor"] = [
            {"name": name, **(one.plan() if isinstance(one, Range) else {"values": list(one)})} for name, one in factors
        ]
        plan["objective"] = [
            {"metric": one.metric, **({} if one.goal is None else {"goal": one.goal})} for one in self.objectives
        ]
        if self.points:
            plan["point"] = [dict(point) for point in self.points]
        return tomli_w.dumps(plan)

    def run(
        self, folder: PathLike, jobs: Optional[int] = None, retry: bool = False, client: Optional[Client] = None
    ) -> Study:
        """Make the runs that are not in ``folder`` yet, and return the results. ``jobs``: runs at a time. ``retry``: also make those that
        failed before. ``client``: of a Dask cluster, whose workers make the runs (:mod:`fxscope.distributed`). Runs that fail are
        part of the results."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        plan = folder / "plan.toml"
        plan.write_text(self.plan(folder), encoding="utf-8")
        if client is not None:
            from fxscope import distributed

            return Study(folder, self, distributed.sweep(plan, folder, client, retry))
        words: list[Word] = ["sweep", "--quiet", "-o", str(folder)]
        words += ["--retry"] if retry else []
        words += [] if jobs is None else ["--jobs", jobs]
        ended = call([*words, str(plan)])
        # Status 1: some runs have failed.
        if ended.status not in (0, 1) or not (folder / "results.csv").exists():
            raise Failed(ended.error.strip() or f"fxscope sweep ended with status {ended.status}", ended.status)
        return Study(folder, self, ended.output)


class Study:
    """The results of a sweep."""

    def __init__(self, folder: Path, sweep: Sweep, text: str) -> None:
        #: The folder with records, tables and the page.
        self.folder = folder
        self._sweep = sweep
        self._text = text

    def frame(self, region: Optional[str] = None) -> pandas.DataFrame:
        """Return a line for each run: its factors, whether it is ``done`` or ``failed``, metrics and events of a region; by
        default, of the one that is judged."""
        frame = self.all()
        wanted = frame["region"].isna() | (frame["region"] == (region or self._sweep.region))
        return frame[wanted].reset_index(drop=True)

    def all(self) -> pandas.DataFrame:
        """Return a line for each run and region."""
        return pandas.read_csv(self.folder / "results.csv", dtype={"message": "string", "record": "string"})

    def record(self, run: int) -> Record:
        """Return the record of a run by its number."""
        frame = self.all()
        lines = frame[(frame["run"] == run) & (frame["state"] == "done")]
        if lines.empty:
            raise KeyError(f"run {run} has no record")
        return read(self.folder / str(lines["record"].iloc[0]))[-1]

    def __str__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        columns = ["run", *self._sweep.factors, "state", *(one.metric for one in self._sweep.objectives)]
        frame = self.frame()
        return frame[[name for name in columns if name in frame]].to_html(index=False)


def _relative(path: PathLike, folder: PathLike) -> str:
    """Return a path from ``folder``, so that other hosts can have it elsewhere."""
    return os.path.relpath(path, folder)


def _option(value: Option) -> Any:
    if isinstance(value, (list, tuple)):
        return [str(one) for one in value]
    return value if isinstance(value, (bool, int, float)) else str(value)
