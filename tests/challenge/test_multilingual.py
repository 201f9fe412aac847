"""BabyLM's multilingual track: its words, its scores against lm-eval's procedure, an entry from text to submission."""

import json
import re
from collections import Counter

import numpy as np
import pytest
import torch

import bakeoff
from bakeoff.challenge import asking, entry, rules
from bakeoff.challenge.choosing import score_choices
from bakeoff.challenge.entry import babylm
from bakeoff.challenge.languages import LANGUAGES, texts_by_language, words_by_language
from bakeoff.challenge.meco import meco_keys, read_words, surprisals_of
from bakeoff.challenge.multilingual import SUITES, suites_of, tasks_of
from bakeoff.challenge.multilingual_baselines import baselines_of
from bakeoff.challenge.rules import TRACKS
from bakeoff.challenge.suites import Choice, read_choices
from bakeoff.errors import Interrupted, UserError
from bakeoff.interop.export import export
from bakeoff.preparation.prepare import prepare
from bakeoff.reading.sources import SourceOptions
from bakeoff.recipe_files import load_recipe
from bakeoff.runs.run import Run
from bakeoff.scoring.completions import Completions
from tests.challenge.multilingual_files import CHINESE, write_multilingual_files
from tests.challenge.test_scores import Fixed
from tests.conftest import sentences, shrink
from tests.untrained_runs import untrained

transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def official(tmp_path_factory):
    return write_multilingual_files(tmp_path_factory.mktemp("official") / "multilingual")


def suite_of(key):
    return next(suite for each in SUITES.values() for suite in each if suite.key == key)


def test_words_are_bytes_over_those_of_an_english_word_and_the_byte_premium(tmp_path):
    for code, text in (("eng", "one two three"), ("nld", "een twee"), ("zho", "老师  在读书")):
        (tmp_path / code).mkdir()
        (tmp_path / code / "a.txt").write_text(text + "\n\n" + text + "\n", encoding="utf-8")
    premiums = {code: language.premium for code, language in LANGUAGES.items()}
    found = words_by_language(texts_by_language([str(tmp_path)]), premiums, SourceOptions())
    sizes = {"eng": 2 * 14, "nld": 2 * 9, "zho": 2 * (3 * 5 + 2)}
    assert found == pytest.approx({code: size / (5.43 * premiums[code]) for code, size in sizes.items()})
    assert premiums == {"eng": 1.0, "nld": 1.0516739, "zho": 0.9893825}
    assert words_by_language({"eng": [str(tmp_path / "eng")]}, {"eng": 2.0}, SourceOptions())["eng"] == found["eng"] / 2


def test_the_language_of_a_text_is_a_prefix_or_the_name_of_a_folder(tmp_path):
    for name in ("babylm-zho", "en"):
        (tmp_path / name).mkdir()
    found = texts_by_language([str(tmp_path), "nl=a", "zho=b=c"])
    assert found == {"eng": [str(tmp_path / "en")], "nld": ["a"], "zho": [str(tmp_path / "babylm-zho"), "b=c"]}
    assert [*found] == ["eng", "nld", "zho"]


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (["text.txt"], {}, "--data text.txt: its language is not said; give --data LANGUAGE=PATH with eng, nld or zho"),
        (["mixed"], {}, "--data mixed: the language of other.txt is not said"),
        (["eng=text.txt"], {"byte_premiums": "deu=1"}, "--byte-premiums deu=1: give a language and a number above 0"),
        (["eng=text.txt"], {"byte_premiums": "zho=-1"}, "--byte-premiums zho=-1: give a language and a number"),
        (["eng=none.txt"], {}, "none.txt"),
        (
            ["eng=text.txt"],
            {"evaluation": "mixed"},
            "--evaluation mixed: holds no folder zeroshot or finetune/data/mul",
        ),
        (["eng=text.txt"], {"epochs": 11}, "--epochs 11: the track allows 1 to 10 passes"),
    ],
)
def test_what_breaks_a_rule_is_refused_and_leaves_nothing(data, options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("a text", encoding="utf-8")
    (tmp_path / "mixed" / "eng").mkdir(parents=True)
    (tmp_path / "mixed" / "other.txt").write_text("a text", encoding="utf-8")
    with pytest.raises(UserError, match=re.escape(message)):
        bakeoff.babylm("multilingual", "gpt-tiny", data, "out", **options)
    assert not (tmp_path / "out").exists()


def test_weighted_words_beyond_the_track_are_refused_and_premiums_are_for_it_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(TRACKS, "multilingual", TRACKS["multilingual"]._replace(words=3))
    (tmp_path / "text.txt").write_text("x" * 30, encoding="utf-8")
    with pytest.raises(UserError, match=r"^zho=text.txt: 6 words, weighted by language, and the track multilingual "):
        bakeoff.babylm("multilingual", "gpt-tiny", "zho=text.txt", "out")
    with pytest.raises(UserError, match=r"^--byte-premiums: the words of the track strict have no weights"):
        bakeoff.babylm("strict", "gpt-tiny", "text.txt", "out", byte_premiums="zho=1")


class LmEval:
    """lm-eval's scores of choices by an export: the tokens after those of the context, after the tokenizer's first."""

    def __init__(self, folder):
        self.model = transformers.AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True).eval()
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=True)

    def tokens(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False)

    @torch.no_grad()
    def score(self, context, choice):
        """The sum over the tokens of ` CHOICE` after a context, and their number."""
        context = context.rstrip()
        first = len(self.tokens(context))
        ids = [self.tokenizer.bos_token_id, *self.tokens(f"{context} {choice}")]
        found = torch.log_softmax(self.model(input_ids=torch.tensor([ids])).logits[0].double(), -1)
        scored = range(1 + first, len(ids))
        return float(sum(found[at - 1, ids[at]] for at in scored)), len(scored)


@pytest.mark.parametrize(
    "name", ["gpt2-tiny", *(pytest.param(name, marks=pytest.mark.slow) for name in ("gpt-tiny", "conv-light-lm-tiny"))]
)
def test_scores_are_those_of_lm_eval_on_the_export(name, official, tmp_path):
    (tmp_path / "text.txt").write_text("\n".join(sentences(200)), encoding="utf-8")
    tokenizer = load_recipe(name).changed({"tokenizer.size": 300}).tokenizer  # of bytes, a first word has other tokens
    corpus = prepare(tmp_path / "text.txt", tmp_path / "corpus", tokenizer=tokenizer, workers=0)
    run = untrained(name, corpus, tmp_path / "run", **{"input.length": 128})
    export(run.path, tmp_path / "export")
    lm_eval, scorer = LmEval(tmp_path / "export"), Completions(run, "forwards", device="cpu")
    for suite in suites_of(["eng"]):
        choices = read_choices(suite, official / suite.full)
        found = score_choices(scorer, suite, choices)
        credits, by_token = [], suite.key.startswith("global_piqa")
        for choice in choices:
            contexts = [text[:begin] for text, begin in zip(choice.texts, choice.begins, strict=True)]
            pairs = [lm_eval.score(*each) for each in zip(contexts, choice.answers, strict=True)]
            sums = np.array([total / (count if by_token else 1) for total, count in pairs])
            own = scorer.score(choice.texts, choice.begins, as_lm_eval=True)
            own = own / scorer.sizes(choice.texts, choice.begins, as_lm_eval=True) if by_token else own
            assert own == pytest.approx(sums, abs=2e-3), suite.key
            credits.append(sums.argmax() == choice.right)
        assert found.accuracy == pytest.approx(100 * np.mean(credits)), suite.key
    words = read_words(official / "meco" / "data" / "meco_l1_stims.tsv", "meco_l1_eng")
    assert [each.name for each in words] == ["1:1", "1:2", "1:3", "1:4"]
    surprisals = surprisals_of(scorer, words).surprisals
    for each in words:
        ids = lm_eval.tokens(each.text)
        read = lm_eval.tokenizer(each.text, add_special_tokens=False, return_offsets_mapping=True)
        chosen = [at for at, (_, end) in enumerate(read["offset_mapping"]) if end > each.begin]
        logits = lm_eval.model(input_ids=torch.tensor([[lm_eval.tokenizer.bos_token_id, *ids]])).logits[0].double()
        found = torch.log_softmax(logits, -1)
        expected = -float(sum(found[at, ids[at]] for at in chosen).detach())
        assert surprisals[each.name] == pytest.approx(expected, abs=2e-3)


def test_equal_scores_share_the_point_but_not_of_hanzi_and_of_global_piqa(tmp_path):
    choices = [Choice("a", ("x", "y"), (0, 0), ("x", "y")), Choice("a", ("x", "y", "z"), (0, 0, 0), ("x", "y", "z"), 1)]

    class Known(Fixed):
        def sizes(self, texts, begins, as_lm_eval=False):
            return [1] * len(texts)

        def unknown(self, texts):
            return [False, False, False, True, False]

    scorer = Known([-1.0, -1.0, -2.0, -1.0, -3.0])
    assert score_choices(scorer, suite_of("blimp_nl"), choices).accuracy == 75
    assert score_choices(scorer, suite_of("global_piqa_parallel_en"), choices).accuracy == 100
    hanzi = score_choices(scorer, suite_of("hanzi_pinyin"), choices)
    assert hanzi.accuracy == 0
    assert hanzi.unknown == ["0:", "1:"]
    assert hanzi.sums == {"0:": [-1.0, -1.0], "1:": [-2.0, -1.0, -3.0]}


def test_labels_of_choices_are_numbers_or_one_of_them(tmp_path):
    suite = suite_of("winogrande_en_mubench")
    rows = [{"prompt": "It is ", "choices": ["a", "b"], "label": label} for label in (1, "1", "b")]
    (tmp_path / "test.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    choices = read_choices(suite, tmp_path)
    assert [choice.right for choice in choices] == [1, 1, 1]
    assert {choice.begins for choice in choices} == {(5, 5)}
    (tmp_path / "test.jsonl").write_text(json.dumps({**rows[0], "label": 2}), encoding="utf-8")
    with pytest.raises(UserError, match=r"test.jsonl:1: 2 answers, of which number 2 is right$"):
        read_choices(suite, tmp_path)


def test_each_language_has_the_official_tasks_and_a_baseline():
    labelled = {code: [task.name for task in tasks_of([code])] for code in LANGUAGES}
    common = ["arc", "belebele", "bmlama", "include", "mnli", "sib200", "truthfulqa", "xnli"]
    assert labelled == {
        "eng": [f"{name}_en" for name in common if name != "include"],
        "nld": [f"{name}_nl" for name in common if name != "xnli"],
        "zho": [f"{name}_zh" for name in common],
    }
    assert baselines_of(["zho"])[0].scores["zhoblimp"] == 78.79
    same, alone = baselines_of(["eng", "nld", "zho"])
    assert (same.scores["blimp"], alone.scores["blimp"], same.scores["sib200_nl"]) == (69.18, 73.43, 21.5)
    for code in LANGUAGES:
        public = [suite.key for suite in SUITES[code] if not suite.key.startswith(("global_", "hanzi_"))]
        mean = np.mean([same.scores[key] for key in public])
        assert same.scores[f"mean_{code}"] == pytest.approx(mean, abs=0.006)


def test_words_that_are_read_have_their_language_and_stand_between_asterisks(official, tmp_path):
    assert meco_keys(["nld"]) == ["meco_l1_nld"]
    assert meco_keys(["eng", "nld", "zho"]) == ["meco_l1_eng", "meco_l1_nld", "meco_l1_zho", "meco_l2"]
    path = official / "meco" / "data" / "meco_l1_stims.tsv"
    assert [(each.text, each.begin) for each in read_words(path, "meco_l1_zho")[:2]] == [("老师", 0), ("老师在", 2)]
    (tmp_path / "meco_l2_stims.tsv").write_text("itemid\twordnum\tFullTextMarked\n1\t1\tno word\n")
    with pytest.raises(UserError, match=r"meco_l2_stims.tsv:2: no word between asterisks in 'no word'$"):
        read_words(tmp_path / "meco_l2_stims.tsv", "meco_l2")


@pytest.fixture
def text(tmp_path):
    made = iter(sentences(2000, seed=3))
    (tmp_path / "text" / "eng").mkdir(parents=True)
    (tmp_path / "text" / "zho").mkdir()
    english = [" ".join(next(made) for _ in range(3)) for _ in range(45)]
    (tmp_path / "text" / "eng" / "a.txt").write_text("\n".join(english), encoding="utf-8")
    chinese = [CHINESE[at % 5] + CHINESE[at % 3] for at in range(50)]
    (tmp_path / "text" / "zho" / "a.txt").write_text("\n".join(chinese), encoding="utf-8")
    return tmp_path / "text"


OPTIONS = {"epochs": 2, "document_per_line": True, "device": "cpu", "progress": False}


def test_an_entry_in_two_languages_is_the_same_after_stops_and_its_files_have_the_official_form(
    text, official, tmp_path, monkeypatch
):
    monkeypatch.setattr(rules, "MILLION", 1000)
    monkeypatch.setitem(TRACKS, "multilingual", TRACKS["multilingual"]._replace(words=2000))
    few = [task for task in tasks_of(["eng", "zho"]) if task.name in ("sib200_en", "mnli_zh")]
    monkeypatch.setattr(asking, "tasks_of", lambda languages: few)
    recipe = shrink("gpt2-tiny", **{"training.budget": {"steps": 3}, "training.validation_examples": 4})
    recipe = recipe.changed({"tokenizer.size": 400, "training.checkpoint_minutes": 1e-9})
    done, stop = Counter(), {}

    def counted(name, original):
        def call(*arguments, **options):
            result = original(*arguments, **options)
            done[name] += 1
            if stop.get(name) == done[name]:
                raise KeyboardInterrupt
            return result

        return call

    for name in ("prepare", "pretrain", "export", "write_multilingual"):
        monkeypatch.setattr(entry, name, counted(name, getattr(entry, name)))

    def make(out):
        return babylm("multilingual", recipe, str(text), tmp_path / out, evaluation=official, **OPTIONS)

    for place in ({"prepare": 1}, {"pretrain": 1}, {"export": 2}, {"write_multilingual": 1}):
        stop = place
        with pytest.raises(Interrupted):
            make("stopped")
    stop = {}
    found = make("stopped")
    assert {**done} == {"prepare": 1, "pretrain": 1, "export": 3, "write_multilingual": 2}
    assert found.checkpoints == [1000, 2000]
    assert found.words_read == pytest.approx(2 * found.words, rel=0.02)
    saved = [Run(path).summary for path in sorted((tmp_path / "stopped" / "run" / "saved").iterdir())]
    of_token = found.words_read / Run(tmp_path / "stopped" / "run").summary["tokens"]
    step = of_token * saved[0]["tokens"] / saved[0]["steps"]
    assert 999 < of_token * min(each["tokens"] for each in saved) < 1001 + step  # the first step by which it is reached
    assert sum(found.languages.values()) == pytest.approx(found.words, abs=1)
    assert found.submitted == ("gpt2-tiny_submission.json", "gpt2-tiny_predictions.json")
    scores, predictions = (json.loads((tmp_path / "stopped" / name).read_text()) for name in found.submitted)
    main = found.scores["main"]
    public = {key: score.official / 100 for key, score in main.items() if not key.startswith("hanzi")}
    assert {key: each[key] for key, each in scores.items() if key in main} == pytest.approx(public)
    labelled = {"sib200": {"en": found.labelled["sib200_en"].scores[12] / 100}}
    assert {key: each for key, each in scores.items() if key == "sib200"} == labelled
    assert len(main) == 7 + 7 + 2
    assert predictions["finetune"]["sib200_en"][7]["index"] == 7
    assert len(predictions["finetune"]["mnli_zh"]) == 8  # of nine rows, as officially in whole batches of eight
    assert {"zhoblimp", "zhoblimp_island", "blimp_binding"} <= predictions["zeroshot"].keys()
    assert len(predictions["fast_eval_results"]) == 11  # 1,000 to 9,000, 10,000 and 20,000 words
    assert predictions["fast_eval_results"][1].keys() == main.keys()
    hidden = predictions["fast_eval_hidden"][1]
    assert hidden["revision"] == "chck_2M"
    assert [len(each["scores"]) for each in hidden["hidden"]["hanzi_pinyin"].values()] == [2, 2, 2]
    assert [*hidden["hidden"]["meco_l1"]] == ["eng", "zho"]
    assert [*hidden["hidden"]["meco_l2"]["zho"]] == ["1:1", "1:2", "1:3", "1:4"]
    assert "blimp: 6 items, officially 59,875" in found.lacking
    assert found.lacking[-1] == "blimp and 15 more: scores of 2 checkpoints, the track has 11"
    report = (tmp_path / "stopped" / "babylm.md").read_text()
    assert "| zh: hanzi_structure |" in report
    assert "(English" in report
    assert make("whole").model_dump() == found.model_dump()
    for name in found.submitted:
        assert (tmp_path / "whole" / name).read_text() == (tmp_path / "stopped" / name).read_text()
    with pytest.raises(UserError, match=r"begun with byte_premiums\.zho 0.9893825, not 2.0"):
        babylm("multilingual", recipe, str(text), tmp_path / "whole", byte_premiums="zho=2", **OPTIONS)
