"""Watching a training by the files that it writes: a bar on a terminal, else lines; the training is never touched."""

import time
from collections.abc import Callable
from pathlib import Path

from bakeoff.display.board import Board
from bakeoff.display.progress import TrainingProgress, duration
from bakeoff.display.terminal import tell
from bakeoff.display.wording import number
from bakeoff.durable import is_held
from bakeoff.errors import WHERE_RUNS_ARE, UserError, path_of
from bakeoff.overview.entries import ENDED, RunEntry, entry_of, folder_of, planned_steps
from bakeoff.overview.lines import Follower, Line
from bakeoff.overview.listing import run_folders, state_text
from bakeoff.unfinished import no_such_run

LOOKS = 2
"""Looks in a row without a process at a training, before it counts as stopped; it may be about to go on."""


def watch(path: str | Path, *, every: float = 1.0, sleep: Callable[[float], None] = time.sleep) -> list[RunEntry]:
    """Follow a training until it ends, or all trainings below a folder, such as those of a search or a comparison.

    Args:
        path: a run, finished or not; a search; a comparison; a folder of runs.
        every: seconds between looks.
        sleep: a function that waits for a number of seconds.

    Returns:
        The last entry of the run, or of each run below the folder.

    Raises:
        UserError: there is no run, or its files are damaged.
    """
    path = path_of(path)
    folder = folder_of(path)
    if not folder.is_dir():
        raise no_such_run(
            path, f"no such run; {WHERE_RUNS_ARE}; a comparison makes its folder once it has measured speeds"
        )
    if next(iter(run_folders(folder)), None) == folder and not (folder / "search.json").is_file():
        return [_Watched(path).follow(every, sleep)]
    return _follow_all(path, every, sleep)


class _Watched:
    """A watched run, with the lines of its metrics read so far."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.follower = Follower(folder_of(path) / "metrics.jsonl")
        self.last: Line | None = None
        self.held_out = ""

    def look(self) -> tuple[list[Line], bool]:
        """The new lines of the metrics, and whether earlier lines have been removed or changed."""
        self.follower.path = folder_of(self.path) / "metrics.jsonl"  # a fine-tuning moves when it has finished
        lines, back = self.follower.look()
        if back:
            self.last = self.follower.seen[-1] if self.follower.seen else None
            self.held_out = ""
        for line in self.follower.seen if back else lines:
            if line["kind"] != "train":
                self.held_out = f"{'dev' if line['kind'] == 'dev' else 'held-out'} {_losses(line)}"
        if lines:
            self.last = lines[-1]
        return lines, back

    def total(self, entry: RunEntry) -> int:
        """The planned steps; if these are unknown, the steps done."""
        planned = None if self.last is None else planned_steps(self.last)
        return entry.steps or planned or entry.step or 0

    def figures(self, total: int) -> str:
        """The last losses, the speed and the time left, in words; `total` are the planned steps."""
        line = self.last
        if line is None:
            return "no figures yet"
        trained = [each for each in self.follower.seen if each["kind"] == "train"]
        loss = trained[-1]["loss"] if trained else line.get("train_loss")
        parts = [] if loss is None else [f"loss {loss:.3f}"]
        parts += [self.held_out] if self.held_out else []
        if trained:
            parts.append(f"{trained[-1]['tokens_per_second']:,.0f} tokens/s")
        if line["step"] and line.get("seconds"):
            parts.append(f"{duration((total - line['step']) * line['seconds'] / line['step'])} left")
        return "  ".join(parts)

    def follow(self, every: float, sleep: Callable[[float], None]) -> RunEntry:
        """Show the run until it ends; its last entry.

        Raises:
            UserError: the run's files are damaged.
        """
        entry = entry_of(folder_of(self.path))
        self.look()
        title, alone = entry.recipe or str(self.path), 0
        with TrainingProgress(title, self.total(entry)) as shown:
            if entry.state == "training":
                shown.line(f"{title}: step {entry.step or 0}/{self.total(entry)}  {self.figures(self.total(entry))}")
            while True:
                entry = entry_of(folder_of(self.path))
                if entry.problem is not None:
                    raise UserError(entry.problem)
                alone = alone + 1 if entry.state == "stopped" and is_held(folder_of(self.path)) is False else 0
                if entry.state in ENDED or alone >= LOOKS:
                    return entry
                sleep(every)
                lines, back = self.look()
                if back:
                    shown.line(f"{title}: goes on from step {_step(self.last)}")
                total = self.total(entry)
                for line in lines:
                    if line["kind"] != "train":
                        shown.line(f"{title}: step {line['step']}/{total}  {self.held_out}")
                shown.total = total
                if shown.bar and total:
                    shown.bar.update(shown.task, total=total)
                if self.last is not None:
                    shown.figures(self.last["step"], self.figures(total))


def _losses(line: Line) -> str:
    losses, bounds = line.get("losses") or {}, line.get("at_most") or []
    if len(losses) > 1:
        return " ".join(
            f"{name} {'at most ' if name in bounds else ''}{number(loss, 3)}" for name, loss in losses.items()
        )
    return f"{'at most ' if bounds else ''}{number(line['loss'], 3)}"


def _step(line: Line | None) -> int:
    return 0 if line is None else int(line["step"])


def _follow_all(top: Path, every: float, sleep: Callable[[float], None]) -> list[RunEntry]:
    """Show every training below a folder until none goes on and no process holds the folder; the last entries."""
    begun: dict[Path, _Watched] = {}
    alone = 0
    if not any(run_folders(top)) and not is_held(top):
        raise UserError(f"{top}: no runs here")
    with Board(tell, 0, "training") as board:
        while True:
            entries = [entry_of(folder) for folder in run_folders(top)]
            entries = [entry for entry in entries if entry.path != top and entry.state != "saved"]
            training = {entry.path: entry for entry in entries if entry.state == "training"}
            board.total = len(entries)
            if board.bars:
                board.bars.update(board.all, total=len(entries))
            board.done = sum(entry.state in ENDED for entry in entries)
            for path in [path for path in begun if path not in training]:
                board.end(path, over=False)
                begun.pop(path)
                ended = entry_of(folder_of(path)) if folder_of(path).is_dir() else None
                if ended is not None:
                    board.say(f"{path}: {state_text(ended)}")
            for path, entry in training.items():
                watched = begun.setdefault(path, _Watched(path))
                board.begin(path, str(path.relative_to(top)))
                watched.look()
                total = watched.total(entry)
                done = 0 if watched.last is None else watched.last["step"]
                board.hear(path, {"done": done, "total": total, "figures": watched.figures(total)})
            alone = 0 if training or is_held(top) else alone + 1
            if alone >= LOOKS:
                return entries
            sleep(every)
