"""The verbs as a user types them: what they print, what they refuse, and with which status."""

import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys

import pytest
import torch

from bakeoff.cli import run
from bakeoff.learner.pretraining_model import build_on_meta
from bakeoff.recipe_files import load_recipe, recipe_names
from bakeoff.resources.costs import costs_of
from bakeoff.resources.memory_need import memory_need
from bakeoff.runs.run import Run


def call(capsys, *arguments):
    """Run the command line; returns status, standard output and standard error."""
    status = run([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def refused(capsys, *arguments):
    """The one line in which a user's mistake is reported, after what was shown of the work until then."""
    status, out, err = call(capsys, *arguments)
    assert status == 2, (out, err)
    assert out == ""
    assert err.count("bakeoff: ") == 1
    assert "Traceback" not in err
    last = err.splitlines()[-1]
    assert last.startswith("bakeoff: ")
    return last.removeprefix("bakeoff: ")


VERBS = ["demo", "recipes", "show", "prepare", "peek", "pretrain", "finetune", "evaluate", "predict"]
VERBS += ["generate", "inspect", "compare", "speed", "check"]
SMALL = ["--set", "model.encoder.width=32", "--set", "model.encoder.block.ffn.width=32", "--set", "input.length=32"]
SMALL += ["--set", "training.batch=8"]


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("labelled")
    rows = [
        ("water" if i % 2 else "land", f"The {'river' if i % 2 else 'stone'} number {i} is old.") for i in range(80)
    ]
    (folder / "rows.tsv").write_text("label\ttext\n" + "".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8")
    return folder / "rows.tsv"


@pytest.fixture(scope="module")
def pretrained(corpus, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "bert"
    arguments = [
        "pretrain",
        "bert-tiny",
        "--corpus",
        str(corpus.path),
        "--out",
        str(out),
        "--budget",
        "steps=5",
        *SMALL,
    ]
    assert run(arguments) == 0
    return out


@pytest.fixture(scope="module")
def finetuned(pretrained, labelled, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "task"
    arguments = ["finetune", pretrained, "--train", labelled, "--text-column", "text", "--label-column", "label"]
    assert run([str(a) for a in [*arguments, "--out", out, "--option", "least_steps=40"]]) == 0
    return out


def helped(*verb):
    """What --help prints, once it is known to come at once: nothing heavy is imported."""
    code = (
        f"import sys\nfrom bakeoff.cli import run\nstatus = run({[*verb, '--help']})\n"
        "heavy = {'torch', 'altair', 'sklearn', 'tokenizers', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy\nsys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("verb", ["pretrain", "finetune", "predict", "compare"])
def test_help_on_a_verb_needs_no_torch(verb):
    assert "Usage" in helped(verb)


def test_help_needs_no_torch():
    printed = helped()
    for verb in (
        "demo",
        "recipes",
        "show",
        "prepare",
        "peek",
        "pretrain",
        "finetune",
        "evaluate",
        "predict",
        "inspect",
        "compare",
        "speed",
    ):
        assert verb in printed


def test_ctrl_c_before_anything_is_imported_is_told_in_a_line(tmp_path):
    slow = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(5)\n"
    (tmp_path / "typer.py").write_text(slow, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    command = [sys.executable, "-m", "bakeoff", "recipes"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "bakeoff: interrupted\n")


def test_what_each_verb_does_stands_in_one_whole_line(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = call(capsys, "--help")
    lines = [line for line in out.partition("Commands:\n")[2].splitlines() if re.match(r"  \w+  ", line)]
    assert {line.split()[0] for line in lines} >= set(VERBS)
    assert not [line for line in lines if line.endswith(".")]  # cut, or several sentences


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(capsys, verb):
    status, out, _ = call(capsys, verb, "--help")
    assert status == 0
    assert f"Example: bakeoff {verb}" in out


def test_without_arguments_the_help_is_printed(capsys):
    status, out, err = call(capsys)
    assert status == 0
    assert err == ""
    assert len(out.splitlines()) > 10


def test_a_file_in_the_place_of_a_directory_is_one_line(capsys, tmp_path, corpus, labelled, pretrained):
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    out = ["--out", tmp_path / "file"]
    columns = ["--text-column", "text", "--label-column", "label"]
    refused(capsys, "prepare", labelled, "--field", "text", *out)
    refused(capsys, "pretrain", "bert-tiny", "--corpus", corpus.path, "--budget", "steps=2", *SMALL, *out)
    refused(capsys, "finetune", pretrained, "--train", labelled, *columns, *out)
    refused(capsys, "demo", *out)
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


def test_a_run_grows_and_is_unshared(capsys, tmp_path, corpus, labelled):
    arguments = ["pretrain", "--corpus", corpus.path, "--budget", "steps=2", "--out"]
    shared = ["bert-tiny", *SMALL, "--set", "model.encoder.share=all", "--set", "training.validation_examples=16"]
    assert call(capsys, *arguments, tmp_path / "shared", *shared)[0] == 0
    out, grow = tmp_path / "deep", ["--from", tmp_path / "shared", "--grow", 3]
    both = [*shared, "--encoder-from", tmp_path / "shared", "--grow", 3]
    assert "--grow is for --from" in refused(capsys, *arguments, out, *both)
    assert "grow_by" in refused(capsys, *arguments, out, *grow, "--grow-by", "chance")
    assert "--grow-by has no effect without --grow" in refused(
        capsys, *arguments, out, "--from", tmp_path / "shared", "--grow-by", "interleave"
    )
    assert "give either --from" in refused(capsys, *arguments, out, "bert-tiny", "--grow-by", "interleave")
    assert "name one, such as" in refused(capsys, *arguments, out, *grow, "--set", "training.batch=2")
    assert "give a recipe" in refused(capsys, *arguments, out)
    assert not out.exists()
    status, printed, err = call(capsys, *arguments, out, *grow)
    assert status == 0, err
    assert re.search(r"shared, grown to 3 layers by repeat: (\d+) of \1 tensors\n", printed)
    task = ["--train", labelled, "--text-column", "text", "--label-column", "label", "--option", "epochs=1"]
    task += ["--option", "least_steps=1", "--unshare", "--json", "--out", tmp_path / "task"]
    status, printed, err = call(capsys, "finetune", out, *task)
    assert status == 0, err
    results = json.loads(printed)
    assert results["transferred_tensors"] == results["total_tensors"] - 2
    assert "unshare: true" in (tmp_path / "task" / "task.yaml").read_text()
    assert "share: none" in (tmp_path / "task" / "recipe.yaml").read_text()


def test_further_training_that_gains_nothing_says_so(capsys, tmp_path, corpus):
    arguments = ["pretrain", "laptop-encoder-tiny", *SMALL, "--corpus", corpus.path]
    rate = "training.optimizer.lr"
    learned = ["--budget", "steps=40", "--set", f"{rate}=0.02", "--out", tmp_path / "learned"]
    status, printed, err = call(capsys, *arguments, *learned)
    assert status == 0, err
    assert "no gain" not in printed  # which has no first weights of its own
    for name, value, gains in (("lower", 0.005, True), ("higher", 3, False)):
        further = ["--from", tmp_path / "learned", "--budget", "steps=20", "--set", f"{rate}={value}"]
        status, printed, err = call(capsys, *arguments, *further, "--out", tmp_path / name)
        assert status == 0, err
        validations = [line["loss"] for line in Run.open(tmp_path / name).metrics() if line["kind"] == "validation"]
        assert (validations[-1] < validations[0]) == gains
        said = f"held-out loss {validations[0]:.4f} before this training, {validations[-1]:.4f} after it; train for"
        assert (re.sub(r"\s+", " ", printed).find(said) < 0) == gains


def test_values_out_of_range_are_one_line(capsys, tmp_path, corpus):
    arguments = ["pretrain", "bert-tiny", "--corpus", corpus.path, "--out", tmp_path / "run"]
    for budget in ("steps=1e400", "minutes=nan", "tokens=-5"):
        assert "--budget" in refused(capsys, *arguments, "--budget", budget)
    for device in ("cpu:x", "auto:0", "cuda:99"):
        assert "--device" in refused(capsys, *arguments, "--device", device)
    assert "--vocabulary" in refused(capsys, "show", "bert-tiny", "--vocabulary", "-5")
    assert not (tmp_path / "run").exists()


def test_version(capsys):
    status, out, _ = call(capsys, "--version")
    assert status == 0
    assert out.startswith("bakeoff ")


def test_recipes_and_show(capsys, monkeypatch):
    built = {}  # which takes long for all recipes

    def once(recipe, vocabulary):
        if (recipe.name, vocabulary) not in built:
            built[recipe.name, vocabulary] = build_on_meta(recipe, vocabulary)
        return built[recipe.name, vocabulary]

    monkeypatch.setattr("bakeoff.learner.pretraining_model.build_on_meta", once)
    status, out, _ = call(capsys, "recipes")
    assert status == 0
    assert re.search(r"^bert-base +110 M  Devlin et al. 2019", out, re.MULTILINE)
    status, out, _ = call(capsys, "recipes", "--json")
    found = json.loads(out)
    assert list(found) == recipe_names()
    assert found["bert-base"]["parameters"] == costs_of(load_recipe("bert-base"), 30522).parameters
    status, out, _ = call(capsys, "show", "albert-base", "--json")
    shown = json.loads(out)
    assert shown["parameters"] == sum(shown["parts"].values())
    assert shown["recipe"]["model"]["encoder"]["share"] == "all"
    assert shown["stacks"]["encoder"] == {"layers": 12, "parts": 2, "applications": 24}
    assert shown["receptive_field"] == {"encoder": None}
    assert shown["published"]["counted"] == pytest.approx(shown["published"]["parameters"], rel=0.015)
    memory = shown["memory"]
    assert memory["total"] == sum(memory[name] for name in ("weights", "gradients", "optimizer", "activations"))
    status, out, err = call(capsys, "show", "bert-tiny", "--set", "model.encoder.layers=3")
    assert "layers: 3" in out
    assert "3, with 6 distinct parts applied 6 times" in err
    assert "with that vocabulary" not in err
    assert "parameters" in err
    assert "distinct parts" not in out


def test_what_show_prints_is_the_recipe_that_it_shows(capsys, tmp_path, monkeypatch):
    """Of every recipe; costs, which take long to count, are those of one of them."""
    costs, memory = (
        function(load_recipe("bert-tiny"), 100, *rest)
        for function, rest in ((costs_of, ()), (memory_need, (torch.device("cpu"),)))
    )
    monkeypatch.setattr("bakeoff.resources.costs.costs_of", lambda *_: costs)
    monkeypatch.setattr("bakeoff.resources.memory_need.memory_need", lambda *_: memory)
    monkeypatch.setattr("bakeoff.resources.micro_batch.rows_that_fit", lambda *_: {80: 1})
    for name in recipe_names():
        status, out, _ = call(capsys, "show", name, "--set", "training.checkpoint_minutes=7")
        assert status == 0
        (tmp_path / "mine.yaml").write_text(out, encoding="utf-8")
        assert load_recipe(tmp_path / "mine.yaml") == load_recipe(name, {"training.checkpoint_minutes": 7})


def test_what_is_no_recipe_is_told_in_a_short_line(capsys, tmp_path, text_folder, pretrained):
    (tmp_path / "empty.txt").write_text("")
    run_instead = f"{pretrained} is a run; give {pretrained / 'recipe.yaml'}"
    lists = "(`bakeoff recipes` lists all; or give a .yaml file)"
    for verb in ("show", "speed"):
        assert refused(capsys, verb, pretrained) == run_instead
        for given in (tmp_path, tmp_path / "empty.txt", "zzz"):
            assert refused(capsys, verb, given) == f"no recipe '{given}' {lists}"
        assert refused(capsys, verb, "bert-mni") == f"no recipe 'bert-mni'; did you mean 'bert-mini'? {lists}"
    prepare = ["prepare", text_folder, "--out", tmp_path / "corpus", "--recipe"]
    assert refused(capsys, *prepare, "zzz") == f"no recipe 'zzz' {lists}"
    assert refused(capsys, *prepare, pretrained) == run_instead


def test_the_path_from_text_to_predictions(capsys, text_folder, tmp_path, pretrained, finetuned, corpus):
    status, out, _ = call(
        capsys, "prepare", text_folder, "--out", tmp_path / "c", "--vocabulary", 160, "--document-per-line", "--json"
    )
    assert status == 0
    assert json.loads(out)["documents"] == 240
    status, out, _ = call(capsys, "evaluate", pretrained, "--corpus", corpus.path)
    assert status == 0
    assert "validation mlm" in out
    status, out, _ = call(capsys, "predict", finetuned, "The river number 7 is old.", "--json")
    assert json.loads(out)[0]["label"] in ("water", "land")
    summary = json.loads((pretrained / "summary.json").read_text())
    assert summary["steps"] == 5


def test_the_model_card_says_how_to_use_the_run(capsys, tmp_path, pretrained, labelled):
    """Its command works as it stands, with files and columns put in."""
    ran = run_all_of_the_card(capsys, pretrained, tmp_path, labelled)
    assert list(ran) == ["evaluate --corpus", "evaluate --texts", "inspect", "finetune --train", "pretrain --from"]
    assert ran["finetune --train"]["source"] == str(pretrained)
    ran = run_all_of_the_card(capsys, tmp_path / "finetune", tmp_path / "more", labelled)
    assert list(ran) == ["predict", "evaluate --data"]


@pytest.mark.slow
def test_the_card_of_a_model_that_writes_suggests_to_generate(capsys, tmp_path, corpus, labelled):
    small = [each.replace("encoder", "decoder") for each in SMALL]
    begin = [
        "pretrain",
        "gpt-tiny",
        "--corpus",
        corpus.path,
        "--out",
        tmp_path / "a run",
        "--budget",
        "steps=2",
        *small,
    ]
    assert call(capsys, *begin)[0] == 0
    assert "generate" in run_all_of_the_card(capsys, tmp_path / "a run", tmp_path / "out", labelled)


def run_all_of_the_card(capsys, run, folder, labelled):
    """Run the commands that a run's README.md suggests, as they stand, with what is in capitals put in."""
    ran = {}
    for line in re.findall("^bakeoff (.*)$", (run / "README.md").read_text(encoding="utf-8"), re.MULTILINE):
        verb, *words = shlex.split(line)
        given = {"FILE": labelled, "DIRECTORY": folder / verb, "TEXT": "The river is old.", "COLUMN": "label"}
        option = next((word for word in words if word.startswith("--")), "")
        words = [str(given.get(word, word)) for word in words]
        if "--text-column" in words:
            words[words.index("--text-column") + 1] = "text"
        more = {"finetune": ["--option", "epochs=1", "--option", "least_steps=1"], "pretrain": ["--budget", "steps=2"]}
        status, out, err = call(capsys, verb, *words, *more.get(verb, []), "--json")
        assert status == 0, err
        ran[f"{verb} {option}".strip()] = json.loads(out)
    return ran


def test_both_texts_of_a_pair_are_printed(capsys, tmp_path, monkeypatch, pretrained):
    rows = [f"{'yes' if i % 2 else 'no'}\tA man walks {i}.\tA man {'moves' if i % 2 else 'sits'}.\n" for i in range(40)]
    (tmp_path / "pairs.tsv").write_text("label\ta\tb\n" + "".join(rows), encoding="utf-8")
    task = ["--train", tmp_path / "pairs.tsv", "--text-column", "a", "--pair-column", "b", "--label-column", "label"]
    short = ["--option", "epochs=1", "--option", "least_steps=1", "--out", tmp_path / "task"]
    assert call(capsys, "finetune", pretrained, *task, *short)[0] == 0
    status, out, _ = call(capsys, "predict", tmp_path / "task", "A man walks.", "--pair", "A man moves.")
    assert status == 0
    assert re.fullmatch(r"(yes|no)\t0\.\d{4}\tA man walks\.\tA man moves\.\n", out)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"A man walks.\tA man moves.\n")))
    assert call(capsys, "predict", tmp_path / "task")[1] == out


def test_a_finetuned_run_is_evaluated_on_another_file(capsys, finetuned, labelled):
    status, out, _ = call(capsys, "evaluate", finetuned, "--data", labelled, "--json")
    assert status == 0
    assert json.loads(out)["rows"] == 80


def test_predict_names_the_option_for_another_separator(finetuned, tmp_path, capsys):
    (tmp_path / "texts.csv").write_text("text;label\nThe river is old.;a\n", encoding="utf-8")
    given = ["predict", finetuned, "--texts", tmp_path / "texts.csv", "--text-column", "text"]
    status, _, error = call(capsys, *given)
    assert status == 2
    assert error.endswith("if its cells stand between semicolons, give --option separator=semicolon\n")
    status, out, _ = call(capsys, *given, "--option", "separator=semicolon")
    assert (status, len(out.splitlines())) == (0, 1)
    (tmp_path / "decimals.csv").write_text("text;n\nThe river is old.;1,5\n", encoding="utf-8")
    given = ["predict", finetuned, "--texts", tmp_path / "decimals.csv", "--text-column", "text;n"]
    assert call(capsys, *given)[2].endswith(
        "decimals.csv:2: the row has 2 columns, the first line 1; if cells stand between semicolons, give --option "
        "separator=semicolon\n"
    )


def test_no_separator_is_advised_for_one_file_where_another_needs_its_own(finetuned, tmp_path, capsys):
    """Else the advice for the first file and that for the second would take turns."""
    for name, sign in (("train", ";"), ("test", ",")):
        rows = [["text", "label"], *([f"The river {n}", "ab"[n % 2]] for n in range(8))]
        (tmp_path / f"{name}.csv").write_text("".join(f"{sign.join(row)}\n" for row in rows), encoding="utf-8")
    tokenizer = finetuned / "tokenizer.json"
    given = ["finetune", "bert-tiny", "--train", tmp_path / "train.csv", "--test", tmp_path / "test.csv"]
    given += ["--text-column", "text", "--label-column", "label", "--out", tmp_path / "out", "--tokenizer", tokenizer]
    assert call(capsys, *given)[2].endswith("give --option separator=semicolon\n")
    status, _, error = call(capsys, *given, "--option", "separator=semicolon")
    assert status == 2
    assert error.endswith(
        "test.csv:1: no column 'text' (columns here: text,label); if its cells stand between commas, write it like the "
        "others, since separator=semicolon is for all files\n"
    )


def test_a_finetuned_run_is_evaluated_on_a_file_of_another_form(capsys, finetuned, labelled, tmp_path):
    header, *rows = labelled.read_text().splitlines()
    (tmp_path / "bare.txt").write_text("\n".join(rows) + "\n")
    columns = [f"--{name}-column={1 + header.split(chr(9)).index(name)}" for name in ("text", "label")]
    form = ["--option", "header=false", "--option", "separator=tab"]
    given = ["evaluate", finetuned, "--json", "--data"]
    assert call(capsys, *given, tmp_path / "bare.txt", *columns, *form)[1].replace("bare.txt", "") == call(
        capsys, *given, labelled
    )[1].replace(str(labelled), f"{tmp_path}/")
    found = call(capsys, "predict", finetuned, "--json", "--texts", tmp_path / "bare.txt", columns[0], *form)[1]
    assert found == call(capsys, "predict", finetuned, "--json", "--texts", labelled)[1]
    assert len(json.loads(found)) == 80
    assert "give no texts beside --texts" in refused(
        capsys, "predict", finetuned, "x", "--texts", tmp_path / "bare.txt", *form
    )
    assert "--option says how" in refused(capsys, "predict", finetuned, "x", *form)
    assert "'text'" in refused(capsys, *given, labelled, "--option", "header=false")
    assert "epochs: is nothing" in refused(capsys, *given, labelled, "--option", "epochs=3")
    assert "belong to --data" in refused(capsys, "evaluate", finetuned, "--texts", labelled, "--choices", "a")


def test_options_that_verbs_have_in_common_are_the_same(capsys):
    shown = {verb: call(capsys, verb, "--help")[1] for verb in ("finetune", "check", "evaluate")}
    for option in ("text", "pair", "label", "spans", "start"):
        assert all(f"--{option}-column" in text for text in shown.values())
    assert all("--choices" in text and "--option" in text for text in shown.values())
    for option in ("--dataset", "--task", "--train", "--dev", "--test", "--metric", "--train-rows"):
        assert all(option in shown[verb] for verb in ("finetune", "check"))


def test_prepare_refuses(capsys, tmp_path, text_folder, corpus):
    assert "missing" in refused(capsys, "prepare", tmp_path / "missing", "--out", tmp_path / "c")
    (tmp_path / "empty").mkdir()
    refused(capsys, "prepare", tmp_path / "empty", "--out", tmp_path / "c")
    (tmp_path / "empty.txt").write_text("")
    refused(capsys, "prepare", tmp_path / "empty.txt", "--out", tmp_path / "c")
    (tmp_path / "bad.txt").write_bytes(b"fine\nbad \xff here\n")
    message = refused(capsys, "prepare", tmp_path / "bad.txt", "--out", tmp_path / "c")
    assert "bad.txt" in message
    assert "2" in message
    assert "--errors replace" in message
    text = ["prepare", text_folder, "--out", tmp_path / "c"]
    assert "1%" in refused(capsys, *text, "--validation", "150%")
    assert "wordpiece" in refused(capsys, *text, "--tokenizer", "wordpeace")
    assert "50MB" in refused(capsys, *text, "--tokenizer-sample", "lots")
    assert "--document-per-line" in refused(capsys, *text, "--document-per-lin")
    assert "exists" in refused(capsys, "prepare", text_folder, "--out", corpus.path)
    assert not (tmp_path / "c").exists()


def test_prepare_says_what_it_left_out(capsys, tmp_path):
    lines = "".join(f"Line {i % 230} of a text.\n" for i in range(250))
    (tmp_path / "a.txt").write_text(lines)
    given = ["prepare", tmp_path / "a.txt", "--document-per-line", "--tokenizer", "character", "--out", tmp_path / "c"]
    assert "--minimum-characters" in refused(capsys, *given, "--minimum-characters", 100)
    status, out, err = call(capsys, *given, "--deduplicate", "--minimum-characters", 18)
    assert status == 0
    assert re.search(r"documents +220", out)
    assert re.search(r"skipped +20 documents below 18 characters, 10 duplicate documents", out)
    assert "selecting" in err
    assert "word order" not in out
    (tmp_path / "a.txt").write_text("\n".join([*lines.splitlines()[:230], "Line 7 of a text.", ""]))
    given[-1] = tmp_path / "d"
    status, out, err = call(capsys, *given, "--deduplicate")
    assert re.search(r"skipped +1 duplicate document$", out, re.MULTILINE)
    status, out, _ = call(capsys, *given, "--overwrite", "--shuffle-ngrams", 2)
    assert status == 0
    assert "2-grams shuffled within each sentence" in out


def test_peek_shows_examples_or_refuses(capsys, tmp_path, corpus):
    on_corpus = ["bert-tiny", "--corpus", corpus.path, "--set", "input.length=32"]
    status, out, err = call(capsys, "peek", *on_corpus, "--examples", 2)
    assert (status, err) == (0, "")
    assert re.search(r"^row 2  \d+ tokens \(A \d+, B \d+\).*; nsp: B ", out, re.MULTILINE)
    assert "row 3" not in out
    assert "\x1b" not in out
    status, out, _ = call(capsys, "peek", *on_corpus, "--held-out", "--json")
    found = json.loads(out)
    assert found["held_out"] is True
    assert len(found["rows"]) == 3
    assert "missing: no such corpus; make one" in refused(capsys, "peek", "bert-tiny", "--corpus", tmp_path / "missing")
    assert "did you mean 'bert-mini'" in refused(capsys, "peek", "bert-mni", "--corpus", corpus.path)
    assert "use segment_pair" in refused(capsys, "peek", *on_corpus, "--set", "input.format=blocks")
    assert "--examples" in refused(capsys, "peek", *on_corpus, "--examples", 0)
    (tmp_path / "one.txt").write_text(
        "The river is old. The stone is new. The house is green.\n\n" * 40, encoding="utf-8"
    )
    single = ["--tokenizer", "character", "--document-separator", "XXX", "--out", tmp_path / "one"]
    assert call(capsys, "prepare", tmp_path / "one.txt", *single)[0] == 0
    message = refused(capsys, "peek", "bert-tiny", "--corpus", tmp_path / "one")
    assert "nsp takes text from other documents" in message
    assert "use sop" in message


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupted_verb_says_so(tmp_path, corpus):
    lines = "".join(f"Sentence {i} of a text that is long enough to be interrupted.\n\n" for i in range(20_000))
    file = tmp_path / "long.txt"
    file.write_text(lines, encoding="utf-8")
    command = [sys.executable, "-m", "bakeoff", "prepare", str(file), "--out", str(tmp_path / "corpus")]
    command += ["--tokenizer", str(corpus.path / "tokenizer.json")]  # none is trained
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while not process.stderr.readline().startswith("encoding"):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    unfinished = tmp_path / ".corpus.unfinished"
    expected = f"bakeoff: interrupted; the same command goes on from here, or remove {unfinished}"
    assert rest.splitlines()[-1] == expected
    assert process.returncode == 128 + signal.SIGINT
    assert sorted(tmp_path.iterdir()) == [unfinished, file]


@pytest.mark.parametrize("option", [("--shard", "1/2"), ("--part", "1/2"), ("--merge",), ("--ray", "local")])
def test_a_corpus_of_pairs_is_made_in_one_go(capsys, tmp_path, option):
    for side in ("source", "target"):
        (tmp_path / side).write_text("A river.\n")
    sides = ("--source", tmp_path / "source", "--target", tmp_path / "target")
    said = refused(capsys, "prepare", *sides, "--out", tmp_path / "corpus", *option)
    named = option[0].replace("--part", "--shard")  # which it was called before
    assert said == f"{named} is for texts, not for pairs; leave it out"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source", "target"]


def test_pretrain_refuses(capsys, tmp_path, corpus, pretrained):
    out = ["--out", tmp_path / "run"]
    on_corpus = ["--corpus", corpus.path, *out]
    assert "did you mean 'bert-mini'" in refused(capsys, "pretrain", "bert-mni", *on_corpus)
    assert "missing" in refused(capsys, "pretrain", "bert-mini", "--corpus", tmp_path / "missing", *out)
    assert "did you mean 'layers'" in refused(
        capsys, "pretrain", "bert-mini", *on_corpus, "--set", "model.encoder.layrs=2"
    )
    assert "--budget" in refused(capsys, "pretrain", "bert-mini", *on_corpus, "--budget", "days=2")
    assert "--device" in refused(capsys, "pretrain", "bert-mini", *on_corpus, "--device", "tpu")
    assert "holds a run already" in refused(
        capsys, "pretrain", "bert-mini", "--corpus", corpus.path, "--out", pretrained
    )
    assert "--corpus" in refused(capsys, "pretrain", "bert-mini", *out)
    assert not (tmp_path / "run").exists()


def test_resuming_says_so_where_there_is_nothing_to_resume(capsys, tmp_path, corpus):
    """A misspelt --out, or a run that was killed before its first checkpoint, is not begun anew in silence."""
    out = tmp_path / "run"
    arguments = ["pretrain", "bert-tiny", "--corpus", corpus.path, "--out", out, "--budget", "steps=2", *SMALL]
    said = f"bert-tiny: nothing to resume in {out}; starting at step 0"
    status, _, err = call(capsys, *arguments, "--resume")
    assert status == 0
    assert err.splitlines().count(said) == 1
    assert call(capsys, *arguments, "--resume")[2] == ""  # it has finished
    for name in ("summary.json", "bakeoff.sha256"):
        (out / name).unlink()
    assert said in call(capsys, *arguments, "--resume")[2].splitlines()
    arguments[5] = tmp_path / "other"
    assert "resume" not in call(capsys, *arguments)[2]


def test_finetune_refuses(capsys, tmp_path, labelled, pretrained):
    columns = ["--text-column", "text", "--label-column", "label", "--out", tmp_path / "task"]
    message = refused(capsys, "finetune", pretrained, "--train", tmp_path / "missing.tsv", *columns)
    assert "missing.tsv" in message
    columns[1] = "txt"
    message = refused(capsys, "finetune", pretrained, "--train", labelled, *columns)
    assert "did you mean 'text'" in message
    columns[1] = "text"
    message = refused(capsys, "finetune", pretrained, "--train", labelled, *columns, "--option", "epoch=3")
    assert "did you mean 'epochs'" in message
    assert "--corpus" in refused(capsys, "finetune", "bert-tiny", "--train", labelled, *columns)
    assert "no such run" in refused(capsys, "finetune", "runs/brt", "--train", labelled, *columns)
    message = refused(capsys, "finetune", pretrained, "--train", labelled, *columns, "--set", "model.dropout=0")
    assert "fixed" in message
    (tmp_path / "empty.tsv").write_text("")
    assert "empty.tsv" in refused(capsys, "finetune", pretrained, "--train", tmp_path / "empty.tsv", *columns)
    assert not (tmp_path / "task").exists()


def test_other_verbs_refuse(capsys, tmp_path, corpus, pretrained):
    assert "missing" in refused(capsys, "evaluate", tmp_path / "missing", "--corpus", corpus.path)
    assert "--data" in refused(capsys, "evaluate", pretrained)
    refused(capsys, "predict", pretrained, "text")
    assert "missing.yaml" in refused(capsys, "compare", tmp_path / "missing.yaml", "--out", tmp_path / "out")
    (tmp_path / "plan.yaml").write_text("corpus: x\nrecipe: [bert-tiny]\nbudget: steps=1\ntasks: []\n")
    assert "did you mean 'recipes'" in refused(capsys, "compare", tmp_path / "plan.yaml", "--out", tmp_path / "out")
    assert "Did you mean 'pretrain'" in refused(capsys, "pretrian")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    assert "is not a demo" in refused(capsys, "demo", "--out", tmp_path / "mine")
