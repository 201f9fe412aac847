"""Fine-tuned runs of models that transformers does not have, through its pipelines: the answers of `predict`."""

import pytest

from bakeoff.tasks.kinds.classification import ClassificationConfig
from bakeoff.tasks.kinds.multilabel import MultilabelConfig
from bakeoff.tasks.kinds.regression import RegressionConfig
from bakeoff.tasks.predict import predict
from tests.conftest import shrink
from tests.interop.fitted_runs import files, fitted
from tests.interop.test_remote_code import program

pytest.importorskip("transformers")


@pytest.mark.slow
def test_classes_pairs_labels_and_numbers(corpus, tmp_path):
    places = [tmp_path / name for name in ("classes", "labels", "numbers")]
    for place in places:
        place.mkdir()
    columns = {"text_column": "t", "label_column": "y"}
    classes = ClassificationConfig(**files(places[0], lambda n, t: {"t": t, "y": "ab"[n % 2]}), **columns)
    run, job = fitted(shrink("conv-light-encoder-tiny"), classes, corpus, places[0], layers="weighted", pooling="cls")
    jobs, runs = [{**job, "do": "ask", "pipeline": "text-classification"}], [run]
    labels = MultilabelConfig(**files(places[1], lambda n, t: {"t": t, "y": [["a"], ["a", "b"]][n % 2]}), **columns)
    run, job = fitted(shrink("gcnn-tiny"), labels, corpus, places[1])
    more = {"function_to_apply": "sigmoid", "top_k": None}
    jobs.append({**job, "do": "ask", "pipeline": "text-classification", "more": more})
    runs.append(run)
    numbers = RegressionConfig(**files(places[2], lambda n, t: {"t": t, "y": 100 + 5 * len(t)}), **columns)
    run, job = fitted(shrink("elmo-tiny"), numbers, corpus, places[2], pooling="mean", layers=2)
    jobs.append({**job, "do": "ask", "pipeline": "text-classification", "more": {"function_to_apply": "none"}})
    runs.append(run)
    for each in jobs:
        each["auto"] = "AutoModelForSequenceClassification"
    found = program(jobs, tmp_path)
    ours = [predict(run, job["texts"], device="cpu") for run, job in zip(runs, jobs, strict=True)]
    for (own,), other in zip(found[0], ours[0], strict=True):
        assert own["label"] == other["label"]
        assert own["score"] == pytest.approx(other["probability"], abs=1e-4)
    for own, other in zip(found[1], ours[1], strict=True):
        scores = {each["label"]: each["score"] for each in own}
        assert scores == pytest.approx(other["probabilities"], abs=1e-4)
    for (own,), other in zip(found[2], ours[2], strict=True):
        assert own["score"] == pytest.approx(other["value"], abs=1e-2)
