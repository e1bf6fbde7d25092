"""Charts with Altair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Optional

import pandas

from fxscope._optional import module

if TYPE_CHECKING:
    from fxscope._record import Record

Kind = Literal["accounting", "threads", "loops", "intervals"]


def of_record(record: Record, kind: Kind, metric: str) -> Any:
    """Return a chart of a run."""
    altair = module("altair", "charts")
    makers = {"accounting": _accounting, "threads": _threads, "loops": _loops, "intervals": _intervals}
    if kind not in makers:
        raise ValueError(f"no chart '{kind}'; there is {', '.join(makers)}")
    return makers[kind](altair, record, metric)


def of_study(frame: pandas.DataFrame, x: str, y: str, color: Optional[str], scale: str) -> Any:
    """Return a chart of runs: a line for each value of ``color``."""
    altair = module("altair", "charts")
    columns = [name for name in (x, y, color) if name is not None]
    missing = [name for name in columns if name not in frame]
    if missing:
        raise KeyError(f"the results have no column '{missing[0]}'")
    numeric = pandas.api.types.is_numeric_dtype(frame[x])
    along = altair.X(_field(x), type="quantitative", scale=altair.Scale(type=scale, zero=False)) if numeric else altair.X(_field(x), type="nominal")
    channels = {"x": along.title(x), "y": altair.Y(_field(y), type="quantitative", title=y)}
    if color is not None:
        channels["color"] = altair.Color(_field(color), type="nominal", title=color)
    return altair.Chart(frame[columns].dropna()).mark_line(point=True).encode(**channels, tooltip=[_tip(altair, name) for name in columns])


def _accounting(altair: Any, record: Record, _metric: str) -> Any:
    parts = [
        {"region": name, "part": part, "seconds": seconds}
        for name, region in record.regions.items()
        for part, seconds in region.accounting.items()
        if seconds > 0
    ]
    return (
        altair.Chart(pandas.DataFrame(parts, columns=["region", "part", "seconds"]))
        .mark_bar()
        .encode(
            x=altair.X("seconds:Q", title="time of the longest thread, s"),
            y=altair.Y("region:N", title=None),
            color=altair.Color("part:N", title=None),
            tooltip=["region:N", "part:N", "seconds:Q"],
        )
    )


def _threads(altair: Any, record: Record, metric: str) -> Any:
    frame = record.frame("thread").reset_index()
    if metric not in frame:
        raise KeyError(f"threads have no value '{metric}'")
    return (
        altair.Chart(frame[["region", "cpu", "node", metric]])
        .mark_bar()
        .encode(
            x=altair.X("cpu:O", title="core"),
            y=altair.Y(_field(metric), type="quantitative", title=metric),
            color=altair.Color("node:N", title="node"),
            row=altair.Row("region:N", title=None),
        )
    )


def _loops(altair: Any, record: Record, _metric: str) -> Any:
    loops = record.loops().head(20)
    loops = loops.assign(loop=[f"{name} {hex(int(at))}" for name, at in zip(loops["function"], loops["address"])])
    return (
        altair.Chart(loops[["loop", "own_share"]])
        .mark_bar()
        .encode(
            x=altair.X("own_share:Q", title="share of the cycles", axis=altair.Axis(format="%")),
            y=altair.Y("loop:N", title=None, sort="-x"),
        )
    )


def _intervals(altair: Any, record: Record, metric: str) -> Any:
    frame = record.intervals().reset_index()
    event = metric if metric in frame else "CPU_CYCLES"
    return (
        altair.Chart(frame[["end_seconds", event]])
        .mark_line(interpolate="step-before")
        .encode(x=altair.X("end_seconds:Q", title="time, s"), y=altair.Y(_field(event), type="quantitative", title=f"{event} of all threads"))
    )


def _field(name: str) -> str:
    """Return a column's name as Altair reads it: dots, brackets and colons have a meaning of their own."""
    return "".join("\\" + letter if letter in ".[]:" else letter for letter in name)


def _tip(altair: Any, name: str) -> Any:
    return altair.Tooltip(_field(name), title=name)
