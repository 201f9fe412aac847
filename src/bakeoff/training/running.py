"""The directory of a pre-training while it runs: made, kept from other processes, removed where nothing came of it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from bakeoff.durable import held
from bakeoff.errors import LostProcess
from bakeoff.full_disk import full_disk
from bakeoff.runs.beginning import alone_in, removed_before_a_step
from bakeoff.runs.run import Run
from bakeoff.training.settling import Settled


@contextmanager
def running(settled: Settled, facts: dict[str, Any]) -> Iterator[Run]:
    """The directory of the run, for this process alone; a new one that comes to no step is removed after an error.

    Args:
        settled: what was decided.
        facts: what environment.json of a new run has beside the request and the steps.
    """
    opened = settled.opened
    with ExitStack() as stack:

        def entered() -> Run:
            run = opened.run or _created(settled, facts)
            stack.enter_context(held(run.path))
            if opened.run is None:
                stack.enter_context(removed_before_a_step(run))
            return run

        run = opened.asked.processes.once(entered)
        try:
            with full_disk(run.path, run.what_is_kept):
                yield run
        except LostProcess as error:
            raise LostProcess(f"{run.path}: {error}; {run.what_is_kept('')}") from None


def _created(settled: Settled, facts: dict[str, Any]) -> Run:
    """The directory of a new run."""
    opened, out = settled.opened, settled.opened.asked.out
    facts = {**opened.request, "steps": settled.steps, **facts}
    with full_disk(out, lambda: "nothing was kept"), alone_in(out):
        return Run.create(out, settled.recipe, opened.corpus.tokenizer, facts)
