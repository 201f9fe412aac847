"""Bad inputs by verb: each is refused in one line that says what, where and what to do, and leaves nothing behind."""

import gzip
import re
import shlex
from pathlib import Path

import pytest
import yaml
from tests.conftest import digit_pairs, shrink

from bakeoff.cli import run
from bakeoff.optimization.budget import Budget
from bakeoff.training.pretrain import pretrain

TABLE = yaml.safe_load(Path(__file__).with_name("bad_inputs.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def world(corpus, tmp_path_factory):
    """What the table's words in braces stand for."""
    folder = tmp_path_factory.mktemp("attacks")

    def file(name, content):
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return folder / name

    def trained(name, **changes):
        recipe = shrink(name, **changes)
        return pretrain(recipe, corpus.path, folder / name, budget=Budget(steps=2), device="cpu", progress=False).path

    rows = [(f"text {number}", "ab"[number % 2]) for number in range(40)]
    table = "text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows)
    prose = "".join(f"The river number {number} is long. It runs to the sea.\n\n" for number in range(60))
    plan = f"""
corpus: {corpus.path}
recipes: [bert-tiny]
budget: steps=2
seeds: 1
tasks: [{{name: mood, train: {folder / "train.tsv"}, text_column: text, label_column: label}}]
"""
    recipe = "extends: bert-tiny\n"
    found = {
        "corpus": corpus.path,
        "tokenizer": corpus.path / "tokenizer.json",
        "run": trained("bert-tiny"),
        "causal": trained("gpt-tiny"),
        "missing": folder / "missing",
        "text": file("prose.txt", prose),
        "empty_file": file("empty.txt", ""),
        "blank": file("blank.txt", "\n \n\n"),
        "binary": file("binary.txt", bytes(range(256)) * 20),
        "latin": file("latin.txt", "caf\xe9 ol\xe9\n".encode("latin-1") * 30),
        "jsonl": file("a.jsonl", '{"text": "A river."}\n' * 30),
        "bad_jsonl": file("bad.jsonl", '{"text": "A river."}\n{"text": \n'),
        "number_jsonl": file("number.jsonl", '{"text": 5}\n'),
        "json_list": file("list.jsonl", "[1, 2]\n"),
        "fake_gz": file("fake.txt.gz", "no gzip"),
        "cut_gz": file("cut.txt.gz", gzip.compress(prose.encode())[:-20]),
        "fake_zst": file("fake.txt.zst", "no zstandard"),
        "fake_parquet": file("fake.parquet", "no parquet"),
        "source": file("a.de", "".join(f"{a}\n" for a, _ in digit_pairs(50))),
        "target": file("a.en", "".join(f"{b}\n" for _, b in digit_pairs(50))),
        "train": file("train.tsv", table),
        "one_class": file("one_class.tsv", table.replace("\tb\n", "\ta\n")),
        "few": file("few.tsv", "text\tlabel\na\tb\nc\td\n"),
        "unseen": file("unseen.tsv", "text\tlabel\na\tzebra\n"),
        "empty_label": file("empty_label.tsv", table + "a\t\n"),
        "duplicate_column": file("duplicate_column.tsv", table.replace("text\tlabel", "text\ttext")),
        "ragged": file("ragged.tsv", table + "a\tb\tc\td\n"),
        "header_only": file("header_only.tsv", "text\tlabel\n"),
        "empty_tsv": file("empty.tsv", ""),
        "latin_tsv": file("latin.tsv", table.encode() + b"caf\xe9\ta\n"),
        "nul_tsv": file("nul.tsv", table + "a\0b\t\0\n"),
        "bad_labels_jsonl": file("labels.jsonl", '{"text": "a", "label": ["x"]}\n'),
        "nan_label": file("nan.jsonl", '{"text": "a", "label": NaN}\n' + '{"text": "b", "label": 1}\n' * 20),
        "recipe_list": file("list.yaml", "[1, 2]\n"),
        "recipe_empty": file("empty.yaml", ""),
        "recipe_binary": file("binary.yaml", bytes(range(256))),
        "recipe_unknown": file("unknown.yaml", recipe + "modle: {}\n"),
        "recipe_duplicate": file("duplicate.yaml", recipe + "paper: a\npaper: b\n"),
        "recipe_tag": file("tag.yaml", recipe + "paper: !!python/object/apply:os.getcwd []\n"),
        "recipe_deep": file("deep.yaml", recipe + "paper: " + "[" * 5000 + "]" * 5000 + "\n"),
        "recipe_alias": file("alias.yaml", "a: &a [x, x]\n" + "".join(_doubled(level) for level in range(40)) + recipe),
        "recipe_cycle": file("cycle.yaml", f"extends: {folder / 'cycle.yaml'}\n"),
        "plan": file("plan.yaml", plan),
        "plan_empty": file("plan_empty.yaml", ""),
        "plan_list": file("plan_list.yaml", "[a]\n"),
        "plan_unknown": file("plan_unknown.yaml", plan + "bugdet: 1\n"),
        "plan_budget": file("plan_budget.yaml", plan.replace("steps=2", "steps=1e40")),
        "plan_recipes": file("plan_recipes.yaml", plan.replace("[bert-tiny]", "[bert-tyni]")),
        "plan_recipe_key": file("plan_key.yaml", plan.replace("[bert-tiny]", "[{recipe: bert-tiny, set: {a: 1}}]")),
        "plan_twice": file("plan_twice.yaml", plan.replace("[bert-tiny]", "[bert-tiny, bert-tiny]")),
        "plan_seeds": file("plan_seeds.yaml", plan.replace("seeds: 1", "seeds: -1")),
        "plan_seed_list": file("plan_seed_list.yaml", plan.replace("seeds: 1", "seeds: [1, 1]")),
        "plan_metric": file("plan_metric.yaml", plan.replace("{name", "{metric: f7, name")),
        "plan_search": file("plan_search.yaml", plan + "search: {}\n"),
        "plan_search_share": file("plan_search_share.yaml", plan + "search: {budget: 10}\n"),
        "plan_search_trials": file("plan_search_trials.yaml", plan + "search: {trials: 1}\n"),
        "plan_search_unknown": file("plan_search_unknown.yaml", plan + "search: {trails: 4}\n"),
        "plan_search_short": file(
            "plan_search_short.yaml", plan.replace("steps=2", "steps=900") + "search: {budget: 5 %}\n"
        ),
        "plan_search_key": file("plan_search_key.yaml", plan + "search: {over: {training.optimizer.rl: [1, 2]}}\n"),
        "plan_search_value": file("plan_search_value.yaml", plan + "search: {over: {training.optimizer.lr: 0..1}}\n"),
        "plan_search_alike": file("plan_search_alike.yaml", plan + "search: {over: {training.budget.steps: 1..9}}\n"),
        "plan_corpus": file("plan_corpus.yaml", plan.replace(str(corpus.path), "nowhere")),
        "out": folder / "out",
    }
    found["empty_folder"] = folder / "empty_folder"
    found["empty_folder"].mkdir()
    (folder / "dangling.txt").symlink_to(folder / "nowhere.txt")
    found["dangling"] = folder / "dangling.txt"
    options = ["--text-column", "text", "--label-column", "label", "--option", "epochs=1"]
    found["fitted"] = folder / "fitted"
    assert (
        run([*map(str, ["finetune", found["run"], "--train", found["train"], "--out", found["fitted"]]), *options]) == 0
    )
    return found


def _doubled(level):
    names = "abcdefghijklmnopqrstuvwxyz"
    new, old = (f"{names[each % 26]}{each // 26 or ''}" for each in (level + 1, level))
    return f"{new}: &{new} [*{old}, *{old}]\n"


def files_of(world):
    """Every file of the world with its time."""
    found = {}
    for top in {world["text"].parent, world["corpus"]}:
        found |= {str(path): path.stat().st_mtime_ns for path in sorted(top.rglob("*")) if path.is_file()}
    return found


def cases():
    rows = [(verb, *next(iter(row.items()))) for verb, rows in TABLE.items() for row in rows]
    return [pytest.param(f"{verb} {line}".strip(), said, id=f"{verb} {line}"[:90]) for verb, line, said in rows]


@pytest.mark.parametrize(("line", "said"), cases())
def test_a_bad_input_is_refused_in_one_line(line, said, world, capsys):
    before = files_of(world)
    words = shlex.split(line)
    status = run([re.sub(r"{(\w+)}", lambda name: str(world[name[1]]), word) for word in words])
    out, err = capsys.readouterr()
    assert status == 2, (out, err)
    assert out == ""
    *work, last = err.splitlines()
    assert last.startswith("bakeoff: ")
    assert said in last
    assert len(last) < 600
    assert not any(text.startswith(("bakeoff: ", "Traceback")) for text in work)
    assert files_of(world) == before


def test_no_row_of_the_table_is_satisfied_with_anything():
    assert all(len(said) > 8 for rows in TABLE.values() for row in rows for said in row.values())
