"""Where the ends of lines are tokens, a text that is scored is a line."""

import pytest
import torch
from tests.conftest import sentences
from tests.untrained_runs import untrained

from bakeoff.preparation.prepare import prepare
from bakeoff.row import Row
from bakeoff.scoring.minimal_pairs import score_sentences
from bakeoff.tasks.evaluate import evaluate
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig


def test_a_line_is_scored_behind_the_end_of_another_and_with_its_own(tmp_path):
    text = "".join(line + "\n" for line in sentences(300))
    (tmp_path / "train.txt").write_text(text, encoding="utf-8")
    config = TokenizerConfig(kind="whitespace", size=120, end_of_line=True)
    corpus = prepare(tmp_path / "train.txt", tmp_path / "corpus", tokenizer=config, validation=0.1, workers=0)
    run = untrained("gpt-tiny", corpus, tmp_path / "run")
    (tmp_path / "lines.txt").write_text("The river\n\n", encoding="utf-8")
    found, empty = evaluate(run.path, texts=tmp_path / "lines.txt", device="cpu")["results"]
    end = corpus.tokenizer.end_of_line
    ids = [end, *corpus.tokenizer.encode(["The river"])[0][0].tolist(), end]
    module = run.load()
    with torch.no_grad():
        hidden = module.model(Row(torch.tensor([ids])))[0][0]
        scores = module.heads["clm"].log_probabilities(hidden, module.model.embedding.weight)
    expected = sum(float(scores[place, label]) for place, label in enumerate(ids[1:]))
    assert found["tokens"] == 3
    assert found["log_probability"] == pytest.approx(expected, abs=1e-4)
    assert empty["tokens"] == 0
    assert score_sentences(run, ["The river", ""], "forwards", device="cpu").tolist() == [
        pytest.approx(found["log_probability"], abs=1e-4),
        0.0,
    ]
