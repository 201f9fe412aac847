"""Texts that are too long: their head, their head and tail, or all in windows."""

from functools import cache
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keyword_task import FILLERS, KEYWORDS
from tests.conftest import shrink

from bakeoff.errors import UserError
from bakeoff.tasks.cut_rows import CutRows, CutTexts
from bakeoff.tasks.data import load_task
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.kinds.choice import ChoiceConfig, ChoiceQuestion
from bakeoff.tasks.kinds.classification import ClassificationConfig
from bakeoff.tasks.rows.inputs import InputFormat
from bakeoff.tasks.rows.items import Items
from bakeoff.tokenizer.tokenizer import Tokenizer

WORDS = [*FILLERS, *(word for group in KEYWORDS.values() for word in group)]
LENGTHS = st.integers(0, 60)


@pytest.fixture(scope="module")
def formats(corpus):
    tokenizer = Tokenizer.load(corpus)

    @cache
    def made(name, length, truncate):
        return InputFormat(tokenizer, shrink(name), length, truncate)

    return made


def text_of(count, first=0):
    return " ".join(WORDS[(first + place) % len(WORDS)] for place in range(count))


def plain(format, text):
    """A text's tokens, all of them."""
    (ids,) = InputFormat(format.tokenizer, shrink("conv-light-encoder-tiny"), 500).encode([text]).ids
    return ids[1:-1].tolist()


@settings(deadline=None)
@given(LENGTHS, st.integers(8, 30), st.sampled_from(["bert-tiny", "gpt-tiny", "xlnet-tiny"]))
def test_of_a_text_its_head_its_ends_or_all_is_read(formats, words, length, name):
    ids = plain(formats(name, length, "head"), text_of(words))
    rows = {
        truncate: formats(name, length, truncate).encode([text_of(words), text_of(2)])
        for truncate in ("head", "head+tail", "windows")
    }
    format = formats(name, length, "head")
    room, before = format.room, format.before
    marks = length - room
    for found in rows.values():
        assert found.truncated == (len(ids) > room)
        assert all(len(row) <= length for row in found.ids)
    inner = {
        key: [row[before : len(row) - marks + before].tolist() for row in found.ids] for key, found in rows.items()
    }
    assert inner["head"][0] == ids[:room]
    if len(ids) <= room:
        assert inner["head+tail"] == inner["windows"] == inner["head"]
        assert rows["windows"].owners is None
        return
    head = room // 4
    assert inner["head+tail"][0] == ids[:head] + ids[len(ids) - (room - head) :]
    windows = inner["windows"][:-1]
    assert rows["windows"].owners.tolist() == [0] * len(windows) + [1]
    assert all(len(window) == room for window in windows)
    assert len(windows) == -(-len(ids) // room)
    assert [*chain(*windows[:-1])] == ids[: room * (len(windows) - 1)]
    assert windows[-1] == ids[-room:]


@settings(deadline=None)
@given(LENGTHS, LENGTHS, st.integers(10, 40))
def test_a_pairs_longer_text_is_read_in_windows_beside_the_other(formats, one, other, length):
    format = formats("bert-tiny", length, "windows")
    firsts, seconds = plain(format, text_of(one)), plain(format, text_of(other, 9))
    found = format.encode([text_of(one)], [text_of(other, 9)])
    room = length - 3
    read = [
        (row[1 : begin - 1].tolist(), row[begin:-1].tolist())
        for row, begin in zip(found.ids, found.second, strict=True)
    ]
    assert all(len(row) <= length for row in found.ids)
    if len(firsts) + len(seconds) <= room:
        assert read == [(firsts, seconds)]
        return
    longer, shorter = (0, 1) if len(firsts) >= len(seconds) else (1, 0)
    whole = (firsts, seconds)
    assert {tuple(pair[shorter]) for pair in read} == {tuple(whole[shorter][: room // 2])}
    covered = [token for pair in read[:-1] for token in pair[longer]]
    width = len(read[0][longer])
    assert covered == whole[longer][: width * (len(read) - 1)]
    assert read[-1][longer] == whole[longer][-width:]


@settings(deadline=None)
@given(LENGTHS, st.none() | LENGTHS, st.integers(8, 30), st.sampled_from(["head", "head+tail", "windows"]))
def test_the_tokens_that_no_row_has_are_counted(formats, first, second, length, truncate):
    format = formats("bert-tiny", length, truncate)
    texts = [text_of(first)] + ([] if second is None else [text_of(second, 7)])
    rows = format.placed(texts[0], texts[1] if second is not None else None)
    read = {(side, token) for row in rows.positions for _, side, token in row}
    whole = sum(len(side.ids) for side in rows.sides)
    found = CutRows.of(Items.one_each(rows.encoded, [None]), length)
    lost = whole - len(read)
    assert (found.tokens, found.of_tokens, found.rows, found.of_rows) == (lost, whole, lost > 0, 1)
    assert found.share == (lost / whole if whole else 0)


def test_an_example_of_several_rows_is_cut_once(recipe, corpus):
    config = ChoiceConfig(train="none.jsonl", text_column="t", choices="c", label_column="l")
    task = config.restore(None, "here")
    examples = [
        ChoiceQuestion(1, ("", "", text_of(3), text_of(4)), 0),
        ChoiceQuestion(2, (text_of(9), "", text_of(3), text_of(5), text_of(30)), 1),
    ]
    format = InputFormat(Tokenizer.load(corpus), recipe, 12)
    found = CutRows.of(task.encode(examples, format), 12)
    assert (found.rows, found.of_rows) == (1, 2)
    assert found.tokens == (12 - 9) + (14 - 9) + (39 - 9)  # a row has room for nine tokens of a pair
    assert found.of_tokens == 3 + 4 + 12 + 14 + 39


@settings(deadline=None)
@given(st.lists(st.lists(LENGTHS, min_size=1, max_size=4), min_size=1, max_size=4))
def test_what_is_cut_of_texts_in_several_parts_is_what_is_cut_of_all_at_once(formats, parts):
    format, found = formats("bert-tiny", 16, "head"), CutTexts()

    def items_of(lengths):
        return Items.one_each(format.encode([text_of(length) for length in lengths]), [None] * len(lengths))

    for part in parts:
        found.add(items_of(part), 16)
    assert found.all == CutRows.of(items_of(list(chain(*parts))), 16)


def test_answers_of_windows_are_averaged(recipe, corpus, task):
    data = load_task(task)
    format = InputFormat(Tokenizer.load(corpus), recipe, 12, "windows")
    items = data.task.encode(data.train[:20], format)
    count = len(items.owners)
    assert count > 20
    draw = np.random.default_rng(0)
    outputs = [np.log(row).astype(np.float32) for row in draw.dirichlet(np.ones(3), count)]
    answers = data.task.decode(outputs, items)
    for example, answer in enumerate(answers):
        own = [np.exp(outputs[item]) for item in range(count) if items.owners[item] == example]
        assert answer.probabilities == pytest.approx(np.mean(own, 0), abs=1e-6)
    assert [items.targets[item] for item in range(count)] == [
        data.task.indices[data.train[owner].label] for owner in items.owners
    ]


def test_what_stands_at_the_end_is_learned_in_windows_alone(recipe, corpus, tmp_path):
    import random

    for seed, (name, rows) in enumerate({"train": 200, "dev": 50, "test": 60}.items()):
        draw = random.Random(seed)
        lines = ["text\tlabel"]
        for row in range(rows):
            label = sorted(KEYWORDS)[row % 3]
            lines.append(" ".join([*draw.choices(FILLERS, k=30), draw.choice(KEYWORDS[label])]) + f"\t{label}")
        (tmp_path / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    paths = {name: Path(tmp_path / f"{name}.tsv") for name in ("train", "dev", "test")}
    task = ClassificationConfig(**paths, text_column="text", label_column="label")
    found = {}
    for truncate in ("head", "windows"):
        config = FinetuneConfig(
            learning_rate=[3e-3], epochs=8, least_steps=0, evaluations=3, length=20, truncate=truncate, pooling="max"
        )
        out = tmp_path / f"run-{truncate}"
        found[truncate] = finetune(recipe, task, out, config=config, tokenizer=corpus, device="cpu", progress=False)
    assert found["head"].scores["test"]["accuracy"] < 0.6
    assert found["windows"].scores["test"]["accuracy"] > 0.9
    assert "200 rows of train longer than 20 tokens, read in windows" in found["windows"].notes


def test_choices_are_not_read_in_windows(recipe, corpus, tmp_path):
    rows = [f'{{"t": "text {row}", "c": ["b", "c"], "l": {row % 2}}}\n' for row in range(40)]
    (tmp_path / "t.jsonl").write_text("".join(rows))
    task = ChoiceConfig(train=tmp_path / "t.jsonl", text_column="t", choices="c", label_column="l")
    with pytest.raises(UserError, match="truncate: texts of a task of the kind choice are not averaged over windows"):
        finetune(
            recipe, task, tmp_path / "o", config=FinetuneConfig(truncate="windows"), tokenizer=corpus, progress=False
        )
