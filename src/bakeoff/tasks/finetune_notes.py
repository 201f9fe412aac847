"""Notes to readers of a fine-tuning's results: rows that were cut, epochs that were more or fewer than planned."""

from bakeoff.display.wording import counted, listed
from bakeoff.tasks.cut_rows import CutRows
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.fitting.fitting import Setting, TaskSplit
from bakeoff.tasks.fitting.settling import Settled
from bakeoff.tasks.fitting.trial import Fit


def notes_before(settled: Settled) -> list[str]:
    """Notes on the data and the epochs, which are known before the training."""
    setting, splits = settled.setting, settled.splits
    notes = [
        *settled.data_notes,
        *notes_on_items(splits, settled.cut, setting.config),
        *notes_on_epochs(settled.planned_epochs, setting, splits["train"]),
    ]
    return list(dict.fromkeys(notes))  # some of train are among both of the first


def notes_on_items(splits: dict[str, TaskSplit], cut: dict[str, CutRows], config: FinetuneConfig) -> list[str]:
    """Notes on rows of the splits that were cut or are read in windows, and the notes of their items."""
    notes = []
    for name, split in splits.items():
        rows = split.items.encoded
        if rows.truncated and rows.owners is not None:
            notes.append(
                f"{counted(rows.truncated, 'row')} of {name} longer than {config.length} tokens, read in windows"
            )
        elif rows.truncated:
            notes.append(cut[name].of_split(name))
        notes += [f"{name}: {note}" for note in split.items.notes]
    return notes


def notes_on_epochs(planned: list[int], setting: Setting, train: TaskSplit) -> list[str]:
    """A note that there are more epochs than `planned`, for the sake of the fewest steps."""
    config = setting.config
    if config.epochs == planned:
        return []
    epochs, instead = (listed([str(each) for each in numbers], "or") for numbers in (config.epochs, planned))
    steps = counted(config.epoch_steps(len(train.items.owners)), "step")
    return [
        f"up to {epochs} epochs in place of {instead}: an epoch has {steps}, and `least_steps` asks for "
        f"{config.least_steps:,} at least"
    ]


def notes_on_stopping(best: Fit, config: FinetuneConfig, items: int) -> list[str]:
    """A note that the training ended before its last epoch."""
    epoch_steps = config.epoch_steps(items)
    if best.steps == best.trial.epochs * epoch_steps:
        return []
    where = f"{best.steps / epoch_steps:.3g} of {best.trial.epochs}"
    evaluations = counted(config.patience or 0, "evaluation")
    return [f"stopped at epoch {where}, after {evaluations} on dev without a better one (`patience`)"]
