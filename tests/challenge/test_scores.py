"""Scores of runs on the official forms of files, against transformers on their exports by the official procedure."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from bakeoff.challenge import labelled
from bakeoff.challenge.acquisition import AgeScore, read_contexts, score_words
from bakeoff.challenge.choosing import official_predictions, score_choices
from bakeoff.challenge.labelled import TASKS, TaskScores, fine_tune, scores_of, write_tables
from bakeoff.challenge.reading_times import read_times, score_reading
from bakeoff.challenge.results import EntryResults, Score
from bakeoff.challenge.rules import READINGS, backend_of
from bakeoff.challenge.suites import SUITES, read_choices
from bakeoff.errors import UserError
from bakeoff.interop.export import export
from bakeoff.scoring.completions import Completions
from tests.challenge.official_files import write, write_official_files
from tests.untrained_runs import untrained

transformers = pytest.importorskip("transformers")

RECIPES = [
    "gpt2-tiny",
    *(
        pytest.param(name, marks=pytest.mark.slow)
        for name in ("bert-tiny", "gpt-tiny", "gpt-bert-tiny", "conv-light-lm-tiny")
    ),
]


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory):
    return write_official_files(tmp_path_factory.mktemp("official") / "evaluation_data")


class Official:
    """A folder as the official pipeline reads it: one text at a time, in float32."""

    def __init__(self, folder, backend):
        kind = transformers.AutoModelForCausalLM if backend == "causal" else transformers.AutoModelForMaskedLM
        self.model = kind.from_pretrained(folder, trust_remote_code=True).eval()
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(
            folder, trust_remote_code=True, padding_side="right"
        )
        self.backend = backend

    @torch.no_grad()
    def padding_matters(self, texts, side):
        """Whether texts that share a batch have other logits than alone."""
        self.tokenizer.padding_side = side
        rows = self.tokenizer(texts, padding=True, return_tensors="pt")
        found = torch.log_softmax(self.model(rows["input_ids"], attention_mask=rows["attention_mask"]).logits, -1)
        alone = torch.cat([self.logits([self.tokenizer(text)["input_ids"]])[0] for text in texts])
        return not torch.allclose(found[rows["attention_mask"].bool()], alone, atol=1e-3)

    @torch.no_grad()
    def logits(self, ids):
        rows = torch.tensor(ids)
        return torch.log_softmax(self.model(input_ids=rows, attention_mask=torch.ones_like(rows)).logits, -1)

    def size(self, text, begin):
        return sum(end > begin for _, end in self.tokenizer(text, return_offsets_mapping=True)["offset_mapping"])

    def score(self, text, begin):
        read = self.tokenizer(text, return_offsets_mapping=True)
        ids = read["input_ids"]
        chosen = [at for at, (_, end) in enumerate(read["offset_mapping"]) if end > begin]
        if self.backend == "causal":
            found = self.logits([ids])[0]
            return float(sum(found[at - 1, ids[at]] for at in chosen if at))
        copies = [
            [self.tokenizer.mask_token_id if at == hidden else each for at, each in enumerate(ids)] for hidden in chosen
        ]
        found = self.logits(copies)
        return float(sum(found[row, at, ids[at]] for row, at in enumerate(chosen)))

    def word(self, text, word):
        """The log-probability of a word after a text, of masked models before three masks."""
        if self.backend == "causal":
            return self.score(f"{text} {word}", len(text))
        whole = self.tokenizer(f"{text} {word}", return_offsets_mapping=True)
        ids, mask = whole["input_ids"], self.tokenizer.mask_token_id
        behind = [each for each in ids[-1:] if whole["offset_mapping"][-1] == (0, 0)]
        total = 0.0
        for at, (_, end) in enumerate(whole["offset_mapping"]):
            if end > len(text):
                found = self.logits([[*ids[:at], mask, mask, mask, *behind]])
                total += float(found[0, at, ids[at]])
        return total


@pytest.mark.parametrize("name", RECIPES)
def test_scores_are_those_of_transformers_on_the_export(name, corpus, evaluation, tmp_path):
    run = untrained(name, corpus, tmp_path / "run")
    backend = backend_of(run.recipe, None)
    export(run.path, tmp_path / "export")
    official = Official(tmp_path / "export", backend)
    texts = ["The river finds the old stone", "The river"]
    assert official.tokenizer.is_fast
    assert not official.padding_matters(texts, "right")
    if (tmp_path / "export" / "modeling_bakeoff.py").is_file():
        assert not official.padding_matters(texts, "left")
    scorer = Completions(run, READINGS[backend], device="cpu")
    for suite in SUITES:
        choices = read_choices(suite, suite.folder(evaluation, fast=False))
        expected = [[official.score(*each) for each in zip(c.texts, c.begins, strict=True)] for c in choices]
        found = scorer.score(
            [text for c in choices for text in c.texts], [begin for c in choices for begin in c.begins]
        )
        assert found == pytest.approx(np.concatenate(expected), abs=2e-3), suite.key
        scores = score_choices(scorer, suite, choices)
        if suite.per_token:
            sizes = [[official.size(*each) for each in zip(c.texts, c.begins, strict=True)] for c in choices]
            expected = [np.divide(*each) for each in zip(expected, sizes, strict=True)]
        chosen = [c.answers[int(np.argmax(each))] for c, each in zip(choices, expected, strict=True)]
        fields = [c.field for c in choices]
        for field, rows in official_predictions(scores).items():
            own = [answer for answer, of in zip(chosen, fields, strict=True) if of == field]
            assert [row["pred"] for row in rows["predictions"]] == own
            assert [row["id"] for row in rows["predictions"]] == [f"{field}_{at}" for at in range(len(own))]
    words = read_contexts(evaluation / "full_eval" / "aoa" / "cdi_childes.json")
    assert {each.word for each in words} == {"river", "stone"}
    expected = [-official.score(f"{each.context} {each.word}", len(each.context) + 1) for each in words]
    assert score_words(scorer, words) == pytest.approx(expected, abs=1e-3)
    rows = read_times(evaluation / "full_eval" / "reading" / "reading_data.csv")
    found = score_reading(run, scorer, backend == "mlm", rows, "cpu")
    expected = [-official.word(row["item"], row["word"]) for row in rows]
    assert found.surprisals == pytest.approx(expected, abs=1e-3)
    known = [None if row["prev_item"] == "" else -official.word(row["prev_item"], row["prev_word"]) for row in rows]
    found_before, known = (np.array(each, float) for each in (found.before, known))  # nan where there is none
    np.testing.assert_allclose(found_before, known, atol=1e-3)
    assert (found.eye_tracking, found.self_paced) == pytest.approx(explained(rows, found))


def explained(rows, found):
    """The gains in R2 by scikit-learn, with all products of two base columns."""
    from sklearn.linear_model import LinearRegression
    from sklearn.preprocessing import PolynomialFeatures

    def gain(times, names, extra):
        values = [
            [float(row[name] or "nan") for name in names] + [np.nan if each[at] is None else each[at] for each in extra]
            for at, row in enumerate(rows)
        ]
        table = np.column_stack([values, found.surprisals, [float(row[times] or "nan") for row in rows]])
        table = table[~np.isnan(table).any(1)]
        base = PolynomialFeatures(2, interaction_only=True).fit_transform(table[:, :-2])
        base = (base - base.mean(0)) / np.where(base.std(0) > 0, base.std(0), 1)
        whole = np.column_stack([base, table[:, -2]])
        without, with_it = (LinearRegression().fit(x, table[:, -1]).score(x, table[:, -1]) for x in (base, whole))
        return 100 * (with_it - without) / (1 - without)

    names = ["Subtlex_log10", "length", "context_length"]
    eyes = [gain(name, names, []) for name in ("RTfirstfix", "RTfirstpass", "RTgopast", "RTrightbound")]
    return np.mean(eyes), gain("self_paced_reading_time", [*names, "prev_length"], [found.before])


class Fixed:
    """A scorer whose scores are given."""

    def __init__(self, scores):
        self.scores = scores

    def score(self, texts, begins, as_lm_eval=False):
        return np.array(self.scores)


def test_equal_scores_share_the_point_officially_and_nearly_equal_ones_beside_it(tmp_path):
    pairs = [{"sentence_good": f"good {at}", "sentence_bad": f"bad {at}"} for at in range(4)]
    write(tmp_path, "field.jsonl", pairs)
    suite = next(each for each in SUITES if each.key == "blimp_supplement")
    scores = score_choices(Fixed([-1, -1, -2, -1, -1, -2, -3, -3.00001]), suite, read_choices(suite, tmp_path))
    assert (scores.accuracy, scores.tie_safe, scores.ties, scores.items) == (62.5, 50, 2, 4)
    assert scores.fields == {"field": 0.625}
    pairs = [{"sentence_good": f"good {at}", "sentence_bad": f"bad {at}"} for at in range(400)]
    write(tmp_path, "field.jsonl", pairs)
    drawn = score_choices(Fixed([-1.0] * 800), suite, read_choices(suite, tmp_path))
    assert 150 < sum(each.startswith("good") for each in drawn.predictions["field"]) < 250


def test_a_tie_of_wrong_texts_alone_is_none(tmp_path):
    suite = next(each for each in SUITES if each.key == "entity_tracking")
    write(tmp_path, "regular.jsonl", [{"input_prefix": "a", "options": [" b", " c", " d"], "numops": 0}] * 2)
    scores = score_choices(Fixed([-2, -1, -1, -1, -1, -2]), suite, read_choices(suite, tmp_path))
    assert (scores.accuracy, scores.ties, scores.items) == (25, 1, 2)


def test_ewok_asks_which_context_makes_the_target_likelier_and_nothing_is_in_no_box(tmp_path):
    suite = next(each for each in SUITES if each.key == "ewok")
    row = {"Domain": "social", "Context1": "A a.", "Context2": "Bb b.", "Target1": "Yes.", "Target2": "No."}
    write(tmp_path, "social.jsonl", [row])
    (choice,) = read_choices(suite, tmp_path)
    assert (choice.texts, choice.begins, choice.right) == (("A a. Yes.", "Bb b. Yes."), (4, 5), 0)
    suite = next(each for each in SUITES if each.key == "entity_tracking")
    boxes = [{"input_prefix": "It has", "options": [" a", last], "numops": 0} for last in (" b", " nothing")]
    write(tmp_path / "boxes", "regular.jsonl", boxes)
    assert [choice.answers for choice in read_choices(suite, tmp_path / "boxes")] == [(" a", " b")]


def test_entity_tracking_is_a_mean_over_kinds_of_stories(tmp_path):
    suite = next(each for each in SUITES if each.key == "entity_tracking")
    for name, ops in (("regular", (0, 1)), ("ambiref", (0,))):
        write(tmp_path, f"{name}.jsonl", [{"input_prefix": "a", "options": [" b", " c"], "numops": op} for op in ops])
    right = [0, -1, -1, 0, 0, -1]  # of ambiref 0, then of regular 0 and 1
    scores = score_choices(Fixed([0, -1, -1, 0, 0, -1]), suite, read_choices(suite, tmp_path))
    assert len(right) == 2 * scores.items
    assert scores.fields == {"ambiref_0_ops": 1, "regular_0_ops": 0, "regular_1_ops": 1}
    assert scores.accuracy == pytest.approx(75)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"sentence_good": "a"}, "no row of BLiMP: it has no 'sentence_bad'"),
        ({"sentence_good": "a", "sentence_bad": " "}, "no row of BLiMP: sentence_bad is blank, or is no text"),
        ({"sentence_good": "a", "sentence_bad": 3}, "no row of BLiMP: sentence_bad is blank, or is no text"),
        (
            {"sentence_good": "a", "sentence_bad": "b", "field": "syntax", "UID": [3]},
            "no row of BLiMP: UID is blank, or is no text",
        ),
    ],
)
def test_a_mistake_in_a_file_is_told_with_its_line(row, message, tmp_path):
    write(tmp_path, "field.jsonl", [{"sentence_good": "a", "sentence_bad": "b"}, row])
    with pytest.raises(UserError, match=f"^{re.escape(str(tmp_path / 'field.jsonl'))}:2: {message}$"):
        read_choices(SUITES[0], tmp_path)


def results_with(**scored):
    """The results of an entry that has these scores."""
    values = {"track": "strict", "recipe": "gpt-tiny", "backend": "causal", "words": 1, "words_read": 1}
    values |= {"checkpoints": [], "scores": {}, "labelled": {}, "missing": [], "lacking": [], "submission": ""}
    return EntryResults(**(values | scored))


def test_seeds_that_give_nearly_all_rows_one_label_are_named(tmp_path, monkeypatch):
    task = next(each for each in TASKS if each.name == "rte")
    of_seed = {42: ["0", "1"] * 100, 43: ["1"] * 198 + ["0"] * 2, 44: ["1"] * 197 + ["0"] * 3}

    def opened(path):
        found = SimpleNamespace(scores={"test": {task.metric: 0.5}})
        return SimpleNamespace(
            predictions=lambda: [{"prediction": each} for each in of_seed[int(path.name)]], results=found
        )

    monkeypatch.setattr(labelled, "FinetunedRun", SimpleNamespace(open=opened))
    scores = scores_of(task, {seed: tmp_path / str(seed) for seed in of_seed})
    assert scores.collapsed == [43]
    assert scores.predictions == [0, 1] * 100
    results = results_with(labelled={"rte": scores})
    assert "fine-tuning, mean" not in {title for title, *_ in results.rows()}  # of one task of seven
    assert results.remarks() == ["rte: 99 % of the rows or all got one label with seed 43; the mean holds it"]


@pytest.mark.parametrize(
    ("name", "metric", "positive"), [("mrpc", "f1", "1"), ("qqp", "f1", "1"), ("rte", "accuracy", None)]
)
def test_tasks_are_scored_by_their_official_metric(name, metric, positive, corpus, evaluation, tmp_path, monkeypatch):
    task, asked = next(each for each in TASKS if each.name == name), []
    monkeypatch.setattr(labelled, "finetune", lambda run, task, out, **options: asked.append(task))
    tables = write_tables(task, evaluation, tmp_path)
    run = untrained("gpt-tiny", corpus, tmp_path / "run")
    fine_tune(task, run.path, tables, tmp_path / "out", 42, "cpu", False)
    assert (asked[0].metric, getattr(asked[0], "positive", None)) == (metric, positive)
    assert (asked[0].dev, asked[0].test) == (tables[1], tables[1])


def test_the_mean_of_global_piqa_is_that_of_its_two_parts():
    official = {"global_piqa_parallel": 40.0, "global_piqa_nonparallel": 60.0, "blimp": 70.0, "ewok": 50.5}
    scores = {"main": {key: Score(official=value) for key, value in official.items()}}
    results = results_with(scores=scores)
    rows = {title: official for title, official, *_ in results.rows()}
    assert rows["GlobalPIQA, mean"] == "50.00"
    assert rows["BLiMP"] == "70.00"


def test_the_mean_of_all_nine_parts_stands_where_all_are_scored():
    official = {"blimp": 68.27, "blimp_supplement": 63.28, "ewok": 49.82, "entity_tracking": 29.40, "comps": 52.16}
    official |= {
        "global_piqa_parallel": 30.05,
        "global_piqa_nonparallel": 50.05,
        "reading": 8.20,
    }  # their mean is 40.05
    scores = {"main": {key: Score(official=value) for key, value in official.items()}}
    labelled = {
        task.name: TaskScores(metric="accuracy", scores={42: 69.05}, collapsed=[], predictions=[]) for task in TASKS
    }
    results = results_with(
        track="strict-small",
        scores=scores,
        labelled=labelled,
        ages=AgeScore(correlation=-0.151, p=0.04, words=188),
    )
    rows = {title: row for title, *row in results.rows()}
    assert rows["AoA"] == ["-15.10", "-", "-", "-", "0.00"]
    assert rows["all nine, mean"] == ["40.57", "-", "-", "-", "42.25"]  # the published mean of the same, but 0 for AoA
    assert "AoA: when 188 words are learned correlates with the ages of children by -0.151 (p = 0.040)" in (
        results.markdown()
    )
    ages = AgeScore(correlation=0.08, p=0.2, words=188)
    rows = {title: row for title, *row in results.model_copy(update={"ages": ages}).rows()}
    assert rows["AoA"][0] == "0.00"
    assert rows["all nine, mean"][0] == "42.25"
    for lacking in ({"ages": None}, {"labelled": {}}, {"scores": {}}):
        assert "all nine, mean" not in {title for title, *_ in results.model_copy(update=lacking).rows()}
