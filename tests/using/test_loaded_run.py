"""A run as an object, against the heads and models themselves and against the functions that load a run each time."""

import math
import pickle
import shutil
import threading

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.untrained_runs import untrained

import bakeoff
from bakeoff.errors import UserError
from bakeoff.row import Queries, Row, Source
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.kinds.classification import ClassificationConfig

NAMES = ["bert-tiny", "gpt2-tiny", "xlnet-tiny", "elmo-tiny", "gpt-bert-tiny", "bart-tiny", "conv-light-encoder-tiny"]
ABLE = {
    "bert-tiny": {"fill", "score", "logits"},
    "gpt2-tiny": {"fill", "score", "logits", "generate", "stream"},
    "xlnet-tiny": {"fill", "score", "logits"},
    "elmo-tiny": {"fill", "score", "logits"},
    "gpt-bert-tiny": {"fill", "score", "logits", "generate", "stream"},
    "bart-tiny": {"score", "logits", "generate", "stream"},
    "conv-light-encoder-tiny": {"fill", "score", "logits"},
}


@pytest.fixture(scope="module")
def loaded(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    runs = [untrained(name, corpus, folder / name, **{"input.length": 32}) for name in NAMES]
    return {name: bakeoff.load(run.path, device="cpu") for name, run in zip(NAMES, runs, strict=True)}


@pytest.fixture(scope="module")
def classifier(loaded, tmp_path_factory):
    folder = tmp_path_factory.mktemp("classifier")
    rows = ["river stone\twater", "old stone\tland", "the river finds\twater", "the stone finds\tland"] * 6
    file = folder / "rows.tsv"
    file.write_text("\n".join(["text\tlabel", *rows]) + "\n")
    task = ClassificationConfig(train=file, dev=file, test=file, text_column="text", label_column="label")
    quick = FinetuneConfig(learning_rate=[1e-3], epochs=[1], least_steps=0)
    bakeoff.finetune(loaded["bert-tiny"].path, task, folder / "run", config=quick, device="cpu", progress=False)
    return bakeoff.load(folder / "run", device="cpu")


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_another_process_loads_a_run_that_it_is_given(precision, loaded, classifier, tmp_path, monkeypatch):
    for run in (loaded["gpt2-tiny"], classifier):
        monkeypatch.chdir(run.path.parent)
        given = pickle.dumps(bakeoff.load(run.path.name, device="cpu", precision=precision))
        monkeypatch.chdir(tmp_path)
        again = pickle.loads(given)
        assert (again.path, again.device, again.precision) == (run.path, torch.device("cpu"), precision)
        assert len(given) < 1000
        texts = ["The river is old.", "A stone."]
        np.testing.assert_array_equal(again.embed(texts), bakeoff.load(run.path, "cpu", precision).embed(texts))
        assert ("predict" in again.capabilities) == (run is classifier)


def ids_of(run, text):
    return run.tokenizer.encode([text])[0][0].tolist()


@pytest.mark.parametrize("name", NAMES)
def test_a_run_says_what_it_can_do_and_refuses_the_rest_in_a_line(name, loaded):
    run = loaded[name]
    assert run.capabilities == ABLE[name] | {"embed", "hidden"}
    calls = {
        "fill": lambda: run.fill("The [MASK]"),
        "generate": lambda: run.generate("The river", tokens=2),
        "stream": lambda: list(run.stream("The river", tokens=2)),
        "predict": lambda: run.predict(["The river"]),
        "weights_of_tokens": lambda: run.weights_of_tokens("The river"),
        "score": lambda: run.score(["The river"], ["a"] if name == "bart-tiny" else None),
    }
    for verb, call in calls.items():
        if verb in run.capabilities:
            call()
        else:
            with pytest.raises(UserError, match=r"^[^\n]+$"):
                call()


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        ("The river", r"^texts: a list of texts is wanted, and this is one \('The river'\); put it into a list$"),
        (["The river", float("nan")], r"^text 2 is no text but nan \(float\); give a str$"),
        (["The river", None], r"^text 2 is no text but None \(NoneType\); give a str$"),
        ([b"The river"], r"^text 1 is no text but b'The river' \(bytes\); give a str$"),
    ],
)
def test_what_is_no_list_of_texts_is_refused_wherever_texts_are_given(texts, problem, loaded, classifier):
    """Else the letters of one text would be taken for texts; tables of others have NaN or None for missing texts."""
    masked, causal, seq2seq = loaded["bert-tiny"], loaded["gpt2-tiny"], loaded["bart-tiny"]
    calls = [
        lambda: bakeoff.generate(causal.path, texts),
        lambda: bakeoff.embed(masked.path, texts),
        lambda: bakeoff.predict(classifier.path, texts),
        lambda: masked.score(texts),
        lambda: seq2seq.score(["a"] * len(texts), texts),
        lambda: masked.embed(texts),
        lambda: masked.embed_words(texts),
        lambda: classifier.predict(texts),
    ]
    if not isinstance(texts, str):  # which these take
        calls += [lambda: causal.generate(texts), lambda: masked.fill(texts)]
        with pytest.raises(UserError, match=r"^text 1 is no text"):
            classifier.weights_of_tokens(texts[-1])
    for call in calls:
        with pytest.raises(UserError, match=problem):
            call()


@pytest.mark.parametrize("texts", [None, 3])
def test_what_holds_no_texts_is_refused(texts, loaded, classifier):
    masked, causal = loaded["bert-tiny"], loaded["gpt2-tiny"]
    for call in (masked.fill, masked.score, masked.embed, causal.generate, classifier.predict):
        with pytest.raises(UserError, match=rf"^texts: a list of texts is wanted, not {texts} \("):
            call(texts)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "bart-tiny"])
def test_logits_and_hidden_states_of_lists_and_arrays_are_those_of_each_row_alone(name, loaded):
    run = loaded[name]
    rows = [ids_of(run, text) for text in ("The river finds the old stone.", "river", "The old stone and a river")]
    module = bakeoff.Run.open(run.path).load()
    objective = module.objectives[0]
    found, states = run.logits(rows), run.hidden(rows)
    for row, ids in enumerate(rows):
        hidden = module.model(Row(torch.tensor([ids])))[0][0]
        torch.testing.assert_close(states[row, : len(ids)], hidden, atol=1e-4, rtol=1e-4)
        own = hidden[:, : run.recipe.model.stack.output_width]
        scores = objective.head.scores(own, module.model.embedding.weight)
        if name != "elmo-tiny":  # log-probabilities of an adaptive softmax are its scores
            torch.testing.assert_close(found[row, : len(ids)], scores, atol=1e-3, rtol=1e-4)
        assert not found[row, len(ids) :].any()
        assert not states[row, len(ids) :].any()
    width = max(map(len, rows))
    array = np.array([ids + [run.tokenizer.pad] * (width - len(ids)) for ids in rows])
    torch.testing.assert_close(run.logits(array), found)
    torch.testing.assert_close(run.hidden(torch.from_numpy(array)), states)


@pytest.mark.parametrize("name", ["bert-tiny", "gpt2-tiny"])
def test_padding_is_at_the_end_of_a_row_alone(name, loaded):
    """Inside of a row its id is a token as others are."""
    run = loaded[name]
    row = [7, run.tokenizer.pad, 9, run.tokenizer.pad, 8]
    torch.testing.assert_close(run.logits(np.array([[*row, run.tokenizer.pad]]))[:, :5], run.logits([row]))
    assert run.logits([row])[0].abs().sum(-1).gt(0).all()


def test_a_target_is_read_behind_its_source(loaded):
    run = loaded["bart-tiny"]
    source, target = ids_of(run, "The river"), [run.tokenizer.start, *ids_of(run, "stone and")]
    module = bakeoff.Run.open(run.path).load()
    hidden = module.model(Row(torch.tensor([target]), source=Source(torch.tensor([source]))))[0][0]
    expected = module.objectives[0].head.scores(hidden, module.model.embedding.weight)
    found = run.logits([target, target[:1]], source=[source, source * 3])
    torch.testing.assert_close(found[0], expected, atol=1e-3, rtol=1e-4)
    with pytest.raises(UserError, match="reads a source; give source"):
        run.logits([target])


@pytest.mark.parametrize(
    ("ids", "wrong"),
    [
        ([[1, 2], []], "row 2: give at least one token"),
        ([1, 2], "row 1: give at least one token id a row"),
        ([[0.5]], "whole numbers"),
        ([[10**6]], "there is no token 1000000"),
        ([[-1]], "there is no token -1"),
        ([[5] * 600], "600 tokens; the model has 512 positions"),
        ([], "at least one row"),
        (None, "give an array"),
    ],
)
def test_ids_that_the_model_cannot_read_are_refused(ids, wrong, loaded):
    with pytest.raises(UserError, match=wrong):
        loaded["bert-tiny"].logits(ids)


def test_segments_have_the_shape_of_ids(loaded):
    run = loaded["bert-tiny"]
    one, other = run.hidden([[5, 6]]), run.hidden([[5, 6]], segments=[[0, 1]])
    assert not torch.allclose(one, other)
    for segments, wrong in (([[0]], "1 segments for 2 tokens"), ([[0, 2]], "the model tells 2 apart"), ([], "0 rows")):
        with pytest.raises(UserError, match=wrong):
            run.hidden([[5, 6]], segments=segments)
    for layer, wrong in (
        (9, "layer 9: the model has"),
        ("a", "layer 'a': give a whole"),
        (0.5, "layer 0.5: give"),
    ):
        with pytest.raises(UserError, match=wrong):
            run.hidden([[5, 6]], layer=layer)
    assert torch.equal(run.hidden([[5, 6]], layer=np.int64(1)), run.hidden([[5, 6]], layer=1))


@pytest.mark.parametrize("given", [3, None, b"runs"])
def test_what_is_no_path_is_refused(given, tmp_path):
    for use in (bakeoff.load, lambda run: bakeoff.embed(run, ["a"]), lambda run: bakeoff.export(run, tmp_path / "out")):
        with pytest.raises(UserError, match=r"run: .* is no path; give a str"):
            use(given)
    out, file = tmp_path / "out", tmp_path / "a.txt"
    file.write_text("A river.")
    task = bakeoff.ClassificationConfig(train=file, text_column=1, label_column=2)
    recipe = bakeoff.load_recipe("bert-tiny")
    for name, use in {
        "source": lambda: bakeoff.import_model(given, out),
        "run": lambda: bakeoff.finetune(given, task, out),
        "out": lambda: bakeoff.finetune(recipe, task, given),
        "out ": lambda: bakeoff.prepare([file], given),
        "texts": lambda: bakeoff.prepare([given], out),
        "out  ": lambda: bakeoff.pretrain(recipe, tmp_path, given),
        "corpus": lambda: bakeoff.pretrain(recipe, given or 3, out),
        "plan": lambda: bakeoff.compare(given, out),
        "run ": lambda: bakeoff.watch(given),
        "file": lambda: bakeoff.load_plugin(given),
        "tokenizer": lambda: bakeoff.finetune(recipe, task, out, tokenizer=given or 3),
    }.items():
        with pytest.raises(UserError, match=rf"^{name.strip()}: .* is no path; give a str or a pathlib.Path$"):
            use()
    assert not out.exists()


def test_a_table_and_a_mapping_are_no_texts(loaded):
    class Frame:
        """As those of pandas, polars and Arrow, of which a loop gives names or columns."""

        columns = ("text",)

        def __iter__(self):
            return iter(self.columns)

        def __repr__(self):
            return "   text\n0  a b"

    run = loaded["bert-tiny"]
    for given, told in ((Frame(), "not a Frame"), ({"a": 1}, "not a dict"), (np.array("a b"), "not array")):
        for use in (run.score, run.embed, run.embed_words, run.fill, lambda texts: bakeoff.embed(run.path, texts)):
            with pytest.raises(UserError, match=f"^texts: a list of texts is wanted, {told}"):
                use(given)
    with pytest.raises(UserError) as caught:
        bakeoff.ClassificationConfig(train=Frame(), text_column="a", label_column="b")
    assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match=r"^task: None is no TaskConfig"):
        bakeoff.finetune(run.path, None, "out")


@pytest.mark.parametrize("name", ["bert-tiny", "conv-light-encoder-tiny", "xlnet-tiny", "gpt-bert-tiny"])
def test_masks_are_filled_by_the_head_with_all_of_them_hidden(name, loaded):
    run = loaded[name]
    tokenizer, module = run.tokenizer, bakeoff.Run.open(run.path).load()
    texts = ["The [MASK] finds the old [MASK].", "The river finds [MASK]", "[MASK]"]
    found = run.fill(texts, k=4)
    assert [len(each) for each in found] == [2, 1, 1]
    for text, own in zip(texts, found, strict=True):
        parts = [
            ids_of(run, part.rstrip() if place < text.count("[MASK]") else part)
            for place, part in enumerate(text.split("[MASK]"))
        ]
        ids = [i for part in parts for i in (*part, tokenizer.mask)][:-1]
        places = [place for place, i in enumerate(ids) if i == tokenizer.mask]
        table = module.model.embedding.weight
        if name == "xlnet-tiny":
            row = torch.tensor([[*ids, tokenizer.separator, tokenizer.start]])
            seen = torch.tensor([i != tokenizer.mask for i in ids] + [True, True])
            count = len(places)
            queries = Queries(torch.tensor([places]), seen.expand(1, row.shape[1] + count, -1))
            segments = torch.tensor([[0] * (len(ids) + 1) + [2]])
            rows = module.model(Row(row, segments, queries=queries))[0][0, row.shape[1] :]
            head = module.objectives[0].head
        elif name == "gpt-bert-tiny":
            row = torch.tensor([[tokenizer.separator, *ids]])
            hidden = module.model(Row(row, prefix=torch.tensor([row.shape[1]])))[0][0]
            rows, head = hidden[places], next(each.head for each in module.objectives if each.name == "mntp")
        else:
            row = torch.tensor([[tokenizer.start, *ids, tokenizer.separator]])
            rows, head = module.model(Row(row))[0][0, [place + 1 for place in places]], module.objectives[0].head
        expected = head.log_probabilities(rows, table).exp()
        expected[:, torch.from_numpy(tokenizer.special_ids)] = 0
        for mask, candidates in enumerate(own):
            best, tokens = expected[mask].topk(4)
            assert [each.id for each in candidates] == tokens.tolist()
            np.testing.assert_allclose([each.probability for each in candidates], best.tolist(), rtol=1e-3)
            assert candidates[0].token == tokenizer.decode([candidates[0].id]).strip()
    assert run.fill(texts[0], k=4)[0][0].id == found[0][0][0].id


def test_a_run_in_memory_needs_its_folder_no_longer(corpus, tmp_path):
    run = untrained("gpt-bert-tiny", corpus, tmp_path / "run", **{"input.length": 32})
    kept, gone = bakeoff.load(run.path, device="cpu"), bakeoff.load(run.path, device="cpu")
    expected = (*kept.generate(["river"], tokens=3, temperature=0), kept.fill("river [MASK]", k=2))
    vectors = kept.embed(["river"])
    shutil.rmtree(run.path)
    assert (*gone.generate(["river"], tokens=3, temperature=0), gone.fill("river [MASK]", k=2)) == expected
    assert "".join(gone.stream("river", tokens=3, temperature=0)) == expected[0]
    assert np.array_equal(gone.embed(["river"]), vectors)


def test_a_model_that_reads_forwards_fills_the_end(loaded):
    run = loaded["gpt2-tiny"]
    ((best, *_),) = run.fill("The river finds [MASK]", k=3)
    row = [run.tokenizer.separator, *ids_of(run, "The river finds")]
    shares = run.logits([row])[0, -1].softmax(-1)
    shares[torch.from_numpy(run.tokenizer.special_ids)] = 0
    assert best.id == int(shares.argmax())
    assert math.isclose(best.probability, float(shares.max()), rel_tol=1e-4)
    with pytest.raises(UserError, match="reads forwards"):
        run.fill("The [MASK] finds")


def test_masks_that_cannot_be_filled_are_refused_and_long_texts_are_read_around_them(loaded):
    run = loaded["bert-tiny"]
    for texts, wrong in (
        (["a [MASK]", "river"], "text 2 .* has no"),
        (["[MASK] " + "river " * 90 + "[MASK]"], "apart"),
    ):
        with pytest.raises(UserError, match=wrong):
            run.fill(texts)
    assert run.fill("[MASK]", k=np.int64(2)) == run.fill("[MASK]", k=2)
    no = "is no whole number"
    for k, wrong in ((0, "0 tokens for a mask"), (1.5, f"1.5 {no}"), ("2", f"'2' {no}"), (True, f"True {no}")):
        with pytest.raises(UserError, match=rf"^k: {wrong}; give 1 or more$"):
            run.fill("[MASK]", k=k)
    around = "the old stone " * 20
    assert len(run.fill(f"{around}[MASK] {around}", k=10**6)[0]) == run.tokenizer.size - len(run.tokenizer.special_ids)


@pytest.mark.parametrize("behind", ["", " the", " the" * 7])
def test_of_a_long_text_with_a_mask_near_its_end_a_whole_row_is_read(behind, loaded):
    run = loaded["bert-tiny"]
    assert len(ids_of(run, "the")) == len(ids_of(run, "river")) == 1
    before = run.recipe.input.length - 3 - behind.count("the")  # two special tokens and the mask

    def filled(words):
        return run.fill(f"{words}[MASK]{behind}", k=5)[0]

    whole = filled("the " * before)
    assert filled("the " * 3 * before) == filled("river " + "the " * before) == whole
    assert filled("river " + "the " * (before - 1)) != whole


@pytest.mark.parametrize("name", ["gpt2-tiny", "bart-tiny", "gpt-bert-tiny"])
def test_what_is_streamed_is_what_is_generated(name, loaded):
    run = loaded[name]
    for settings in ({"temperature": 0}, {"seed": 3, "top_p": 0.9}):
        pieces = list(run.stream("The river", tokens=12, **settings))
        assert "".join(pieces) == run.generate("The river", tokens=12, **settings)
        assert len(pieces) > 3
        assert all(pieces)
    assert run.generate(["The river", "The"], tokens=5) == bakeoff.generate(
        run.path, ["The river", "The"], bakeoff.GenerationConfig(tokens=5), device="cpu"
    )
    with pytest.raises(UserError, match="generate: "):
        run.generate("The", tokenz=3)
    with pytest.raises(UserError, match="cannot be streamed"):
        list(run.stream("The", beams=3))


@pytest.mark.parametrize("name", ["gpt2-tiny", "bart-tiny", "gpt-bert-tiny", "lstm-lm-tiny"])
def test_a_seed_of_its_own_gives_a_prompt_what_it_gets_alone(name, loaded, corpus, tmp_path):
    run = loaded[name] if name in loaded else bakeoff.load(untrained(name, corpus, tmp_path / "run"), "cpu")
    prompts = ["The river", "stone", "The river", "A stone finds the old river.", "The river"]
    seeds = [7, 8, 7, (9, 2), 10]
    together = run.generate(prompts, seeds=seeds, tokens=12)
    assert together == run.generate(prompts, seeds=seeds, tokens=12, seed=99)
    for prompt, seed, text in zip(prompts, seeds, together, strict=True):
        alone = [*["x"] * seed[1], prompt] if isinstance(seed, tuple) else prompt
        written = run.generate(alone, seed=seed[0] if isinstance(seed, tuple) else seed, tokens=12)
        assert text == (written[-1] if isinstance(seed, tuple) else written)
    assert together[0] == together[2] != together[4]
    assert run.generate("stone", seeds=[8], tokens=12) == together[1]
    pairs = [each if isinstance(each, tuple) else (each, 0) for each in seeds]
    assert run.generate(prompts, seeds=np.array(pairs), tokens=12) == together
    assert run.generate("stone", seeds=np.array([8]), tokens=12) == together[1]
    assert run.generate("stone", seeds=[np.int32(8)], tokens=12) == together[1]
    for wrong in ([1], [1] * 6, ["a"] * 5, [True] * 5, [(1, 2, 3)] * 5, [1.5] * 5, np.ones(5), np.array(3), 7):
        with pytest.raises(UserError, match=r"seeds: give each of the 5 prompts a whole number"):
            run.generate(prompts, seeds=wrong)


def test_scores_and_vectors_are_those_of_the_functions(loaded, classifier):
    run = loaded["bert-tiny"]
    texts = ["The river finds the old stone.", "", "river"]
    np.testing.assert_array_equal(run.embed(texts), bakeoff.embed(run.path, texts, device="cpu"))
    own = run.embed(texts, "cls", layers=(1, -1))[1:2]
    np.testing.assert_allclose(own, bakeoff.embed(run.path, [""], pooling="cls", layers=(1, -1)), atol=1e-5)
    first, blank, _ = run.score(texts)
    assert blank.tokens == 0
    assert first.log_probability < 0
    assert classifier.predict(texts) == bakeoff.predict(classifier.path, texts, device="cpu")
    assert classifier.capabilities == {"embed", "hidden", "predict", "weights_of_tokens"}
    with pytest.raises(UserError, match="a list of texts is wanted"):
        run.embed("river")
    with pytest.raises(UserError, match="single texts"):
        classifier.predict(texts, texts)
    with pytest.raises(UserError, match="give the run that it came from"):
        classifier.logits([[5]])


def test_weights_of_tokens_add_up_and_name_their_places(classifier):
    text = "The old  stone finds the river"
    found = classifier.weights_of_tokens(text)
    (answer,) = classifier.predict([text])
    assert found.label == answer["label"]
    assert math.isclose(found.probability, answer["probability"], abs_tol=1e-5)
    total = sum(each.weight for each in found.weights)
    assert math.isclose(total, math.log(found.probability / found.baseline), abs_tol=1e-3)
    assert all(each.token == text[each.begin : each.end] for each in found.weights)
    assert "".join(each.token for each in found.weights) == "".join(text.split())
    # A long text is read in part; what is not read has no weight.
    long = classifier.weights_of_tokens(f"{text} " * 20)
    assert long.weights[-1].weight == 0
    assert long.weights[0].weight != 0
    assert classifier.weights_of_tokens("").weights == []


def test_weights_of_a_text_in_windows_explain_the_probability_that_is_predicted(classifier, tmp_path):
    """The mean of the windows' probabilities."""
    shutil.copytree(classifier.path, tmp_path / "run")
    (tmp_path / "run/bakeoff.sha256").unlink()
    settings = tmp_path / "run/task.yaml"
    settings.write_text(settings.read_text().replace("truncate: head", "truncate: windows"))
    tensors = load_file(tmp_path / "run/model.safetensors")
    tensors["output.weight"] *= 30  # so that windows differ
    save_file(tensors, tmp_path / "run/model.safetensors")
    windows = bakeoff.load(tmp_path / "run", device="cpu")
    text = "river " * 30 + "The old stone finds the river. " * 6 + "land " * 30
    found, (answer,) = windows.weights_of_tokens(text), windows.predict([text])
    assert found.label == answer["label"]
    assert math.isclose(found.probability, answer["probability"], abs_tol=1e-5)


@pytest.mark.parametrize("name", ["bert-tiny", "conv-light-encoder-tiny", "gpt2-tiny"])
def test_many_threads_get_what_one_gets(name, loaded):
    run = loaded[name]
    texts = [f"The river finds {word} [MASK]" for word in ("the", "a", "old", "stone")]
    expected = [run.fill(text, 3) for text in texts], [run.score([text])[0] for text in texts], run.embed(texts)
    wrong = []

    def ask():
        found = [run.fill(text, 3) for text in texts], [run.score([text])[0] for text in texts], run.embed(texts)
        if found[:2] != expected[:2] or not np.array_equal(found[2], expected[2]):
            wrong.append(found)

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_there_has_to_be_a_run(tmp_path):
    with pytest.raises(UserError, match="no such run"):
        bakeoff.load(tmp_path / "none")


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda run: run.score(["a river"], per="words"), "per: 'words' is neither 'word' nor 'token'"),
        (lambda run: run.embed_words(["a river"], per="words"), "per: 'words' is neither 'word' nor 'token'"),
        (
            lambda run: bakeoff.pretrain("bert-tiny", "corpus", "out"),
            r"recipe: 'bert-tiny' is no Recipe; give bakeoff.load_recipe\(NAME\)",
        ),
        (
            lambda run: bakeoff.pretrain(run.recipe, "corpus", "out", budget="steps=3"),
            r"budget: 'steps=3' is no Budget; give one such as bakeoff.Budget\(minutes=10\)",
        ),
        (
            lambda run: bakeoff.pretrain(None, "corpus", "out", start="runs/first"),
            r"start: 'runs/first' is no Start; give one such as bakeoff.Start\(run=RUN\)",
        ),
        (lambda run: bakeoff.tune(run.recipe, "corpus", "out", for_budget=3), "for_budget: 3 is no Budget"),
        (lambda run: bakeoff.pretrain(run.recipe, "corpus", "out", seed=-1), "seed: -1 is no int from 0 to"),
        (lambda run: bakeoff.pretrain(run.recipe, "corpus", "out", seed="a"), "seed: 'a' is no int from 0 to"),
        (lambda run: bakeoff.finetune(run.path, None, "out", seed=True), "seed: True is no int from 0 to"),
        (lambda run: bakeoff.contrast(run.path, "out", seed=1.5), r"seed: 1\.5 is no int from 0 to"),
        (lambda run: bakeoff.tune(run.recipe, "corpus", "out", seed=-1), "seed: -1 is no int from 0 to"),
        (lambda run: bakeoff.peek(run.recipe, "corpus", seed=2**63), "seed: 9223372036854775808 is no int from 0 to"),
        (
            lambda run: bakeoff.finetune(run.path, {"train": "a.csv"}, "out"),
            "task: {'train': 'a.csv'} is no TaskConfig",
        ),
        (
            lambda run: bakeoff.contrast(run.path, "out", config={"batch": 2}),
            "config: {'batch': 2} is no ContrastConfig",
        ),
        (lambda run: bakeoff.generate(run.path, ["a"], {"tokens": 2}), "config: {'tokens': 2} is no GenerationConfig"),
        (lambda run: bakeoff.distill_classifier("runs/a", "runs/b", "t.txt", "out"), "teachers: runs/a is no list"),
    ],
)
def test_arguments_of_another_kind_are_refused_in_a_line(call, problem, loaded):
    with pytest.raises(UserError, match=problem):
        call(loaded["bert-tiny"])
