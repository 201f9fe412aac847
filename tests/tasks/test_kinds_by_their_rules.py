"""Rules of single kinds, each with rows that another rule would treat in another way."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score
from tests.conftest import shrink, without_dropout

from bakeoff.errors import UserError
from bakeoff.row import Row
from bakeoff.tasks.cut_rows import CutRows
from bakeoff.tasks.data import hold_out
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.heads.depths import require_layers
from bakeoff.tasks.heads.heads import RowHead
from bakeoff.tasks.kinds.choice import ChoiceConfig, ChoiceQuestion
from bakeoff.tasks.kinds.classification import ClassificationConfig, LabelledText
from bakeoff.tasks.kinds.multilabel import MultilabelConfig, TextWithLabels
from bakeoff.tasks.kinds.question_answering import QuestionAnswering, QuestionAnsweringConfig
from bakeoff.tasks.kinds.regression import RatedText, RegressionConfig
from bakeoff.tasks.kinds.sequence_to_sequence import SequenceToSequenceConfig, SourceText
from bakeoff.tasks.kinds.tagging import TaggedSentence, TaggingConfig
from bakeoff.tasks.predictions.answer_spans import gathered
from bakeoff.tasks.predictions.legal_tags import LegalMoves
from bakeoff.tasks.reading.gold_answers import placed
from bakeoff.tasks.reading.questions import Question
from bakeoff.tasks.rows.answer_windows import AnswerWindow
from bakeoff.tasks.rows.batches import collate
from bakeoff.tasks.rows.inputs import EncodedRows, InputFormat
from bakeoff.tasks.rows.items import Items
from bakeoff.tokenizer.tokenizer import Tokenizer

COLUMNS = {"train": Path("t.tsv"), "text_column": "text", "label_column": "label"}


@pytest.mark.parametrize("activation", ["tanh", "relu", "gelu"])
def test_the_pooler_is_the_activation_of_a_layer_over_the_first_position(activation):
    recipe = without_dropout(shrink("bert-tiny"))
    torch.manual_seed(0)
    head = RowHead(recipe, 40, 3, FinetuneConfig(pooling="cls", pooler=activation)).eval()
    batch = Row(torch.randint(5, 40, (4, 9)), None, None)
    first = head.hidden(batch)[:, 0] @ head.pooler.weight.T + head.pooler.bias
    bent = torch.tanh(first) if activation == "tanh" else getattr(torch.nn.functional, activation)(first)
    assert torch.allclose(head(batch), bent @ head.output.weight.T + head.output.bias, atol=1e-5)


def test_layers_may_begin_anew_above_those_that_are_frozen():
    model = shrink("bert-tiny").model  # of two layers
    require_layers(model, FinetuneConfig(freeze=1, reinitialise_last=1))
    require_layers(model, FinetuneConfig(freeze=2))
    for frozen in (2, "model"):
        with pytest.raises(UserError, match="some of these layers are frozen"):
            require_layers(model, FinetuneConfig(freeze=frozen, reinitialise_last=1))


def test_the_first_of_the_right_answers_that_stands_in_the_context_is_learned(recipe, corpus):
    context = "apple saw plum town"
    answers = tuple(placed(text, None, context, "here") for text in ("zz", "plum", "saw", "apple saw plum"))
    task = QuestionAnswering(QuestionAnsweringConfig(train="t.json"), False, 0.0)
    format = InputFormat(Tokenizer.load(corpus), recipe, 32)
    (window,) = task.encode([Question(1, ("apple", context), answers)], format).targets
    assert window.target == (3, 3)


def test_candidates_that_differ_in_white_space_alone_are_one_and_leave_room_for_others():
    begin, end = np.array([0, 3, 4]), np.array([3, 4, 7])
    window = AnswerWindow(Question(1, ("Who?", "Ann met")), begin, end, second=0, whole=0, target=None)
    encoded = EncodedRows([np.zeros(1, np.int64)], np.zeros(1, np.int64), 0)
    items = Items(encoded, np.arange(2), np.zeros(1, np.int64), [window])
    scores = np.array([[0, 0], [9, 5], [-9, 4], [1, 0]], np.float32)
    (found,) = gathered([scores], items, 2, 2)
    assert [(each.text, each.score) for each in found.candidates] == [("Ann", 14), ("met", 1)]


@pytest.mark.parametrize("length", [10, 17, 30])
def test_a_word_of_a_long_sentence_is_tagged_where_it_has_context_on_both_sides(length, recipe, corpus):
    tokenizer = Tokenizer.load(corpus)
    format = InputFormat(tokenizer, recipe, length)
    config = TaggingConfig(train="t.jsonl")
    sentence = TaggedSentence(1, ("apple",) * 70, ("A",) * 70)
    items = config.learn([sentence, TaggedSentence(2, ("saw",), ("O",))], "t").encode([sentence], format)
    for target in items.targets:
        before, behind = target.positions - 1, format.room - target.positions
        for word, left, right in zip(target.words, before, behind, strict=True):
            assert left == word or left >= format.room // 4
            assert right == 69 - word or right >= format.room // 4


def test_an_answer_is_placed_without_the_white_space_around_it():
    begin, end = np.array([0, 3]), np.array([3, 8])  # as of tokens that begin with their space
    window = AnswerWindow(Question(1, ("Who?", "Ann met ")), begin, end, second=0, whole=0, target=None)
    encoded = EncodedRows([np.zeros(1, np.int64)], np.zeros(1, np.int64), 0)
    items = Items(encoded, np.arange(2), np.zeros(1, np.int64), [window])
    (found,) = gathered([np.array([[0, 0], [0, 0], [9, 9]], np.float32)], items, 1, 1)
    assert found.candidates == ((" met ".strip(), 4, 7, 18.0),)


def test_a_move_that_train_has_is_legal_whatever_the_scheme():
    tags = ["B-X", "I-X", "O"]
    likeliest = np.log(np.array([[0.1, 0.1, 0.8], [0.2, 0.7, 0.1]], np.float32))
    for seen, last in (([], "B-X"), ([("O", "I-X")], "I-X")):
        assert [tags[place] for place in LegalMoves(tags, seen).likeliest(likeliest)] == ["O", last]


def test_spans_that_end_with_e_never_end_otherwise():
    tags = ["B-X", "E-X", "I-X", "O", "S-X"]
    moves, random = LegalMoves(tags, []), np.random.default_rng(0)
    for _ in range(40):
        found = [tags[place] for place in moves.likeliest(random.normal(size=(6, 5)).astype(np.float32))]
        for before, tag in zip(["O", *found], found, strict=False):
            assert (before in ("B-X", "I-X")) == (tag in ("I-X", "E-X")), found


def test_the_first_place_of_a_tag_that_its_scheme_does_not_have_is_named():
    rows = [TaggedSentence(3, ("a", "b"), ("B-X", "O")), TaggedSentence(6, ("a", "b"), ("O", "I-X"))]
    rows += [TaggedSentence(line, ("a",), ("I-X",)) for line in (8, 10)]
    task = TaggingConfig(train="t.conll").learn(rows[:1] * 2 + [TaggedSentence(1, ("a", "b"), ("B-X", "I-X"))], "t")
    (remark,) = task.remarks(rows)
    assert remark.startswith(
        "3 tags stand where BIO does not have them (I-X at the beginning of a sentence 2, I-X after"
    )
    assert "the first in the sentence that ends on line 6:" in remark


def test_a_move_from_the_beginning_of_a_sentence_counts_as_one_from_o():
    rows = [TaggedSentence(1, ("a", "b"), ("I-X", "I-X")), TaggedSentence(2, ("a",), ("O",))]
    task = TaggingConfig(train="t.conll", legal=True).learn(rows, "t")
    assert task.labels["moves"] == [["I-X", "I-X"], ["O", "I-X"], ["O", "O"]]
    assert task.moves.iob1


def test_the_accuracy_of_tags_is_that_of_words_and_not_of_sentences():
    rows = [TaggedSentence(1, ("a",) * 4, ("O", "O", "B-X", "O")), TaggedSentence(2, ("a",), ("B-X",))]
    task = TaggingConfig(train="t.conll").learn(rows, "t")
    assert task.score(rows, [["O", "O", "O", "O"], ["O"]])["accuracy"] == pytest.approx(3 / 5)


def test_an_absent_question_is_no_blank_text():
    config = ChoiceConfig(**COLUMNS, choices="c")
    assert config.blank_texts(config.example(["context", "one", "two"])) == 0
    assert config.blank_texts(config.example([" ", "one", "", "three"])) == 2


def test_a_text_that_two_choices_have_is_the_name_of_neither(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "x", "c": ["b", "b", "c"], "label": "b"}\n')
    config = ChoiceConfig(**COLUMNS, choices="c")
    assert [each.answer for each in config.read(tmp_path / "a.jsonl")] == [1]  # by its letter


def test_sets_of_labels_have_their_share_of_a_held_out_part():
    names = [frozenset(own) for own in ("a", "b", "ab", "")]
    rows = [TextWithLabels(n, (f"text {n}",), names[n % 2 if n < 80 else n % 4]) for n in range(120)]
    for seed in range(9):
        _, out = hold_out(rows, 0.1, seed, "test")
        assert Counter(each.names for each in out) == {names[0]: 5, names[1]: 5, names[2]: 1, names[3]: 1}


def simplest(task, train, test):
    """The scores without a model, which are those of its lines, too."""
    scores, lines = task.simplest(train, test), task.simplest_lines(train, test)
    for metric in scores.keys() & {task.metric} if lines else ():
        assert task.config.contributions(lines, metric).mean() == pytest.approx(scores[metric], abs=1e-6)
    assert len(lines) == (0 if task.metric in ("pearson", "spearman") else len(test))
    return scores


def test_without_a_model_what_train_has_is_said_of_test():
    """The mean for numbers; the labels that half of the rows have; the better of two texts by the task's metric."""
    train = [RatedText(n, ("",), value) for n, value in enumerate([0.0, 0.0, 0.0, 8.0])]
    test = [RatedText(n, ("",), value) for n, value in enumerate([1.0, 2.0])]
    for metric in ("spearman", "mean_absolute_error"):
        task = RegressionConfig(**COLUMNS, metric=metric).learn(train, "t")
        assert simplest(task, train, test)["mean_absolute_error"] == 0.5

    train = [TextWithLabels(n, ("",), frozenset(own)) for n, own in enumerate(("a", "a", "b"))]
    test = [TextWithLabels(n, ("",), frozenset(own)) for n, own in enumerate(("b", "b", "a"))]
    for metric in ("micro_f1", "macro_f1", "exact", "auc"):
        found = simplest(MultilabelConfig(**COLUMNS, metric=metric).learn(train, "t"), train, test)
    assert found["micro_f1"] == pytest.approx(
        f1_score([[0, 1], [0, 1], [1, 0]], [[1, 0]] * 3, average="micro"), abs=1e-6
    )

    kinds = [
        (ClassificationConfig(**COLUMNS), lambda answer: LabelledText(1, ("",), "ab"[answer])),
        (ChoiceConfig(**COLUMNS, choices="c"), lambda answer: ChoiceQuestion(1, ("", "", "x", "y"), answer)),
        (TaggingConfig(train="t"), lambda answer: TaggedSentence(1, ("word",), ("ab"[answer],))),
    ]
    for config, make in kinds:
        train, test = ([make(answer) for answer in answers] for answers in ((0, 0, 1), (1, 1, 0, 1)))
        assert simplest(config.learn(train, "t"), train, test)["accuracy"] == 0.25

    train = [SourceText(n, ("x",), "yes") for n in range(3)]
    test = [SourceText(n, ("no more of this text",), "no more of this texts") for n in range(3)]
    test.append(SourceText(3, ("of",), "yes"))
    for metric, share in (("exact", 0.25), ("loss", 0), ("bleu", 0)):
        task = SequenceToSequenceConfig(**COLUMNS, metric=metric).learn(train, "t")
        assert simplest(task, train, test)["exact"] == share


def test_a_regression_on_counts_stays_what_it_was_when_the_next_is_fitted():
    rows = [LabelledText(n, (f"{'abc'[n % 3]} word{n % 7}",), "xyz"[n % 3 if n % 5 else 0]) for n in range(60)]
    task = ClassificationConfig(**COLUMNS).learn(rows, "t")
    at_once = [(each.chosen, task.score(rows, each.predict(rows))) for each in task.baselines(rows)]
    later = [(each.chosen, task.score(rows, each.predict(rows))) for each in list(task.baselines(rows))]
    assert later == at_once
    assert len({str(scores) for _, scores in at_once}) > 2


@pytest.mark.parametrize(
    ("tokens", "text"), [(0, "0.0 %"), (1, "less than 0.1 %"), (9, "less than 0.1 %"), (10, "0.1 %"), (1234, "12.3 %")]
)
def test_the_share_of_what_is_not_read_is_never_rounded_to_nothing(tokens, text):
    found = CutRows(length=8, rows=1, of_rows=2, tokens=tokens, of_tokens=10_000)
    assert found.of_split("dev") == f"1 of the 2 rows of dev cut to 8 tokens: {text} of the tokens are not read"


@pytest.mark.parametrize(
    ("name", "pooling"), [("bert-tiny", "cls"), ("xlnet-tiny", "cls"), ("gpt-tiny", "last"), ("bart-tiny", "last")]
)
def test_pooled_positions_alone_give_what_all_positions_give(name, pooling, corpus):
    recipe = without_dropout(shrink(name))
    torch.manual_seed(0)
    tokenizer = Tokenizer.load(corpus)
    head = RowHead(recipe, tokenizer.size, 3, FinetuneConfig(pooling=pooling)).eval()
    format = InputFormat(tokenizer, recipe, 32)
    batch = collate(format.encode(["apple saw plum", "town", "saw " * 9]), np.arange(3), format)
    torch.testing.assert_close(head(batch), head.scores(head.hidden(batch), batch), atol=1e-5, rtol=1e-4)
