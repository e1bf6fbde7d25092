"""Intervals of a run that are timed by the workers of a Dask cluster."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from fxscope._command import Ended, Failed, PathLike, Word, call

if TYPE_CHECKING:
    from distributed import Client

#: How often an interval that cannot be timed is tried again, and how often it is given to the scheduler, which gives it up after its
#: workers have died several times.
RETRIES, ATTEMPTS = 3, 5

#: How often the folder is looked at, seconds. It also shows that those who have claimed intervals live.
LOOK = 0.1


def run(command: Sequence[Word], client: Client, cwd: Optional[PathLike] = None) -> Ended:
    """Run ``["run", "--jobs", N, …, "--", program, …]`` here, and have intervals of it timed by the workers of ``client``; N - 1 of them can be
    busy at a time. Counts are the same as without them. Workers need nothing but fxscope."""
    with tempfile.TemporaryDirectory(prefix="fxscope-") as folder:
        spool = Path(folder, "intervals")
        over = threading.Event()
        others = _jobs(command) - 1
        helper = threading.Thread(target=_help, args=(spool, client, others, over), name="fxscope intervals", daemon=True)
        helper.start()
        try:
            return call(["run", f"--spool={spool}", *command[1:]], cwd=cwd)
        finally:
            over.set()
            helper.join()


def _jobs(command: Sequence[Word]) -> int:
    """Return the number of processes that a command asks for with ``--jobs``."""
    words = [str(word) for word in command]
    for word, following in zip(words, [*words[1:], ""]):
        name, _, value = word.partition("=")
        if name == "--jobs":
            value = value or following
            return int(value) if value.isdecimal() else 1
        if word == "--":
            break
    return 1


def _help(spool: Path, client: Client, most: int, over: threading.Event) -> None:
    """Have intervals timed that appear in a folder, as ``most`` processes of ``fxscope work`` do, until the run is over.

    Only as many are claimed as can be timed at once: the run itself times at its end what nobody has begun with."""
    claimed: dict[str, _Claim] = {}
    wake = threading.Event()
    while not over.is_set():
        wake.wait(LOOK)
        wake.clear()
        for number in [number for number, claim in claimed.items() if not claim.goes_on()]:
            _write(spool, number, claimed.pop(number))
        for interval in sorted(spool.glob("interval-*"))[: max(most - len(claimed), 0)]:
            number = interval.name.partition("-")[2]
            claim = _claimed(interval, spool / f"claimed-{number}", client, wake)
            if claim is not None:
                claimed[number] = claim
    client.cancel([claim.future for claim in claimed.values()])


class _Claim:
    """An interval that a worker times."""

    def __init__(self, file: Path, content: bytes, client: Client, wake: threading.Event) -> None:
        self.file, self._content, self._client, self._wake, self._attempt = file, content, client, wake, 1
        self.future = self._submitted()

    def _submitted(self) -> Any:
        # Each one is timed by itself, even if the program has two that are the same.
        future = self._client.submit(_time, self._content, pure=False, retries=RETRIES)
        future.add_done_callback(lambda _: self._wake.set())
        return future

    def goes_on(self) -> bool:
        """Show that it is being timed. Return whether it is."""
        from distributed import KilledWorker

        try:
            os.utime(self.file)
        except FileNotFoundError:
            # It was taken to be lost, and another process has timed it.
            self._client.cancel([self.future])
            return False
        if not self.future.done():
            return True
        # The scheduler gives a task up after it has died with several workers.
        if self._attempt < ATTEMPTS and self.future.status == "error" and isinstance(self.future.exception(), KilledWorker):
            self._attempt += 1
            self.future = self._submitted()
            return True
        return False


def _claimed(interval: Path, file: Path, client: Client, wake: threading.Event) -> Optional[_Claim]:
    """Claim an interval; None if another process has."""
    try:
        os.rename(interval, file)
        return _Claim(file, file.read_bytes(), client, wake)
    except FileNotFoundError:
        return None


def _write(spool: Path, number: str, claim: _Claim) -> None:
    """Put what an interval has counted into the folder, or why it cannot be timed."""
    status = claim.future.status
    try:
        if status == "finished":
            replace(spool / f"counts-{number}", claim.future.result())
        elif status == "error":
            replace(spool / f"failed-{number}", str(claim.future.exception()).encode())
        # Otherwise there is no scheduler any more, or the interval is not wanted: who executes the program takes it back.
    except FileNotFoundError:
        # The run is over.
        return


def replace(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix="draft-", delete=False) as draft:
        draft.write(content)
    os.replace(draft.name, path)


def _time(interval: bytes) -> bytes:
    """On a worker: time an interval, and return the file with what it has counted."""
    with tempfile.TemporaryDirectory(prefix="fxscope-") as folder:
        file, counts = Path(folder, "interval"), Path(folder, "counts")
        file.write_bytes(interval)
        ended = call(["work", file, f"--counts={counts}"])
        if ended.status != 0:
            raise Failed(f"{socket.gethostname()}: {ended.failure()}", ended.status)
        return counts.read_bytes()
