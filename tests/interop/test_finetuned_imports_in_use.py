"""Fine-tuned models of transformers as runs: the answers of its pipelines, and what else there is to do with a run."""

import json
import shlex

import pytest
import torch
from safetensors.torch import load_file
from tokenizers.processors import TemplateProcessing
from typer.testing import CliRunner

import bakeoff
from bakeoff.cli.app import app
from bakeoff.errors import UserError
from bakeoff.interop.export import export
from bakeoff.interop.hugging_face.importing import import_model
from bakeoff.runs.run import Run
from bakeoff.tasks.finetuned_run import FinetunedRun
from tests.interop.finetuned_models import NAMES, TAGS, saved, written_by

transformers = pytest.importorskip("transformers")


@pytest.fixture(autouse=True)
def _no_bars():
    transformers.utils.logging.disable_progress_bar()


TEXTS = ["the model reads", "a b, c.", "reading 中文 the", "x", "the the model of models, reads models. abc"]


def pipeline(task, folder, **more):
    made = transformers.pipeline(task, model=str(folder), device="cpu")
    return [made(text, **more) for text in TEXTS]


def test_classes_are_those_of_the_pipeline(tmp_path):
    for name in ("bert classes", "roberta classes", "albert classes"):
        folder = tmp_path / name.split()[0]
        saved(folder / "theirs", name)
        run = import_model(folder / "theirs", folder / "run")
        if name.startswith("albert"):  # whose tokenizer.json says nothing of what stands around a text
            export(run.path, folder / "theirs again")
            folder = folder / "theirs again"
        else:
            folder = folder / "theirs"
        for own, (other,) in zip(
            bakeoff.predict(run.path, TEXTS), pipeline("text-classification", folder), strict=True
        ):
            assert own["label"] == other["label"]
            assert own["probability"] == pytest.approx(other["score"], abs=1e-5)


def test_labels_numbers_and_tags_are_those_of_the_pipeline(tmp_path):
    names = ("bert labels", "bert numbers", "bert tags")
    for name in names:
        saved(tmp_path / name / "theirs", name)
    labels, numbers, tags = (import_model(tmp_path / name / "theirs", tmp_path / name / "run").path for name in names)
    found = pipeline("text-classification", tmp_path / "bert labels/theirs", top_k=None)
    for own, other in zip(bakeoff.predict(labels, TEXTS), found, strict=True):
        assert own["probabilities"] == pytest.approx({each["label"]: each["score"] for each in other}, abs=1e-5)
    found = pipeline("text-classification", tmp_path / "bert numbers/theirs", function_to_apply="none")
    for own, (other,) in zip(bakeoff.predict(numbers, TEXTS), found, strict=True):
        assert own["value"] == pytest.approx(other["score"], abs=1e-4)
    found = pipeline("token-classification", tmp_path / "bert tags/theirs", ignore_labels=[])
    for text, own, other in zip(TEXTS, bakeoff.predict(tags, TEXTS), found, strict=True):
        at = {each["start"]: each["entity"] for each in other}
        starts = [0 if not number else len(" ".join(text.split()[:number])) + 1 for number in range(len(text.split()))]
        assert own["tags"] == [at[start] for start in starts]


@pytest.mark.parametrize("name", ["bert tags", "roberta tags", "xlnet tags"])
def test_a_word_has_the_tag_of_its_first_token_as_transformers_counts_them(name, tmp_path):
    """Which is a mark of its beginning alone where the vocabulary has no token of the mark and a letter."""
    theirs = saved(tmp_path / "theirs", name)
    if name == "roberta tags":  # which reads given words in no other way
        settings = {"tokenizer_class": "RobertaTokenizer", "add_prefix_space": True}
        (tmp_path / "theirs/tokenizer_config.json").write_text(json.dumps(settings))
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")

    def read(words):
        row = tokenizer(words, is_split_into_words=True, return_tensors="pt")
        if name == "xlnet tags":
            row["token_type_ids"] = torch.tensor([[0] * (row["input_ids"].shape[1] - 1) + [2]])
        with torch.no_grad():
            return row.tokens(), row.word_ids(), theirs(**row).logits[0]

    sentences = [["the", "model", "ca", "中", "b"], ["中b", "the", "za"], ["x", "reads", "c,"]]
    _, _, outputs = read(sentences[0])
    theirs.classifier.bias.data -= outputs.mean(0)  # so that the tokens of a sentence have several tags
    theirs.save_pretrained(tmp_path / "theirs")
    written_by(tmp_path / "theirs", "4.57.1")
    run = import_model(tmp_path / "theirs", tmp_path / "run")
    found, marks = [], 0
    for sentence, own in zip(sentences, bakeoff.predict(run.path, list(map(" ".join, sentences))), strict=True):
        tokens, owners, outputs = read(sentence)
        first = [owners.index(word) for word in range(len(sentence))]
        assert own["tags"] == [TAGS["id2label"][int(outputs[place].argmax())] for place in first]
        found += own["tags"]
        marks += sum(tokens[place] in ("▁", "Ġ") for place in first)
    assert len({*found}) > 1
    environment = json.loads((run.path / "environment.json").read_text())
    (run.path / "environment.json").write_text(json.dumps({**environment, "rules": 1}))
    (run.path / "bakeoff.sha256").unlink()
    older = [tag for each in bakeoff.predict(run.path, list(map(" ".join, sentences))) for tag in each["tags"]]
    assert (older != found) == (name != "bert tags")  # as a run of older rules has learned its words
    assert (marks > 0) == (name != "bert tags")


@pytest.mark.parametrize("name", ["bert classes", "roberta classes"])
def test_pairs_are_read_as_their_tokenizer_gives_them(name, tmp_path):
    """RoBERTa's with two separators between the texts."""
    theirs = saved(tmp_path / "pairs", name)
    run = import_model(tmp_path / "pairs", tmp_path / "run", pairs=True)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "pairs")
    batch = tokenizer(TEXTS, TEXTS[::-1], padding=True, return_tensors="pt")
    with torch.no_grad():
        found = theirs(**batch).logits.softmax(-1).max(-1)
    for own, score, place in zip(bakeoff.predict(run.path, TEXTS, TEXTS[::-1]), *found, strict=True):
        assert own["label"] == NAMES["id2label"][int(place)]
        assert own["probability"] == pytest.approx(float(score), abs=1e-5)
    done = export(run.path, tmp_path / "out")
    again = transformers.AutoTokenizer.from_pretrained(done.path)
    assert again(TEXTS, TEXTS[::-1])["input_ids"] == tokenizer(TEXTS, TEXTS[::-1])["input_ids"]


def generic(folder, processor, **more):
    """Give a model a tokenizer of no family's class, which does what its tokenizer.json says."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    inner = tokenizer.backend_tokenizer
    state = json.loads(inner.to_str())
    named = {f"{role}_token": getattr(tokenizer, f"{role}_token") for role in ("unk", "pad", "cls", "sep", "mask")}
    ids = [(token, inner.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    made = None if processor is None else TemplateProcessing(*processor, ids)
    state["post_processor"] = None if made is None else json.loads(made.__getstate__())
    (folder / "tokenizer.json").write_text(json.dumps(state), encoding="utf-8")
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", **named, **more}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")


ONE = "[CLS] $A [SEP]"
USUAL = (ONE, "[CLS] $A [SEP] $B:1 [SEP]:1")


@pytest.mark.parametrize(
    ("processor", "settings", "refused"),
    [
        (USUAL, {"model_input_names": ["input_ids", "token_type_ids", "attention_mask"]}, None),
        (USUAL, {"model_input_names": ["input_ids", "attention_mask"]}, "gives no token_type_ids, and rows here have"),
        (USUAL, {"tokenizer_class": "TokenizersBackend"}, "gives no token_type_ids, and rows here have segments"),
        (
            (ONE, "[CLS] $A [SEP] $B [SEP]"),
            {},
            "gives the segments 0 0 0 0 0 around two texts, and rows here have 0 0 0 1 1",
        ),
        (None, {}, "it reads TEXT TEXT, and rows here are [CLS] TEXT [SEP] TEXT [SEP]"),
    ],
)
def test_pairs_are_refused_whose_tokenizer_gives_other_segments(processor, settings, refused, tmp_path):
    theirs = saved(tmp_path / "pairs", "bert classes")
    generic(tmp_path / "pairs", processor, **settings)
    if refused is not None:
        with pytest.raises(UserError) as error:
            import_model(tmp_path / "pairs", tmp_path / "run", pairs=True)
        assert refused in str(error.value)
        return
    run = import_model(tmp_path / "pairs", tmp_path / "run", pairs=True)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "pairs")
    batch = tokenizer(TEXTS, TEXTS[::-1], padding=True, return_tensors="pt")
    with torch.no_grad():
        found = theirs(**batch).logits.softmax(-1).max(-1)
    assert [each["probability"] for each in bakeoff.predict(run.path, TEXTS, TEXTS[::-1])] == pytest.approx(
        found.values.tolist(), abs=1e-5
    )


@pytest.mark.parametrize(("name", "pairs"), [("albert classes", True), ("xlnet classes", False), ("xlnet tags", False)])
def test_tokenizers_that_give_segments_in_transformers_4_alone(name, pairs, tmp_path):
    """What transformers 5 wrote has learned without them; in XLNet the last token of single texts has one, too."""
    saved(tmp_path / "theirs", name)
    written_by(tmp_path / "theirs", "5.2.0")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    assert "token_type_ids" not in tokenizer("a", "b")
    if pairs:
        with pytest.raises(UserError, match="gives no token_type_ids, and rows here have segments"):
            import_model(tmp_path / "theirs", tmp_path / "run", pairs=True)
        assert isinstance(import_model(tmp_path / "theirs", tmp_path / "single"), FinetunedRun)
    else:
        run = import_model(tmp_path / "theirs", tmp_path / "run")
        assert any("gives no token_type_ids" in each for each in run.environment["imported"]["remarks"])
    settings = {"model_input_names": ["input_ids", "token_type_ids", "attention_mask"]}
    (tmp_path / "theirs/tokenizer_config.json").write_text(json.dumps(settings))
    assert isinstance(import_model(tmp_path / "theirs", tmp_path / "with", pairs=pairs), FinetunedRun)


@pytest.mark.parametrize("name", ["bert classes", "roberta answers", "albert choices"])
@pytest.mark.parametrize("files", [1, 2])
def test_the_line_that_converts_a_pickle_keeps_every_tensor(name, files, tmp_path):
    """Those of a head, and those that the class in config.json has no place for."""
    theirs = saved(tmp_path / "theirs", name)
    expected = import_model(tmp_path / "theirs", tmp_path / "expected")
    (tmp_path / "theirs/model.safetensors").unlink()
    tensors = {**theirs.state_dict(), "of.another.head": torch.arange(6.0).view(2, 3).T}
    tensors["tied"] = tensors["of.another.head"]
    for number in range(files):
        part = dict([*tensors.items()][number::files])
        shard = "" if files == 1 else f"-{number + 1:05d}-of-{files:05d}"
        torch.save(part, tmp_path / f"theirs/pytorch_model{shard}.bin")
    if files > 1:
        (tmp_path / "theirs/pytorch_model.bin.index.json").write_text("{}")
    with pytest.raises(UserError, match="convert it once") as error:
        import_model(tmp_path / "theirs", tmp_path / "run")
    python, option, code = shlex.split(str(error.value).partition("by what runs no code of it: ")[2])
    assert (python, option) == ("python", "-c")
    exec(code, {})
    assert load_file(tmp_path / "theirs/model.safetensors").keys() == tensors.keys()
    run = import_model(tmp_path / "theirs", tmp_path / "run")
    one, other = (load_file(each.path / "model.safetensors") for each in (expected, run))
    assert one.keys() == other.keys()
    assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())


def test_what_a_tokenizer_does_otherwise_with_single_texts_is_said(tmp_path):
    saved(tmp_path / "bare", "bert classes")
    generic(tmp_path / "bare", None)
    run = import_model(tmp_path / "bare", tmp_path / "run")
    said = "its head of a task is not used: it reads TEXT, and rows here are [CLS] TEXT [SEP]"
    assert said in run.environment["imported"]["remarks"]
    saved(tmp_path / "left", "bert classes")
    generic(tmp_path / "left", USUAL, truncation_side="left", model_max_length=20)
    run = import_model(tmp_path / "left", tmp_path / "cut")
    said = "of texts that are too long transformers reads the end (truncation_side), and the run does not"
    assert said in run.environment["imported"]["remarks"]


@pytest.mark.parametrize("name", ["bert answers", "roberta answers"])
def test_answers_are_those_of_the_model(name, tmp_path):
    theirs = saved(tmp_path / "answers", name)
    run = import_model(tmp_path / "answers", tmp_path / "reader")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "answers")
    question, context = "the model", TEXTS[-1]
    batch = tokenizer(question, context, return_tensors="pt", return_offsets_mapping=True)
    places = batch.pop("offset_mapping")[0].tolist()
    inside = [place for place, side in enumerate(batch.sequence_ids(0)) if side == 1]
    with torch.no_grad():
        said = theirs(**batch)
    spans = [
        (float(said.start_logits[0, a] + said.end_logits[0, b]), a, b)
        for a in inside
        for b in inside
        if a <= b < a + 30
    ]
    _, first, last = max(spans)
    (own,) = bakeoff.predict(run.path, [question], [context])
    assert own["answer"] == context[places[first][0] : places[last][1]]


@pytest.mark.parametrize("name", ["bert classes", "distilbert classes", "electra classes"])
def test_it_is_used_as_any_fine_tuned_run(name, tmp_path):
    """Evaluated, loaded, listed, checked, and fine-tuned again from its own head."""
    saved(tmp_path / "theirs", name)
    run = import_model(tmp_path / "theirs", tmp_path / "runs/imported")
    answers = bakeoff.predict(run.path, TEXTS)
    labels = ["bad", "good", "odd"] * 7
    rows = "".join(f"{text}\t{label}\n" for text, label in zip(TEXTS * 4, labels, strict=False))
    (tmp_path / "rows.tsv").write_text("text\tlabel\n" + rows)
    scores = bakeoff.evaluate(run.path, data=tmp_path / "rows.tsv")
    right = [own["label"] == label for own, label in zip(answers * 4, labels, strict=False)]
    assert scores["scores"]["accuracy"] == pytest.approx(sum(right) / len(right))
    assert scores["simplest_from"] == "data"
    assert bakeoff.load(run.path).predict(TEXTS) == answers
    (listed,) = bakeoff.list_runs([tmp_path / "runs"])
    assert (listed.kind, listed.state, listed.score) == ("fine-tuning", "finished", None)
    assert not any(group.problems for group in bakeoff.check(run.path).groups)
    files = dict.fromkeys(("train", "dev", "test"), tmp_path / "rows.tsv")
    task = bakeoff.ClassificationConfig(**files, text_column="text", label_column="label")
    config = bakeoff.FinetuneConfig(epochs=[1], least_steps=0, learning_rate=[1e-9])
    made = bakeoff.finetune(run.path, task, tmp_path / "tuned", config=config, progress=False)
    # The head went along, and is pooled and bent as it was.
    for own, before in zip(bakeoff.predict(made.path, TEXTS), answers, strict=True):
        assert own["label"] == before["label"]
        assert own["probability"] == pytest.approx(before["probability"], abs=1e-4)


def test_the_command_says_what_it_is_and_what_is_not_used(tmp_path):
    saved(tmp_path / "theirs", "bert classes")
    done = CliRunner().invoke(app, ["import", str(tmp_path / "theirs"), "--pairs", "--out", str(tmp_path / "run")])
    assert done.exit_code == 0
    assert "bert, fine-tuned for classification, 33,091 parameters" in done.output.replace("\n", " ")
    saved(tmp_path / "bart", "bart classes")
    done = CliRunner().invoke(app, ["import", str(tmp_path / "bart"), "--json", "--out", str(tmp_path / "body")])
    assert json.loads(done.stdout)["task"] is None
    assert "its head of a task is not used: its decoder" in json.loads(done.stdout)["remarks"][0]


def test_without_its_head_it_is_a_pre_trained_run(tmp_path):
    saved(tmp_path / "theirs", "bert classes")
    run = import_model(tmp_path / "theirs", tmp_path / "run", head=False)
    assert isinstance(run, Run)
    assert run.finished
