"""Fine-tuned runs of models that transformers does not have, tagging, answering, choosing as `predict`."""

import json

import pytest

from bakeoff.interop.model_card import model_card
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.kinds.choice import ChoiceConfig
from bakeoff.tasks.kinds.question_answering import QuestionAnsweringConfig
from bakeoff.tasks.kinds.tagging import TaggingConfig
from bakeoff.tasks.predict import predict, predict_file
from tests.conftest import shrink
from tests.interop.fitted_runs import files, fitted, sentences
from tests.interop.test_remote_code import program
from tests.untrained_runs import untrained

pytest.importorskip("transformers")


@pytest.mark.slow
def test_tags_and_answers_are_ours(corpus, tmp_path):
    places = [tmp_path / name for name in ("tags", "answers", "choices")]
    for place in places:
        place.mkdir()
    tagging = TaggingConfig(
        **files(places[0], lambda n, t: {"t": t.split(), "y": ["xyz"[len(word) % 3] for word in t.split()]}),
        text_column="t",
        label_column="y",
    )
    run, job = fitted(shrink("conv-depthwise-encoder-tiny"), tagging, corpus, places[0])
    tags = {**job, "do": "ask", "pipeline": "token-classification", "auto": "AutoModelForTokenClassification"}
    tags["more"] = {"aggregation_strategy": "none"}
    tagged = predict(run, job["texts"], device="cpu")

    def paragraph(text, number):
        answer = text.split()[1]
        asked = {
            "id": str(number),
            "question": "two",
            "answers": [{"text": answer, "answer_start": text.index(answer)}],
        }
        return {"context": text, "qas": [asked]}

    squad = places[1] / "squad.json"
    contexts = [f"stone {text}" for text in sentences(40)]
    squad.write_text(json.dumps({"data": [{"paragraphs": [paragraph(t, n) for n, t in enumerate(contexts)]}]}))
    answering = QuestionAnsweringConfig(train=squad, dev=squad, test=squad, longest_answer=6)
    run, job = fitted(shrink("lstm-encoder-tiny"), answering, corpus, places[1])
    answers = {**job, "do": "answer", "auto": "AutoModelForQuestionAnswering", "longest": 6}
    answers["texts"] = [["two", text] for text in contexts[:5]]
    answered = predict(run, ["two"] * 5, contexts[:5], device="cpu")

    found = program([tags, answers], tmp_path)
    for own, other in zip(found[0], tagged, strict=True):
        firsts = {each["start"]: each["entity"] for each in own}
        text = " ".join(other["words"])
        starts = [sum(len(word) + 1 for word in other["words"][:place]) for place in range(len(other["words"]))]
        assert text
        assert [firsts[start] for start in starts] == other["tags"]
    for own, other in zip(found[1], answered, strict=True):
        assert own == other["answer"]


@pytest.mark.slow
def test_the_likeliest_choice_is_ours(corpus, tmp_path):
    rows = [
        {"c": text, "e": [f"{text} one", "green window", "two"], "y": n % 3} for n, text in enumerate(sentences(48))
    ]
    path = tmp_path / "choices.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = ChoiceConfig(train=path, dev=path, test=path, text_column="c", choices="e", label_column="y")
    run, job = fitted(shrink("conv-light-hybrid-tiny"), task, corpus, tmp_path)
    texts = [[row["c"], row["e"]] for row in rows[:6]]
    ours = [each.prediction for part in predict_file(FinetunedRun.open(run), path, device="cpu") for each in part][:6]
    (found,) = program([{**job, "do": "choose", "auto": "AutoModelForMultipleChoice", "texts": texts}], tmp_path)
    assert found == [own.choice for own in ours]


def test_a_card_names_a_pipeline_only_where_transformers_has_one(tmp_path, corpus):
    run = untrained("conv-light-encoder-tiny", corpus, tmp_path / "run").path
    card = model_card(run, "AutoModelForMaskedLM", "fill-mask", [])
    assert 'pipeline("fill-mask"' in card
    # Without the word, transformers waits for an answer to a question on the terminal, for the tokenizer, too.
    loading = [line for line in card.splitlines() if "FOLDER" in line]
    assert len(loading) == 3
    assert all("trust_remote_code=True" in line for line in loading)
    for purpose in ("question-answering", "multiple-choice"):
        assert "pipeline(" not in model_card(run, "AutoModel", purpose, [])
