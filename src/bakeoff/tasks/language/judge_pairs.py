"""`evaluate --minimal-pairs`: the share of pairs whose good sentence a run finds likelier, by kinds of pairs."""

from pathlib import Path
from typing import Any

from bakeoff.reading.tables import open_table
from bakeoff.runs.run import Run
from bakeoff.scoring.methods import readings, require_reading
from bakeoff.scoring.minimal_pairs import judge, kinds_of, read_minimal_pairs
from bakeoff.scoring.options import Reading

GROUP = "UID"
"""The column with the phenomenon that a pair tests."""


def evaluate_pairs(run: Run, pairs: str | Path, reading: Reading | None, device: str) -> dict[str, Any]:
    """The accuracy of a run on a file of minimal pairs.

    Args:
        run: a finished pre-trained run.
        pairs: a .jsonl, .csv or .tsv with the columns sentence_good and sentence_bad, and, where it has them, UID,
            field and linguistics_term.
        reading: how sentences are read; None: the first way that the run has learnt, forwards before pseudo.
        device: auto, cpu, cuda or mps.

    Raises:
        UserError: the run has not learnt to read in this way, or there is a mistake in the file.
    """
    known = readings(run)
    first: Reading = "forwards" if "forwards" in known else next(iter(known))
    chosen = first if reading is None else reading
    require_reading(run, chosen)
    sorts = kinds_of(pairs)
    names = open_table(Path(pairs), "replace").names()
    result = judge(run, read_minimal_pairs(pairs, group=GROUP if GROUP in names else None), chosen, device=device)
    return {
        "run": str(run.path),
        "pairs_file": str(pairs),
        "reading": chosen,
        "pairs": result.pairs,
        "ties": result.ties,
        "unknown": result.unknown,
        "accuracy": result.accuracy,
        "accuracy_of_pairs": result.accuracy_of_pairs,
        **dict(zip(sorts, result.kinds, strict=True)),
        "groups": result.groups,
        "group_pairs": result.sizes,
    }
