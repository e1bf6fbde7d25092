"""Records: what runs counted, as tables."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Optional, overload

import pandas

from fxscope import _charts, _columns
from fxscope._command import PathLike, call
from fxscope._html import bars, text
from fxscope._metric import Metrics, own_words
from fxscope._optional import module
from fxscope._verdict import Json, Verdict

if TYPE_CHECKING:
    import polars

#: The region that every run has: the whole run.
WHOLE = "all"

Part = Literal["total", "process", "cmg", "thread"]


class Region(Mapping[str, float]):
    """A part of a run that the program marks, or the whole run: the values of metrics and events by name.

    >>> record.regions["triad"]["gflops"]
    """

    def __init__(self, found: Json, record: Record) -> None:
        self._found = found
        self._record = record
        self._values: dict[str, float] = {**found["events"], **found["metrics"]}

    @property
    def name(self) -> str:
        """Its name."""
        return str(self._found["name"])

    @property
    def calls(self) -> int:
        """How often it was entered."""
        return int(self._found["calls"])

    @property
    def verdict(self) -> Optional[Verdict]:
        """What limits it; None without simulated or measured time."""
        verdict = self._found["verdict"]
        return None if verdict is None else Verdict.of(verdict)

    @property
    def half_widths(self) -> Mapping[str, float]:
        """Of a sampled run: half of the widths of the confidence intervals, by metric and event."""
        found = self._found.get("half_widths", {})
        return {**found.get("events", {}), **found.get("metrics", {})}

    @property
    def accounting(self) -> pandas.Series[float]:
        """Where the time of the longest thread went, s, by cause (cycle accounting)."""
        columns = [column for key, column in self._found["tables"].items() if key.startswith("B") and key != "B21"]
        values = {column["title"]: column["total"] for column in columns if column.get("total") is not None}
        return pandas.Series(values, name=self.name, dtype=float)

    def table(self) -> pandas.DataFrame:
        """Return the columns of Fujitsu's report for the whole region: identifier, title, unit and value."""
        rows = [(key, one["title"], one["unit"], one.get("total")) for key, one in self._found["tables"].items()]
        return pandas.DataFrame(rows, columns=["id", "title", "unit", "value"]).set_index("id")

    def frame(self, by: Part = "total") -> pandas.DataFrame:
        """Return metrics and events: a line for each part, a column for each value."""
        return _totals([self]) if by == "total" else self._record._parts(by, self.name)

    def __getitem__(self, name: str) -> float:
        if name not in self._values:
            close = difflib.get_close_matches(name, self._values, n=3)
            raise KeyError(f"no metric or event '{name}'" + (f"; there is {', '.join(close)}" if close else ""))
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<region {self.name}: {len(self)} values>"


@dataclass(frozen=True)
class Own:
    """Metrics and rules of the user's own."""

    metrics: Metrics = ()
    rules: Sequence[PathLike] = ()


class Record:
    """A run: what it counted, where its time went, and what limits it. Its items are the values of the whole run."""

    def __init__(
        self, path: PathLike, found: Json, output: str = "", keep: object = None, place: int = -1, own: Own = Own(), is_whole: bool = False
    ) -> None:
        #: The file, for ``fxscope report``, ``compare`` and ``annotate``.
        self.path = Path(path)
        #: What the program wrote to standard output, if it was run from here.
        self.output = output
        # What it has, without threads and CMGs if it is not whole.
        self._found = found
        # A temporary folder that lasts as long as the record.
        self._keep = keep
        # Its place among the runs of the file; -1: the last.
        self._place = place
        self._own = own
        if is_whole:
            self.json = found

    @cached_property
    def json(self) -> Json:
        """All that the record has, as ``fxscope report --format json`` prints it. Read when it is first needed."""
        return _read(self.path, self._own)[self._place]

    @property
    def machine(self) -> str:
        """Name of the machine."""
        return str(self._found["machine"])

    @property
    def settings(self) -> Mapping[str, str]:
        """Keys of the machine that were changed."""
        return dict(self._found["settings"])

    @property
    def program(self) -> str:
        """The program."""
        return str(self._found["program"])

    @property
    def arguments(self) -> tuple[str, ...]:
        """Its arguments."""
        return tuple(self._found["arguments"])

    @property
    def exit_code(self) -> Optional[int]:
        """The program's exit status; None if it did not exit by itself."""
        code = self._found["exit_code"]
        return None if code is None else int(code)

    @property
    def seconds(self) -> float:
        """Time of the whole run, s."""
        return self.region()["seconds"]

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the run."""
        return tuple(self._found["notes"])

    @property
    def verdict(self) -> Optional[Verdict]:
        """What limits the run, and what to try; None without simulated or measured time."""
        verdict = self._found["verdict"]
        return None if verdict is None else Verdict.of(verdict)

    @property
    def regions(self) -> Mapping[str, Region]:
        """The regions by name; the whole run is ``all``."""
        return {one["name"]: Region(one, self) for one in self._found["regions"]}

    def region(self, name: str = WHOLE) -> Region:
        """Return a region; without a name, the whole run."""
        for one in self._found["regions"]:
            if one["name"] == name:
                return Region(one, self)
        names = ", ".join(str(one["name"]) for one in self._found["regions"])
        raise KeyError(f"no region '{name}'; this run has {names}")

    def __getitem__(self, name: str) -> float:
        return self.region()[name]

    def __contains__(self, name: object) -> bool:
        return name in self.region()

    @overload
    def frame(self, by: Part = ..., *, metrics: Metrics = ..., backend: Literal["pandas"] = ...) -> pandas.DataFrame: ...

    @overload
    def frame(self, by: Part = ..., *, metrics: Metrics = ..., backend: Literal["polars"]) -> polars.DataFrame: ...

    def frame(self, by: Part = "total", *, metrics: Metrics = (), backend: Literal["pandas", "polars"] = "pandas") -> Any:
        """Return metrics and events of all regions: a line for each region and part, a column for each value. ``metrics``: more of
        your own. ``backend``: whose data frame."""
        if metrics:
            return self.with_(metrics=metrics).frame(by, backend=backend)
        frame = _totals(list(self.regions.values())) if by == "total" else self._parts(by)
        if backend == "pandas":
            return frame
        return module("polars", "polars").from_pandas(frame.reset_index())

    def _parts(self, by: Part, region: Optional[str] = None) -> pandas.DataFrame:
        """Return a line for each thread, CMG or process of all regions, or of one."""
        with own_words(self._own.metrics, self._own.rules) as own:
            return _columns.read(self.path, by, region, own, self.run_words())

    def with_(self, metrics: Metrics = (), rules: Sequence[PathLike] = ()) -> Record:
        """Return the record with metrics of your own (:class:`Metric`, or files), and with a verdict that also applies the rules of these
        files (docs/own-metrics.md)."""
        own = Own(metrics, rules)
        return Record(self.path, _read(self.path, own, _BRIEF)[self._place], self.output, self._keep, self._place, own)

    def run_words(self) -> list[str]:
        """Return the option with which commands take this run of the file, not the last one."""
        return [] if self._place < 0 else [f"--run={self._place + 1}"]

    def chart(self, kind: _charts.Kind = "accounting", metric: str = "seconds") -> Any:
        """Return a chart of Altair: ``accounting``, where the time of each region went; ``threads``, a metric by core; ``loops``, shares of
        the cycles; ``intervals``, an event over time."""
        return _charts.of_record(self, kind, metric)

    def loops(self) -> pandas.DataFrame:
        """Return the loops, the hottest first, with nested values such as stalls in columns of their own (``stalls.NAME``)."""
        return _frame(self._found["loops"]).sort_values("own_cycles", ascending=False, ignore_index=True)

    def data(self) -> pandas.DataFrame:
        """Return the data objects of a run with ``data=True``."""
        if "data" not in self._found:
            raise ValueError("this run has no data objects; run it with data=True")
        return _frame(self._found["data"]["objects"])

    def intervals(self) -> pandas.DataFrame:
        """Return the counts by interval of a run with ``interval=…``: a line for each, with its end in s."""
        if not self._found.get("intervals"):
            raise ValueError("this run has no intervals; run it with interval='100us' or another time")
        frames = []
        for series in self._found["intervals"]:
            frame = pandas.DataFrame(series["events"], index=pandas.Index(series["end_seconds"], name="end_seconds"))
            frames.append(frame)
        return pandas.concat(frames, axis=1)

    def __repr__(self) -> str:
        words = " ".join([self.program, *self.arguments])
        verdict = self.verdict
        return f"<record of {words} on {self.machine}: {verdict.result if verdict else self._found['finish']}>"

    def _repr_html_(self) -> str:
        words = text(" ".join([self.program, *self.arguments]))
        verdict = self.verdict
        head = f"<p><b>{words}</b> on {text(self.machine)}</p>" + (verdict._repr_html_() if verdict else "")
        parts = self.region().accounting if any(one["name"] == WHOLE for one in self._found["regions"]) else pandas.Series(dtype=float)
        whole = float(parts.sum())
        shares = parts[parts > 0].sort_values(ascending=False)
        lines = [(str(part), float(seconds), f"{seconds / whole:.1%}") for part, seconds in shares.items()]
        return head + bars("Where the time went", lines)


def load(path: PathLike, metrics: Metrics = (), rules: Sequence[PathLike] = ()) -> list[Record]:
    """Return the runs of a record file, oldest first; with metrics and rules of your own, as :meth:`Record.with_`."""
    return records(path, Own(metrics, rules))


def records(path: PathLike, own: Own = Own(), keep: object = None) -> list[Record]:
    """Return the runs of a record file. ``keep``: what lasts as long as they do."""
    return [Record(path, found, keep=keep, place=place, own=own) for place, found in enumerate(_read(path, own, _BRIEF))]


#: Options of ``fxscope report`` that leave out threads and CMGs, most of a large record.
_BRIEF = ("--by=process",)


def _read(path: PathLike, own: Own, words: Sequence[str] = ()) -> list[Json]:
    with own_words(own.metrics, own.rules) as own_options:
        output = call(["report", "--format=json", *words, *own_options, path]).checked().output
    found: list[Json] = json.loads(output)
    return found


def _frame(lines: list[Any]) -> pandas.DataFrame:
    return pandas.json_normalize(lines) if lines else pandas.DataFrame(columns=["own_cycles"])


def _totals(regions: Sequence[Region]) -> pandas.DataFrame:
    """Return a line for each region. The columns are put together one by one, which is several times as fast as from lines."""
    names = dict.fromkeys(name for region in regions for name in region)
    values = {name: [region[name] if name in region else None for region in regions] for name in names}
    return pandas.DataFrame(values, index=pandas.Index([region.name for region in regions], name="region"))
