"""Runs on the workers of a Dask cluster, of sweeps and of laboratories: processes of this host, hosts reached by SSH, jobs of Slurm, pods of
Kubernetes.

>>> from dask.distributed import Client
>>> from fxscope import distributed
>>> print(distributed.sweep("plan.toml", "study", Client("tcp://head:8786")))

Needs the package ``distributed`` here, and this package in the same version on all workers. ``python -m fxscope.distributed`` does
the same from a shell, also on jobs of Slurm and on hosts reached by SSH.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import socket
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

import tomli_w

from fxscope._cluster import PLACES, client_on
from fxscope._command import Failed, PathLike, Word, call
from fxscope._intervals import replace, run
from fxscope._optional import Missing

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from distributed import Client

#: How often a task that failed is tried again.
RETRIES = 3

#: How often a run is given to the scheduler, which gives it up after its workers have died several times.
ATTEMPTS = 5

#: Exit status of ``--only`` if the run fails; its file then says why.
_RUN_FAILED = 1

#: Level at which records are compressed on the way.
COMPRESSION = 1


def sweep(plan: PathLike, folder: PathLike, client: Client, retry: bool = False, own: Sequence[str] = ()) -> str:
    """Make the runs of a plan that are not in ``folder`` yet on the workers of ``client``, and return what ``fxscope sweep`` says of
    all of them. The files in ``folder`` are the same as if they had been made here. ``retry``: also make those that failed before.
    ``own``: options of ``fxscope sweep`` for metrics of your own.

    The program, its inputs and the machine's folder are sent to each worker once, if the plan names them by relative paths; absolute
    paths must exist on all workers. Runs that are done are kept as they arrive: a sweep that was interrupted continues.
    """
    plan, folder = Path(plan), Path(folder)
    here = ["sweep", "-o", str(folder), *own, str(plan)]
    wanted = json.loads(call([*here, "--dry-run", "--format", "json"]).checked().output)
    missing = [run for run in wanted if not run["kept"] or retry and _failure(folder, run).exists()]
    records = folder / "records"
    records.mkdir(parents=True, exist_ok=True)
    for made in _made(plan, missing, client):
        for name, content in made.items():
            replace(records / name, content)
    ended = call([*here, "--quiet"])
    # Status 1: some runs have failed.
    return (ended if ended.status == 1 else ended.checked()).output


def fill(
    command: Sequence[Word], client: Client, subject: Sequence[Word] = (), cache: Optional[PathLike] = None
) -> None:
    """Make the runs that a command needs and that are not cached yet on the workers of ``client``, and put what they count into the cache
    of this host; the command then finds all of them. ``command``: ``["validate", "full"]`` or ``["latency", "check", …]`` with what
    decides which runs these are; ``subject``: what is behind the options, the program after ``--``. ``cache``: the folder; by default,
    that of the command.

    Workers make the runs in the folder of this process, if they have it, and with its variables, since programs see both. A run that fails
    is left to the command, which then says why.
    """
    kept = [] if cache is None else [f"--cache={cache}"]
    listed = call([*command, *kept, "--dry-run", "--format=json", *subject]).checked().output
    wanted = json.loads(listed)
    folder, variables = os.getcwd(), dict(os.environ)

    def submitted(result: str) -> Callable[[str], Any]:
        words = (list(map(str, command)), list(map(str, subject)), result, folder, variables)
        return lambda key: client.submit(_count, *words, key=key, retries=RETRIES)

    missing = [run["result"] for run in wanted["runs"] if not run["cached"]]
    for result, content in _results({result: submitted(result) for result in missing}):
        if content is not None:
            replace(Path(wanted["cache"], result), zlib.decompress(content))


def _made(plan: Path, missing: Sequence[Mapping[str, Any]], client: Client) -> Iterator[dict[str, bytes]]:
    """Make runs on the workers; return the files of each as it ends."""
    keys = tomllib.loads(plan.read_text(encoding="utf-8"))
    home = str(plan.parent.resolve())
    sent: dict[str, Any] = {}

    def submitted(run: Mapping[str, Any]) -> Callable[[str], Any]:
        def submit(key: str) -> Any:
            names = _files(plan.parent, run)
            for name in names:
                if name not in sent:
                    sent[name] = _sent(client, (plan.parent / name).read_bytes())
            contents = [sent[name] for name in names]
            return client.submit(
                _make, _plan_of(keys, run["factors"]), names, contents, Path(run["record"]).name, home, key=key, retries=RETRIES
            )

        return submit

    for _, files in _results({Path(run["record"]).stem: submitted(run) for run in missing}):
        yield {name: zlib.decompress(content) for name, content in files.items()}


def _plan_of(keys: Mapping[str, Any], factors: Mapping[str, Any]) -> str:
    """Return a plan for one run of another plan, with nothing of the other runs."""
    one = {key: value for key, value in keys.items() if key not in ("samples", "factor", "point")}
    values = [{"name": name, "values": [value]} for name, value in factors.items()]
    return tomli_w.dumps({**one, "design": "full", "factor": values})


def _results(tasks: Mapping[str, Callable[[str], Any]]) -> Iterator[tuple[str, Any]]:
    """Submit tasks, each under a key; return the name and the result of each as it ends."""
    from distributed import KilledWorker, as_completed

    running: dict[str, tuple[str, int]] = {}

    def submitted(name: str, attempt: int) -> Any:
        key = f"fxscope-{name}-{attempt}"
        running[key] = (name, attempt)
        return tasks[name](key)

    ended = as_completed([submitted(name, 1) for name in tasks])
    for future in ended:
        name, attempt = running.pop(future.key)
        # The scheduler gives a task up after it has died with several workers.
        if future.status == "error" and isinstance(future.exception(), KilledWorker) and attempt < ATTEMPTS:
            ended.add(submitted(name, attempt + 1))
        else:
            yield name, future.result()


def _count(
    command: Sequence[str], subject: Sequence[str], result: str, folder: str, variables: Mapping[str, str]
) -> Optional[bytes]:
    """On a worker: make one run of a command, and return the file with what it counts, compressed; None if it fails."""
    with tempfile.TemporaryDirectory(prefix="fxscope-") as cache:
        place = folder if Path(folder).is_dir() else None
        ended = call([*command, f"--cache={cache}", f"--only={result}", *subject], cwd=place, env=variables)
        if ended.status == _RUN_FAILED:
            return None
        if ended.status != 0:
            raise Failed(f"{socket.gethostname()}: {ended.failure()}", ended.status)
        return zlib.compress(Path(cache, result).read_bytes(), COMPRESSION)


def _sent(client: Client, content: bytes) -> Any:
    """Send a file's content to the workers that need it. It is the result of a task, so that it is not lost with a worker."""
    return client.submit(bytes, content, key=f"fxscope-file-{hashlib.sha256(content).hexdigest()}", retries=RETRIES)


def _files(folder: Path, run: Mapping[str, Any]) -> list[str]:
    """Return the relative paths of the files that a run needs: its program, its inputs, and the machine's folder."""
    names = [run["command"][0], *run["inputs"]]
    for option in run["options"]:
        machine = folder / option.removeprefix("--machine=") if option.startswith("--machine=") else None
        if machine is not None and machine.is_dir():
            names += [os.path.relpath(file, folder) for file in sorted(machine.iterdir()) if file.is_file()]
    return [name for name in names if not os.path.isabs(name)]


def _make(plan: str, names: Sequence[str], contents: Sequence[bytes], record: str, home: str) -> dict[str, bytes]:
    """On a worker: make the only run of a plan, and return the files that it leaves in the folder of records, compressed. ``home``: the
    folder of the plan on the host of the sweep, for the paths in the record."""
    with tempfile.TemporaryDirectory(prefix="fxscope-") as root:
        # Paths that lead out of the plan's folder stay in the temporary one.
        depth = max((Path(os.path.normpath(name)).parts.count("..") for name in names), default=0)
        folder = Path(root, "results", "..", *["plan"] * (depth + 1)).resolve()
        folder.mkdir(parents=True)
        for name, content in zip(names, contents):
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            file.chmod(0o755)
        (folder / "plan.toml").write_text(plan, encoding="utf-8")
        results = Path(root, "results")
        ended = call(
            ["sweep", "--quiet", f"--only={record}", f"--recorded-in={home}", "-o", str(results), str(folder / "plan.toml")]
        )
        if ended.status not in (0, _RUN_FAILED):
            raise Failed(
                f"{socket.gethostname()}: {ended.failure()}; all workers need the same version of fxscope, and the same files at "
                "absolute paths of the plan",
                ended.status,
            )
        return {file.name: zlib.compress(file.read_bytes(), COMPRESSION) for file in (results / "records").iterdir()}


def _failure(folder: Path, run: Mapping[str, Any]) -> Path:
    return Path(folder, run["record"]).with_suffix(".failed.json")


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the runs of a plan on a cluster, those that a command of fxscope needs (after --: validate, latency check), or the
    intervals of a run (run --jobs N), and print the results."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    own, command = _split(words)
    parser = argparse.ArgumentParser(
        prog="python -m fxscope.distributed", description=main.__doc__,
        usage="%(prog)s [-h] [--on PLACE] [-o FOLDER] [--retry] PLAN.toml\n       %(prog)s [--on PLACE] [--cache FOLDER] -- COMMAND …\n"
        "       %(prog)s [--on PLACE] -- run --jobs N [OPTIONS] -- PROGRAM …",
    )
    if not command:
        parser.add_argument("plan", type=Path, help="the plan; docs/sweep.md has the format")
    parser.add_argument("-o", "--output", type=Path, help="folder of a sweep's results; default: the plan's name without .toml")
    parser.add_argument("--retry", action="store_true", help="make runs of a sweep again that failed before")
    parser.add_argument("--cache", type=Path, help="folder for what the runs of a command count; default: that of the command")
    parser.add_argument("--on", metavar="PLACE", default="", help=f"{PLACES}; default: workers on this host")
    given = parser.parse_args(own)
    try:
        with client_on(given.on) as client:
            if command:
                return _answered(command, client, given.cache)
            print(sweep(given.plan, given.output or given.plan.with_suffix(""), client, given.retry), end="")
    except (Failed, OSError, Missing) as error:
        print(f"fxscope: {error}", file=sys.stderr)
        return 125
    return 0


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split words at the first ``--``."""
    place = words.index("--") if "--" in words else len(words)
    return list(words[:place]), list(words[place + 1 :])


def _answered(command: Sequence[str], client: Client, cache: Optional[Path]) -> int:
    """Make the runs of a command, print what it says, and return its exit status."""
    options, program = _split(command)
    subject = ["--", *program] if program else []
    if options[:1] == ["run"]:
        ended = run([*options, *subject], client)
    else:
        fill(options, client, subject, cache)
        kept = [] if cache is None else [f"--cache={cache}"]
        ended = call([*options, *kept, *subject])
    print(ended.output, end="")
    print(ended.error, end="", file=sys.stderr)
    return ended.status


if __name__ == "__main__":
    sys.exit(main())
