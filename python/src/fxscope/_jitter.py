"""Operating-system noise: what it costs a program at scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from fxscope._command import Option, PathLike, option_words
from fxscope._record import Record
from fxscope._sheet import Sheet
from fxscope._subject import Subject, answer


def jitter(
    model: PathLike, *, program: Optional[Subject] = None, nodes: Sequence[int] = (), remedies: bool = False, **options: Option
) -> Sheet:
    """Simulate a program of phases under noise on several numbers of nodes. ``model``: a noise model that is built in, or a file of a
    model of your own. ``program``: the record of a run with MPI, or a file of ``fxscope jitter program``, instead of phases.
    ``remedies``: compare remedies instead. ``options``: those of ``fxscope jitter simulate`` or ``compare``, such as ``grain="1ms"``,
    ``sync="allreduce"`` and ``phases=1000``. Times are in ns."""
    if remedies and program is not None:
        raise ValueError("remedies are compared for phases, not for a recorded program: leave out program or remedies")
    asked: dict[str, Option] = {"model": model, "nodes": ",".join(map(str, nodes)) or None, **options}
    if isinstance(program, Record):
        words = [*program.run_words(), f"--program={program.path}"]
    else:
        words = option_words({"program": program})
    return Sheet(answer(["jitter", "compare" if remedies else "simulate", *words, *option_words(asked)])[0])
