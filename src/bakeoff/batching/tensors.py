"""Tensors of rows: the last stage before the model."""

import numpy as np
import torch

from bakeoff.batching.batch import Batch
from bakeoff.batching.order import Cuts
from bakeoff.batching.rows import RowsWithTargets
from bakeoff.models.inputs import Queries, Source


def batches_of(rows: RowsWithTargets, micro_batches: Cuts, advance: int | None) -> list[Batch]:
    """Batches of tensors, cut from rows.

    Args:
        rows: N rows.
        micro_batches: for each batch, its first row and the row behind its last.
        advance: see `Batch`.
    """
    examples, length = rows.examples, rows.length
    counted = {name: target.in_rows_of(examples.ids.shape[1], length) for name, target in rows.targets.items()}
    made = []
    for begin, end in micro_batches:
        documents = examples.documents[begin:end]
        packed, padded = bool((documents > 1).any()), bool((documents == 0).any())
        source_real = None if examples.source_real is None else examples.source_real[begin:end]
        source = None
        if examples.source_ids is not None and source_real is not None:
            all_real = bool(source_real.all())
            source = Source(
                torch.from_numpy(examples.source_ids[begin:end]),
                None if all_real else torch.from_numpy(source_real),
            )
        queries = None
        if examples.query_positions is not None and examples.visible is not None:
            own = examples.query_positions[begin:end], examples.visible[begin:end]
            queries = Queries(*(torch.from_numpy(each) for each in own))
        backwards = None if examples.backwards is None else torch.from_numpy(examples.backwards[begin:end])
        prefix = None if examples.prefix is None else torch.from_numpy(examples.prefix[begin:end])
        follows = None if examples.follows is None else torch.from_numpy(examples.follows[begin:end])
        within = {}
        for name, target in counted.items():
            places = length * target.directions  # of one example
            low, high = np.searchsorted(target.rows, [begin * places, end * places])
            within[name] = (
                torch.from_numpy(target.rows[low:high] - begin * places),
                torch.from_numpy(target.labels[low:high]),
            )
        made.append(
            Batch(
                ids=torch.from_numpy(examples.ids[begin:end]),
                segments=None if examples.segments is None else torch.from_numpy(examples.segments[begin:end]),
                real=torch.from_numpy(documents > 0) if padded and not packed else None,
                documents=torch.from_numpy(documents) if packed else None,
                targets=within,
                tokens=int((documents > 0).sum()) + (0 if source_real is None else int(source_real.sum())),
                source=source,
                queries=queries,
                backwards=backwards,
                prefix=prefix,
                follows=follows,
                advance=advance,
            )
        )
    return made
