"""Records: what runs counted, as tables."""

from __future__ import annotations

import difflib
import html
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Optional

import pandas

from fxscope._command import PathLike, call

#: The region that every run has: the whole run.
WHOLE = "all"

Json = Mapping[str, Any]
Part = Literal["total", "process", "cmg", "thread"]

#: For each kind of part: the member of a region, and what identifies one.
_PARTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "process": ("processes", ("process",)),
    "cmg": ("cmgs", ("process", "cmg")),
    "thread": ("threads", ("process", "thread", "node", "cpu")),
}


@dataclass(frozen=True)
class Limit:
    """A cause that limits a run."""

    rule: str
    title: str
    #: Part of the time, from 0 to 1.
    share: float
    #: Part of the time that a cure is expected to save.
    gain: float
    says: str


@dataclass(frozen=True)
class Remedy:
    """What to try."""

    rule: str
    do: str
    command: Optional[str]


@dataclass(frozen=True)
class Verdict:
    """What limits a run or a region, and what to try."""

    result: str
    limits: tuple[Limit, ...]
    remedies: tuple[Remedy, ...]
    #: The hottest functions: share of the cycles, function, file, line and text, where they are known.
    hottest: tuple[Json, ...]

    @staticmethod
    def of(found: Json) -> Verdict:
        """Return the verdict that JSON has."""
        return Verdict(
            found["result"],
            tuple(Limit(*(limit[name] for name in ("rule", "title", "share", "gain", "says"))) for limit in found["limits"]),
            tuple(Remedy(one["rule"], one["do"], one["command"]) for one in found["try"]),
            tuple(found["hottest"]),
        )

    def __str__(self) -> str:
        lines = [self.result, *(f"  {limit.share:6.1%} {limit.title}" for limit in self.limits)]
        return "\n".join([*lines, *(f"  {number}. {one.do}" for number, one in enumerate(self.remedies, 1))])

    def _repr_html_(self) -> str:
        limits = "".join(
            f"<li><b>{limit.share:.1%}</b> {html.escape(limit.title)}: {html.escape(limit.says)}</li>" for limit in self.limits
        )
        remedies = "".join(f"<li>{html.escape(one.do)}</li>" for one in self.remedies)
        return (
            f"<p>{html.escape(self.result)}</p>"
            f"<p>What limits it</p><ul>{limits}</ul>"
            f"<p>What to try</p><ol>{remedies}</ol>"
        )


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

    def table(self) -> pandas.DataFrame:
        """Return the columns of Fujitsu's report for the whole region: identifier, title, unit and value."""
        rows = [(key, one["title"], one["unit"], one.get("total")) for key, one in self._found["tables"].items()]
        return pandas.DataFrame(rows, columns=["id", "title", "unit", "value"]).set_index("id")

    def frame(self, by: Part = "total") -> pandas.DataFrame:
        """Return metrics and events: a line for each part, a column for each value."""
        if by == "total":
            return pandas.DataFrame([self._values], index=pandas.Index([self.name], name="region"))
        member, keys = _PARTS[by]
        lines = [{**{key: part[key] for key in keys}, **part.get("events", {}), **part["metrics"]} for part in self._found[member]]
        return pandas.DataFrame(lines).set_index(list(keys)) if lines else pandas.DataFrame()

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

    def __init__(self, path: PathLike, found: Json, output: str = "", keep: object = None) -> None:
        #: The file, for ``fxscope report``, ``compare`` and ``annotate``.
        self.path = Path(path)
        #: What the program wrote to standard output, if it was run from here.
        self.output = output
        #: All that the record has, as ``fxscope report --format json`` prints it.
        self.json = found
        # A temporary folder that lasts as long as the record.
        self._keep = keep

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

    def frame(self, by: Part = "total") -> pandas.DataFrame:
        """Return metrics and events of all regions: a line for each region and part, a column for each value."""
        frames = {name: region.frame(by) for name, region in self.regions.items()}
        if by == "total":
            return pandas.concat(frames.values())
        return pandas.concat(frames, names=["region"])

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
        words = html.escape(" ".join([self.program, *self.arguments]))
        verdict = self.verdict
        return f"<p><b>{words}</b> on {html.escape(self.machine)}</p>" + (verdict._repr_html_() if verdict else "")


def load(path: PathLike) -> list[Record]:
    """Return the runs of a record file, oldest first."""
    return read(path)


def read(path: PathLike, output: str = "", keep: object = None) -> list[Record]:
    """Return the runs of a record file, with what is known of how they were made."""
    text = call(["report", "--format", "json", str(path)]).checked().output
    return [Record(path, found, output, keep) for found in json.loads(text)]


def _frame(lines: list[Any]) -> pandas.DataFrame:
    return pandas.json_normalize(lines) if lines else pandas.DataFrame(columns=["own_cycles"])
