"""What the pages say can be typed: verbs, options, recipes, keys and links exist; nothing is run here."""

import ast
import re
from pathlib import Path

import pytest
import typer.main
import yaml
from docs.site.build import expanded
from tests.docs.pages import PAGES, ROOT, blocks, calls, inline
from tests.docs.shape import columns, missing
from tests.docs.smaller import smaller

from bakeoff.cli import _plugins_first
from bakeoff.cli.app import app
from bakeoff.comparison.planning.plan import Plan
from bakeoff.errors import UserError
from bakeoff.recipe_files import load_recipe, recipe_names
from bakeoff.tasks.datasets.dataset import DataSet

GROUP = typer.main.get_command(app)
RECIPE_VERBS = {"show", "peek", "pretrain", "tune", "speed", "finetune"}
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)+$")

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def parse(arguments):
    """Have the command line's own parser read the arguments; it raises what is wrong."""
    with GROUP.make_context("bakeoff", _plugins_first(arguments)) as context:
        name, command, rest = GROUP.resolve_command(context, [*context._protected_args, *context.args])
        return name, command.make_context(name, rest, parent=context).params


@every_page
def test_commands_parse(page):
    for block in blocks(page):
        if block.kind == "shell":
            for call in block.calls():
                if call[0].startswith("--"):
                    continue
                try:
                    verb, values = parse(call)
                except Exception as problem:
                    raise AssertionError(f"{block.place}: bakeoff {' '.join(call)}: {problem}") from problem
                if verb in RECIPE_VERBS:
                    recipes_exist(values, block.place)


def test_examples_of_the_help_parse():
    """They stand in the reference, as `--help` shows them."""
    shown = expanded(ROOT / "docs" / "reference" / "commands.md")
    examples = re.findall(r"^```sh\n(.*?)^```$", shown, re.DOTALL | re.MULTILINE)
    found = [call for example in examples for call in calls(example)]
    assert len(found) > 2 * len(GROUP.commands)
    for call in found:
        verb, values = parse(call)
        if verb in RECIPE_VERBS:
            recipes_exist(values, f"bakeoff {verb} --help")


def recipes_exist(values, place):
    """Recipes that a command names, and the keys that it sets."""
    named = values.get("recipes") or values.get("recipe") or values.get("source")
    for name in [named] if isinstance(named, str) else named or []:
        if NAME.match(str(name)):
            assert name in recipe_names(), f"{place}: no recipe {name}"
            load_recipe(name, [text for text in values.get("set", []) if "--" not in text])


@every_page
def test_commands_within_the_prose_exist(page):
    for text in inline(page):
        for call in calls(text):
            if not call or call[0].startswith("--") or not call[0].isalpha() or call[0].isupper():
                continue
            command = GROUP.commands.get(call[0])
            assert command is not None, f"{page.name}: no verb in `{text}`"
            options = {name for parameter in command.params for name in parameter.opts} | {"--help", "--plugin"}
            unknown = {word.partition("=")[0] for word in call if word.startswith("--")} - options
            assert not unknown, f"{page.name}: `{text}` has no {', '.join(unknown)}"


@every_page
def test_python_can_be_read(page):
    for block in blocks(page):
        if block.kind == "python":
            ast.parse(block.text, block.place)


def test_what_is_not_run_says_why():
    found = [block for page in PAGES for block in blocks(page)]
    not_run = [block for block in found if block.reason is not None]
    assert all(len(block.reason.split()) >= 3 for block in not_run)
    run = [block for block in found if block.kind in ("shell", "python") and block.reason is None]
    extras = {"onnxruntime", "tensorboard", "fastapi", "transformers", "gguf"}
    assert {block.needs for block in found} <= {None, "jq", *extras}
    assert len(run) > 4 * len(not_run)


@every_page
def test_recipes_and_plans_are_taken(page, tmp_path):
    """Whole ones as they stand, pieces of them with what they leave out."""
    whole_plan = {"corpus": "corpora/mine", "recipes": ["bert-mini"], "budget": "steps=100"}
    whole_plan["tasks"] = [{"name": "t", "train": "train.tsv", "text_column": "text", "label_column": "label"}]
    with_part_of_its_own = page.stem == "plugins"
    for block in blocks(page):
        if block.language != "yaml" or block.reason or with_part_of_its_own:
            continue
        values = yaml.safe_load(block.text)
        try:
            if "forms" in values:
                DataSet.parse(values, block.place)
            elif {"tasks", "search", "corpus", "recipes"} & set(values):
                tasks = [task for task in values.get("tasks", []) if "dataset" not in task]  # which look at their files
                Plan.parse({**whole_plan, **values, "tasks": tasks or whole_plan["tasks"]}, block.place)
            else:
                path = tmp_path / "recipe.yaml"
                path.write_text(yaml.safe_dump({"extends": "bert-base"} | values), encoding="utf-8")
                load_recipe(path)
        except UserError as error:
            raise AssertionError(f"{block.place}: {error}") from error


def test_every_block_is_one_of_the_known_kinds():
    """What looks like a command is read as one, whatever program it begins with."""
    for page in PAGES:
        for block in blocks(page):
            if block.kind == "other" and block.language not in ("yaml", "toml"):
                assert not re.search(r"^(\$ |bakeoff |[A-Z_]+=\S+ )", block.text, re.MULTILINE), block.place


def _anchor(heading):
    if given := re.search(r"\{#([\w.-]+)\}$", heading):
        return given[1]
    return re.sub(r"[^\w -]", "", re.sub(r"[`*]", "", heading).lower()).replace(" ", "-")


def _anchors(path):
    whole = expanded(path) if path.parent.name == "reference" else path.read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```$", "", whole, flags=re.DOTALL | re.MULTILINE)
    return {_anchor(heading) for heading in re.findall(r"^#+ +(.*)$", text, re.MULTILINE)}


@every_page
def test_links_lead_somewhere(page):
    prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for link in re.findall(r"\]\(([^)\s]+)\)", prose):
        if "://" in link:
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), f"{page.name}: {link}"
        if anchor and target.suffix == ".md":
            assert anchor in _anchors(target), f"{page.name}: {link}"


def test_the_map_has_every_page_once():
    linked = re.findall(
        r"^- \[[^]]*\]\(([^)]*)\)", (ROOT / "docs" / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")} - {"README.md"}
    pages |= {"../CONTRIBUTING.md", "../CHANGELOG.md", "../CITATION.cff"}
    assert sorted(linked) == sorted(pages)


def test_the_readme_names_no_page_twice_in_its_list():
    named = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Documentation")[2]
    links = re.findall(r"\]\(([^)]+)\)", named)
    assert len(links) == len(set(links)) > 25


def test_calls_are_read_as_a_shell_reads_them():
    typed = "cat a | bakeoff generate runs/gpt --beams 4 > out && bakeoff check 'a b' \\\n  --json  # why\n"
    assert calls(typed) == [["generate", "runs/gpt", "--beams", "4"], ["check", "a b", "--json"]]


def test_a_budget_is_made_smaller_and_nothing_else():
    asked = ["pretrain", "bert-mini", "--corpus", "c", "--out", "o", "--budget", "minutes=10"]
    changed = smaller(asked)
    assert changed[:6] == asked[:6]
    assert changed[6:8] == ["--budget", "steps=3"]
    assert smaller(["evaluate", "runs/bert"]) == ["evaluate", "runs/bert"]


def test_shapes_are_compared_without_numbers():
    assert columns("run   a\n  indented\nstep 1/20  loss 2.5\n...\n") == ["run", "step 0/0"]
    assert not missing("loss 2.5  x\n", "loss 1.25  y\nother\n")
    assert missing("losses\n", "loss 1.25\n") == ["losses"]


def test_answers_of_models_are_compared_by_their_form():
    shown = 'good\t0.75\tA text.\n{"model": "a", "answers": [{"label": "good"}]}\ndata: {"text": " of"}\n'
    printed = 'bad\t0.5\tOther.\n{"model": "b", "answers": [{"label": "x"}, {"label": "y"}]}\ndata: {"text": " in"}\n'
    assert not missing(shown, printed)
    assert len(missing(shown, "bad\t0.5\n{}\ndata: {}\n")) == 3


@pytest.mark.parametrize("text", ["```sh\nbakeoff nothing\n```\n", "```\nbakeoff show bert-base --sett a=1\n```\n"])
def test_mistakes_on_a_page_are_found(text, tmp_path, monkeypatch):
    page = Path(tmp_path) / "page.md"
    page.write_text(text, encoding="utf-8")
    monkeypatch.setattr("tests.docs.pages.ROOT", tmp_path)
    with pytest.raises(AssertionError, match=r"page\.md"):
        test_commands_parse(page)
