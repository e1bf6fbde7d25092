"""Page sizes: those with which a program runs fastest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional, Union

import pandas

from fxscope._command import Option, PathLike, Word
from fxscope._html import bars, paragraph
from fxscope._machine import Machine
from fxscope._run import scenario_words
from fxscope._subject import Subject, answer, subject_words


@dataclass(frozen=True)
class PageChoice:
    """Page sizes of a program's segments, and what becomes of its time."""

    #: The size of each segment's pages, such as ``2MiB``.
    pages: Mapping[str, str]
    #: ``unchanged``, ``demand`` (pages on the node of the thread that first touches them) or ``interleave``.
    placement: str
    #: Variables of the large-page library that set these sizes; None if it cannot.
    variables: Optional[tuple[str, ...]]
    #: Time as predicted and as simulated, s; None without a prediction or a simulation.
    predicted: Optional[float]
    simulated: Optional[float]
    #: Change of the simulated time against that of now, as a part of it: negative is faster.
    change: Optional[float]

    def __str__(self) -> str:
        sizes = " ".join(f"{segment}={size}" for segment, size in self.pages.items())
        return sizes if self.placement == "unchanged" else f"{sizes}, {self.placement}"


class PageAdvice:
    """The page sizes of a program, those that it has and others."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        #: All results, as ``fxscope pages advise --format json`` has them.
        self.json = found

    @property
    def now(self) -> PageChoice:
        """The page sizes that the program has now."""
        return _choice(self.json["now"])

    @property
    def choices(self) -> list[PageChoice]:
        """The best other ones."""
        return [_choice(one) for one in self.json["choices"]]

    @property
    def best(self) -> Optional[PageChoice]:
        """The ones that are advised; None if a change gains too little."""
        place = self.json["best"]
        return None if place is None else self.choices[place - 1]

    @property
    def says(self) -> tuple[str, ...]:
        """The advice in sentences and commands."""
        return tuple(self.json["advice"])

    def frame(self) -> pandas.DataFrame:
        """Return the page sizes of now and the best others, a line each: the pages of each segment (``pages.bss``), times and misses as
        predicted and as simulated (``predicted.seconds``, ``simulated.walks``)."""
        return pandas.json_normalize([self.json["now"], *self.json["choices"]])

    def segments(self) -> pandas.DataFrame:
        """Return the TLB misses of each segment with the pages of now."""
        return pandas.DataFrame(self.json["segments"])

    def __str__(self) -> str:
        return "\n".join(self.says)

    def _repr_html_(self) -> str:
        times = [(str(one), one.simulated, f"{one.simulated:.4g} s") for one in [self.now, *self.choices] if one.simulated is not None]
        return "".join(map(paragraph, self.says)) + bars("Time by page sizes, those of now first", times)


def _choice(found: Mapping[str, Any]) -> PageChoice:
    predicted, simulated, variables = found["predicted"], found["simulated"] or {}, found["variables"]
    return PageChoice(
        found["pages"], found["placement"], None if variables is None else tuple(variables), predicted["seconds"],
        simulated.get("seconds"), simulated.get("change"),
    )


def pages(
    program: Subject,
    *arguments: Word,
    machine: Union[str, Machine, None] = None,
    set: Mapping[str, Word] = {},
    env: Mapping[str, Word] = {},
    region: Optional[str] = None,
    cwd: Optional[PathLike] = None,
    **options: Option,
) -> PageAdvice:
    """Find the page sizes with which a program runs fastest. ``program``: a program, or the record of a run, whose program runs again.
    ``region``: look at the executions of this region only. ``options``: those of ``fxscope pages advise``, such as ``sizes="2MiB,32MiB"``
    and ``simulate=5``, and of ``fxscope run``."""
    words = ["pages", "advise", "--quiet", *scenario_words(machine, set, env, {"region": region, **options})]
    return PageAdvice(answer(words, subject_words(program, arguments), cwd)[0])
