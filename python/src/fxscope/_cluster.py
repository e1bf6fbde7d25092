"""Where the runs of a sweep are made: workers of this host, of a Dask scheduler, jobs of Slurm, hosts reached by SSH."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fxscope._command import Failed
from fxscope._optional import module

if TYPE_CHECKING:
    from distributed import Client

#: What ``--on`` understands.
PLACES = "tcp://HOST:PORT, slurm[:OPTION=VALUE,…] or ssh:HOST,HOST,…"

#: Options of ``slurm:`` and what they are by default: how many jobs, each with one worker of one core; memory and time of a job.
_SLURM: Mapping[str, str] = {"jobs": "2", "memory": "4GB", "walltime": "01:00:00", "queue": "", "account": ""}


#: Settings of Dask for workers of this host. One that dies twice within this time, by default 15 s, is not started again.
_LOCAL: Mapping[str, str] = {"distributed.deploy.lost-worker-timeout": "1 day"}


@contextmanager
def client_on(place: str) -> Iterator[Client]:
    """Give a client of the workers at a place, which last as long as the block; the empty place is this host."""
    distributed = module("distributed", "distributed")
    kind, _, words = place.partition(":")
    if words.startswith("//"):
        with distributed.Client(place.replace("dask://", "tcp://")) as client:
            yield client
        return
    if place == "":
        cluster = distributed.LocalCluster(threads_per_worker=1, dashboard_address=None)
    elif kind == "slurm":
        cluster = _slurm(slurm_options(words))
    elif kind == "ssh" and words:
        cluster = _ssh(words.split(","))
    else:
        raise Failed(f"--on {place}: there is no such place; name {PLACES}", 125)
    with module("dask", "distributed").config.set(_LOCAL if place == "" else {}):
        with cluster, distributed.Client(cluster) as client:
            yield client


def slurm_options(words: str) -> dict[str, str]:
    """Return the options of ``slurm:``, those that are not given with their defaults."""
    options = dict(_SLURM)
    for word in filter(None, words.split(",")):
        name, equals, value = word.partition("=")
        if name not in options or not equals:
            raise Failed(f"--on slurm: '{word}' is no option; there is {', '.join(f'{one}=' for one in options)}", 125)
        options[name] = value
    if not options["jobs"].isdecimal() or int(options["jobs"]) == 0:
        raise Failed(f"--on slurm: jobs={options['jobs']}: give the number of jobs, at least 1", 125)
    return options


def _slurm(options: Mapping[str, str]) -> Any:
    """Return jobs of Slurm, each with one worker; a job that ends is replaced."""
    jobs = int(options["jobs"])
    cluster = module("dask_jobqueue", "slurm").SLURMCluster(
        cores=1, processes=1, memory=options["memory"], walltime=options["walltime"], queue=options["queue"] or None,
        account=options["account"] or None, scheduler_options={"dashboard_address": None},
    )
    cluster.adapt(minimum_jobs=jobs, maximum_jobs=jobs)
    return cluster


def _ssh(hosts: list[str]) -> Any:
    """Return hosts, each with a worker that makes as many runs at a time as it has cores; the scheduler is on the first one."""
    module("asyncssh", "ssh")
    cluster = module("distributed", "distributed").SSHCluster
    return cluster([hosts[0], *hosts], scheduler_options={"port": 0, "dashboard": False})
