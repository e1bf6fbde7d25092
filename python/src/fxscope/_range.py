"""Ranges of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Optional, Union


@dataclass(frozen=True)
class Range:
    """Values from one number to another."""

    begin: float
    end: float
    #: Number of values; a Latin hypercube takes as many as it has runs.
    steps: Optional[int] = None
    #: "linear": equal differences; "log": equal factors.
    scale: Literal["linear", "log"] = "linear"
    #: Whether values are rounded.
    integer: bool = False

    def plan(self) -> dict[str, Any]:
        """Return its keys in a plan."""
        keys = {"from": self.begin, "to": self.end, "steps": self.steps, "scale": self.scale, "integer": self.integer}
        return {key: value for key, value in keys.items() if value is not None}

    def at(self, part: float) -> Union[int, float]:
        """Return the value at a part of the range, from 0 to 1."""
        if self.scale == "log":
            value = self.begin * (self.end / self.begin) ** part
        else:
            value = self.begin + (self.end - self.begin) * part
        return round(value) if self.integer else float(value)
