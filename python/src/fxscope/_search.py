"""How a space is searched: all of it if it is small, else by Optuna."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional, Union

from fxscope._command import Word
from fxscope._optional import module
from fxscope._range import Range

Space = Mapping[str, Union[Sequence[Word], Range]]
Point = dict[str, Word]


def values_of(one: Union[Sequence[Word], Range]) -> Optional[list[Word]]:
    """Return the values of a part of a space; None if it is a range with all numbers in it."""
    if not isinstance(one, Range):
        return list(one)
    if one.steps is None:
        return None
    return list(dict.fromkeys(one.at(step / (one.steps - 1)) for step in range(one.steps)))


def all_points(space: Space, most: int) -> Optional[list[Point]]:
    """Return all points of a space if it has no more than ``most``."""
    known = [values_of(one) for one in space.values()]
    values = [one for one in known if one is not None]
    if len(values) < len(known) or math.prod(map(len, values)) > most:
        return None
    return [dict(zip(space, line)) for line in itertools.product(*values)]


class Exhaustive:
    """All points at once."""

    def __init__(self, points: list[Point]) -> None:
        self._points = points

    def batches(self) -> Iterator[list[Point]]:
        """Return the only batch."""
        yield self._points

    def learn(self, values: Sequence[Optional[float]]) -> None:
        """Nothing follows."""


class Optuna:
    """Points that Optuna suggests, in batches. The same seed and values lead to the same points."""

    def __init__(self, space: Space, trials: int, batch: int, seed: int, maximize: bool) -> None:
        optuna = module("optuna", "tune")
        self._space, self._trials, self._batch = space, trials, batch
        self._failed = optuna.trial.TrialState.FAIL
        verbosity = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=max(batch, 10))
        self._study = optuna.create_study(direction="maximize" if maximize else "minimize", sampler=sampler)
        optuna.logging.set_verbosity(verbosity)
        self._asked: list[Any] = []

    def batches(self) -> Iterator[list[Point]]:
        """Return points to try until there were as many as wanted."""
        left = self._trials
        while left > 0:
            self._asked = [self._study.ask() for _ in range(min(self._batch, left))]
            left -= len(self._asked)
            yield [{name: self._suggested(trial, name, one) for name, one in self._space.items()} for trial in self._asked]

    def learn(self, values: Sequence[Optional[float]]) -> None:
        """Take the values of the last batch; None: it failed."""
        for trial, value in zip(self._asked, values):
            self._study.tell(trial, value, state=self._failed if value is None else None)

    @staticmethod
    def _suggested(trial: Any, name: str, one: Union[Sequence[Word], Range]) -> Any:
        values = values_of(one)
        if values is not None:
            return values[trial.suggest_categorical(name, list(range(len(values))))]
        assert isinstance(one, Range)
        suggest = trial.suggest_int if one.integer else trial.suggest_float
        return suggest(name, one.begin, one.end, log=one.scale == "log")
