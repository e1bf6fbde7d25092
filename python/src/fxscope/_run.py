"""Runs of programs."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Optional, Union

from fxscope._command import Option, PathLike, ProgramFailed, Word, call, option_words
from fxscope._machine import Machine
from fxscope._record import Record

if TYPE_CHECKING:
    from distributed import Client


def scenario_words(
    machine: Union[str, Machine, None], set: Mapping[str, Word], env: Mapping[str, Word], options: Mapping[str, Option]
) -> list[str]:
    """Return the options of a scenario, as all commands have them that run a program."""
    words: list[str] = []
    if isinstance(machine, Machine):
        set = {**machine.settings, **set}
        machine = machine.name
    words += option_words({"machine": machine, **options})
    for key, value in set.items():
        words += ["--set", f"{key}={str(value).lower() if isinstance(value, bool) else value}"]
    for name, value in env.items():
        words += ["-e", f"{name}={value}"]
    return words


def run(
    program: PathLike,
    *arguments: Word,
    machine: Union[str, Machine, None] = None,
    set: Mapping[str, Word] = {},
    env: Mapping[str, Word] = {},
    threads: Optional[int] = None,
    cwd: Optional[PathLike] = None,
    output: Optional[PathLike] = None,
    client: Optional[Client] = None,
    check: bool = True,
    **options: Option,
) -> Record:
    """Run a program on a modelled machine, and return what it counted.

    ``machine``: a name, the folder of a machine of your own, or a :class:`Machine`. ``set``: keys of its description. ``env``:
    variables of the program. ``threads``: number of its OpenMP threads, a core each. ``cwd``: the folder in which it runs.
    ``output``: the file of the record; without it, the record lasts as long as the result. ``client``: of a Dask cluster, whose workers
    time intervals of the run; with ``jobs=N``, N - 1 of them can be busy. ``options``: any other of ``fxscope run``,
    with underscores: ``cpus="12-23"``, ``sample=True``, ``pages=["bss=2MiB"]``, ``ranks=4``.

    Raises :class:`Failed` if the program cannot run, and, unless ``check`` is false, :class:`ProgramFailed` if it ends with a
    status other than 0.
    """
    if client is not None and not options.get("jobs"):
        raise ValueError("workers time intervals of a run with jobs=N: give how many processes there are, this one included")
    if threads is not None:
        env = {"OMP_NUM_THREADS": threads, **env}
    keep = tempfile.TemporaryDirectory(prefix="fxscope-")
    # The run has its own folder: the record's name must not depend on it.
    path = Path(output).absolute() if output else Path(keep.name, "run.fxr")
    # Its counts come with it: another command that reads the record would take longer.
    counts = Path(keep.name, "run.json")
    words = ["run", "--quiet", "-o", str(path), "--json", str(counts), *scenario_words(machine, set, env, options)]
    words += ["--", str(program), *map(str, arguments)]
    if client is None:
        ended = call(words, cwd=cwd)
    else:
        from fxscope import _intervals

        ended = _intervals.run(words, client, cwd)
    if ended.is_own_failure() or not path.exists():
        ended.checked()
    found = json.loads(counts.read_text(encoding="utf-8"))
    record = Record(path, found, ended.output, keep, _number_of_runs(path) - 1, is_whole=True)
    if check and ended.status != 0:
        message = ended.error.strip() or f"{program} ended with status {ended.status}"
        raise ProgramFailed(message, ended.status, record)
    return record


def _number_of_runs(record: Path) -> int:
    """Return how many runs a file has: a run is added behind the others."""
    connection = sqlite3.connect(f"{record.absolute().as_uri()}?mode=ro", uri=True)
    try:
        (number,) = connection.execute("SELECT count(*) FROM run").fetchone()
    finally:
        connection.close()
    return int(number)
