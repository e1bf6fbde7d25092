"""Sweeps: many runs with settings that vary."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Optional, Union

import tomli_w

from fxscope import _progress, _sensitivity
from fxscope._command import Failed, Option, PathLike, Word, call
from fxscope._machine import Machine
from fxscope._metric import Metrics, own_words
from fxscope._range import Range
from fxscope._record import WHOLE
from fxscope._study import Study

if TYPE_CHECKING:
    from distributed import Client

Design = Literal["full", "one-at-a-time", "latin-hypercube", "list", "saltelli", "morris"]


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
    #: ``saltelli`` and ``morris`` sample the factors for :meth:`Study.sensitivity`, with SALib.
    design: Design = "full"
    #: Number of runs of a Latin hypercube; of points, each with as many runs as there are factors and two more, of ``saltelli`` (best
    #: a power of 2); of trajectories, each with one run more than there are factors, of ``morris``.
    samples: Optional[int] = None
    seed: int = 1
    #: The runs of a list.
    points: Sequence[Mapping[str, Word]] = ()
    region: str = WHOLE
    objectives: Sequence[Objective] = (Objective("seconds"),)
    title: str = "sweep"
    #: Metrics of your own in the results (:class:`Metric`, or files).
    metrics: Metrics = ()

    def sampling(self) -> Optional[_sensitivity.Sampling]:
        """Return how the factors are sampled for an analysis of sensitivity; None for other designs."""
        if self.design not in ("saltelli", "morris"):
            return None
        if self.samples is None:
            raise ValueError(f"design '{self.design}' needs a number of samples")
        return _sensitivity.Sampling(self.design, self.factors, self.samples, self.seed)

    def plan(self, folder: PathLike = ".") -> str:
        """Return the plan as the text of a file in ``folder`` for ``fxscope sweep``."""
        plan: dict[str, Any] = {"title": self.title, "design": self.design, "seed": self.seed, "region": self.region}
        points, sampling = [dict(point) for point in self.points], self.sampling()
        if sampling is not None:
            plan["design"], points = "list", sampling.distinct()
        elif self.samples is not None:
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
        plan["factor"] = [{"name": name, **_factor(one)} for name, one in self.factors.items()]
        plan["objective"] = [
            {"metric": one.metric, **({} if one.goal is None else {"goal": one.goal})} for one in self.objectives
        ]
        if points:
            plan["point"] = points
        return tomli_w.dumps(plan)

    def run(
        self,
        folder: PathLike,
        jobs: Optional[int] = None,
        retry: bool = False,
        client: Optional[Client] = None,
        progress: Optional[bool] = None,
    ) -> Study:
        """Make the runs that are not in ``folder`` yet, and return the results. ``jobs``: runs at a time. ``retry``: also make those that
        failed before. ``client``: of a Dask cluster, whose workers make the runs (:mod:`fxscope.distributed`). ``progress``: show how many
        runs are done; by default, in notebooks and on terminals. Runs that fail are part of the results."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        plan = folder / "plan.toml"
        plan.write_text(self.plan(folder), encoding="utf-8")
        with own_words(self.metrics, ()) as own:
            if not _progress.is_wanted(progress):
                return Study(folder, self, self._made(plan, own, jobs, retry, client))
            files, done = self._records(plan, own)
            with _progress.of_files(files, done):
                return Study(folder, self, self._made(plan, own, jobs, retry, client))

    def _made(
        self, plan: Path, own: Sequence[str], jobs: Optional[int], retry: bool, client: Optional[Client]
    ) -> str:
        """Make the runs of a plan in its folder; return what ``fxscope sweep`` says."""
        if client is not None:
            from fxscope import distributed

            return distributed.sweep(plan, plan.parent, client, retry, own)
        words: list[Word] = ["sweep", "--quiet", "-o", str(plan.parent), *own]
        words += ["--retry"] if retry else []
        words += [] if jobs is None else ["--jobs", jobs]
        ended = call([*words, str(plan)])
        # Status 1: some runs have failed.
        if ended.status not in (0, 1) or not (plan.parent / "results.csv").exists():
            raise Failed(ended.error.strip() or f"fxscope sweep ended with status {ended.status}", ended.status)
        return ended.output

    @staticmethod
    def _records(plan: Path, own: Sequence[str]) -> tuple[list[Path], list[Path]]:
        """Return the files of all records of a plan, and of those that are there already."""
        words = ["sweep", "-o", str(plan.parent), *own, "--dry-run", "--format", "json", str(plan)]
        wanted = json.loads(call(words).checked().output)
        files = [(plan.parent / run["record"], bool(run["kept"])) for run in wanted]
        return [file for file, _ in files], [file for file, kept in files if kept]


def _factor(values: Union[Sequence[Word], Range]) -> dict[str, Any]:
    """Return the keys of a factor in a plan."""
    return values.plan() if isinstance(values, Range) else {"values": list(values)}


def _relative(path: PathLike, folder: PathLike) -> str:
    """Return a path from ``folder``, so that other hosts can have it elsewhere."""
    return os.path.relpath(path, folder)


def _option(value: Option) -> Any:
    if isinstance(value, (list, tuple)):
        return [str(one) for one in value]
    return value if isinstance(value, (bool, int, float)) else str(value)
