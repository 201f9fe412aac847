"""The floors of a comparison: the scores of methods without a neural network."""

from bakeoff.comparison.results import Floor
from bakeoff.tasks.data import TaskData
from bakeoff.tasks.task import Learned


def floors(name: str, data: TaskData) -> list[Floor]:
    """The scores of an answer without a model and of each method that learns without a neural network.

    The settings of a method are chosen on dev; on a tie the first ones are taken. The list is empty for a metric that
    an answer without a model does not have, such as the loss.

    Args:
        name: the task's name.
        data: the task.
    """
    task, config = data.task, data.task.config
    dev, test = (task.simplest(data.train, split) for split in (data.dev, data.test))
    if task.metric not in test:  # such as the loss, which no answer without a model has
        return []
    best: dict[str, tuple[Learned, dict[str, float]]] = {}
    sign = -1 if task.metric in config.lower_is_better else 1
    for each in task.floors(data.train):
        scores = each.score(data.dev)
        known = best.get(each.method)
        if known is None or sign * scores[task.metric] > sign * known[1][task.metric]:
            best[each.method] = each, scores
    learned = [
        Floor(task=name, kind="learned", name=method, dev=scores, test=each.score(data.test), chosen=each.chosen)
        for method, (each, scores) in best.items()
    ]
    return [Floor(task=name, kind="simplest", name=config.simplest, dev=dev, test=test), *learned]
