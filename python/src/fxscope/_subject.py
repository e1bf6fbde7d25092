"""What a laboratory looks at: a program, or the record of a run; and what the command answers."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional, Union

from fxscope._command import PathLike, Word, call
from fxscope._record import Record

Subject = Union[PathLike, Record]


def subject_words(subject: Subject, arguments: Sequence[Word]) -> list[Word]:
    """Return the words of a command line that name a program with its arguments, or a run of a record."""
    if not isinstance(subject, Record):
        return ["--", subject, *arguments]
    if arguments:
        raise ValueError("a record names its program and arguments; give arguments with a program only")
    return [*subject.run_words(), subject.path]


def answer(
    words: Sequence[Word], subject: Sequence[Word] = (), cwd: Optional[PathLike] = None, statuses: Sequence[int] = (0,)
) -> tuple[Any, int]:
    """Return what a command answers in JSON, and its exit status. ``statuses``: those with which there is an answer."""
    with tempfile.TemporaryDirectory(prefix="fxscope-") as folder:
        path = Path(folder, "answer.json")
        ended = call([*words, "--format=json", f"--output={path}", *subject], cwd=cwd)
        if ended.status not in statuses or not path.exists():
            raise ended.failure()
        return json.loads(path.read_text(encoding="utf-8")), ended.status
