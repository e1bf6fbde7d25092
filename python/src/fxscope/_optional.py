"""Optional parts of the package."""

from __future__ import annotations

import importlib
from typing import Any


class Missing(ImportError):
    """An optional package is not installed."""


def module(name: str, extra: str) -> Any:
    """Return an optional module; ``extra``: the part of this package that installs it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise Missing(f"this needs the package {package}: pip install 'fxscope[{extra}]'", name=package) from error
