"""Models that write as ONNX: the lines of their README write what Bakeoff writes, token by token."""

import json
import random

import numpy as np
import pytest
import torch

from bakeoff.generation.config import GenerationConfig
from bakeoff.generation.generate import decoded, generate, never_written
from bakeoff.generation.generator import Generator
from bakeoff.generation.prompts import encoded
from bakeoff.interop.export import export
from bakeoff.row import Row, Source
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.registry import parse_task
from bakeoff.tasks.rows.writing import WritingFormat
from bakeoff.tokenizer.tokenizer import Tokenizer, TokenizerConfig
from tests.conftest import shrink
from tests.untrained_runs import untrained

pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")

from bakeoff.interop.onnx.conversion import open_session

TEXTS = ["The streets of the town and of the river.", "a", "Where rivers are, there are streets."]
GREEDY = GenerationConfig(tokens=20, temperature=0)


def by_the_readme(folder, monkeypatch, capsys):
    """The ids that the lines of the README write for each of the texts."""
    lines = (folder / "README.md").read_text().partition("```python\n")[2].partition("```")[0]
    assert "bakeoff" not in lines
    lines = lines.replace('texts = ["The first text.", "A second one, which is longer."]', f"texts = {TEXTS}")
    monkeypatch.chdir(folder)
    if '"The town"' in lines:
        return [ran(lines.replace('"The town"', repr(text)), capsys)["written"] for text in TEXTS]
    names = ran(lines, capsys)
    end = names["config"]["end"]
    rows = [list(row) for row in zip(*names["written"], strict=True)]
    rows = [row[: row.index(end)] if end in row else row for row in rows]
    if marks := names["config"]["marks"]:
        tokenizer = Tokenizer.load(folder / "tokenizer.json")
        assert names["printed"] == "".join(decoded(row, tokenizer, marks) + "\n" for row in rows)
    return rows


def ran(lines, capsys):
    """What lines of a README leave behind."""
    names = {}
    exec(compile(lines, "README.md", "exec"), names)
    names["printed"] = capsys.readouterr().out
    assert names["printed"]
    return names


def ours(run, module):
    """The ids that Bakeoff writes."""
    (objective, *_) = run.recipe.objective
    rows = [encoded(text, run.tokenizer, run) for text in TEXTS]
    banned = set(never_written(run.tokenizer)) - set(objective.mark_ids(run.tokenizer))
    generator = Generator(module, run.tokenizer.separator, sorted(banned))
    if module.model.config.sequence_to_sequence:
        return generator.write([objective.prompt(run.tokenizer)] * len(rows), GREEDY, sources=rows)
    return [generator.write([row], GREEDY)[0] for row in rows]


@pytest.mark.slow
def test_an_encoder_and_a_decoder_write_what_ours_do(corpus, tmp_path, monkeypatch, capsys):
    run = untrained("transformer-tiny", corpus, tmp_path / "run")
    made = export(run.path, tmp_path / "onnx", to="onnx")
    assert made.largest_difference < 1e-5
    written = by_the_readme(made.path, monkeypatch, capsys)
    assert written == ours(run, run.load())
    assert len({tuple(row) for row in written}) > 1
    config = json.loads((made.path / "config.json").read_text())
    assert config["kind"] == "encoder_decoder"
    # In parts, of sources with padding, the same as in one piece.
    encoder, decoder = (open_session(made.path / f"{name}.onnx") for name in ("encoder", "decoder"))
    ids, source = (torch.randint(0, run.tokenizer.size, shape) for shape in ((2, 11), (2, 7)))
    padding_mask = torch.arange(7) < torch.tensor([[7], [4]])
    names = [each["name"] for each in config["encoder"]["outputs"]]
    keys = encoder.run(None, {"input_ids": source.numpy(), "attention_mask": padding_mask.long().numpy()})
    state = {
        each["name"]: np.zeros([{"batch": 2, "past": 0}.get(axis, axis) for axis in each["axes"]], np.float32)
        for each in config["decoder"]["inputs"]
        if each["name"].startswith("past.")
    }
    parts, before = [], ids[:, :0]
    for begin, end in ((0, 1), (1, 6), (6, 11)):
        feeds = {"input_ids": ids[:, begin:end], "past_ids": before, "encoder_attention_mask": padding_mask.long()}
        feeds = {name: tensor.numpy() for name, tensor in feeds.items()} | dict(zip(names, keys, strict=True)) | state
        given = {each["name"]: feeds[each["name"]] for each in config["decoder"]["inputs"]}
        logits, *after = decoder.run(None, given)
        state, before = dict(zip(state, after, strict=True)), ids[:, :end]
        parts.append(torch.from_numpy(logits))
    module = run.load()
    with torch.inference_mode():
        right = module.objectives[0].head.scores(
            module.model(Row(ids, source=Source(source, padding_mask)))[0], module.model.embedding.weight
        )
    assert torch.allclose(torch.cat(parts, 1), right, atol=1e-4)


def settings(path):
    """The settings in the config.json of an export, without an export."""
    from bakeoff.interop.onnx import export as own
    from bakeoff.interop.onnx.settings import settings_of

    source = own._opened(path)
    return settings_of(source.run, source.format, source.kind, source.graphs, 32)


def test_marks_of_gaps_are_written_by_what_was_pre_trained_to_and_never_in_a_task(corpus, tmp_path):
    run = untrained("t5-tiny", corpus, tmp_path / "run")
    said = settings(run.path)
    assert set(said["marks"]).isdisjoint(said["never_written"])
    assert said["marks"]
    task = parse_task(
        {
            "kind": "sequence_to_sequence",
            "text_column": "a",
            "label_column": "b",
            "beams": 1,
            "longest": 8,
            **rows(tmp_path),
        },
        "",
    )
    config = FinetuneConfig(learning_rate=[1e-3], epochs=1, least_steps=0, evaluations=1, length=32)
    finetune(run, task, tmp_path / "task", config=config, device="cpu", progress=False)
    tuned = settings(tmp_path / "task")
    assert set(tuned["marks"]) <= set(tuned["never_written"])
    assert set(never_written(run.tokenizer)) <= set(tuned["never_written"])


def rows(folder):
    """A file of six pairs, as train, dev and test."""
    (folder / "rows.tsv").write_text("a\tb\n" + "the river and the stone\tthe stone\n" * 6)
    return dict.fromkeys(("train", "dev", "test"), str(folder / "rows.tsv"))


@pytest.mark.parametrize("name", ["gpt-tiny", "gpt2-tiny", "transformer-tiny", "bart-tiny", "t5-tiny"])
def test_the_tokens_around_a_text_are_those_that_it_is_read_with(name, corpus, tmp_path):
    run = untrained(name, corpus, tmp_path / "run")
    said = settings(run.path)
    for text, (ids, _) in zip(TEXTS, run.tokenizer.encode(TEXTS), strict=True):
        assert [*said["before"], *ids.tolist(), *said["behind"]] == encoded(text, run.tokenizer, run)


LIMITED = {"model.decoder.block.mixer.memory": 5}
WINDOW = {"model.decoder.block.mixer.window": 5, "model.decoder.block.mixer.positions": "rotary"}
DISTANCES = {"model.decoder.block.mixer.window": 4, "model.decoder.block.mixer.positions": "t5"}
WRITERS = {
    "bart": ("bart-tiny", {}),
    "t5": ("t5-tiny", {"model.decoder.layers": 3}),
    "dynamic convolutions": ("conv-dynamic-tiny", {}),
    "waves and convolutions": ("conv-light-tiny", {"model.embedding.positions": "sinusoidal"}),
    "prefix": ("prefix-lm-tiny", {}),
    "memory": ("transformer-xl-tiny", LIMITED),
    "window": ("gpt2-tiny", WINDOW),
    "window and distances": ("gpt2-tiny", DISTANCES),
    "genCNN": ("gencnn-tiny", {}),
    "projected LSTM": ("lstm-lm-tiny", {"model.decoder.block.mixer.units": 40}),
    "convolutions": ("cnn-lm-tiny", {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITERS)
def test_models_that_write_write_what_ours_do(name, corpus, tmp_path, monkeypatch, capsys):
    recipe, changes = WRITERS[name]
    run = untrained(recipe, corpus, tmp_path / "run", **changes)
    made = export(run.path, tmp_path / "onnx", to="onnx")
    assert made.largest_difference < 1e-5
    assert by_the_readme(made.path, monkeypatch, capsys) == ours(run, run.load())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["t5-tiny", "gpt2-tiny"])
def test_a_run_fine_tuned_to_write_writes_what_predict_does(name, corpus, tmp_path, monkeypatch, capsys):
    draw = random.Random(0)
    words = ["one", "two", "river", "stone", "green"]
    rows = [" ".join(draw.choices(words, k=4)) for _ in range(48)]
    file = tmp_path / "rows.tsv"
    file.write_text("s\tt\n" + "".join(f"{text}\t{text.split()[0]}\n" for text in rows))
    files = dict.fromkeys(("train", "dev", "test"), str(file))
    kind = {"kind": "sequence_to_sequence", "text_column": "s", "label_column": "t"}
    task = parse_task({**kind, **files, "beams": 1, "prefix": "first of:", "longest": 5}, "task")
    config = FinetuneConfig(learning_rate=[3e-3], epochs=2, least_steps=0, evaluations=1, length=24)
    finetune(shrink(name), task, tmp_path / "run", config=config, tokenizer=corpus.path, device="cpu", progress=False)
    made = export(tmp_path / "run", tmp_path / "onnx", to="onnx")
    found = by_the_readme(made.path, monkeypatch, capsys)
    tuned = FinetunedRun.open(tmp_path / "run")
    head, format = tuned.load(), tuned.format()
    rows = WritingFormat(format, 5)
    items = rows.encode([f"first of: {text}" for text in TEXTS], [None] * len(TEXTS))
    assert items.sources_cut
    prompts, sources = rows.prompts(items)
    written = head.write(prompts, sources, tuned.tokenizer, GenerationConfig(tokens=5, beams=1))
    assert found == [each.ids for each in written]


@pytest.mark.slow
def test_targets_with_a_vocabulary_of_their_own_have_a_tokenizer_of_their_own(tmp_path, monkeypatch, capsys):
    from bakeoff.conformance.texts import digit_pairs
    from bakeoff.preparation.prepare_pairs import prepare_pairs

    for name, side in (("digits.txt", 0), ("words.txt", 1)):
        (tmp_path / name).write_text("".join(pair[side] + "\n" for pair in digit_pairs(600, longest=10)))
    corpus = prepare_pairs(
        *(tmp_path / name for name in ("digits.txt", "words.txt")),
        tmp_path / "corpus",
        tokenizer=TokenizerConfig(size=60),
        separate_vocabularies=True,
        workers=0,
    )
    run = untrained("transformer-translation-tiny", corpus, tmp_path / "run")
    made = export(run.path, tmp_path / "onnx", to="onnx")
    assert by_the_readme(made.path, monkeypatch, capsys) == ours(run, run.load())
    assert (made.path / "target_tokenizer.json").is_file()
    lines = (made.path / "README.md").read_text().partition("```python\n")[2].partition("```")[0]
    exec(compile(lines.replace('["The first text.", "A second one, which is longer."]', '["4 2 7"]'), "", "exec"), {})
    assert capsys.readouterr().out.strip() == generate(run, ["4 2 7"], GREEDY, device="cpu")[0]


@pytest.mark.parametrize("name", ["memory", "window", "window and distances", "projected LSTM"])
def test_a_graph_reads_a_text_in_parts_as_the_model_does_in_one(name, corpus, tmp_path):
    from bakeoff.interop.onnx import export as own
    from bakeoff.interop.onnx.written_rows import empty

    recipe, changes = WRITERS[name]
    run = untrained(recipe, corpus, tmp_path / "run", **changes)
    (graph,) = own._opened(run.path).graphs.values()
    module, ids = run.load(), torch.randint(0, run.tokenizer.size, (2, 14))
    state = {key: torch.from_numpy(value) for key, value in empty(graph.inputs, 2).items()}
    past = [key for key in state if key != "past_ids"]
    parts = []
    with torch.inference_mode():
        for begin, end in ((0, 1), (1, 3), (3, 12), (12, 14)):
            given = [*([ids[:, :begin]] if "past_ids" in state else []), *(state[key] for key in past)]
            logits, *after = graph(ids[:, begin:end], *given)
            state |= dict(zip(past, after, strict=True))
            parts.append(logits)
        hidden, _ = module.model(Row(ids), module.model.start(2))
        head = module.objectives[0].head
        right = head.scores(hidden.flatten(0, 1), module.model.embedding.weight).unflatten(0, (2, 14))
    assert torch.allclose(torch.cat(parts, 1), right, atol=1e-4)
