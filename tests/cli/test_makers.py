"""Options that are made of configs and of functions: type, default and help are those of what declares them."""

import inspect
import re
import subprocess
import sys

import pytest
import typer
import typer.main
from tests.cli.test_cli import call, refused

import bakeoff
from bakeoff.cli.app import VERBS, app
from bakeoff.cli.shared.decorators import taking
from bakeoff.cli.shared.makers import options_from, options_of
from bakeoff.vectors.options import SimilarityOptions

TOY = '''
raise ImportError("not to be imported")

MOST = 3


def measured(where, *, runs: Sequence[str] = (), length: int | None = None, at: str | Path | None = None,
             rule: Literal["mean", "max"] = "mean", budget: Budget | None = None, most: int = MOST, open: bool = False):
    """Measure.

    Args:
        where: no option.
        runs: runs to measure; None: the
            newest.
        length: with `most`: largest length; None: the `input.length` of the run.
        at: folder of the results.
        rule: mean or max.
        budget: length of the training.
        most: number of figures.
        open: answer everybody.

    Raises:
        UserError: always.
    """


class Settings(Config):
    """Settings."""

    share: float = Field(default=0.5, gt=0)
    """The share."""
    optimizer: OptimizerConfig = AdamWConfig(lr=1.0)
    """The optimizer; null: none."""
'''
DEFAULTS_OF_THEIR_OWN = {"threads"}
"""Options of which the command line has another default than Python: it measures how many threads are best."""


@pytest.fixture
def toy(tmp_path, monkeypatch):
    (tmp_path / "toy_of_makers.py").write_text(TOY, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)


def options(maker):
    """The options that a verb gets of a maker, and a function that calls the verb with a command line."""

    @taking(given=maker)
    def verb(*, given: dict) -> dict:
        return given

    alone = typer.Typer(rich_markup_mode=None)
    alone.command()(verb)
    command = typer.main.get_command(alone)
    shown = {each.name: each for each in command.params}
    return shown, lambda *arguments: command.main(list(arguments), standalone_mode=False)


def test_parameters_of_a_function_are_options_without_an_import(toy):
    names = ("runs", "length", "at", "rule", "most", "open")
    shown, call = options(options_from("toy_of_makers.measured", *names, length={"min": 2}))
    assert call() == {"runs": [], "rule": "mean", "most": 3, "open": False}
    typed = ["--runs", "a", "--runs", "b", "--length", "5", "--at", "x", "--rule", "max", "--most", "1", "--open"]
    given = call(*typed)
    assert {**given, "at": str(given["at"])} == {
        "runs": ["a", "b"],
        "length": 5,
        "at": "x",
        "rule": "max",
        "most": 1,
        "open": True,
    }
    assert type(given["at"]).__name__.endswith("Path")
    assert shown["runs"].help == "Runs to measure. May be repeated. Default: the newest."
    assert shown["length"].help == "With --most: largest length. Default: the `input.length` of the run."
    assert shown["open"].secondary_opts == []  # a switch without one for the opposite


@pytest.mark.parametrize("wrong", [["--length", "1"], ["--rule", "least"], ["--most", "x"]])
def test_values_of_other_types_or_beyond_the_bounds_are_refused(toy, wrong):
    _, call = options(options_from("toy_of_makers.measured", "length", "rule", "most", length={"min": 2}))
    with pytest.raises(typer.BadParameter):
        call(*wrong)


def test_a_budget_is_read_as_one(toy):
    _, call = options(options_from("toy_of_makers.measured", "budget"))
    assert call("--budget", "tokens=5k") == {"budget": bakeoff.Budget(tokens=5000)}


def test_fields_of_a_config_are_options_without_an_import(toy):
    shown, call = options(options_from("toy_of_makers.Settings", "share", "optimizer", share={"names": ("--part",)}))
    assert call("--part", "0.25") == {"share": 0.25}
    assert call() == {"share": 0.5}
    assert shown["optimizer"].help == "The optimizer. Default: none."


def test_words_before_the_help_and_other_defaults():
    shown, call = options(
        options_of(SimilarityOptions, "errors", "at", about="With --data", at={"default": None, "about": "Here"})
    )
    assert shown["errors"].help.startswith("With --data: whether ")
    assert shown["at"].help == "Here: the numbers k of recall@k."
    assert shown["at"].show_default == "1,5,10"
    assert call() == {"errors": "strict", "at": None}


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb in bakeoff.__all__])
def test_what_the_command_line_takes_for_an_option_that_is_left_out_python_takes_too(verb):
    function = inspect.signature(getattr(bakeoff, verb))
    params = {each.name: each for each in typer.main.get_command(app).commands[verb].params}
    for name, parameter in function.parameters.items():
        if name in params and parameter.kind == parameter.KEYWORD_ONLY and name not in DEFAULTS_OF_THEIR_OWN:
            default = params[name].default
            if isinstance(parameter.default, tuple) and parameter.default:
                default = tuple(map(int, default.split(",")))
            assert default in (None, parameter.default) or (default == [] and not parameter.default), name


def test_no_verb_waits_for_torch_to_say_what_it_does():
    code = (
        "import sys\nfrom bakeoff.cli.app import VERBS, Commands\ncommands = Commands()\n"
        "late = [verb for verb in VERBS if commands[verb] and 'torch' in sys.modules]\nassert not late, late[0]"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("option", "text"), [("--budget", "5M"), ("--for-budget", "hours")])
def test_a_wrong_budget_is_named_by_its_option(capsys, option, text):
    said = refused(capsys, "tune", "bert-mini", "--corpus", "c", "--out", "o", option, text)
    assert said.startswith(f"{option} {text}: give a unit")


def test_what_belongs_to_other_data_is_refused(capsys):
    assert "belong to --corpus" in refused(capsys, "evaluate", "run", "--texts", "t", "--examples", "3")
    assert "belong to --data" in refused(capsys, "evaluate", "run", "--corpus", "c", "--pair-column", "b")
    assert "--text-column belongs" in refused(capsys, "evaluate", "run", "--corpus", "c", "--text-column", "b")
    assert "--keep-best" in refused(capsys, "pretrain", "bert-tiny", "--corpus", "c", "--out", "o", "--keep-best")
    assert call(capsys, "evaluate", "run", "--corpus", "c", "--examples", "0")[0] == 2


def test_helps_name_options_that_the_verb_has():
    """A word between backticks in the docstring of a field or parameter becomes an option, which it has to be."""
    commands = typer.main.get_command(app)
    for verb in VERBS:
        parameters = commands.commands[verb].params
        options = {"--plugin", *(name for each in parameters for name in each.opts)}
        for each in parameters:
            named = set(re.findall(r"--[a-z][a-z-]*", getattr(each, "help", None) or ""))
            assert named <= options, (verb, each.name, named - options)
