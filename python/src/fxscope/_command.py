"""The command ``fxscope``: where it is, and how it is called."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Union

if TYPE_CHECKING:
    from fxscope._record import Record

PathLike = Union[str, "os.PathLike[str]"]
Word = Union[str, int, float, "os.PathLike[str]"]
Option = Union[Word, bool, Sequence[Word], None]

#: Exit status of ``fxscope run`` if fxscope itself failed, and if the program cannot be executed or does not exist.
_OWN_STATUSES = (125, 126, 127)


class Failed(Exception):
    """``fxscope`` could not do what was asked; the message says why and what to do."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        #: Exit status of the command.
        self.status = status


class ProgramFailed(Failed):
    """The simulated program ended with an exit status other than 0, or by a signal."""

    def __init__(self, message: str, status: int, record: Record) -> None:
        super().__init__(message, status)
        #: What was counted until then.
        self.record = record


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    status: int
    output: str
    error: str

    def checked(self) -> Ended:
        """Return it, unless it failed."""
        if self.status != 0:
            raise self.failure()
        return self

    def failure(self) -> Failed:
        """Return its last message as an exception."""
        return Failed(_message(self.error) or f"fxscope ended with status {self.status}", self.status)

    def is_own_failure(self) -> bool:
        """Whether fxscope failed, not the program that it ran."""
        return self.status in _OWN_STATUSES


def executable() -> str:
    """Return the path of the command: ``FXSCOPE``, the one that was installed with this package, or the one in ``PATH``."""
    named = os.environ.get("FXSCOPE")
    if named:
        return named
    installed = Path(sysconfig.get_path("scripts")) / "fxscope"
    if installed.exists():
        return str(installed)
    found = shutil.which("fxscope")
    if found is None:
        raise Failed("the command fxscope is missing: install the package fxscope, or name it with the variable FXSCOPE", 127)
    return found


def call(arguments: Sequence[Word], cwd: PathLike | None = None, env: Mapping[str, str] | None = None) -> Ended:
    """Run a command to its end. An interrupt ends it in order; a second one, at once.

    It has a session of its own: terminals and Jupyter send interrupts to all processes of a group, and two of them would end it at
    once."""
    words = [executable(), *map(str, arguments)]
    try:
        process = subprocess.Popen(
            words, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            errors="replace", start_new_session=True,
        )
    except OSError as error:
        raise Failed(f"{words[0]}: cannot be executed ({error.strerror}); name another with the variable FXSCOPE", 126) from error
    try:
        output, error_text = process.communicate()
    except BaseException:
        _end(process)
        raise
    return Ended(process.returncode, output, error_text)


def _end(process: subprocess.Popen[str]) -> None:
    """End a command in order; at once if that is interrupted as well."""
    process.send_signal(signal.SIGINT)
    try:
        process.communicate()
    except BaseException:
        process.kill()
        process.wait()
        raise


def option_words(options: Mapping[str, Option]) -> list[str]:
    """Return options of the command line. Underscores stand for hyphens, True for an option without a value, lists for one
    that is given several times; None and False leave it out."""
    words: list[str] = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
            continue
        values = value if isinstance(value, (list, tuple)) else [value]
        words += [f"{option}={os.fspath(one) if isinstance(one, os.PathLike) else one}" for one in values]
    return words


def _message(error: str) -> str:
    """Return the last message of fxscope itself."""
    prefix = "fxscope: "
    lines = [line[len(prefix):] for line in error.splitlines() if line.startswith(prefix)]
    return lines[-1] if lines else error.strip()
