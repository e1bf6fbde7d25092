"""Machines: a description, and what is changed of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from fxscope._command import Word, call


@dataclass(frozen=True)
class Machine:
    """A machine: the name of one that is built in, or the folder of one of your own, with changed keys.

    >>> slow = Machine("a64fx").with_({"memory.latency_nearest": 400})
    """

    name: str = "a64fx"
    settings: Mapping[str, Word] = field(default_factory=lambda: MappingProxyType({}))

    def with_(self, settings: Mapping[str, Word]) -> Machine:
        """Return the machine with these keys changed, too; ``fxscope machine show`` prints all keys."""
        return Machine(self.name, MappingProxyType({**self.settings, **settings}))

    def show(self) -> str:
        """Return every number of the description with its evidence and source, without the changes."""
        return call(["machine", "show", self.name]).checked().output

    @staticmethod
    def list() -> list[str]:
        """Return the names of the built-in machines."""
        return [line.split()[0] for line in call(["machine", "list"]).checked().output.splitlines() if line.strip()]
