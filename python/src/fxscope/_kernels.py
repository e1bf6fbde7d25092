"""The benchmark programs that come with the package."""

from __future__ import annotations

import difflib
from pathlib import Path

_FOLDER = Path(__file__).parent / "kernels"


def kernels() -> list[str]:
    """Return the names of the benchmark programs that come with the package."""
    return sorted(file.stem for file in _FOLDER.glob("*.elf"))


def kernel(name: str) -> Path:
    """Return the file of a benchmark program that comes with the package, such as ``triad-l1``."""
    file = _FOLDER / f"{name}.elf"
    if not file.exists():
        close = difflib.get_close_matches(name, kernels(), n=3) or kernels()
        raise KeyError(f"no benchmark program '{name}'; there is {', '.join(close)}")
    return file
