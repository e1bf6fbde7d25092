"""Progress of many runs: a bar of tqdm where that is installed, else a line."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Optional

#: Seconds between two looks at the folder of records.
_PERIOD = 0.2


def is_wanted(progress: Optional[bool]) -> bool:
    """Whether progress is shown: as asked for; by default, in notebooks and on terminals."""
    if progress is not None:
        return progress
    return "ipykernel" in sys.modules or sys.stderr.isatty()


@contextmanager
def of_files(files: list[Path], done: list[Path]) -> Iterator[None]:
    """Show how many runs are done while the block runs. ``files``: for each run, the file that it leaves; ``done``: those of them
    that were there before."""
    bar = _bar(len(files), len(done))
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(_PERIOD):
            bar.at(sum(1 for file in files if _is_there(file)))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
        bar.at(sum(1 for file in files if _is_there(file)))
        bar.close()


def _is_there(file: Path) -> bool:
    return file.exists() or file.with_suffix(".failed.json").exists()


class _Line:
    """A line on standard error that is written again."""

    def __init__(self, total: int, done: int) -> None:
        self._total, self._done = total, -1
        self.at(done)

    def at(self, done: int) -> None:
        """Show how many are done."""
        if done != self._done:
            self._done = done
            print(f"\r{done} of {self._total} runs", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """End the line."""
        print(file=sys.stderr)


class _Tqdm:
    """A bar of tqdm, which knows notebooks and terminals."""

    def __init__(self, total: int, done: int) -> None:
        # Without ipywidgets, notebooks have bars of text.
        module = "tqdm.auto" if importlib.util.find_spec("ipywidgets") else "tqdm"
        self._bar: Any = importlib.import_module(module).tqdm(total=total, initial=done, unit="run")

    def at(self, done: int) -> None:
        """Show how many are done."""
        if done != self._bar.n:
            self._bar.update(done - self._bar.n)

    def close(self) -> None:
        """Leave the bar as it is."""
        self._bar.close()


def _bar(total: int, done: int) -> "_Line | _Tqdm":
    return _Tqdm(total, done) if importlib.util.find_spec("tqdm") else _Line(total, done)
