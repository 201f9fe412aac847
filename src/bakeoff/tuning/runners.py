"""Training of stages of trials, one after the other in this process or side by side in others."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from bakeoff.training.board import Board
from bakeoff.training.progress import Remarked, Shown
from bakeoff.tuning.engine import Stage, TrialEngine, TrialOutcome
from bakeoff.workers.pool import Workers

CALL = "bakeoff.tuning.runners:serve"
MODULES = ("bakeoff.training.pretrain",)


class Runner(Protocol):
    """Trains stages of trials, one at a time or several."""

    def run(self, stages: Sequence[Stage]) -> Iterator[tuple[int, TrialOutcome]]:
        """Train the stages; yields the place of each stage in `stages` and its outcome, as soon as it is known.

        Raises:
            Interrupted, KeyboardInterrupt: the training was stopped; unfinished stages are saved.
        """


class InTurn:
    """One stage after the other, in this process."""

    def __init__(self, engine: TrialEngine, progress: bool) -> None:
        self.engine = engine
        self.progress: Shown = Remarked() if progress else False

    def run(self, stages: Sequence[Stage]) -> Iterator[tuple[int, TrialOutcome]]:
        """See `Runner`."""
        for place, stage in enumerate(stages):
            yield place, self.engine.train(stage, self.progress)


class SideBySide:
    """Several stages at a time, each in a process of its own.

    Args:
        workers: the processes that train.
        say: prints a line; None: nothing is shown.
    """

    def __init__(self, workers: Workers, say: Callable[[str], None] | None) -> None:
        self.workers, self.shown = workers, say
        self.board: Board | None = None

    def say(self, line: str) -> None:
        """Print a line, with the bars, if there are any, out of its way."""
        if self.board is not None:
            self.board.say(line)
        elif self.shown is not None:
            self.shown(line)

    def run(self, stages: Sequence[Stage]) -> Iterator[tuple[int, TrialOutcome]]:
        """See `Runner`. After an error or a signal the other workers save their trainings and end: see `Workers`."""
        titles = [f"trial {stage.out.rpartition('/')[2]}" for stage in stages]
        for place, stage in enumerate(stages):
            values = {"stage": stage.model_dump(mode="json"), "shown": self.shown is not None}
            self.workers.give(place, titles[place], CALL, values)
        with Board(self.shown, len(stages), "trial") as board:
            self.board = board
            while self.workers.unanswered:
                heard = self.workers.hear()
                assert heard is not None
                assert isinstance(heard.key, int)
                board.begin(heard.key, titles[heard.key])
                if heard.note is not None:
                    board.hear(heard.key, heard.note)
                else:
                    board.end(heard.key)
                    yield heard.key, TrialOutcome.model_validate(heard.answer)
        self.board = None


def serve(values: dict[str, Any], note: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Train one stage in a worker's process; see `bakeoff.workers`."""
    shown: Shown = note if values["shown"] else False
    return TrialEngine().train(Stage.parse(values["stage"], "stage"), shown).model_dump()
