"""Slower memory: how much longer a program takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional, Union

import pandas

from fxscope._command import Option, PathLike, Word, option_words
from fxscope._html import bars, paragraph
from fxscope._machine import Machine
from fxscope._record import Record
from fxscope._run import scenario_words
from fxscope._subject import Subject, answer, subject_words

if TYPE_CHECKING:
    from distributed import Client


class Forecast:
    """How many times as long a program takes with slower memory, by several methods."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        #: All results, as ``fxscope latency predict --format json`` or ``check`` has them.
        self.json = found

    @property
    def latencies(self) -> tuple[float, ...]:
        """The latencies of memory that were asked for, ns."""
        return tuple(point["latency_ns"] for point in self.json["points"])

    @property
    def base(self) -> float:
        """The latency of memory as counted, ns."""
        return float(self.json["base_ns"])

    @property
    def kind(self) -> str:
        """What the program does with its waits, in a word."""
        return str(self.json["kind"])

    @property
    def trusted(self) -> Optional[str]:
        """The method to trust; None if none can be used."""
        trust = self.json["trust"]
        return None if trust is None else str(trust["method"])

    @property
    def why(self) -> str:
        """Why that one."""
        trust = self.json["trust"]
        return "" if trust is None else str(trust["why"])

    @property
    def simulated(self) -> Optional[tuple[Optional[float], ...]]:
        """How many times as long it takes in simulations, one for each latency; None without ``check=True``."""
        found = self.json.get("simulated")
        return None if found is None else tuple(found)

    def slowdowns(self, method: Optional[str] = None) -> tuple[Optional[float], ...]:
        """Return how many times as long it takes, one for each latency, by a method; by default, by the one to trust. None where the
        method says nothing."""
        wanted = method or self.trusted
        for one in self.json["methods"]:
            if one["id"] == wanted and "slowdowns" in one:
                return tuple(one["slowdowns"])
        usable = ", ".join(one["id"] for one in self.json["methods"] if "slowdowns" in one)
        raise KeyError(f"method '{wanted}' predicts nothing here; there is {usable}")

    def frame(self) -> pandas.DataFrame:
        """Return a line for each latency and method that can be used: how many times as long the program takes, and with
        ``check=True``, how many times in a simulation."""
        columns = ["latency_ns", "method", "title", "slowdown"]
        frame = pandas.DataFrame(self._lines(), columns=columns)
        if self.simulated is not None:
            frame["simulated"] = frame["latency_ns"].map(dict(zip(self.latencies, self.simulated)))
        return frame

    def intervals(self) -> pandas.DataFrame:
        """Return the mean number of outstanding reads of a core by interval of time."""
        return pandas.DataFrame(self.json["intervals"], columns=["end_seconds", "outstanding_reads"])

    def _lines(self) -> Iterator[tuple[float, str, str, Optional[float]]]:
        for place, latency in enumerate(self.latencies):
            for one in self.json["methods"]:
                if "slowdowns" in one:
                    yield latency, one["id"], one["title"], one["slowdowns"][place]

    def _repr_html_(self) -> str:
        if self.trusted is None:
            return paragraph("No method can be used.")
        shown = zip(self.latencies, self.slowdowns())
        lines = [(f"{latency:g} ns", value, f"{value:.3g} times") for latency, value in shown if value is not None]
        return paragraph(f"Method {self.trusted}: {self.why}") + bars("Time with slower memory, by its latency", lines)


def latency(
    program: Subject,
    *arguments: Word,
    latencies: Sequence[float] = (),
    check: bool = False,
    cache: Optional[PathLike] = None,
    client: Optional[Client] = None,
    machine: Union[str, Machine, None] = None,
    set: Mapping[str, Word] = {},
    env: Mapping[str, Word] = {},
    region: Optional[str] = None,
    cwd: Optional[PathLike] = None,
    **options: Option,
) -> Forecast:
    """Predict how much longer a program takes with slower memory. ``program``: a program, or the record of a run, simulated or
    measured. ``latencies``: of memory from a load to its use, ns; by default, those of the published study. ``check``: also simulate the
    program with each of them; ``cache``: folder for what these runs count; ``client``: of a Dask cluster, whose workers make them. ``region``: look at this region only. ``options``: those of ``fxscope latency predict`` or ``check``, such
    as ``jobs=4``, and of ``fxscope run``."""
    if check and isinstance(program, Record):
        raise ValueError("check=True simulates the program with slower memory: give the program, not a record")
    if client is not None and (not check or cwd is not None):
        raise ValueError("workers make the runs of check=True, in the folder of this process: leave out client or cwd")
    asked = {"latencies": ",".join(map(str, latencies)) or None, "region": region, **options}
    words = ["latency", "check" if check else "predict", *scenario_words(machine, set, env, asked)]
    subject = subject_words(program, arguments)
    if client is not None:
        from fxscope import distributed

        distributed.fill(words, client, subject, cache)
    return Forecast(answer([*words, *option_words({"cache": cache})], subject, cwd)[0])
