"""The order of a comparison's trainings, side by side or one at a time, and the recipes that are left out."""

from collections.abc import Callable, Iterable, Mapping

from bakeoff.comparison.results import Failure
from bakeoff.comparison.running.equal_trainings import first_of_equals
from bakeoff.comparison.running.planned import AnyTraining, PlannedCooldown, PlannedFinetuning, PlannedPretraining


class Schedule:
    """All trainings of a comparison, in the order of one at a time: all recipes of a seed, then the next one.

    Of trainings with the same outcome one is done; the others wait for it, and are copies.

    A recipe that diverges is left out from the diverged training on, even where later ones have run already, so that
    the outcome does not depend on the number of trainings side by side.

    Args:
        trainings: all trainings of the plan, in their order, which gives each its index.
        seeds: the plan's seeds.
        lost: the failures of recipes that are left out from the start, by label.
        settled: a function that says whether a pre-training's steps are known; if not, it waits for the first
            pre-training of its recipe.
    """

    def __init__(
        self,
        trainings: Iterable[AnyTraining],
        seeds: list[int],
        lost: Mapping[str, Failure],
        settled: Callable[[PlannedPretraining], bool],
    ) -> None:
        self.trainings, self.seeds, self.settled = list(trainings), seeds, settled
        self.lost = {name: (-1, failure) for name, failure in lost.items()}
        self.running: set[int] = set()
        self.over = {index for index, training in enumerate(self.trainings) if training.finished}
        self.worked: set[int] = set()
        """Seeds of which this call has begun at least one training."""
        self.equals: dict[int, int] = {}
        """The index of the training that is done in place of another with the same outcome, by the other's index."""
        for index, training in enumerate(self.trainings):
            if training.failure is not None and index not in self.over:
                self._lose(index, training.failure)
        self._find_equals()

    def _find_equals(self) -> None:
        """Find what is done once; what is left out is done in nobody's place."""
        undone = self.running.union(self.waiting)
        done = (index for index in self.over if self.trainings[index].finished)
        self.equals = first_of_equals(self.trainings, {*range(len(self.trainings))} - undone.union(done))

    def diverged(self, index: int, message: str) -> None:
        """Count a training as diverged; its recipe is left out from this training on."""
        self._lose(index, message)
        self._find_equals()

    def _lose(self, index: int, message: str) -> None:
        self.over.add(index)
        self.running.discard(index)
        training = self.trainings[index]
        failure = Failure(recipe=training.recipe.name, seed=training.seed, training=training.title, message=message)
        before = self.lost.get(training.recipe.name)
        if before is None or index < before[0]:
            self.lost[training.recipe.name] = (index, failure)

    def finished(self, index: int) -> None:
        """Count a training as done; trainings that wait for it may begin."""
        self.over.add(index)
        self.running.discard(index)

    def again(self, index: int) -> None:
        """Put a training that had begun back among the waiting ones."""
        self.running.discard(index)

    def next(self, longest_first: bool) -> int | None:
        """The index of the training that begins now; None: no training can begin before another one has ended.

        Args:
            longest_first: whether a seed's pre-trainings come before its fine-tunings, which are much shorter.
        """
        waiting = self.waiting
        undone = self.running.union(waiting)
        ready = [
            index for index in waiting if self.equals.get(index) not in undone and self._ready(self.trainings[index])
        ]
        if longest_first:
            ready.sort(key=lambda index: (self.seeds.index(self.trainings[index].seed), not self._long(index)))
        if not ready:
            return None
        self.running.add(ready[0])
        self.worked.add(self.trainings[ready[0]].seed)
        return ready[0]

    @property
    def waiting(self) -> list[int]:
        """The indices of trainings that have not begun and whose recipe is not left out."""
        return [
            index
            for index in range(len(self.trainings))
            if index not in self.over | self.running and not self._left(index)
        ]

    def is_over(self, seeds: list[int]) -> bool:
        """Whether all trainings of these seeds are done or left out."""
        return not any(self.trainings[index].seed in seeds for index in [*self.waiting, *self.running])

    def failures(self, seeds: list[int]) -> dict[str, Failure]:
        """The failures of recipes that are left out of the results of these seeds, by label."""
        return {
            name: failure
            for name, (index, failure) in self.lost.items()
            if index < 0 or self.trainings[index].seed in seeds
        }

    def _left(self, index: int) -> bool:
        failure = self.lost.get(self.trainings[index].recipe.name)
        return failure is not None and index > failure[0]

    def _long(self, index: int) -> bool:
        return isinstance(self.trainings[index], PlannedPretraining)

    def _ready(self, training: AnyTraining) -> bool:
        if isinstance(training, PlannedPretraining) and not isinstance(training, PlannedCooldown):
            return self.settled(training)
        scratch = isinstance(training, PlannedFinetuning) and training.initialisation == "scratch"
        return scratch or training.begins_from.finished
