"""Records: what runs counted, as tables."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Optional, overload

import pandas

from fxscope import _charts
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

#: For each kind of part: the member of a region, and what identifies one.
_PARTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "process": ("processes", ("process",)),
    "cmg": ("cmgs", ("process", "cmg")),
    "thread": ("threads", ("process", "thread", "node", "cpu")),
}


class Region(Mapping[str, float]):
    """A part of a run that the program marks, or the whole run: the values of metrics and events by name.

    >>> record.regions["triad"]["gflops"]
    """

    def __init__(self, found: Json) -> None:
        self._found = found
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

    def parts(self, member: str) -> Sequence[Json]:
        """Return its ``threads``, ``cmgs`` or ``processes``, as the record has them."""
        found: Sequence[Json] = self._found[member]
        return found

    def table(self) -> pandas.DataFrame:
        """Return the columns of Fujitsu's report for the whole region: identifier, title, unit and value."""
        rows = [(key, one["title"], one["unit"], one.get("total")) for key, one in self._found["tables"].items()]
        return pandas.DataFrame(rows, columns=["id", "title", "unit", "value"]).set_index("id")

    def frame(self, by: Part = "total") -> pandas.DataFrame:
        """Return metrics and events: a line for each part, a column for each value."""
        if by == "total":
            return pandas.DataFrame([self._values], index=pandas.Index([self.name], name="region"))
        return _parts([self], by)

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


class Record:
    """A run: what it counted, where its time went, and what limits it. Its items are the values of the whole run."""

    def __init__(self, path: PathLike, found: Json, output: str = "", keep: object = None, place: int = -1) -> None:
        #: The file, for ``fxscope report``, ``compare`` and ``annotate``.
        self.path = Path(path)
        #: What the program wrote to standard output, if it was run from here.
        self.output = output
        #: All that the record has, as ``fxscope report --format json`` prints it.
        self.json = found
        # A temporary folder that lasts as long as the record.
        self._keep = keep
        # Its place among the runs of the file; -1: the last.
        self._place = place

    @property
    def machine(self) -> str:
        """Name of the machine."""
        return str(self.json["machine"])

    @property
    def settings(self) -> Mapping[str, str]:
        """Keys of the machine that were changed."""
        return dict(self.json["settings"])

    @property
    def program(self) -> str:
        """The program."""
        return str(self.json["program"])

    @property
    def arguments(self) -> tuple[str, ...]:
        """Its arguments."""
        return tuple(self.json["arguments"])

    @property
    def exit_code(self) -> Optional[int]:
        """The program's exit status; None if it did not exit by itself."""
        code = self.json["exit_code"]
        return None if code is None else int(code)

    @property
    def seconds(self) -> float:
        """Time of the whole run, s."""
        return self.region()["seconds"]

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the run."""
        return tuple(self.json["notes"])

    @property
    def verdict(self) -> Optional[Verdict]:
        """What limits the run, and what to try; None without simulated or measured time."""
        verdict = self.json["verdict"]
        return None if verdict is None else Verdict.of(verdict)

    @property
    def regions(self) -> Mapping[str, Region]:
        """The regions by name; the whole run is ``all``."""
        return {one["name"]: Region(one) for one in self.json["regions"]}

    def region(self, name: str = WHOLE) -> Region:
        """Return a region; without a name, the whole run."""
        for one in self.json["regions"]:
            if one["name"] == name:
                return Region(one)
        names = ", ".join(str(one["name"]) for one in self.json["regions"])
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
        regions = list(self.regions.values())
        frame = pandas.concat([region.frame() for region in regions]) if by == "total" else _parts(regions, by, named=True)
        if backend == "pandas":
            return frame
        return module("polars", "polars").from_pandas(frame.reset_index())

    def with_(self, metrics: Metrics = (), rules: Sequence[PathLike] = ()) -> Record:
        """Return the record with metrics of your own (:class:`Metric`, or files), and with a verdict that also applies the rules of these
        files (docs/own-metrics.md)."""
        found = load(self.path, metrics, rules)[self._place]
        return Record(self.path, found.json, self.output, self._keep, self._place)

    def run_words(self) -> list[str]:
        """Return the option with which commands take this run of the file, not the last one."""
        return [] if self._place < 0 else [f"--run={self._place + 1}"]

    def chart(self, kind: _charts.Kind = "accounting", metric: str = "seconds") -> Any:
        """Return a chart of Altair: ``accounting``, where the time of each region went; ``threads``, a metric by core; ``loops``, shares of
        the cycles; ``intervals``, an event over time."""
        return _charts.of_record(self, kind, metric)

    def loops(self) -> pandas.DataFrame:
        """Return the loops, the hottest first, with nested values such as stalls in columns of their own (``stalls.NAME``)."""
        return _frame(self.json["loops"]).sort_values("own_cycles", ascending=False, ignore_index=True)

    def data(self) -> pandas.DataFrame:
        """Return the data objects of a run with ``data=True``."""
        if "data" not in self.json:
            raise ValueError("this run has no data objects; run it with data=True")
        return _frame(self.json["data"]["objects"])

    def intervals(self) -> pandas.DataFrame:
        """Return the counts by interval of a run with ``interval=…``: a line for each, with its end in s."""
        if not self.json.get("intervals"):
            raise ValueError("this run has no intervals; run it with interval='100us' or another time")
        frames = []
        for series in self.json["intervals"]:
            frame = pandas.DataFrame(series["events"], index=pandas.Index(series["end_seconds"], name="end_seconds"))
            frames.append(frame)
        return pandas.concat(frames, axis=1)

    def __repr__(self) -> str:
        words = " ".join([self.program, *self.arguments])
        verdict = self.verdict
        return f"<record of {words} on {self.machine}: {verdict.result if verdict else self.json['finish']}>"

    def _repr_html_(self) -> str:
        words = text(" ".join([self.program, *self.arguments]))
        verdict = self.verdict
        head = f"<p><b>{words}</b> on {text(self.machine)}</p>" + (verdict._repr_html_() if verdict else "")
        parts = self.region().accounting if any(one["name"] == WHOLE for one in self.json["regions"]) else pandas.Series(dtype=float)
        whole = float(parts.sum())
        shares = parts[parts > 0].sort_values(ascending=False)
        lines = [(str(part), float(seconds), f"{seconds / whole:.1%}") for part, seconds in shares.items()]
        return head + bars("Where the time went", lines)


def load(path: PathLike, metrics: Metrics = (), rules: Sequence[PathLike] = ()) -> list[Record]:
    """Return the runs of a record file, oldest first; with metrics and rules of your own, as :meth:`Record.with_`."""
    with own_words(metrics, rules) as own:
        text = call(["report", "--format", "json", *own, str(path)]).checked().output
    return [Record(path, found, place=place) for place, found in enumerate(json.loads(text))]


def _frame(lines: list[Any]) -> pandas.DataFrame:
    return pandas.json_normalize(lines) if lines else pandas.DataFrame(columns=["own_cycles"])


def _parts(regions: Sequence[Region], by: Part, named: bool = False) -> pandas.DataFrame:
    """Return a line for each part of regions. The columns are put together one by one, which is several times as fast as from lines."""
    member, keys = _PARTS[by]
    parts = [(region.name, part) for region in regions for part in region.parts(member)]
    index = {key: [part[key] for _, part in parts] for key in keys}
    if named:
        index = {"region": [name for name, _ in parts], **index}
    values = {}
    for kind in ("events", "metrics"):
        found = [part.get(kind, {}) for _, part in parts]
        names = dict.fromkeys(name for one in found for name in one)
        values.update({name: [one.get(name) for one in found] for name in names})
    if not parts:
        return pandas.DataFrame()
    lines = pandas.DataFrame(index).set_index(list(index)).index
    return pandas.DataFrame(values, index=lines)
