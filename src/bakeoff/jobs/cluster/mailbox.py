"""The actor between the command and its tasks: notes on the way to the command, and its word to stop."""

from collections.abc import Hashable

from bakeoff.jobs.job import Note


class Mailbox:
    """Notes of running jobs, and whether they are to stop; an actor on the command's machine, with which it ends."""

    def __init__(self) -> None:
        self.notes: list[tuple[Hashable, Note]] = []
        self.stopping = False

    def put(self, key: Hashable, note: Note) -> None:
        """Keep a note for the command."""
        self.notes.append((key, note))

    def take(self) -> list[tuple[Hashable, Note]]:
        """All notes since the last call."""
        notes, self.notes = self.notes, []
        return notes

    def stop(self) -> None:
        """Ask all jobs to save what they have, and to leave."""
        self.stopping = True

    def stopped(self) -> bool:
        """Whether jobs are asked to stop."""
        return self.stopping
