"""The words of BLEU are those of the targets' script, and the results say which; sacrebleu itself is the oracle."""

import pytest
import sacrebleu
from sacrebleu.metrics.bleu import BLEU

from bakeoff.tasks.kinds.sequence_to_sequence import SequenceToSequenceConfig, SourceText
from bakeoff.tasks.scores.text_scores import bleu_sums, chosen_tokens, text_scores

CHINESE = ["他昨天去了北京。", "我们在 Berlin 学习 machine learning 的理论", "天气非常好"]
WRITTEN = ["他昨天去了上海。", "我们在 Berlin 学习 machine learning", "天气不好"]
SCRIPTS = {
    "zh": [CHINESE, ["漢字"], ["の字在这里很少很少很少见到"]],
    "char": [["今日は天気がいいです", "東京に行きました"], ["ท้องฟ้าสีฟ้า"], ["မြန်မာ"], ["ខ្មែរ"]],
    "13a": [["The 北京 opera is an old one"], ["오늘 날씨가 좋다"], ["दिन अच्छा है"], ["день"], ["1 2 3"], [""], []],
}


@pytest.mark.parametrize(("tokens", "references"), [(key, each) for key, own in SCRIPTS.items() for each in own])
def test_the_script_of_the_references_decides(tokens, references):
    assert chosen_tokens("auto", references) == tokens
    assert chosen_tokens("intl", references) == "intl"


@pytest.mark.parametrize(("setting", "tokens"), [("auto", "zh"), ("13a", "13a"), ("char", "char")])
def test_scores_and_sums_are_those_of_sacrebleu_with_this_tokenizer(setting, tokens):
    oracle = BLEU(tokenize=tokens, force=True).corpus_score(WRITTEN, [CHINESE]).score / 100
    assert text_scores(CHINESE, WRITTEN, setting)["bleu"] == pytest.approx(oracle, abs=1e-6)
    sums, value = bleu_sums(CHINESE, WRITTEN, setting)
    assert value(sums.sum(0)) == pytest.approx(oracle)


@pytest.mark.parametrize(("setting", "tokens"), [("auto", "zh"), ("intl", "intl")])
def test_the_results_have_the_signature_of_sacrebleu(setting, tokens):
    scorer = BLEU(tokenize=tokens)
    scorer.corpus_score(WRITTEN, [CHINESE])
    config = SequenceToSequenceConfig(train="t.jsonl", bleu_tokens=setting)
    task = config.learn([SourceText(1, ("a text",), target) for target in CHINESE], "t.jsonl")
    assert task.notes == [f"BLEU is sacrebleu's, {scorer.get_signature().format()}"]
    assert sacrebleu.__version__ in task.notes[0]
