"""Damage to any file of a corpus, a run, a fine-tuned run or a comparison: noticed by whoever reads it, or no harm."""

import fnmatch
import importlib.util
import json
import os
import shutil
from itertools import islice

import pytest
import torch

from bakeoff.cli import run as command_line
from bakeoff.comparison import execution
from bakeoff.tensors import save_tensors
from bakeoff.trainer import loop
from bakeoff.training.pretrain import pretrain
from bakeoff.yaml_files import parse_value
from tests.conftest import shrink

LIST = "bakeoff.sha256"


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def call(capsys, *arguments):
    status = command_line([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.fixture(scope="module")
def place(corpus, tmp_path_factory):
    """One directory of each kind, as small as they get."""
    folder = tmp_path_factory.mktemp("damage")
    shutil.copytree(corpus.path, folder / "corpus")
    recipe = shrink("gpt-tiny", **{"training.budget": {"steps": 4}, "training.validation_examples": 4})
    changes = {"model.decoder.layers": 1, "training.batch": 2, "input.length": 16}
    recipe = recipe.changed(changes)
    (folder / "recipe.yaml").write_text(recipe.to_yaml(), encoding="utf-8")
    pretrain(recipe, folder / "corpus", folder / "run", progress=False, device="cpu")
    with pytest.MonkeyPatch.context() as patch:

        def fails(unit, parts, index):
            if index == 3:
                raise KeyboardInterrupt
            return exact(unit, parts, index)

        exact = loop.optimize
        patch.setattr(loop, "optimize", fails)
        # Transformer-XL, for what is remembered from step to step is a file, too; a checkpoint after every step.
        recurrent = shrink(
            "transformer-xl-tiny",
            **{"training.checkpoint_minutes": 1e-9, "training.budget": {"steps": 5}, **changes},
        )
        with pytest.raises(KeyboardInterrupt):
            pretrain(recurrent, folder / "corpus", folder / "unfinished", progress=False, device="cpu", average_last=5)
    rows = [("water" if i % 2 else "land", f"The {'river' if i % 2 else 'stone'} {i} is old.") for i in range(40)]
    (folder / "rows.tsv").write_text("label\ttext\n" + "".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8")
    assert command_line([*finetuning(folder), "--out", str(folder / "tuned")]) == 0
    columns = {"text_column": "text", "label_column": "label"}
    quick = {"epochs": 1, "least_steps": 0, "evaluations": 1}
    plan = {
        "corpus": "corpus",
        "recipes": [{"recipe": "recipe.yaml", "name": "small"}],
        "budget": "steps=2",
        "seeds": 1,
        "tasks": [{"name": "words", "train": "rows.tsv", **columns, "finetune": quick}],
        "device": "cpu",
    }
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execution, "_report", lambda results, path: path.write_text("the report"))
        assert command_line(["compare", f"{folder}/plan.json", "--out", f"{folder}/comparison", "--jobs", "1"]) == 0
    return folder


def finetuning(folder):
    task = ["--train", folder / "rows.tsv", "--text-column", "text", "--label-column", "label", "--device", "cpu"]
    options = ["--option", "epochs=1", "--option", "least_steps=0", "--option", "evaluations=1"]
    return [str(each) for each in ["finetune", folder / "run", *task, *options]]


class Verb:
    """A command, the directory that it reads, and the patterns of the files that it needs there.

    `makes` is the run that it makes, and `slow` has it attacked twice a file instead of in all ways, in long runs too.
    """

    def __init__(self, name, of, arguments, reads, makes=None, slow=False):
        self.name, self.of, self.arguments, self.reads = name, of, arguments, reads
        self.makes, self.slow = makes, slow or bool(makes)

    def __repr__(self):
        return self.name

    def __call__(self, capsys, folder, scratch):
        """Status, what is printed, errors, and the weights that are made."""
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        if self.makes == "unfinished":  # a resumed run is another one after it
            shutil.copytree(folder / "unfinished", scratch / "unfinished")
        names = {"F": str(folder), "S": str(scratch)}
        status, out, err = call(capsys, *(argument.format(**names) for argument in self.arguments.split()))
        made = scratch / (self.makes or "") / "model.safetensors"
        out = "" if self.makes else out  # with times
        return status, out, err, made.read_bytes() if made.is_file() else None


TASK = "--train {F}/rows.tsv --text-column text --label-column label --device cpu"
OPTIONS = "--option epochs=1 --option least_steps=0 --option evaluations=1"
WEIGHTS = ["model.safetensors", "tokenizer.json", "recipe.yaml", LIST]
VERBS = [
    Verb(
        "training", "corpus", "pretrain {F}/recipe.yaml --corpus {F}/corpus --out {S}/made --device cpu", ["*"], "made"
    ),
    Verb(
        "evaluation on a corpus",
        "corpus",
        "evaluate {F}/run --corpus {F}/corpus --examples 4 --device cpu",
        ["corpus.json", "validation.*", "tokenizer.json", LIST],
    ),
    Verb("evaluation", "run", "evaluate {F}/run --corpus {F}/corpus --examples 4 --device cpu", [*WEIGHTS, "summary*"]),
    Verb("generation", "run", "generate {F}/run The --tokens 3 --temperature 0 --device cpu", WEIGHTS),
    Verb("fine-tuning", "run", f"finetune {{F}}/run {TASK} {OPTIONS} --out {{S}}/made", [*WEIGHTS, "env*"], "made"),
    Verb(
        "starting from a run",
        "run",
        "pretrain --from {F}/run --corpus {F}/corpus --budget steps=2 --out {S}/made --device cpu",
        [*WEIGHTS, "env*"],
        "made",
    ),
    Verb(
        "resuming",
        "unfinished",
        "pretrain --out {S}/unfinished --resume --device cpu",
        [*WEIGHTS[1:], "env*", "metrics.jsonl", "checkpoints/step-00000003/*", "snapshots/*"],
        "unfinished",
    ),
    Verb(
        "prediction",
        "tuned",
        "predict {F}/tuned river stone --device cpu",
        [*WEIGHTS, "env*", "task.yaml", "labels.json"],
    ),
    Verb(
        "evaluation on labels",
        "tuned",
        "evaluate {F}/tuned --data {F}/rows.tsv --device cpu",
        [*WEIGHTS, "env*", "task.yaml", "labels.json"],
    ),
    Verb(
        "comparison",
        "comparison",
        "compare {F}/plan.json --out {F}/comparison --jobs 1",
        [
            *("budget.json", LIST, f"*/{LIST}", "baselines/*", "*.settings.json"),
            *("*/summary.json", "*/pretrain/metrics.jsonl", "*/results.json", "*/predictions.jsonl"),
        ],
        slow=True,
    ),
    *(Verb(f"check {of}", of, f"check {{F}}/{of}", ["*"]) for of in ("corpus", "run", "tuned")),
    *(Verb(f"check {of}", of, f"check {{F}}/{of}", ["*"], slow=True) for of in ("unfinished", "comparison")),
]


def files_of(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def attacks(content):
    """A flipped bit in several places, half of the file, nothing, and something else."""
    flips = [
        bytes([*content[:place], content[place] ^ 1 << bit, *content[place + 1 :]])
        for place, bit in ((0, 0), (len(content) // 2, 5), (len(content) - 1, 1))
    ]
    return [*flips, content[: len(content) // 2], b"", b'{"a": 1}']


def one_line(err):
    last = err.splitlines()[-1]
    assert last.startswith("bakeoff: ")
    assert sum(line.startswith("bakeoff: ") for line in err.splitlines()) == 1, err
    return last


LONG = ("check comparison", "comparison", "fine-tuning", "starting from a run")
"""Verbs that many files have to be attacked for, or that train on what others read, too."""


@pytest.mark.parametrize(
    ("verb", "in_haste"),
    [
        pytest.param(verb, in_haste, marks=[pytest.mark.slow] * (verb.name in LONG or not in_haste))
        for verb in VERBS
        for in_haste in ((True,) if verb.slow else (True, False))
    ],
    ids=repr,
)
def test_damage_is_noticed_by_who_reads_the_file_and_is_nothing_to_the_others(
    verb, in_haste, place, tmp_path, capsys, monkeypatch
):
    """In haste each file is damaged in two of the ways, another two from file to file."""
    monkeypatch.setattr(execution, "_report", lambda results, path: path.write_text("the report"))
    status, *expected = verb(capsys, place, tmp_path / "made")
    assert status == 0, expected
    for number, path in enumerate(files_of(place / verb.of)):
        name = path.relative_to(place / verb.of).as_posix()
        needed = any(fnmatch.fnmatch(name, pattern) for pattern in verb.reads)
        content = path.read_bytes()
        ways = attacks(content)
        if in_haste or verb.slow or not needed:
            ways = [ways[(number + more) % len(ways)] for more in range(2 if needed else 1)]
        try:
            for damaged in ways:
                path.write_bytes(damaged)
                status, out, err, made = verb(capsys, place, tmp_path / "made")
                if needed or status == 2:
                    assert status == 2, (name, out, err)
                    line = one_line(err)
                    assert path.name in line or path.parent.name in line
                    assert "damaged" in line or len(damaged) != len(content), line  # by a checksum, not by luck
                else:
                    assert (status, out, made) == (0, expected[0], expected[2]), (name, err)
        finally:
            path.write_bytes(content)


def malformed(content, wrong_values):
    """What may stand in the place of a file of JSON or YAML; so many wrong values of each key."""
    yield from (b"", b"\xff\xfe{}", b"[]", b"null", b"3", b"[" * 100_000, b'{"a":' * 100_000, b'{"a": 1, "a": 2}')
    yield from (b'{"a": NaN}', b'{"a": Infinity}', b'{"a": 1e999}', b'{"a": ' + b"9" * 5000 + b"}", b"{1: 2}", b"{}")
    yield b"a: &a [*a]"
    yield b"a: 2024-01-01"
    values = parse_value(content.decode(), "content")
    if not isinstance(values, dict):
        yield from (json.dumps([3]).encode(), json.dumps([None, "x"]).encode())
        return
    wrong = (None, "x", -1, [], {}, True, 1e300, 10**30, ["x"])
    for number, key in enumerate(values):
        yield json.dumps({name: value for name, value in values.items() if name != key}).encode()
        for more in range(wrong_values):
            yield json.dumps({**values, key: wrong[(3 * number + more) % len(wrong)]}).encode()


READERS = {
    "evaluation on a corpus": ["corpus.json"],
    "evaluation": ["recipe.yaml", "summary.json"],
    "starting from a run": ["environment.json"],
    "resuming": ["checkpoints/step-00000003/state.json", "environment.json"],
    "prediction": ["recipe.yaml", "task.yaml", "labels.json"],
    "comparison": [
        *("budget.json", "baselines/words.json", "runs/small/seed-0/pretrain.settings.json"),
        *("runs/small/seed-0/pretrain/summary.json", "runs/small/seed-0/words/pretrained-0/results.json"),
    ],
    "check run": ["environment.json", "summary.json"],
    "check tuned": ["results.json", "environment.json"],
}


TRAINING = ("starting from a run", "resuming", "comparison")
"""Verbs of `READERS` that train or read a whole comparison for each content."""


@pytest.mark.parametrize(
    ("name", "file", "every"),
    [
        pytest.param(name, file, every, marks=[pytest.mark.slow] * (every == 1 or (name in TRAINING and number > 0)))
        for name, files in READERS.items()
        for number, file in enumerate(reversed(files))
        for every in (4, 1)
        if (name, every) != ("comparison", 4)
    ],
)
def test_without_checksums_every_content_is_one_line_or_works(name, file, every, place, tmp_path, capsys, monkeypatch):
    """Of a directory from before there were checksums, or from a stranger; in haste every fourth content is tried."""
    monkeypatch.setattr(execution, "_report", lambda results, path: path.write_text("the report"))
    (verb,) = (verb for verb in VERBS if verb.name == name)
    shutil.copytree(place, tmp_path / "place")
    for path in (tmp_path / "place").rglob(LIST):
        path.unlink()
    path = tmp_path / "place" / verb.of / file
    content = path.read_bytes()
    assert verb(capsys, tmp_path / "place", tmp_path / "made")[0] == 0
    refused = 0
    for wrong in islice(malformed(content, 1 if verb.makes else 2), len(file) % every, None, every):
        path.write_bytes(wrong)
        status, _, err, _ = verb(capsys, tmp_path / "place", tmp_path / "made")
        assert status in (0, 2), wrong[:200]
        if status == 2:
            assert path.name in one_line(err) or path.parent.name in one_line(err), wrong[:200]
            refused += 1
        for found in path.parent.rglob(LIST):
            found.unlink()
    assert refused >= 16 // every


LOST = {
    "run": (["summary.json", "model.safetensors", "recipe.yaml", "tokenizer.json"], "pretrain --out {D} --resume"),
    "tuned": (["results.json", "model.safetensors", "labels.json"], "evaluate {D} --data {F}/rows.tsv --device cpu"),
    "comparison": (
        ["budget.json", "runs/small/seed-0/pretrain/summary.json", "runs/small/seed-0/words/pretrained-0/results.json"],
        "compare {F}/plan.json --jobs 1 --out {D}",
    ),
}
"""Files of finished directories, and the command that would train anew without them."""


@pytest.mark.parametrize(("kind", "lost"), [(kind, file) for kind, (files, _) in LOST.items() for file in files])
def test_a_file_that_is_listed_but_absent_is_damage_and_nothing_is_trained_over_it(
    kind, lost, place, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(loop, "optimize", None)
    monkeypatch.setattr(execution, "_report", lambda results, path: path.write_text("the report"))
    shutil.copytree(place / kind, tmp_path / kind)
    file = tmp_path / kind / lost
    file.unlink()
    status, out, err = call(capsys, "check", tmp_path / kind)
    assert status == 2
    assert f"{file}: missing, though bakeoff.sha256 beside it lists it" in out + err
    if kind != "comparison" or "pretrain/" in lost:
        assert "damaged" in call(capsys, "runs", file.parent)[1]
    status, _, err = call(capsys, *LOST[kind][1].format(F=place, D=tmp_path / kind).split())
    assert status == 2
    assert f"{file}: missing" in one_line(err)


def test_a_search_without_its_recipe_is_damaged(place, tmp_path, capsys):
    words = ["tune", place / "recipe.yaml", "--corpus", place / "corpus", "--trials", "2", "--jobs", "1"]
    words += ["--device", "cpu", "--out", tmp_path / "search"]
    assert call(capsys, *words)[0] == 0
    assert call(capsys, "check", tmp_path / "search")[0] == 0
    (tmp_path / "search/recipe.yaml").unlink()
    status, out, err = call(capsys, "check", tmp_path / "search")
    assert status == 2
    assert f"{tmp_path / 'search/recipe.yaml'}: missing; the same command writes it again" in out + err
    assert "damaged" in call(capsys, "runs", tmp_path / "search")[1]
    assert call(capsys, *words)[0] == 0
    assert call(capsys, "check", tmp_path / "search")[0] == 0


def test_weights_over_what_a_killed_process_left_follow_the_umask(tmp_path):
    (tmp_path / "new").touch()
    path = tmp_path / "model.safetensors"
    path.touch(0o600)  # safetensors makes its file so, and Bakeoff opens it afterwards
    save_tensors({"weight": torch.zeros(1)}, path)
    assert path.stat().st_mode == (tmp_path / "new").stat().st_mode


@pytest.mark.parametrize(
    ("umask", "verbs"),
    [(0o077, "few"), *(pytest.param(umask, "all", marks=pytest.mark.slow) for umask in (0o022, 0o077))],
)
def test_all_files_follow_the_umask(umask, verbs, place, tmp_path, capsys):
    before = os.umask(umask)
    try:
        out, corpus = tmp_path / "out", place / "corpus"
        pretraining = ["pretrain", place / "recipe.yaml", "--corpus", corpus, "--out", out / "run", "--device", "cpu"]
        assert call(capsys, *pretraining, "--average-last", "1")[0] == 0
        assert call(capsys, *finetuning(place), "--out", out / "tuned")[0] == 0
        if verbs == "all":
            searching = ["tune", *pretraining[1:4], "--out", out / "search", "--trials", "1", "--jobs", "1"]
            assert call(capsys, *searching)[0] == 0
        if verbs == "all" and importlib.util.find_spec("transformers"):
            assert call(capsys, "export", out / "run", "--to", "hf", "--out", out / "export")[0] == 0
            assert call(capsys, "import", out / "export", "--out", out / "import")[0] == 0
    finally:
        os.umask(before)
    modes = {path: path.stat().st_mode & 0o777 for path in out.rglob("*")}
    wrong = {path: mode for path, mode in modes.items() if mode != (0o777 if path.is_dir() else 0o666) & ~umask}
    assert len(modes) > (30 if verbs == "all" else 15)
    assert not wrong
