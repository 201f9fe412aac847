"""Sentences with tags that are not as they should be: without words, without an end, with tags that are not BIO."""

import json

import pytest

from bakeoff.errors import UserError
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.kinds.tagging import TaggedSentence, TaggingConfig
from bakeoff.tasks.predict import predict_file


def test_a_sentence_without_words_is_counted_and_has_an_answer_of_its_own(recipe, corpus, tmp_path):
    rows = [{"w": [f"a{n}", "town"], "t": ["FRUIT" if n % 2 else "TOOL", "O"]} for n in range(24)]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in [rows[0], {"w": [], "t": []}, *rows[1:]]))
    task = TaggingConfig(train=path, text_column="w", label_column="t")
    quick = FinetuneConfig(epochs=1, least_steps=0)
    result = finetune(recipe, task, tmp_path / "run", config=quick, tokenizer=corpus, device="cpu", progress=False)
    assert result.notes[0] == "1 row of a.jsonl left out: the row has no words"
    found = [
        each.prediction
        for part in predict_file(FinetunedRun.open(tmp_path / "run"), path, device="cpu")
        for each in part
    ]
    assert [len(each) for each in found] == [2, 0, *[2] * (len(rows) - 1)]


@pytest.mark.parametrize(("column", "expected"), [(None, False), ("1", True), ("text", False)])
def test_columns_of_a_text_file_are_read_where_one_is_called_by_its_number(column, expected, tmp_path):
    config = TaggingConfig(train=tmp_path / "a.conll")
    assert [config.reads_files(tmp_path / f"new{end}", column) for end in (".txt", ".tsv")] == [expected] * 2
    assert config.reads_files(tmp_path / "new.conll", column)


@pytest.mark.parametrize(
    ("name", "line", "columns"),
    [("a.conll", "{}\t{}\n", ("1", "2")), ("a.conllu", "1\t{}\t_\t{}\t_\t_\t_\t_\t_\t_\n", ("form", "upos"))],
)
def test_words_one_a_line_have_no_spans_but_tags_in_their_place(name, line, columns, tmp_path):
    path = tmp_path / name
    path.write_text(line.format("apple", "B-X") + line.format("is", "O") + "\n")
    task = TaggingConfig(train=path, text_column="text", spans_column="spans")
    places = "--text-column {} --label-column {}".format(*columns)
    for labelled, advice in (
        (True, f"name the columns of words and tags in their place: {places}"),
        (False, r"give a file of texts, such as \.txt or \.jsonl"),
    ):
        with pytest.raises(UserError, match=rf"{name}: spans stand in raw texts, not among words; {advice}$"):
            list(task.read(path, labelled=labelled))
    named = dict(zip(("text_column", "label_column"), columns, strict=True))
    (found,) = task.read_otherwise(named).read(path)
    assert (found.texts, found.tags) == (("apple", "is"), ("B-X", "O"))


def test_words_without_a_blank_line_between_are_no_sentence(tmp_path):
    path = tmp_path / "a.conll"
    path.write_text("word O\n" * 1000)
    with pytest.raises(
        UserError, match=r"a.conll: no blank line ends a sentence, so that all of its 1,000 words are one"
    ):
        list(TaggingConfig(train=path).read(path))
    path.write_text("word O\n" * 1000 + "\nword O\n")
    assert [len(each.texts) for each in TaggingConfig(train=path).read(path)] == [1000, 1]


def test_tags_that_are_not_bio_are_told_in_every_split(tmp_path):
    task = TaggingConfig(train=tmp_path / "train.conll").learn(
        [TaggedSentence(3, ("a", "b"), ("B-X", "I-X")), TaggedSentence(5, ("c",), ("O",))], "train.conll"
    )
    sentence = TaggedSentence(7, ("a", "b", "c"), ("O", "I-X", "I-X"))
    assert list(task.remarks([sentence, sentence])) == [
        "2 tags stand where BIO does not have them (I-X after O 2), the first in the sentence that ends on line 7: "
        "spans are read as conlleval does, by which I- begins one where none is open"
    ]
    assert not list(task.remarks([TaggedSentence(3, ("a", "b"), ("B-X", "I-X"))]))
    with pytest.raises(
        UserError, match=r"dev\.conll: the tag 'Q-X' of the sentence that ends on line 7 is neither O nor B-"
    ):
        task.check([TaggedSentence(7, ("a",), ("Q-X",))], tmp_path / "dev.conll", "train.conll")


def test_each_sentence_has_as_many_columns_as_its_first_word_and_as_the_first_where_the_last_is_meant(tmp_path):
    """In a row without its tag another column would be the last, and become a tag."""
    path = tmp_path / "a.conll"
    config = TaggingConfig(train=path)
    for second in ("c X\n", "c X B-Y more\n"):
        path.write_text("a X O\nb X B-X\n\n" + second)
        count = len(second.split())
        said = rf"a\.conll:4: {count} columns, where the sentences before have 3; mend it"
        with pytest.raises(UserError, match=said):
            list(config.read(path))
    path.write_text("a X O -\nb X B-X -\n\nc X B-Y\n")  # as in CoNLL-2012, whose sentences have columns of their own
    numbered = TaggingConfig(train=path, label_column="3")
    assert [each.tags for each in numbered.read(path)] == [("O", "B-X"), ("B-Y",)]
    path.write_text("a X O\nb B-X\n")
    with pytest.raises(UserError, match=r"a\.conll:2: 2 columns, where the sentence began with 3; mend it"):
        list(config.read(path))
