"""What holds of every batch and of every epoch, whatever the text, the objectives and the format.

B rows of a batch, which are 8 here; slots: hidden states of a row that targets are counted by.
"""

from itertools import pairwise

import numpy as np
import torch

from bakeoff.batching.streams import Streams
from bakeoff.randomness.draws import Draws
from bakeoff.randomness.order import examples_of


def joined(parts, directions):
    """A step's parts as one batch, whatever each of them leaves out: arrays by name, and targets by objective."""

    def owners(part):
        every = torch.ones_like(part.row.ids) if part.row.padding_mask is None else part.row.padding_mask.long()
        return every if part.row.documents is None else part.row.documents

    whole = {"ids": [part.row.ids for part in parts], "documents": [owners(part) for part in parts]}
    if parts[0].row.segments is not None:
        whole["segments"] = [part.row.segments for part in parts]
    if parts[0].row.source is not None:
        whole["source"] = [part.row.source.ids for part in parts]
        read = [part.row.source.padding_mask for part in parts]
        whole["read"] = [
            torch.ones_like(a, dtype=bool) if b is None else b for a, b in zip(whole["source"], read, strict=True)
        ]
    if parts[0].row.prefix is not None:
        whole["prefix"] = [part.row.prefix for part in parts]
    if parts[0].row.queries is not None:
        whole["queries"] = [part.row.queries.positions for part in parts]
        whole["visible"] = [part.row.queries.visible for part in parts]
    whole = {name: torch.cat(arrays).numpy() for name, arrays in whole.items()}
    slots = directions * whole["visible" if "visible" in whole else "ids"].shape[1]
    before = np.cumsum([0, *(len(part.row.ids) for part in parts)])
    for name in parts[0].targets:
        rows = [part.targets[name][0] + slots * first for part, first in zip(parts, before, strict=False)]
        whole[f"{name} rows"] = torch.cat(rows).numpy()
        whole[f"{name} labels"] = torch.cat([part.targets[name][1] for part in parts]).numpy()
    assert before[-1] == 8
    assert sum(part.tokens for part in parts) == (whole["documents"] > 0).sum() + whole.get("read", np.zeros(1)).sum()
    return whole, slots


def check_batch(whole, slots, rows, configs, tokenizer, directions):
    """Shapes, ids, padding and places of targets, whatever the objectives."""
    ids, documents = whole["ids"], whole["documents"]
    size = tokenizer.size + sum(config.extra_tokens for config in configs)
    rewrites = any(config.rewrites for config in configs)
    special = tokenizer.special_ids
    assert ids.min() >= 0
    assert ids.max() < size
    assert ids.shape[1] == rows.length or rewrites
    padding_mask = documents > 0
    assert padding_mask.any(1).all()  # no row of nothing
    assert (padding_mask[:, 1:] <= padding_mask[:, :-1]).all()  # padding comes last
    assert (ids[~padding_mask] == tokenizer.pad).all()
    assert (ids[padding_mask] != tokenizer.pad).all()
    if "source" in whole:
        assert whole["source"].min() >= 0
        assert whole["source"].max() < size
        assert (whole["read"][:, 1:] <= whole["read"][:, :-1]).all()
        assert np.array_equal(whole["source"] != tokenizer.pad, whole["read"])
        assert (whole["source"] == tokenizer.separator)[whole["read"]].sum() >= 8
    chosen = {}
    for config in configs:
        found, labels = whole[f"{config.kind} rows"], whole[f"{config.kind} labels"]
        assert (np.diff(found) > 0).all()
        example, slot = np.divmod(found, slots)
        if config.relates_segments:
            assert np.array_equal(example, np.arange(8))
            assert (slot == 0).all()
            continue
        assert labels.min(initial=0) >= 0
        if config.generator_learns is not None:
            assert np.array_equal(np.argwhere(padding_mask), np.stack([example, slot // directions], 1))
            continue
        assert labels.max(initial=0) < size
        if "visible" in whole and config.kind == "permutation":
            slot = whole["queries"][example, slot - ids.shape[1]]
        else:
            slot //= directions
        assert padding_mask[example, slot].all()
        if config.row_marks == "ends":
            assert not np.isin(labels, special).any()
            places = set(zip(example.tolist(), slot.tolist(), strict=True))
            assert len(places) == len(labels)
            assert not any(places & others for others in chosen.values())  # each token for one objective
            chosen[config.kind] = places


def check_originals(made, step, whole, slots, kinds, directions):
    """What was hidden, moved or taken out is put back, and gives the rows that the format has made."""
    if made.texts[0].format.advance is None:
        indices, epochs = examples_of(step * 8, 8, made.texts[0].format.size, made.texts[0].seed)
    else:
        indices, epochs = Streams(made.texts[0].format, 8, made.texts[0].seed).examples_of(step, 1)
    draws = Draws(made.texts[0].seed, epochs, indices)
    examples = made.texts[0].format.examples(indices, made.texts[0].drawing.draws(draws))
    expected, separator = examples.row.ids, made.texts[0].tokenizer.separator
    ids = whole["ids"].copy()
    for kind in kinds:
        example, slot = np.divmod(whole[f"{kind} rows"], slots)
        labels = whole[f"{kind} labels"]
        if kind in ("mlm", "diffusion", "word_structure"):
            ids[example, slot] = labels
        elif kind == "permutation":
            assert np.array_equal(labels, expected[example, whole["queries"][example, slot - ids.shape[1]]])
        elif kind == "mntp":
            ids[example, slot + 1] = labels
            assert np.array_equal(labels, examples.following[example, slot])
            assert not np.isin(labels, made.texts[0].tokenizer.special_ids).any()
            assert np.array_equal(examples.row.documents[example, slot], examples.row.documents[example, slot + 1])
            assert set(whole["prefix"][example]) <= set((examples.row.documents > 0).sum(1).tolist())
            assert (whole["prefix"][example] > 0).all()
        elif kind in ("clm", "prefix_clm"):
            assert np.array_equal(labels, examples.following[example, slot])
            if kind == "clm" and "prefix" in whole:
                assert (whole["prefix"][example] == 0).all()
            if kind == "prefix_clm":
                last = (examples.row.documents > 0).sum(1)
                assert ((whole["prefix"] >= 1) & (whole["prefix"] <= last)).all()
                behind = np.arange(ids.shape[1]) >= whole["prefix"][:, None] - 1
                assert np.array_equal(np.argwhere(behind & (examples.row.documents > 0)), np.stack([example, slot], 1))
        elif kind == "bilm":
            place, backwards = np.divmod(slot, directions)
            text = np.concatenate([expected, examples.following[:, -1:]], axis=1)
            last = (examples.row.documents > 0).sum(1)
            text[np.arange(8), last] = examples.following[np.arange(8), last - 1]
            assert np.array_equal(labels, text[example, place + 1 - 2 * backwards])
        elif kind in ("nsp", "sop", "sentence_structure"):
            assert np.array_equal(labels, examples.relation)
        elif kind == "rtd":  # what the generator's tokens are drawn with
            assert labels.max() < 2**32
            assert len(np.unique(labels)) > len(labels) // 2
        else:
            for i in range(8):
                text = expected[i][examples.row.documents[i] > 0].tolist()
                source = whole["source"][i][whole["read"][i]].tolist()
                target = labels[example == i].tolist()
                assert source.pop() == target.pop() == separator
                assert restored(kind, source, target, made.texts[0].tokenizer) == text
                assert {*source} <= {*text, made.texts[0].tokenizer.mask} or kind == "span_corruption"
                assert kind != "deshuffling" or sorted(source) == sorted(text)
    if "source" not in whole:
        assert np.array_equal(ids, expected)


def restored(kind, source, target, tokenizer):
    """The text that a source and a target were made of."""
    if kind == "prefix_lm":
        return source + target
    if kind in ("denoising", "deshuffling"):
        return target
    spans, mark = {}, None
    for token in target:
        mark = token if token >= tokenizer.size else mark
        spans.setdefault(mark, []).append(token)
    return [part for token in source for part in (spans[token][1:] if token >= tokenizer.size else [token])]


def check_epoch(made, rows, corpus):
    """All rows of an epoch, before any objective: lengths, places in the text, isolation; once where promised."""
    split, tokenizer, format = corpus.train, corpus.tokenizer, made.texts[0].format
    indices = np.arange(format.size)
    examples = format.examples(indices, Draws(made.texts[0].seed, np.zeros_like(indices), indices))
    padding_mask, sources = examples.row.documents > 0, examples.sources
    ordinary = sources >= 0
    assert examples.row.ids.shape[1] <= rows.length
    assert not ordinary[~padding_mask].any()
    assert np.array_equal(examples.row.ids[ordinary], split.tokens[sources[ordinary]])
    assert np.isin(examples.row.ids[~ordinary], [tokenizer.start, tokenizer.separator, tokenizer.pad]).all()
    assert ordinary.any(1).all() or rows.continues  # whose short rows may be all separators
    assert (sources[ordinary] < len(split.tokens)).all()
    owners = np.searchsorted(split.documents, sources, side="right")
    for own, apart, inside in zip(owners, examples.row.documents, ordinary, strict=True):
        if rows.isolates:
            assert (
                len(set(zip(own[inside], apart[inside], strict=True)))
                == len(set(own[inside]))
                == len(set(apart[inside]))
            )
        else:
            assert set(apart[inside]) == {1}
    text = ["".join(tokenizer.decode(split.tokens[a:b]).split()) for a, b in pairwise(split.documents)]
    for own, place, inside in zip(owners, sources, ordinary, strict=True):
        for document in set(own[inside]):
            piece = place[inside & (own == document)]
            if (np.diff(piece) == 1).all():
                assert "".join(tokenizer.decode(split.tokens[piece]).split()) in text[document - 1]
    if rows.format in ("blocks", "full_sentences", "doc_sentences"):
        fresh = np.ones_like(ordinary)
        if examples.context is not None:
            fresh = np.arange(padding_mask.shape[1]) >= examples.context[:, None]
        once = sources[ordinary & fresh].tolist()
        assert once == list(range(len(once) if rows.continues else len(split.tokens)))  # where the end has no row
