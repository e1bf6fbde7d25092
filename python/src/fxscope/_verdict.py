"""Verdicts: what limits a run, and what to try."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

from fxscope._html import bars, paragraph, text

Json = Mapping[str, Any]


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
        chart = bars("What limits it", [(limit.title, limit.share, f"{limit.share:.1%}") for limit in self.limits])
        says = "".join(f"<li>{text(limit.says)}</li>" for limit in self.limits)
        remedies = "".join(f"<li>{text(one.do)}</li>" for one in self.remedies)
        tries = f"<p>What to try</p><ol>{remedies}</ol>" if remedies else ""
        return f"{paragraph(self.result)}{chart}<ul>{says}</ul>{tries}"
