"""What those have to know who use the export of a run that was fine-tuned to write: its lengths, and its prefix."""

from typing import Any

from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.rows.writing import WritingFormat


def writing_rows(run: FinetunedRun) -> WritingFormat | None:
    """The rows that the run reads and writes; None: its task sets its texts no limit."""
    longest = run.task.written.longest
    return None if longest is None else WritingFormat(run.format(), longest)


def generation_limit(run: FinetunedRun) -> dict[str, Any]:
    """The key of generation_config.json for the most tokens of a text; empty: there is no limit."""
    rows = writing_rows(run)
    return {} if rows is None else {"max_new_tokens": rows.longest}


def remarks_of_task(run: FinetunedRun) -> list[str]:
    """Remarks for users, who have to write the task's prefix before sources, since the tokenizer does not."""
    prefix = run.task.written.prefix
    return [*([f"each source is to begin with {prefix!r} and a space"] if prefix else []), *remarks_of_beams(run)]


def remarks_of_beams(run: FinetunedRun) -> list[str]:
    """A remark where `predict` searches for the likeliest text, which exports do not do by themselves."""
    beams = run.task.written.beams
    return [f"predict searches with {beams} beams; this writes the likeliest token each time"] if beams > 1 else []
