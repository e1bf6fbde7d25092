"""Advice: what limits a program, and which remedies help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

import pandas

from fxscope._command import Option, PathLike, Word
from fxscope._html import bars
from fxscope._machine import Machine
from fxscope._metric import Metrics, own_words
from fxscope._run import scenario_words
from fxscope._subject import answer, subject_words
from fxscope._verdict import Verdict


@dataclass(frozen=True)
class Tried:
    """A remedy that was simulated."""

    name: str
    #: How to apply it on the machine.
    machine: str
    #: Options of ``fxscope run`` that apply it.
    options: tuple[str, ...]
    #: Part of the time that it saves in each region; empty if the run failed.
    gains: Mapping[str, float]

    @property
    def gain(self) -> Optional[float]:
        """The gain in the first region: the whole run, or the one that was asked for."""
        return next(iter(self.gains.values()), None)


class Advice:
    """What limits a program, and what remedies gain."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        #: All results, as ``fxscope advise --json`` has them.
        self.json = found

    @property
    def verdict(self) -> Verdict:
        """The verdict on the whole run, or on the region that was asked for."""
        return Verdict.of(self.json["verdict"])

    @property
    def verdicts(self) -> Mapping[str, Verdict]:
        """The verdict on each region that takes much of the time."""
        return {region["name"]: Verdict.of(region["verdict"]) for region in self.json["regions"]}

    @property
    def tried(self) -> list[Tried]:
        """The remedies that were simulated, the largest gain first."""
        return sorted(map(_tried, self.json["tried"]), key=lambda one: -1.0 if one.gain is None else one.gain, reverse=True)

    def frame(self) -> pandas.DataFrame:
        """Return the remedies as a table."""
        lines = [(one.name, one.gain, " ".join(one.options), one.machine) for one in self.tried]
        return pandas.DataFrame(lines, columns=["remedy", "gain", "options", "machine"])

    def _repr_html_(self) -> str:
        gains = [(one.name, one.gain, f"{one.gain:+.1%}") for one in self.tried if one.gain is not None]
        return self.verdict._repr_html_() + bars("Time that remedies save", gains) + self.frame().to_html(index=False)


def _tried(one: Mapping[str, Any]) -> Tried:
    found = one.get("regions") or []
    gains = {region["name"]: float(region["gain"]) for region in found if region.get("gain") is not None}
    return Tried(one["name"], one.get("machine") or "", tuple(one["options"]), gains)


def advise(
    program: PathLike,
    *arguments: Word,
    machine: Union[str, Machine, None] = None,
    set: Mapping[str, Word] = {},
    env: Mapping[str, Word] = {},
    region: Optional[str] = None,
    cwd: Optional[PathLike] = None,
    metrics: Metrics = (),
    rules: Sequence[PathLike] = (),
    **options: Option,
) -> Advice:
    """Say what limits a program, and simulate what may help. Parameters are those of :func:`run`; ``region``: judge this one only;
    ``metrics``, ``rules``: more of your own, as in :meth:`Record.with_`."""
    with own_words(metrics, rules) as own:
        words = ["advise", "--quiet", *own, *scenario_words(machine, set, env, {"region": region, **options})]
        return Advice(answer(words, subject_words(program, arguments), cwd)[0])
