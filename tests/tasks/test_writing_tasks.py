"""Sequence to sequence, from files to texts."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.conftest import digit_pairs, shrink, without_dropout

from bakeoff.cli import run as run_command
from bakeoff.distributed.processes import Processes
from bakeoff.errors import UserError
from bakeoff.formats.parallel import ParallelConfig
from bakeoff.generation.writer import next_token_head
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.objectives.translation import Translation, TranslationConfig
from bakeoff.resources.device import Placement
from bakeoff.row import Row, Source
from bakeoff.tasks.cut_rows import CutRows
from bakeoff.tasks.evaluate import evaluate
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.heads.heads import transfer
from bakeoff.tasks.heads.writing_head import WritingHead
from bakeoff.tasks.kinds.sequence_to_sequence import SequenceToSequence, SequenceToSequenceConfig, SourceText
from bakeoff.tasks.predict import predict
from bakeoff.tasks.reading.parallel_files import other_side
from bakeoff.tasks.registry import parse_task
from bakeoff.tasks.rows.inputs import InputFormat
from bakeoff.tasks.rows.writing import WritingFormat, collate_targets
from bakeoff.tasks.scores.text_scores import text_scores
from bakeoff.tensors import save_tensors
from bakeoff.tokenizer.tokenizer import Tokenizer, TwoVocabularies

CPU = Placement(torch.device("cpu"), "float32")
WITH_SOURCE = ["transformer-translation-tiny", "conv-light-tiny", "t5-tiny"]
ALONE = ["gpt-tiny", "conv-light-lm-tiny", "prefix-lm-tiny", "gpt-bert-tiny", "transformer-xl-tiny"]


@pytest.fixture(scope="module")
def tokenizer(parallel_corpus):
    return parallel_corpus.tokenizer


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Digits and their words, in two plain files."""
    folder = tmp_path_factory.mktemp("pairs")
    for seed, (name, count) in enumerate({"train": 300, "dev": 40, "test": 50}.items()):
        for side, ending in enumerate(("digits", "words")):
            lines = "".join(pair[side] + "\n" for pair in digit_pairs(count, longest=2, seed=seed))
            with gzip.open(folder / f"{name}.{ending}.gz", "wt", encoding="utf-8") as file:
                file.write(lines)
    return folder


def task_of(**changes):
    return SequenceToSequence(SequenceToSequenceConfig(train=Path("none"), **changes))


def examples_of(count=7, longest=6):
    return [SourceText(0, (digits,), words) for digits, words in digit_pairs(count, longest)]


def test_rows_are_those_of_pre_training(parallel_corpus, tokenizer):
    split = parallel_corpus.split("validation")
    recipe = shrink("transformer-translation-tiny", **{"training.batch": {"tokens": 160}})
    examples = ParallelConfig(length=64).build(split, tokenizer, "none").examples(np.arange(5), None)
    objective = Translation(TranslationConfig(), recipe.model, tokenizer.size)
    targets = objective.targets(examples, split, tokenizer, None)
    bounds = split.sentences
    texts = [tokenizer.decode(split.tokens[bounds[i] : bounds[i + 1]]) for i in range(10)]
    format = InputFormat(tokenizer, recipe, 40)
    items = WritingFormat(format, 40).encode(texts[::2], texts[1::2])
    batch = collate_targets(items, np.arange(5), format)
    for row in range(5):
        count, length = int(examples.row.source.padding_mask[row].sum()), int((examples.row.documents[row] > 0).sum())
        assert batch.source.ids[row, :count].tolist() == examples.row.source.ids[row, :count].tolist()
        assert batch.ids[row, :length].tolist() == examples.row.ids[row, :length].tolist()
    assert np.concatenate(items.targets).tolist() == targets.labels.tolist()


def by_whole_passes(module, tokenizer, digits, words):
    """The log-probability of a target, all of it read anew for each of its tokens."""
    (source, _), (target, _) = (tokenizer.encode([text])[0] for text in (digits, words))
    target = [*target.tolist(), tokenizer.separator]
    has_source = module.model.config.sequence_to_sequence
    read = [*source.tolist(), tokenizer.separator]
    prompt = [tokenizer.start] if has_source else [tokenizer.separator, *read]
    given = Source(torch.tensor([read])) if has_source else None
    prefix = torch.tensor([len(prompt)]) if module.reads_prefix else None
    head, total, ids = next_token_head(module), 0.0, list(prompt)
    for token in target:
        hidden = module.model(Row(torch.tensor([ids]), source=given, prefix=prefix))[0][:, -1]
        total += float(head.log_probabilities(hidden, module.model.embedding.weight)[0, token])
        ids.append(token)
    return total, len(target)


@pytest.mark.parametrize("name", WITH_SOURCE + ALONE)
@torch.inference_mode()
def test_all_tensors_arrive_and_targets_have_the_log_probabilities_of_the_pre_trained_model(name, tokenizer, tmp_path):
    recipe = without_dropout(shrink(name))
    torch.manual_seed(1)
    module = PretrainingModel(recipe, tokenizer.size).eval()
    for parameter in module.parameters():
        if parameter.dim() > 1:
            parameter.data *= 3
    save_tensors(module.state_dict(), tmp_path / "model.safetensors")
    torch.manual_seed(2)
    task, format = task_of(longest=20), InputFormat(tokenizer, recipe, 40)
    head = WritingHead(recipe, tokenizer.size)
    assert transfer(head, tmp_path / "model.safetensors", recipe) == len(head.state_dict())
    examples = examples_of()
    found = task.predict(head.eval(), task.encode(examples, format), format, CPU, Processes(), in_training=True)
    expected = [by_whole_passes(module, tokenizer, each.texts[0], each.target) for each in examples]
    for own, (total, tokens) in zip(found.predictions, expected, strict=True):
        assert own.target_loss == pytest.approx(-total, rel=1e-4)
        assert own.target_tokens == tokens
        assert own.text is None
    mean = -sum(total for total, _ in expected) / sum(tokens for _, tokens in expected)
    assert found.loss == pytest.approx(mean, rel=1e-4)
    assert task.score(examples, found.predictions) == {"loss": pytest.approx(mean, rel=1e-4)}
    items = task.encode(examples, format)
    scores = head(task.collate(items, np.arange(7), format))
    assert float(task.loss(scores, items, np.arange(7))) == pytest.approx(mean, rel=1e-4)
    smoothed = task_of(label_smoothing=0.1).loss(scores, items, np.arange(7))
    labels = torch.from_numpy(np.concatenate(items.targets))
    theirs = torch.nn.functional.cross_entropy(scores, labels, label_smoothing=0.1)
    assert float(smoothed) == pytest.approx(float(theirs), rel=1e-4)


@pytest.mark.parametrize("name", ["transformer-translation-tiny", "prefix-lm-tiny", "t5-tiny"])
def test_what_is_written_does_not_depend_on_other_rows_nor_holds_marks(name, tokenizer):
    recipe = without_dropout(shrink(name))
    torch.manual_seed(3)
    head = WritingHead(recipe, tokenizer.size).eval()
    head.model.embedding.weight.data *= 6
    head.model.embedding.weight.data[tokenizer.size :] *= 20  # marks would be the likeliest of all
    task, format = task_of(longest=8, beams=3), InputFormat(tokenizer, recipe, 40)
    examples = [SourceText(0, (digits,), None) for digits, _ in digit_pairs(5, longest=6)]
    together = task.predict(head, task.encode(examples, format), format, CPU, Processes(), in_training=False)
    assert together.loss is None
    for each, own in zip(examples, together.predictions, strict=True):
        (alone,) = task.predict(
            head, task.encode([each], format), format, CPU, Processes(), in_training=False
        ).predictions
        assert alone.text == own.text
        assert alone.log_probability == pytest.approx(own.log_probability, rel=1e-3)
        assert own.target_loss is None


@pytest.mark.parametrize("epochs", [1, pytest.param(18, marks=pytest.mark.slow)])
def test_digits_are_translated_from_files_to_predictions(epochs, pairs, parallel_corpus, tmp_path, capsys):
    """After the long training many of them rightly."""
    recipe = without_dropout(shrink("transformer-translation-tiny"))
    paths = {name: pairs / f"{name}.digits.gz" for name in ("train", "dev", "test")}
    values = {"kind": "sequence_to_sequence", **paths, "label_column": "words", "metric": "exact", "longest": 12}
    config = FinetuneConfig(learning_rate=[5e-3], batch=16, epochs=epochs, evaluations=4, patience=None)
    out = tmp_path / "run"
    result = finetune(
        recipe,
        parse_task(values, "test"),
        out,
        config=config,
        tokenizer=parallel_corpus.path,
        device="cpu",
        progress=False,
    )
    if epochs > 1:
        assert result.scores["test"]["exact"] > 0.4 > 0.2 > result.simplest["exact"]
        assert result.scores["test"]["loss"] < 0.6
    lines = FinetunedRun.open(out).predictions()
    assert [(each["source"], each["label"]) for each in lines] == digit_pairs(50, longest=2, seed=2)
    expected = text_scores([each["label"] for each in lines], [each["prediction"] for each in lines])
    assert {name: result.scores["test"][name] for name in expected} == expected
    again = evaluate(out, data=paths["test"], device="cpu")
    assert again["scores"] == pytest.approx(result.scores["test"], abs=1e-5)
    assert again["loss"] == pytest.approx(result.scores["test"]["loss"], abs=1e-5)
    found = predict(out, [each["source"] for each in lines], device="cpu")
    assert [each["text"] for each in found] == [each["prediction"] for each in lines]
    assert all(each["log_probability"] < 0 for each in found)
    assert run_command(["predict", str(out), lines[0]["source"]]) == 0
    assert capsys.readouterr().out == f"{lines[0]['prediction']}\n"
    assert run_command(["predict", str(out), lines[0]["source"], "--out", str(tmp_path / "answers.jsonl")]) == 0
    written = json.loads((tmp_path / "answers.jsonl").read_text())
    assert (written["source"], written["text"]) == (lines[0]["source"], lines[0]["prediction"])
    assert "exact" in (out / "README.md").read_text()
    evaluations = [each for each in FinetunedRun.open(out).metrics() if each["kind"] == "dev"]
    assert evaluations
    assert epochs == 1 or max(each["exact"] for each in evaluations) > 0.4


def test_classes_are_written_as_text_by_a_decoder_alone(parallel_corpus, tmp_path, capsys):
    """T5's way: the label is the target; what dev decides by is the loss."""
    rows = [{"source": digits, "target": "one" if "1" in digits else "two"} for digits, _ in digit_pairs(120, 3)]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(shrink("gpt-tiny").to_yaml())
    arguments = ["finetune", recipe, "--tokenizer", parallel_corpus.path, "--task", "sequence-to-sequence"]
    options = ["epochs=1", "least_steps=20", "learning_rate=0.01", "evaluations=2", "prefix=nine", "beams=2"]
    arguments += ["--train", file, "--out", tmp_path / "run", "--threads", 1, "--device", "cpu"]
    arguments += [part for option in options for part in ("--option", option)]
    assert run_command([str(each) for each in arguments]) == 0
    assert "copied source or most frequent target" in capsys.readouterr().out
    result = FinetunedRun.open(tmp_path / "run").results
    assert result.metric == "loss"
    assert set(result.scores["test"]) == {"loss", "bleu", "chrf", "rouge_1", "rouge_2", "rouge_l", "exact"}
    assert result.scores["test"]["loss"] < 2
    targets = [each["label"] for each in FinetunedRun.open(tmp_path / "run").predictions()]
    assert result.simplest["exact"] == pytest.approx(targets.count("two") / len(targets), abs=1e-6)
    task = FinetunedRun.open(tmp_path / "run").learned
    format = FinetunedRun.open(tmp_path / "run").format()
    (row,) = task.encode([SourceText(0, ("1 2",), None)], format).encoded.ids
    assert format.tokenizer.decode(row) == "nine 1 2"


def test_targets_are_counted_that_the_tokenizer_cannot_write_or_that_are_too_long(tokenizer):
    format = InputFormat(tokenizer, shrink("bart-tiny"), 10)
    task = task_of(longest=4)
    examples = [
        SourceText(1, ("1 2 3 4 5 6 7 8 9 1",), "one"),
        SourceText(2, ("1",), "one two three four"),
        SourceText(3, ("1",), "one two three"),
        SourceText(4, ("1",), "雪"),
    ]
    found = CutRows.of(task.encode(examples, format), 10)
    assert (found.rows, found.of_rows, found.tokens) == (2, 4, 2)
    notes = task.encode(examples, format).notes
    assert [note.partition(", ")[0] for note in notes] == [
        "1 of the 4 sources were cut to 9 tokens",
        "1 of the 4 targets were cut to 4 tokens",
        "1 of the 4 targets hold what is unknown to the tokenizer",
    ]
    assert not task.encode(examples[2:3], format).notes
    targets = task.encode(examples, format).targets
    assert [len(ids) for ids in targets] == [2, 4, 4, 2]
    assert targets[1][-1] != tokenizer.separator
    assert targets[2][-1] == tokenizer.separator


def test_a_target_with_unknown_text_is_not_counted_among_those_that_differ_in_signs_alone(corpus):
    tokenizer = Tokenizer.load(corpus)
    format = InputFormat(tokenizer, shrink("bart-tiny"), 32)
    plain, lacking = SourceText(1, ("a",), "Apple."), SourceText(2, ("a",), "Apple 雪.")
    (note,) = task_of().encode([lacking], format).notes
    assert note.startswith("1 of the 1 targets hold what is unknown to the tokenizer")
    told = "can be written with other spaces, case or signs only, such as"
    example = f"'{tokenizer.decode(tokenizer.encode(['Apple.'])[0][0])}' for 'Apple.'"
    (note,) = task_of().encode([plain], format).notes
    assert note == f"1 of the 1 targets {told} {example}: exact stays 0, and BLEU below 1"
    note = task_of().encode([lacking, plain], format).notes[-1]
    assert note == f"1 of the 2 targets {told} {example}: exact and BLEU stay below 1"


def test_a_decoder_alone_shares_its_rows_between_source_and_target(tokenizer):
    format = InputFormat(tokenizer, shrink("gpt-tiny"), 16)
    items = WritingFormat(format, 99).encode(["1 2 3 4 5 6 7 8 9 1 2"], ["one two three four five six seven eight"])
    assert (len(items.encoded.ids[0]), len(items.targets[0])) == (9, 8)
    batch = collate_targets(items, np.array([0]), format)
    assert batch.ids.shape == (1, 16)  # all that the model has positions for, or the row has
    assert batch.positions.tolist() == list(range(8, 16))
    with pytest.raises(UserError, match="longest: 9 tokens leave no room for a source in rows of 8"):
        WritingFormat(InputFormat(tokenizer, shrink("gpt-tiny"), 8), 9)


def test_targets_of_two_vocabularies_are_of_the_second(tokenizer):
    both = TwoVocabularies(tokenizer, tokenizer)
    recipe = without_dropout(shrink("bart-tiny"))
    format = InputFormat(both, recipe, 40)
    task = task_of(longest=6, beams=2)
    items = task.encode([SourceText(1, ("1 2",), "one two")], format)
    assert all(ids < tokenizer.size for ids in items.encoded.ids[0])
    assert all(ids >= tokenizer.size for ids in items.targets[0][:-1])
    assert items.targets[0][-1] == both.separator
    assert not items.notes
    torch.manual_seed(0)
    head = WritingHead(recipe, both.size).eval()
    head.model.embedding.weight.data[: tokenizer.size] *= 50
    prompts, sources = WritingFormat(format, 6).prompts(items)
    config = task.config.generation(2, 6)
    (written,) = head.write(prompts, sources, both, config)
    assert all(token >= tokenizer.size for token in written.ids)


def test_models_that_cannot_write_are_refused_before_a_file_is_read(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "tokenizer.json")
    task = SequenceToSequenceConfig(train=tmp_path / "none.tsv")
    for name, learnt in (("bert-tiny", "mlm and nsp"), ("elmo-tiny", "bilm")):
        with pytest.raises(UserError, match=f"^{name}: a model that learns {learnt} cannot write targets; that needs"):
            finetune(shrink(name), task, tmp_path / "run", tokenizer=tmp_path, device="cpu", progress=False)
    assert not (tmp_path / "run").exists()


def test_the_baseline_is_the_better_of_copied_source_and_most_frequent_target():
    train = [SourceText(0, (source,), target) for source, target in (("a", "yes"), ("b", "no"), ("c", "yes"))]
    copied = [SourceText(0, ("the same text here",), "the same text here")]
    constant = [SourceText(0, ("the text",), "yes"), SourceText(0, ("another",), "no")]
    for metric in ("loss", "exact", "bleu"):
        assert task_of(metric=metric).simplest(train, copied)["exact"] == 1
    assert task_of(metric="exact").simplest(train, constant)["exact"] == 0.5
    assert "loss" not in task_of().simplest(train, constant)


@pytest.mark.parametrize(
    ("name", "ending", "other"),
    [
        ("train.de.gz", "en", "train.en.gz"),
        ("train.de", "en", "train.en"),
        ("train.de.txt.zst", "en", "train.en.txt.zst"),
        ("source.txt", "target", "target.txt"),
        ("train.source", "target", "train.target"),
    ],
)
def test_the_file_of_targets_has_another_ending(name, ending, other):
    assert other_side(Path("folder", name), ending) == Path("folder", other)


def test_mistakes_in_files_are_told_in_one_line(tmp_path):
    def refused(message, name="a.de", **values):
        config = SequenceToSequenceConfig(train=tmp_path / name, **{"label_column": "en", **values})
        with pytest.raises(UserError, match=message):
            list(config.read(config.train))

    refused(r"a\.de: no such file$")
    (tmp_path / "a.de").write_text("ein\nzwei\n")
    refused(r"a\.de: the targets of its lines are looked for in .*a\.en, and there is no such file; name their ending")
    refused("there is nothing else than itself; name their ending by --label-column", label_column="de")
    (tmp_path / "a.en").write_text("one\n")
    refused(r"a\.de has 2 lines, but .*a\.en 1 lines")
    (tmp_path / "a.en").write_text("one\n \n")
    refused(r"a\.en:2: the target is empty; every source needs one")
    for side in ("de", "en"):
        (tmp_path / f"b.{side}").write_text("")
    refused(r"b\.de: the file holds no rows", name="b.de")
    (tmp_path / "c.tsv").write_text("de\ten\nein\tone\n")
    refused("no column 'source'", name="c.tsv")
    config = SequenceToSequenceConfig(train=tmp_path / "c.tsv", text_column="de", label_column="en")
    assert list(config.read(config.train)) == [SourceText(2, ("ein",), "one")]
    with pytest.raises(UserError, match="prefix: a text with a colon needs quotes of its own"):
        parse_task({"kind": "sequence_to_sequence", "train": "x", "prefix": {"translate": None}}, "test")


def test_a_file_of_sources_alone_is_read_without_targets(tmp_path):
    (tmp_path / "a.de").write_text("ein  Mann\n\n")
    config = SequenceToSequenceConfig(train=tmp_path / "a.de", label_column="en")
    assert [each.texts for each in config.read(config.train, labelled=False)] == [("ein Mann",), ("",)]


def test_a_tokenizer_that_lowers_letters_is_remarked_on(tmp_path):
    from bakeoff.tokenizer.tokenizer_config import TokenizerConfig

    lowering = Tokenizer.train(TokenizerConfig(kind="word", size=30, lowercase=True), ["The red House"] * 9)
    task = task_of()
    items = task.encode([SourceText(1, ("red",), "The House")], InputFormat(lowering, shrink("bart-tiny"), 20))
    assert "such as 'the house' for 'The House'" in items.notes[0]
