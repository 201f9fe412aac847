"""Fine-tuned models of transformers become fine-tuned runs: the same numbers, the same answers, the same bits again."""

import json

import pytest
import torch
from safetensors.torch import load_file

from bakeoff.errors import UserError
from bakeoff.interop.export import export
from bakeoff.interop.hugging_face.importing import import_model
from bakeoff.row import Row
from bakeoff.runs.run import Run
from bakeoff.tasks.finetuned_run import FinetunedRun
from tests.conftest import crossed
from tests.interop.elsewhere import write_wordpiece
from tests.interop.finetuned_models import BERT, CARRIED, LEFT_OUT, saved
from tests.interop.test_modernbert import in_double  # noqa: F401 a fixture
from tests.models.conftest import double  # noqa: F401 a fixture

transformers = pytest.importorskip("transformers")


@pytest.fixture(autouse=True)
def _no_bars():
    transformers.utils.logging.disable_progress_bar()


def both(theirs, run: FinetunedRun, module):
    """Their numbers and ours of rows with padding; where each token has its own without the padding's."""
    torch.manual_seed(1)
    ids = torch.randint(5, theirs.config.vocab_size, (3, 60))
    padding_mask = torch.arange(60) < torch.tensor([[60], [31], [2]])
    ids = ids.masked_fill(~padding_mask, theirs.config.pad_token_id or 0)
    segments = (torch.arange(60) > 12).long().expand(3, -1) if run.format().segments else None
    given = {"input_ids": ids, "attention_mask": padding_mask.long()} | (
        {} if segments is None else {"token_type_ids": segments}
    )
    if theirs.config.model_type == "xlnet":  # which reads the last place of a row
        turn = {
            name: [row.roll(60 - int(own.sum())) for row, own in zip(x, padding_mask, strict=True)]
            for name, x in given.items()
        }
        given = {name: torch.stack(rows) for name, rows in turn.items()}
    if run.task.kind == "choice":
        given = {name: each[None] for name, each in given.items()}
    kept = []  # what the last map gives, which goes on in single precision
    module.output.register_forward_hook(lambda *each: kept.append(each[-1]))
    with torch.no_grad():
        module(Row(ids, segments, padding_mask))
        found = theirs(**given)
    (ours,) = kept
    if run.task.kind == "question_answering":
        expected = torch.stack([found.start_logits, found.end_logits], -1)
    else:
        expected = found.logits[0][:, None] if run.task.kind == "choice" else found.logits
    if ours.dim() == 3:
        shown = padding_mask.flip(1) if theirs.config.model_type == "xlnet" else padding_mask
        return ours[padding_mask], expected[shown]
    return ours, expected


@pytest.fixture
def loaded(request, tmp_path):
    """Their model, the run that it becomes, and that loaded, before anything is float64 by default."""
    theirs = saved(tmp_path / "theirs", request.param)
    run = import_model(tmp_path / "theirs", tmp_path / "run")
    assert isinstance(run, FinetunedRun)
    assert run.task.kind == CARRIED[request.param][3]
    return theirs.double(), run, run.load().double()


@pytest.mark.parametrize("loaded", CARRIED, indirect=True)
def test_the_same_numbers(loaded, request):
    # Of ModernBERT both sides make angles in single precision, which theirs keep from when they were made.
    request.getfixturevalue("in_double" if loaded[0].config.model_type == "modernbert" else "double")
    ours, expected = both(*loaded)
    assert ours.shape == expected.shape
    assert float((ours - expected).abs().max()) <= 1e-12 * float(expected.abs().max())


@pytest.mark.parametrize("name", crossed(CARRIED, [*CARRIED][::2]))
def test_the_same_bits_again(name, tmp_path):
    saved(tmp_path / "theirs", name)
    run = import_model(tmp_path / "theirs", tmp_path / "run")
    done = export(run.path, tmp_path / "again")
    assert done.largest_difference < 1e-3
    assert CARRIED[name][0] in done.loads_with
    before, after = (load_file(path / "model.safetensors") for path in (tmp_path / "theirs", done.path))
    assert before.keys() <= after.keys()
    assert all(torch.equal(tensor, after[key]) for key, tensor in before.items())
    told, again = (json.loads((path / "config.json").read_text()) for path in (tmp_path / "theirs", done.path))
    assert again.get("id2label") == told.get("id2label", again.get("id2label"))


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_has_no_counterpart_is_said_and_kept(name, tmp_path):
    saved(tmp_path / "theirs", name)
    run = import_model(tmp_path / "theirs", tmp_path / "run")
    assert isinstance(run, Run)
    (reason,) = [each for each in run.environment["imported"]["remarks"] if each.startswith("its head of a task")]
    assert LEFT_OUT[name][3] in reason
    done = export(run.path, tmp_path / "again")
    before, after = (load_file(path / "model.safetensors") for path in (tmp_path / "theirs", done.path))
    assert all(torch.equal(tensor, after[key]) for key, tensor in before.items())


def test_a_classifier_of_t5_becomes_its_model(tmp_path):
    """Whose classes hold the model below a name; an encoder alone is one line."""
    theirs = saved(tmp_path / "theirs", "t5 classes")
    run = import_model(tmp_path / "theirs", tmp_path / "run")
    assert isinstance(run, Run)
    assert "its head of a task is not used" in run.environment["imported"]["remarks"][0]
    done = export(run.path, tmp_path / "again")
    body = transformers.T5ForConditionalGeneration.from_pretrained(done.path)
    ours = {name: tensor for name, tensor in body.state_dict().items() if name != "lm_head.weight"}
    assert ours
    assert all(torch.equal(tensor, theirs.state_dict()[f"transformer.{name}"]) for name, tensor in ours.items())
    saved(tmp_path / "encoder", "t5 tags")
    with pytest.raises(UserError, match="an encoder of T5 without its decoder"):
        import_model(tmp_path / "encoder", tmp_path / "other")


def test_a_single_class_tells_nothing_apart(tmp_path):
    saved(tmp_path / "theirs", "bert numbers")
    path = tmp_path / "theirs/config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"problem_type": "single_label_classification"}))
    run = import_model(tmp_path / "theirs", tmp_path / "run")
    assert "a single class" in run.environment["imported"]["remarks"][0]


CONTRADICTIONS = {
    "fewer names": ({"id2label": {"0": "bad", "1": "good"}}, {}, "a name for each of the head's 3 outputs is wanted"),
    "names of others": ({"id2label": {"0": "a", "1": "b", "7": "c"}}, {}, "id2label"),
    "a name twice": ({"id2label": {"0": "a", "1": "b", "2": "a"}}, {}, "'a' is the name of two labels"),
    "another problem": ({"problem_type": "ranking"}, {}, "problem_type: 'ranking' has no counterpart here"),
    "pairs of tags": ({"architectures": ["BertForQuestionAnswering"]}, {"pairs": True}, "qa_outputs.weight is missing"),
    "no head": ({"architectures": ["BertForTokenClassification"]}, {"pairs": True}, "--pairs: a model for tagging"),
    "pairs without a head": ({"architectures": ["BertForMaskedLM"]}, {"pairs": True}, "--pairs is for fine-tuned"),
    "pairs and no head": ({}, {"pairs": True, "head": False}, "leave --pairs out"),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_a_config_that_contradicts_the_weights_is_one_line(case, tmp_path):
    change, options, message = CONTRADICTIONS[case]
    saved(tmp_path / "theirs", "bert classes")
    path = tmp_path / "theirs/config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(UserError) as error:
        import_model(tmp_path / "theirs", tmp_path / "run", **options)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert [each.name for each in tmp_path.iterdir()] == ["theirs"]


def classifier(folder, **settings):
    """A random classifier of theirs with other settings."""
    folder.mkdir()
    config = transformers.BertConfig(vocab_size=write_wordpiece(folder), **BERT | settings)
    transformers.BertForSequenceClassification(config).save_pretrained(folder)


def test_names_of_many_labels_stand_in_the_order_of_the_outputs(tmp_path):
    """Whose keys are text in JSON, where "10" comes before "2"."""
    names = [f"class {number * 7 % 23}" for number in range(23)]
    classifier(tmp_path / "theirs", id2label=dict(enumerate(names)))
    run = import_model(tmp_path / "theirs", tmp_path / "run")
    assert list(run.learned.classes) == names
    done = export(run.path, tmp_path / "again")
    again = json.loads((done.path / "config.json").read_text())
    assert [again["id2label"][str(number)] for number in range(23)] == names


@pytest.mark.parametrize(("said", "length"), [(7, 512), (8, 8), (599, 599), (600, 600), (601, 512), (10**30, 512)])
def test_rows_are_as_long_as_the_tokenizer_says_if_the_model_has_room(said, length, tmp_path):
    classifier(tmp_path / "theirs", num_labels=2, max_position_embeddings=600)
    (tmp_path / "theirs/tokenizer_config.json").write_text(json.dumps({"model_max_length": said}))
    assert import_model(tmp_path / "theirs", tmp_path / "run").config.length == length
