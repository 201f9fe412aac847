"""Scores of texts against their definition: one token after the other, the whole model in float64."""

import math
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from tests.conftest import sentences
from tests.untrained_runs import untrained

import bakeoff
from bakeoff.errors import UserError
from bakeoff.row import Queries, Row, Source
from bakeoff.scoring import texts as scoring
from bakeoff.scoring import token_scores
from bakeoff.scoring.windows import windows_around, windows_behind

LENGTH = 12
MEMORY = 5
FORWARDS = ["gpt-tiny", "conv-light-lm-tiny", "tcn-tiny", "elmo-tiny", "lstm-lm-tiny", "transformer-xl-tiny"]
FORWARDS += ["gpt-bert-tiny"]
AROUND = ["bert-tiny", "xlnet-tiny"]
AS_PUBLISHED = {"objective.0.decoder_begins": ["separator", "start"], "objective.0.source_start": True}
"""The published BART, whose decoder begins with two tokens and whose encoder reads one before a text."""
PAIRS = ["transformer-translation-tiny", "bart-tiny", "bart-tiny as published"]
UNKNOWN = "x"
"""A text that the corpus's tokenizer knows nothing of."""
TEXTS = [
    "The river finds the old stone.",
    "",
    "river",
    UNKNOWN,
    *sentences(3, seed=5),
    " ".join(sentences(4, seed=6)),
    "  ",
]


@pytest.fixture(scope="module")
def runs(corpus, parallel_corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    made = {}
    for name in [*FORWARDS, "prefix-lm-tiny", *AROUND, *PAIRS]:
        changes = {} if name in PAIRS else {"input.length": LENGTH}
        if name == "xlnet-tiny":
            changes |= {"input.reuse": 4}
        if name == "transformer-xl-tiny":
            changes |= {"model.decoder.block.mixer.memory": MEMORY}
        if name in PAIRS[:1]:
            changes |= {"training.batch": {"tokens": 160}}
        if name.endswith("as published"):
            changes |= AS_PUBLISHED
        made[name] = untrained(
            name.partition(" ")[0], parallel_corpus if name in PAIRS[:1] else corpus, folder / name, **changes
        )
    return made


def file_of(folder, texts):
    (folder / "texts.txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return folder / "texts.txt"


def evaluated(run, folder, texts, **options):
    return bakeoff.evaluate(run.path, texts=file_of(folder, texts), device="cpu", **options)


def in_float64(run):
    """The module, and the log-probabilities of all tokens after a (D,) state."""
    module = run.load().double()
    head = next(each.head for each in module.objectives if each.name == scoring.scoring_objective(run).kind)

    def spread(state):
        return head.scores(state[None], module.model.embedding.weight)[0].log_softmax(-1)

    return module, spread


def encode(run, text):
    ids, starts = run.tokenizer.encode([" ".join(text.split())])[0]
    return ids.tolist(), starts.tolist()


@torch.no_grad()
def forwards(run, text, stride=LENGTH // 2):
    """The (T, V) log-probabilities after [SEP] and each token of a text but the last."""
    module, spread = in_float64(run)
    ids, _ = encode(run, text)
    read = [run.tokenizer.separator, *ids]
    width = run.recipe.model.stack.output_width
    found = []
    for place in range(len(ids)):
        if run.recipe.input.continues:
            hidden = in_one_pass(run, module, read[: place + 1])
        else:
            until = LENGTH if place < LENGTH else min(len(ids), LENGTH + stride * ((place - LENGTH) // stride + 1))
            begin = max(0, until - LENGTH)
            hidden = module.model(Row(torch.tensor([read[begin : place + 1]])))[0]
        found.append(spread(hidden[0, -1, :width]))
    return ids, found


def in_one_pass(run, module, read):
    """All that is read, in which a token sees its own row up to itself, and the memory before it."""
    if run.recipe.name != "transformer-xl-tiny":
        return module.model(Row(torch.tensor([read])))[0]
    x, context = module.model.stack_inputs(Row(torch.tensor([read])))
    place = torch.arange(len(read))
    seen = place >= (place // LENGTH * LENGTH - MEMORY)[:, None]
    mask = seen & (place <= place[:, None])
    return module.model.stack(x, context._replace(attention_mask=mask[None, None]))[0]


@pytest.mark.parametrize("name", FORWARDS)
def test_a_text_read_forwards_has_the_sum_of_its_tokens(name, runs, tmp_path):
    found = evaluated(runs[name], tmp_path, TEXTS)
    assert found["measure"] == "log_probability"
    total = 0.0
    tokens = 0
    for text, result in zip(TEXTS, found["results"], strict=True):
        ids, behind = forwards(runs[name], text)
        expected = sum(float(row[token]) for row, token in zip(behind, ids, strict=True))
        assert result["tokens"] == len(ids)
        if text == UNKNOWN:
            assert (result["log_probability"], result["unknown"]) == (None, 1)
            continue
        assert result["log_probability"] == pytest.approx(expected, abs=2e-4)
        total += expected
        tokens += len(ids)
    scored = [text for text in TEXTS if text != UNKNOWN]
    words, size = sum(len(text.split()) for text in scored), sum(len(text.strip().encode()) for text in scored)
    assert (found["texts"], found["tokens"], found["words"], found["bytes"]) == (len(TEXTS), tokens, words, size)
    assert found["no_number"] == found["hidden_characters"] == 1
    assert found["log_probability"] == pytest.approx(total, abs=1e-3)
    assert math.log(found["perplexity"]) == pytest.approx(-total / tokens, rel=1e-5)
    assert math.log(found["word_perplexity"]) == pytest.approx(-total / words, rel=1e-5)
    assert found["bits_per_byte"] == pytest.approx(-total / math.log(2) / size, rel=1e-5)


@pytest.mark.parametrize("stride", [1, 5, LENGTH])
def test_a_stride_is_what_each_window_behind_the_first_adds(stride, runs, tmp_path):
    text = TEXTS[-2]
    ids, behind = forwards(runs["gpt-tiny"], text, stride)
    expected = sum(float(row[token]) for row, token in zip(behind, ids, strict=True))
    found = evaluated(runs["gpt-tiny"], tmp_path, [text], stride=stride)
    assert len(ids) > 3 * LENGTH
    assert found["log_probability"] == pytest.approx(expected, abs=2e-4)
    run = runs["bert-tiny"]
    stride = min(stride, LENGTH - 2)
    module, spread = in_float64(run)
    ids, _ = encode(run, text)
    total = 0.0
    for begin, end, scored, until in windows_around(len(ids), LENGTH - 2, stride):
        for place in range(scored, until):
            row = [run.tokenizer.start, *ids[begin:end], run.tokenizer.separator]
            row[1 + place - begin] = run.tokenizer.mask
            with torch.no_grad():
                total += float(spread(module.model(Row(torch.tensor([row])))[0][0, 1 + place - begin])[ids[place]])
    found = evaluated(run, tmp_path, [text], stride=stride)
    assert found["log_probability"] == pytest.approx(total, abs=2e-4)


@pytest.mark.parametrize("name", FORWARDS)
def test_the_last_word_is_scored_given_what_stands_before_it(name, runs, tmp_path):
    found = evaluated(runs[name], tmp_path, TEXTS, last_word=True)
    right = 0
    for text, result in zip(TEXTS, found["results"], strict=True):
        if not text.strip():
            expected = {"log_probability": 0.0, "tokens": 0, "unknown": 0, "word": "", "likeliest": None}
            assert result == expected
            continue
        assert result["word"] == text.split()[-1]
        ids, behind = forwards(runs[name], text)
        _, starts = encode(runs[name], text)
        first = max(place for place, start in enumerate(starts) if start)
        word = list(zip(behind, ids, strict=True))[first:]
        expected = None if text == UNKNOWN else sum(float(row[token]) for row, token in word)
        assert result["log_probability"] == pytest.approx(expected, abs=2e-4)
        assert result["tokens"] == len(word)
        right += result["likeliest"]
    assert found["no_number"] == 1
    assert found["accuracy"] == right / (found["words"] + 1)
    assert found["words"] + 1 == sum(bool(text.strip()) for text in TEXTS)
    assert math.log(found["word_perplexity"]) == pytest.approx(-found["log_probability"] / found["words"])


def test_unknown_tokens_are_counted_and_no_unknown_word_is_right(corpus, tmp_path):
    """Even where the model writes nothing else."""
    run = untrained("gpt-tiny", corpus, tmp_path / "run", objective=[{"kind": "clm", "bias": True}])
    tensors = load_file(run.path / "model.safetensors")
    tensors["heads.clm.bias"][run.tokenizer.unknown] = 1e4
    save_file(tensors, run.path / "model.safetensors")
    (run.path / "bakeoff.sha256").unlink()
    found = evaluated(run, tmp_path, ["river \u2603", "river"])
    assert [result["unknown"] for result in found["results"]] == [1, 0]
    assert found["unknown"] == 1
    found = evaluated(run, tmp_path, ["river \u2603"], last_word=True)["results"]
    assert (found[0]["likeliest"], found[0]["tokens"], found[0]["unknown"]) == (False, 1, 1)
    assert found[0]["log_probability"] is None


@pytest.mark.parametrize("last_word", [False, True])
def test_a_prefix_is_seen_from_both_sides(last_word, runs, tmp_path):
    """It is what stands before the first token of a window that is scored: before a text [SEP] alone."""
    run = runs["prefix-lm-tiny"]
    texts = [text for text in TEXTS if text.strip() and text != UNKNOWN]
    found = evaluated(run, tmp_path, texts, last_word=last_word)
    module, spread = in_float64(run)
    for text, result in zip(texts, found["results"], strict=True):
        ids, starts = encode(run, text)
        first = max(place for place, start in enumerate(starts) if start) if last_word else 0
        total = 0.0
        for begin, _, scored, until in windows_behind(len(ids), LENGTH, first):
            prefix = torch.tensor([1 + scored - begin])
            for place in range(scored, until):
                read = torch.tensor([[run.tokenizer.separator, *ids][begin : place + 1]])
                with torch.no_grad():
                    total += float(spread(module.model(Row(read, prefix=prefix))[0][0, -1])[ids[place]])
        assert result["log_probability"] == pytest.approx(total, abs=2e-4)


@pytest.mark.parametrize("name", ["gpt-tiny", "transformer-xl-tiny", "prefix-lm-tiny"])
def test_a_likeliest_last_word_is_what_generate_writes(name, runs, tmp_path):
    """Behind each beginning the word that greedy generation writes is the likeliest, and no other one is."""
    run = runs[name]
    hits = 0
    for text in sentences(12, seed=8):
        before = text.split()[:2]
        written = bakeoff.generate(
            run, [" ".join(before)], bakeoff.GenerationConfig(tokens=6, temperature=0), device="cpu"
        )[0].split()
        if not written:
            continue
        whole = [" ".join([*before, *written[:1]]), " ".join([*before, "zzz"])]
        first, second = evaluated(run, tmp_path, whole, last_word=True)["results"]
        ids, _ = encode(run, whole[0])
        if ids[: len(encode(run, " ".join(before))[0])] == encode(run, " ".join(before))[0]:
            same = first["tokens"] == 1 or run.tokenizer.decode(ids) == whole[0]
            hits += bool(first["likeliest"]) and same
        assert second["likeliest"] is False
    assert hits > 0


@torch.no_grad()
def around(run, text):
    """The log-probability of each token of a text that fits into a row, given all others."""
    module, spread = in_float64(run)
    ids, _ = encode(run, text)
    tokenizer, total = run.tokenizer, 0.0
    for place, token in enumerate(ids):
        if scoring.scoring_objective(run).kind == "mlm":
            row = [tokenizer.start, *ids, tokenizer.separator]
            row[place + 1] = tokenizer.mask
            state = module.model(Row(torch.tensor([row])))[0][0, place + 1]
        else:
            row = [*ids, tokenizer.separator, tokenizer.start]
            visible = torch.ones(len(row) + 1, len(row), dtype=torch.bool)
            visible[:, place] = False
            segments = torch.tensor([[0] * (len(row) - 1) + [2]])
            queries = Queries(torch.tensor([[place]]), visible[None])
            state = module.model(Row(torch.tensor([row]), segments, queries=queries))[0][0, -1]
        total += float(spread(state)[token])
    return len(ids), total


@pytest.mark.parametrize("name", AROUND)
def test_an_encoder_gives_the_pseudo_log_likelihood(name, runs, tmp_path):
    short = [text for text in TEXTS if len(encode(runs[name], text)[0]) <= LENGTH - 2]
    texts = [text for text in short if text != UNKNOWN]
    assert len(texts) > 4
    found = evaluated(runs[name], tmp_path, texts)
    assert found["measure"] == "pseudo_log_likelihood"
    for text, result in zip(texts, found["results"], strict=True):
        tokens, expected = around(runs[name], text)
        assert result["tokens"] == tokens
        assert result["log_probability"] == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("name", AROUND)
def test_in_a_long_text_each_token_sees_its_window(name, runs, tmp_path):
    """The first token of a long text is scored as in its first row, whatever comes later."""
    run = runs[name]
    long = " ".join(sentences(4, seed=6))
    ids, _ = encode(run, long)
    assert len(ids) > 2 * LENGTH
    (result,) = evaluated(run, tmp_path, [long])["results"]
    assert result["tokens"] == len(ids)
    scorer = scoring.scorer_of(run, scoring.scoring_objective(run), False, "cpu")
    (whole,) = scorer.score([token_scores.ScoredText(np.array(ids))])
    room = LENGTH - 2
    (head,) = scorer.score([token_scores.ScoredText(np.array(ids[:room]))])
    (tail,) = scorer.score([token_scores.ScoredText(np.array(ids[-room:]))])
    sure = room // 2
    assert whole.log_probabilities[:sure] == pytest.approx(head.log_probabilities[:sure], abs=1e-4)
    assert whole.log_probabilities[-room // 4 :] == pytest.approx(tail.log_probabilities[-room // 4 :], abs=1e-4)
    assert result["log_probability"] == pytest.approx(whole.log_probabilities.sum())


@torch.no_grad()
def of_target(run, source, target):
    """The log-probability of a target and its end, one token after the other."""
    module, spread = in_float64(run)
    tokenizer = run.tokenizer
    (objective,) = run.recipe.objective
    roles = {"start": tokenizer.start, "separator": tokenizer.separator}
    read = [*tokenizer.encode([source])[0][0].tolist(), tokenizer.separator]
    read = [tokenizer.start] * objective.source_start + read
    wanted = [*tokenizer.encode_targets([target])[0].tolist(), tokenizer.separator]
    total, written = 0.0, [roles[role] for role in objective.decoder_begins]
    for token in wanted:
        hidden = module.model(Row(torch.tensor([written]), source=Source(torch.tensor([read]))))[0]
        total += float(spread(hidden[0, -1])[token])
        written.append(token)
    return len(wanted), total


@pytest.mark.parametrize("name", PAIRS)
def test_a_target_is_scored_with_its_end_given_its_source(name, runs, tmp_path):
    pairs = [("1 2", "one two"), ("3", "three four five"), ("", "six"), ("7 8 9", ""), ("", "")]
    expected = [of_target(runs[name], *pair) for pair in pairs]
    for lines in (["\t".join(pair) for pair in pairs], ["\t".join(pair) for pair in pairs[:4]] + [""]):
        found = evaluated(runs[name], tmp_path, lines)["results"]
        for (tokens, value), result in zip(expected, found, strict=True):
            assert result["tokens"] == tokens
            assert result["log_probability"] == pytest.approx(value, abs=2e-4)
    (tmp_path / "pairs.tsv").write_text("de\ten\n" + "".join(f"{a}\t{b}\n" for a, b in pairs[:2]), encoding="utf-8")
    options = {"source_column": "de", "target_column": "en"}
    columns = bakeoff.evaluate(runs[name].path, texts=tmp_path / "pairs.tsv", device="cpu", **options)
    assert [r["log_probability"] for r in columns["results"]] == pytest.approx([v for _, v in expected[:2]], abs=2e-4)


texts = st.lists(
    st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=25)
    | st.sampled_from(["", " ", "river", "The river. " * 9, "字字字", "a" * 70, "[SEP] [MASK]"]),
    max_size=6,
)


@pytest.mark.parametrize("name", ["gpt-tiny", "transformer-xl-tiny", "bert-tiny"])
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=texts, places=st.sampled_from([1, 40, 8192]), ahead=st.integers(1, 5))
def test_whatever_the_texts_and_batches_each_has_the_score_that_it_has_alone(name, runs, texts, places, ahead):
    run = runs[name]
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        alone = [evaluated(run, Path(folder), [text])["results"][0] for text in texts]
        patch.setattr(token_scores, "POSITIONS", places)
        patch.setattr(scoring, "TEXTS_AT_ONCE", ahead)
        together = evaluated(run, Path(folder), [*texts, "river"])["results"]
    assert len(together) == len(texts) + 1
    for one, other in zip(alone, together, strict=False):
        assert one["tokens"] == other["tokens"]
        assert one["log_probability"] == pytest.approx(other["log_probability"], abs=1e-3)
        assert (one["tokens"] == 0) == (one["log_probability"] == 0)


def test_what_cannot_be_scored_is_refused(runs, tmp_path, corpus):
    def refused(message, run, path, **options):
        with pytest.raises(UserError, match=message) as caught:
            bakeoff.evaluate(run.path, texts=path, device="cpu", **options)
        assert "\n" not in str(caught.value)

    gpt, bert, bart, translation = (runs[name] for name in ("gpt-tiny", "bert-tiny", *reversed(PAIRS[:2])))
    some = file_of(tmp_path, ["river"])
    refused("no such file", gpt, tmp_path / "none.txt")
    (tmp_path / "empty.txt").touch()
    refused("empty.txt: the file holds no texts", gpt, tmp_path / "empty.txt")
    refused("its lines are the texts; columns are those of", gpt, some, text_column="text")
    (tmp_path / "rows.jsonl").write_text('{"body": "river"}\n{"body": "stone"}\n', encoding="utf-8")
    refused(
        r"rows.jsonl:1: no field 'text' \(fields here: body\); name the one .* --text-column",
        gpt,
        tmp_path / "rows.jsonl",
    )
    assert (
        len(bakeoff.evaluate(gpt.path, texts=tmp_path / "rows.jsonl", text_column="body", device="cpu")["results"]) == 2
    )
    refused("--last-word needs a model that reads a text from its beginning", bert, some, last_word=True)
    refused("--last-word needs", translation, some, last_word=True)
    refused("this run scores single texts; name their column by --text-column", gpt, some, source_column="a")
    refused("this run scores targets of sources", translation, some, text_column="a")
    refused("texts.txt:1: 0 tabs; a line is a text, a tab and the other text", translation, some)
    refused("different columns", translation, tmp_path / "rows.jsonl", source_column="body", target_column="body")
    refused("give either --corpus, --texts or --minimal-pairs", gpt, some, corpus=corpus.path)
    long = tmp_path / "long.tsv"
    long.write_text("source\ttarget\nriver\tstone\n" + "river " * 2000 + "\tstone\n", encoding="utf-8")
    refused("long.tsv: pair 2 has 2,001 tokens; the model has 1,024 positions", bart, long)
    span = untrained("t5-tiny", corpus, tmp_path / "t5")
    refused("trained on span_corruption, which gives texts no probability", span, some)
    refused("--stride 13: a row has 12 tokens of a text; give 1 to 12", gpt, some, stride=13)
    refused("--stride 0: a row has 12 tokens", gpt, some, stride=0)
    refused("--stride 11: a row has 10 tokens of a text; give 1 to 10", bert, some, stride=11)
    refused("--stride: pairs are read whole; leave it out", translation, some, stride=4)
    refused("--stride: this run reads a text once", runs["transformer-xl-tiny"], some, stride=4)
    with pytest.raises(UserError, match="belong to --texts FILE"):
        bakeoff.evaluate(gpt.path, corpus=corpus.path, last_word=True)
