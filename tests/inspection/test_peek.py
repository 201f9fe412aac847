import json
from itertools import groupby

import numpy as np
import pytest
import torch
from tests.conftest import shrink

import bakeoff
from bakeoff.errors import UserError
from bakeoff.inspection.terminal import print_peek
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.preparation.prepare import prepare
from bakeoff.recipe_files import recipe_names
from bakeoff.tokenizer.pieces import Speller
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from bakeoff.training.stages import make_batches

TINY = [name for name in recipe_names() if "-tiny" in name]
ROWS = 11
"""More than the 8 of a batch, so that a second step is looked at."""


def batches_of(recipe, corpus, seed=0, held_out=False):
    """The batches as a training makes them, of a model with weights."""
    torch.manual_seed(0)
    return make_batches(
        recipe, PretrainingModel(recipe, corpus.tokenizer.size), corpus, seed, "validation" if held_out else "train"
    )


def batch_rows(recipe, corpus):
    """Batch and row of the first rows of a training."""
    batches = batches_of(recipe, corpus)
    return [(part, i) for step in range(2) for part in batches.step(step) for i in range(len(part.row.ids))][:ROWS]


def read_ids(row, sources=False):
    """What the model reads, by what is shown."""
    return [i for line in row.lines if (line.name == "source") == sources for p in line.pieces for i in p.ids]


def shown_targets(row, objective):
    """Place and original of each token that is shown as predicted at its own place."""
    pieces = [p for line in row.lines for p in line.pieces if p.objective == objective and p.kind != "next"]
    return [(p.place + i, target) for p in pieces for i, target in enumerate(p.targets)]


def padding_mask_of(batch, i):
    if batch.row.documents is not None:
        return batch.row.documents[i] > 0
    return (
        torch.ones_like(batch.row.ids[i], dtype=torch.bool)
        if batch.row.padding_mask is None
        else batch.row.padding_mask[i]
    )


def compact(text):
    return "".join(text.split())


FORMATS = [
    ("roberta-tiny", {"format": "full_sentences", "length": 32, "isolate": True}),
    ("roberta-tiny", {"format": "doc_sentences", "length": 32}),
    ("bert-tiny", {"format": "sentence_pair", "length": 32}),
    ("gpt-tiny", {"format": "blocks", "length": 32, "isolate": True, "context": 8}),
    ("gpt-tiny", {"format": "blocks", "length": 32, "isolate": False, "context": 8}),
]


@pytest.mark.parametrize(("name", "rows"), [(name, None) for name in TINY] + FORMATS)
def test_what_is_shown_is_what_training_reads_and_predicts(name, rows, corpus, parallel_corpus, capsys, monkeypatch):
    recipe = shrink(name) if rows is None else shrink(name, input=rows)
    corpus = parallel_corpus if recipe.input.parallel else corpus
    found = bakeoff.peek(recipe, corpus.path, examples=ROWS)
    assert len(found.rows) == ROWS
    contexts = 0
    targets = dict.fromkeys((drawn.objective for drawn in found.drawn), 0)
    for row, (batch, i) in zip(found.rows, batch_rows(recipe, corpus), strict=True):
        padding_mask = padding_mask_of(batch, i)
        ids = batch.row.ids[i][padding_mask].tolist()
        assert read_ids(row) == ids
        assert (row.length, row.tokens) == (len(padding_mask), len(ids))
        assert corpus.tokenizer.pad not in ids
        names = [line.name for line in row.lines if line.name != "source"]
        if batch.row.segments is not None:
            reused = getattr(recipe.input, "reuse", 0)
            assert names == ["reused"] * (reused > 0) + ["A", "B"]
            sizes = [sum(len(piece.ids) for piece in line.pieces) for line in row.lines]
            first = int((batch.row.segments[i][padding_mask] == 0).sum())
            assert sizes == [reused] * (reused > 0) + [first - reused, len(ids) - first]
        elif batch.row.documents is not None:
            numbers = {name.split()[-1] for name in names if " " in name}
            assert max(1, len(numbers)) == len(batch.row.documents[i][padding_mask].unique())
        else:
            whole = "input" if batch.row.source is None else "target"
            assert [name for name in names if name not in ("context", "prefix")] in ([whole], [])
            assert whole in names or int(batch.row.prefix[i]) == len(ids)
            assert not any(config.from_before for config in recipe.objective) or names == ["input"]
        if batch.row.source is not None:
            source = batch.row.source.ids[i]
            source = source if batch.row.source.padding_mask is None else source[batch.row.source.padding_mask[i]]
            assert read_ids(row, sources=True) == source.tolist()
            assert (row.source_length, row.source_tokens) == (batch.row.source.ids.shape[1], len(source))
        width = len(padding_mask) if batch.row.queries is None else batch.row.queries.visible.shape[1]
        for config in recipe.objective:
            rows, labels = batch.targets[config.kind]
            slots = width * recipe.model.directions
            own = [(int(r) % slots, int(y)) for r, y in zip(rows, labels, strict=True) if int(r) // slots == i]
            if config.relates_segments:
                words = {"nsp": 2, "sop": 2, "sentence_structure": 3}
                assert own[0][0] == 0
                assert row.relations[config.kind]
                assert words[config.kind] > own[0][1]
                continue
            targets[config.kind] += len(own)
            assert row.targets[config.kind] == len(own)
            if config.generator_learns is not None:
                assert len(own) == row.tokens
                assert shown_targets(row, config.kind) == []
                continue
            if config.classes is not None:
                labels = [config.classes[label] for _, label in own]
                assert row.classes[config.kind] == {each: labels.count(each) for each in config.classes}
                continue
            if config.from_before:
                own = [(slot + 1, y) for slot, y in own]
                assert row.both_sides == (int(batch.row.prefix[i]) > 0)
                assert row.both_sides or not own
                assert shown_targets(row, config.kind) == own
            elif config.row_marks != "ends" and row.both_sides:
                assert not own
            elif config.row_marks != "ends":
                (last,) = (p for line in row.lines for p in line.pieces if p.kind == "next")
                assert row.lines[-1].pieces[-1] == last
                text = [*ids, *last.targets]
                directions = recipe.model.directions
                forward = [y for slot, y in own if slot % directions == 0]
                first = own[0][0] // directions
                assert forward == text[first + 1 :]
                context = [line for line in row.lines if line.name.startswith("context")]
                if recipe.reads_prefix:
                    context = [line for line in row.lines if line.name.startswith("prefix")]
                    first += 1
                    assert first == int(batch.row.prefix[i])
                assert sum(len(piece.ids) for line in context for piece in line.pieces) == first
                assert batch.row.prefix is not None or first in (0, getattr(recipe.input, "context", 0))
                contexts += first * (not recipe.reads_prefix)
                assert all(y == text[slot // 2 - 1] for slot, y in own if slot % directions == 1)
            elif batch.row.queries is not None:
                positions = batch.row.queries.positions[i]
                own = [(int(positions[slot - len(padding_mask)]), y) for slot, y in own]
                assert sorted(shown_targets(row, config.kind)) == sorted(own)
            else:
                assert shown_targets(row, config.kind) == own
    assert (contexts > 0) == (getattr(recipe.input, "context", 0) > 0)
    assert {drawn.objective: drawn.targets for drawn in found.drawn} == targets
    monkeypatch.setenv("COLUMNS", "60")
    print_peek(found)
    out = capsys.readouterr().out
    assert "[PAD]" not in out
    assert max(map(len, out.splitlines())) <= 60
    assert out.count("\nrow ") == ROWS
    for row in found.rows:
        for line in row.lines:
            for piece in line.pieces:
                assert compact(piece.original) in compact(out)


@pytest.fixture(scope="module")
def numbered(tmp_path_factory):
    """A corpus in which no sentence comes twice, so that only neighbours stand side by side."""
    folder = tmp_path_factory.mktemp("numbered")
    documents = [" ".join(f"The lamp number {i * 8 + k} is lit." for k in range(8)) for i in range(60)]
    (folder / "documents.txt").write_text("\n".join(documents), encoding="utf-8")
    size = TokenizerConfig(size=100)
    return prepare([folder], folder / "corpus", tokenizer=size, document_per_line=True, workers=0)


@pytest.mark.parametrize(
    ("name", "kind"), [("bert-tiny", "nsp"), ("albert-tiny", "sop"), ("structbert-tiny", "sentence_structure")]
)
def test_relations_are_told_in_words(name, kind, numbered):
    """A pair that follows each other in the text does so in the corpus, and one of two documents does not."""
    text = numbered.train.tokens.tobytes()
    kept = [{"kind": "mlm", "mask": 0.0, "random": 0.0}, {"kind": kind}]
    found = bakeoff.peek(shrink(name, objective=kept), numbered.path, examples=24)
    seen = set()
    for row in found.rows:
        first, second = ([i for p in line.pieces if p.kind != "special" for i in p.ids] for line in row.lines)
        follows, swapped = (
            np.array(ids, numbered.train.tokens.dtype).tobytes() in text for ids in (first + second, second + first)
        )
        told = row.relations[kind]
        seen.add(told)
        assert follows == (told == "B follows A")
        assert swapped == (told == "A and B are swapped")
    assert len(seen) == (3 if kind == "sentence_structure" else 2)
    assert next(drawn for drawn in found.drawn if drawn.objective == kind).counts.keys() == seen


@pytest.mark.parametrize(("mask", "random", "kind"), [(1.0, 0.0, "masked"), (0.0, 1.0, "replaced"), (0.0, 0.0, "kept")])
def test_each_treatment_of_a_target_is_marked(mask, random, kind, corpus, capsys):
    objective = [{"kind": "mlm", "mask": mask, "random": random}]
    found = bakeoff.peek(shrink("roberta-tiny", objective=objective), corpus.path)
    pieces = [p for row in found.rows for line in row.lines for p in line.pieces if p.targets]
    assert {p.kind for p in pieces} <= {kind, "kept"}  # a random token can be the same one
    assert found.drawn[0].counts[kind] >= 0.8 * found.drawn[0].targets
    print_peek(found)
    out = compact(capsys.readouterr().out)
    for piece in pieces:
        forms = {"masked": "[MASK→{1}]", "replaced": "[{0}→{1}]", "kept": "[={1}]"}
        assert compact(forms[piece.kind].format(piece.text, piece.original)) in out


def test_shuffled_runs_hold_the_same_tokens(corpus):
    found = bakeoff.peek(shrink("structbert-tiny"), corpus.path, examples=8)
    runs = [p for row in found.rows for line in row.lines for p in line.pieces if p.kind == "shuffled"]
    assert runs
    assert all(sorted(run.ids) == sorted(run.targets) and len(run.ids) == 3 for run in runs)
    assert any(run.ids != run.targets for run in runs)


def test_the_order_of_a_permutation_is_what_its_targets_may_see(corpus):
    recipe = shrink("xlnet-tiny")
    found = bakeoff.peek(recipe, corpus.path, examples=8)
    for row, (batch, i) in zip(found.rows, batch_rows(recipe, corpus), strict=False):
        orders = {p.place: p.order for line in row.lines for p in line.pieces if p.kind == "ordered"}
        assert sorted(orders.values()) == list(range(1, len(orders) + 1))
        for query, place in enumerate(batch.row.queries.positions[i, : len(orders)].tolist()):
            visible = batch.row.queries.visible[i, row.length + query, : row.tokens].tolist()
            seen = [orders.get(other, 0) < orders[place] for other in range(row.tokens)]
            last = recipe.input.reuse if place < recipe.input.reuse else row.tokens
            assert visible == [each and other < last for other, each in enumerate(seen)]


def test_a_prefix_goes_on_in_its_target(corpus):
    text = corpus.train.tokens.tolist()
    for row in bakeoff.peek(shrink("t5-tiny", objective=[{"kind": "prefix_lm"}]), corpus.path, examples=8).rows:
        whole = [i for line in row.lines for piece in line.pieces for i in piece.ids]
        bare = [i for i in whole if i not in (corpus.tokenizer.separator, corpus.tokenizer.start)]
        assert any(text[at : at + len(bare)] == bare for at in range(len(text)))


def test_the_spans_of_a_target_fill_the_gaps_of_its_source(corpus):
    text = corpus.train.tokens.tolist()
    for row in bakeoff.peek(shrink("t5-tiny"), corpus.path, examples=8).rows:
        source, target = row.lines
        spans, mark = {}, None
        for piece in target.pieces[1:-1]:
            if piece.kind == "mark":
                mark = piece.text
                spans[mark] = []
            else:
                spans[mark] += piece.ids
        filled = [i for p in source.pieces[:-1] for i in (spans[p.text] if p.kind == "mark" else p.ids)]
        bare = [i for i in filled if i != corpus.tokenizer.separator]
        assert any(text[at : at + len(bare)] == bare for at in range(len(text)))


@pytest.mark.parametrize("kind", ["wordpiece", "byte_bpe", "char_bpe", "unigram", "word", "character"])
def test_pieces_spell_the_text_whatever_the_tokenizer(kind, tmp_path, capsys):
    """With accents and Chinese, which byte-level tokens cut in two, and with what a terminal would obey."""
    sentence = "Die Straße über den Fluß heißt 河上的橋, né \x1b[31m Łódź.\n"
    (tmp_path / "text.txt").write_text("\n".join(sentence.replace("né", f"n{i}é") for i in range(60)), encoding="utf-8")
    settings = TokenizerConfig(kind=kind, size=300)
    corpus = bakeoff.prepare([tmp_path / "text.txt"], tmp_path / "c", tokenizer=settings, document_per_line=True)

    def is_special(piece):
        return piece.kind == "special" or corpus.tokenizer.separator in piece.targets

    for name in ("roberta-tiny", "gpt-tiny"):
        found = bakeoff.peek(shrink(name), corpus.path, examples=5)
        whole = 0
        for line in (line for row in found.rows for line in row.lines):
            for special, group in groupby(line.pieces, key=is_special):
                pieces = list(group)
                spelled = "".join(" " * p.space + (p.original if p.targets else p.text) for p in pieces)
                if not special and "�" not in spelled:
                    ids = [i for p in pieces for i in p.targets or p.ids]
                    decoded = corpus.tokenizer.decode(ids, skip_special=False)
                    assert spelled.replace("##", "").strip() == decoded.replace("##", "").strip()
                    whole += 1
        assert whole
        print_peek(found)
        assert "\x1b" not in capsys.readouterr().out


def test_joiners_within_a_word_are_shown_as_they_are_and_alone_as_escapes(tmp_path, capsys):
    words = "نمی\u200cخواهم क्\u200dष 👨\u200d👩\u200d👧 \u200d"
    (tmp_path / "text.txt").write_text("\n".join(f"{words} n{i}" for i in range(60)) + "\n", encoding="utf-8")
    settings = TokenizerConfig(kind="whitespace", size=300)
    corpus = bakeoff.prepare([tmp_path / "text.txt"], tmp_path / "c", tokenizer=settings, document_per_line=True)
    print_peek(bakeoff.peek(shrink("gpt-tiny"), corpus.path, examples=2))
    shown = capsys.readouterr().out
    for word in words.split()[:3]:
        assert word in shown
    assert "\\u200d n" in shown


def test_held_out_rows_are_those_that_the_loss_is_measured_on(corpus):
    recipe = shrink("bert-tiny")
    (part, *_) = batches_of(recipe, corpus, held_out=True).fixed(recipe.training.validation_examples)
    rows = {seed: bakeoff.peek(recipe, corpus.path, held_out=True, seed=seed, examples=8).rows for seed in (0, 1)}
    assert rows[0] == rows[1]
    assert [read_ids(row) for row in rows[0]] == [part.row.ids[i][padding_mask_of(part, i)].tolist() for i in range(8)]
    assert bakeoff.peek(recipe, corpus.path, seed=0).rows != bakeoff.peek(recipe, corpus.path, seed=1).rows
    assert len(bakeoff.peek(recipe, corpus.path, held_out=True, examples=999).rows) == 16


def test_what_the_first_stage_does_not_train_is_not_shown(corpus, capsys):
    weights = {"word_structure": 0, "sentence_structure": 0}
    recipe = shrink("structbert-tiny", **{"training.curriculum": [{"until": 0.5, "weights": weights}]})
    found = bakeoff.peek(recipe, corpus.path, examples=20)
    assert [bool(each.targets) for each in found.drawn] == [True, False, False]
    assert found.drawn[2].counts == {"B follows A": 20}
    assert found.packing.repeated == 0  # no text comes from elsewhere
    print_peek(found)
    assert "nothing is predicted" in capsys.readouterr().out
    held_out = bakeoff.peek(recipe, corpus.path, held_out=True)
    assert all(each.targets or len(each.counts) > 1 for each in held_out.drawn)


@pytest.mark.parametrize("permute", [True, False])
def test_sentences_in_another_order_are_explained(permute, corpus, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    print_peek(bakeoff.peek(shrink("bart-tiny", objective=[{"kind": "denoising", "permute": permute}]), corpus.path))
    assert ("\n  source  has its sentences in a random order" in capsys.readouterr().out) == permute


def test_of_a_corpus_of_one_row_three_epochs_are_shown(tmp_path, capsys):
    (tmp_path / "a.txt").write_text("The river is old. The stone is cold. The lion sleeps.")
    corpus = bakeoff.prepare(
        tmp_path / "a.txt", tmp_path / "corpus", tokenizer=TokenizerConfig(kind="byte_bpe", size=300)
    )
    print_peek(bakeoff.peek(shrink("roberta-tiny"), corpus.path, examples=3))
    head = compact(f"roberta-tiny 3 rows of {corpus.path}, which has 1 an epoch, seed 0")
    assert head in compact(capsys.readouterr().out)


def test_shares_are_counted_over_the_rows(corpus):
    found = bakeoff.peek(shrink("bart-tiny"), corpus.path, examples=4)
    assert found.drawn[0].share == 1.0
    assert type(found).model_validate(json.loads(json.dumps(found.model_dump()))) == found
    assert 0.9 < bakeoff.peek(shrink("elmo-tiny"), corpus.path).drawn[0].share < 1.0
    with pytest.raises(UserError, match="ask for one at least"):
        bakeoff.peek("bert-tiny", corpus.path, examples=0)


@pytest.mark.parametrize("kind", ["wordpiece", "byte_bpe", "unigram", "word", "character"])
def test_rows_that_are_read_from_the_end_say_so_and_spell_whole_words(kind, tmp_path, capsys, monkeypatch):
    """Their words stand in the opposite order, and the pieces of each one too, none glued to another word's."""
    documents = [
        " ".join(f"The lamplighter's river-boat number {i * 8 + k} is lit." for k in range(8)) for i in range(60)
    ]
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "text.txt").write_text("\n".join(documents), encoding="utf-8")
    size = TokenizerConfig(kind=kind, size=300)
    corpus = prepare([tmp_path / "text.txt"], tmp_path / "c", tokenizer=size, document_per_line=True, workers=0)
    recipe = shrink("xlnet-tiny")
    found = bakeoff.peek(recipe, corpus.path, examples=8)
    batches = batch_rows(recipe, corpus)[:8]
    assert [row.backwards for row in found.rows] == [bool(batch.row.backwards[i]) for batch, i in batches]
    assert {row.backwards for row in found.rows} == {True, False}
    for line in (line for row in found.rows if row.backwards for line in row.lines):
        for special, group in groupby(line.pieces, key=lambda piece: piece.kind == "special"):
            pieces = list(group)
            if special:
                continue
            spelled = "".join(" " * p.space + (p.original if p.targets else p.text) for p in pieces)
            ids = [i for p in pieces for i in p.targets or p.ids]
            decoded = corpus.tokenizer.decode(ids[::-1], skip_special=False)
            words = spelled.replace("##", "").replace("␣", " ").split()
            assert [sorted(w) for w in words] == [sorted(w) for w in decoded.replace("##", "").split()[::-1]]
    print_peek(found)
    out = capsys.readouterr().out
    assert out.count("; read from the text's end;") == sum(row.backwards for row in found.rows)
    assert "reused " in out.partition("\nrow 1")[0]


def test_what_the_tokenizer_did_not_know_is_shown_as_text(corpus):
    tokenizer = corpus.tokenizer
    speller = Speller(tokenizer)
    assert speller.plain(tokenizer.unknown)
    assert not speller.plain(tokenizer.mask)
    assert not speller.plain(tokenizer.pad)


def test_whether_b_follows_is_said_where_no_objective_asks_for_it(tmp_path, corpus, capsys, monkeypatch):
    """No word comes twice, so that what stands side by side by chance is not taken for text that goes on."""
    lines = [" ".join(f"w{i * 40 + k}" for k in range(40)) for i in range(40)]
    (tmp_path / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    size = TokenizerConfig(kind="word", size=2000)
    words = prepare([tmp_path / "text.txt"], tmp_path / "c", tokenizer=size, document_per_line=True, workers=0)
    text = words.train.tokens.tobytes()
    found = bakeoff.peek(shrink("xlnet-tiny"), words.path, examples=24)
    for row in found.rows:
        first, second = ([i for p in line.pieces if p.kind != "special" for i in p.ids] for line in row.lines[1:])
        ids = [*first, *second][:: -1 if row.backwards else 1]
        assert row.follows == (np.array(ids, words.train.tokens.dtype).tobytes() in text)
    assert {row.follows for row in found.rows} == {True, False}
    monkeypatch.setenv("COLUMNS", "200")
    print_peek(found)
    out = capsys.readouterr().out
    assert out.count("; B follows A") == sum(row.follows for row in found.rows)
    assert out.count("; B comes from elsewhere") == sum(not row.follows for row in found.rows)
    assert all(row.follows is None for row in bakeoff.peek(shrink("bert-tiny"), corpus.path).rows)
