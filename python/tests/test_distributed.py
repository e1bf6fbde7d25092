"""Sweeps on the workers of a Dask cluster: the same results as here, whatever happens to workers."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import pytest
from distributed import Client, LocalCluster, Status

import fxscope
from fxscope import distributed
from fxscope._command import call

TRIAD = fxscope.kernel("triad-l1")
KERNELS = Path(__file__).parents[2] / "kernels" / "prebuilt"


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A scheduler and two workers, each a process, which is started again however often it dies."""
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "1 day"}):
        with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
            with Client(cluster) as client:
                yield client


def plan(passes: list[int]) -> fxscope.Sweep:
    return fxscope.Sweep(
        KERNELS / "triad-l1.elf",
        arguments=["passes={passes}"],
        set={"tlb.l1_entries": "{entries}"},
        factors={"passes": passes, "entries": [16, 32]},
    )


def results(folder: Path) -> bytes:
    return (folder / "results.csv").read_bytes()


def counted(folder: Path) -> dict[str, Any]:
    """Return what each record of a sweep says, without what it says of the host."""
    files = sorted((folder / "records").iterdir())
    assert all(file.suffix == ".fxr" for file in files)
    return {file.name: [{**run, "host": None} for run in json.loads(call(["report", file, "--format=json"]).output)] for file in files}


def test_results_are_those_of_a_sweep_here(tmp_path: Path, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    arrived = {}

    def replace(path: Path, content: bytes) -> None:
        arrived[path] = content
        path.write_bytes(content)

    monkeypatch.setattr(distributed, "replace", replace)
    plan([20, 40]).run(tmp_path / "here")
    study = plan([20, 40]).run(tmp_path / "there", client=client)
    assert results(tmp_path / "here") == results(tmp_path / "there")
    assert counted(tmp_path / "here") == counted(tmp_path / "there")
    assert study.record(1).arguments == ("passes=20",)
    # Nothing was made again on this host.
    assert arrived == {file: file.read_bytes() for file in (tmp_path / "there" / "records").iterdir()} and len(arrived) == 4


def test_only_what_is_missing_is_sent(tmp_path: Path, client: Any) -> None:
    plan([20]).run(tmp_path / "study")
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "study" / "records").iterdir()}
    plan([20, 40]).run(tmp_path / "study", client=client)
    after = {file: file.stat().st_mtime_ns for file in (tmp_path / "study" / "records").iterdir()}
    assert len(after) == 4 and all(after[file] == at for file, at in before.items())


def test_failed_runs_come_back_as_results(tmp_path: Path, client: Any) -> None:
    wrong = fxscope.Sweep(KERNELS / "triad-l1.elf", arguments=["{word}"], factors={"word": ["passes=20", "wrong=1"]})
    frame = wrong.run(tmp_path / "study", client=client).frame()
    assert list(frame["state"]) == ["done", "failed"]


def test_a_machine_of_ones_own_and_inputs_are_sent(tmp_path: Path, client: Any) -> None:
    machine = tmp_path / "study" / "slow"
    machine.mkdir(parents=True)
    (machine / "machine.toml").write_text(
        'extends = "a64fx"\n[clock]\ncore_hz = 1_000_000_000\nsource = "a test"\nevidence = "assumed"\nwould_close = "nothing"\n'
    )
    (tmp_path / "study" / "data").write_text("1")
    (tmp_path / "study" / "plan.toml").write_text(
        f"[run]\nprogram = '{os.path.relpath(KERNELS / 'triad-l1.elf', tmp_path / 'study')}'\narguments = ['passes=20']\n"
        "options = { machine = '{machine}' }\ninputs = ['data']\n"
        "[[factor]]\nname = 'machines'\nvalues = ['a64fx', 'slow']\n".replace("{machine}", "{machines}")
    )
    distributed.sweep(tmp_path / "study" / "plan.toml", tmp_path / "there", client)
    study = fxscope.Study(tmp_path / "there", fxscope.Sweep("x"), "")
    seconds = study.frame("triad")["seconds"]
    assert seconds[1] == pytest.approx(2 * seconds[0], rel=0.01)


def test_rows_of_validation_have_the_errors_of_this_host(tmp_path: Path, client: Any) -> None:
    there = fxscope.validate("l1", cache=tmp_path / "there", client=client)
    here = fxscope.validate("l1", cache=tmp_path / "here")
    assert there.json == here.json
    kept = [{file.name: file.read_bytes() for file in (tmp_path / place).iterdir()} for place in ("here", "there")]
    assert kept[0] == kept[1] and len(kept[0]) > 1


def test_latencies_of_a_check_are_simulated_by_workers(tmp_path: Path, client: Any) -> None:
    def checked(place: str, **where: Any) -> fxscope.Forecast:
        chase = fxscope.kernel("chase")
        return fxscope.latency(chase, "footprint=1048576", latencies=[300, 500], check=True, cache=tmp_path / place, **where)

    there, here = checked("there", client=client), checked("here")
    assert there.json == here.json
    # Its own memory, that of another node, and two latencies.
    kept = [{file.name: file.read_bytes() for file in (tmp_path / place).iterdir()} for place in ("here", "there")]
    assert kept[0] == kept[1] and len(kept[0]) == 4
    with pytest.raises(ValueError, match="leave out client or cwd"):
        fxscope.latency(fxscope.kernel("chase"), client=client)


@pytest.mark.parametrize("dies", [False, True])
def test_intervals_of_a_run_are_timed_by_workers_even_if_one_dies(client: Any, dies: bool) -> None:
    def counts(**where: Any) -> tuple[Any, Any]:
        ran = fxscope.run(fxscope.kernel("sort"), "n=60000", "passes=1", **where)
        return {key: value for key, value in ran.json.items() if key != "host"}, ran.output

    def kill() -> None:
        """Kill a worker that times an interval."""
        while not over.is_set():
            busy = [worker for worker, tasks in client.processing().items() if any("_time" in str(task) for task in tasks)]
            if busy:
                killed.append(client.run(os.getpid, workers=busy[:1])[busy[0]])
                os.kill(killed[0], signal.SIGKILL)
                return
            over.wait(0.02)

    over = threading.Event()
    killed: list[int] = []
    killer = threading.Thread(target=kill)
    if dies:
        killer.start()
    try:
        there = counts(jobs=3, client=client)
    finally:
        over.set()
        if dies:
            killer.join()
    assert bool(killed) == dies
    assert there == counts(jobs=1)


def test_a_run_from_the_shell_has_the_counts_of_this_host(capfd: pytest.CaptureFixture[str]) -> None:
    def words(jobs: int) -> list[str]:
        return ["run", "--quiet", f"--jobs={jobs}", "--json=-", "--", str(TRIAD), "passes=20"]

    assert distributed.main(["--", *words(2)]) == 0
    there, here = (json.loads(text) for text in (capfd.readouterr().out, call(words(1)).output))
    assert there.pop("host") and here.pop("host") and there == here


def test_workers_time_only_runs_in_intervals(client: Any) -> None:
    with pytest.raises(ValueError, match="with jobs=N"):
        fxscope.run(TRIAD, client=client)
    with pytest.raises(fxscope.Failed, match="--sample or --jobs out"):
        fxscope.run(TRIAD, client=client, jobs=2, sample=True)


def test_runs_that_fail_on_workers_fail_here_with_the_same_words(tmp_path: Path, client: Any) -> None:
    with pytest.raises(fxscope.Failed, match="the program ended with status 2"):
        fxscope.latency(TRIAD, "wrong=1", latencies=[300], check=True, cache=tmp_path, client=client)
    assert list(tmp_path.iterdir()) == []


def test_commands_of_the_shell_run_on_workers(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["validate", "latency-0001"]
    assert distributed.main(["--cache", str(tmp_path), "--", *words]) == 0
    said = capfd.readouterr().out
    here = call([*words, f"--cache={tmp_path}"])
    assert said == here.output and "latency-0001" in said
    assert len(list(tmp_path.iterdir())) == 1


#: Seconds that a worker lives at least and at most.
LIFE = (1.0, 4.0)


def running(client: Any, dead: list[int]) -> list[int]:
    """Wait until both workers run, and return their processes. Until its nanny has noticed that, a worker that dies is not replaced."""
    for _ in range(600):
        nannies = [nanny for nanny in client.cluster.workers.values() if nanny.process is not None]
        found = [nanny.pid for nanny in nannies if nanny.process.status == Status.running and nanny.pid not in dead]
        if len(found) == 2:
            return found
        time.sleep(0.1)
    raise TimeoutError("workers do not start")


def test_runs_of_workers_that_die_are_made_elsewhere(tmp_path: Path, client: Any) -> None:
    """Two deaths; ``FXSCOPE_DEATHS=20`` for more."""
    deaths = int(os.environ.get("FXSCOPE_DEATHS", "2"))
    passes = list(range(300, 300 + 2 * deaths))
    plan(passes).run(tmp_path / "here", progress=False)
    moments = random.Random(deaths)
    killed: list[int] = []

    def kill() -> None:
        for _ in range(deaths):
            time.sleep(moments.uniform(*LIFE))
            victim = moments.choice(running(client, killed))
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    killer = threading.Thread(target=kill)
    killer.start()
    plan(passes).run(tmp_path / "there", client=client)
    killer.join()
    assert len(killed) == deaths
    assert results(tmp_path / "here") == results(tmp_path / "there")


def test_places_that_do_not_exist_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places = {
        "moon:a": "there is no such place; name tcp://HOST:PORT, slurm",
        "ssh:": "there is no such place",
        "slurm:nodes=3": "'nodes=3' is no option; there is jobs=, memory=",
        "slurm:jobs=none": "give the number of jobs, at least 1",
    }
    for place, message in places.items():
        assert distributed.main(["--on", place, str(tmp_path / "plan.toml")]) == 125
        assert message in capsys.readouterr().err
