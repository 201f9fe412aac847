"""Keys of recipes that would be set in vain: a verb does not read them, or an option of it replaces them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bakeoff.errors import UserError
from bakeoff.overrides import overlap, parse_overrides, within

Overrides = Mapping[str, Any] | Sequence[str]
"""Values by dotted keys, or texts of the command line such as `input.length=64`."""


def parsed(overrides: Overrides) -> dict[str, Any]:
    """Overrides of either kind as values by dotted keys.

    Raises:
        UserError: a text is not KEY=VALUE, or a key has two values.
    """
    return dict(overrides) if isinstance(overrides, Mapping) else parse_overrides(overrides)


class Unread(NamedTuple):
    """Keys of recipes that a verb does not read."""

    keys: tuple[str, ...]
    """Dotted keys, which stand for all keys below them."""
    why: str
    """What there is in their place, as the end of a sentence."""
    but: tuple[str, ...] = ()
    """Keys below them that it reads all the same."""
    options: Mapping[str, str] = {}
    """What to type in place of some of the keys."""


_PREPARED = {"size": "--vocabulary N", "lowercase": "--lowercase or --cased", "end_of_line": "--end-of-line"}
OF_CORPUS = Unread(
    ("tokenizer",),
    "the tokenizer is that of the corpus",
    options={
        **{
            f"tokenizer.{key}": f"`bakeoff prepare {option}` makes a corpus with another one"
            for key, option in _PREPARED.items()
        },
        "tokenizer": "`bakeoff prepare --tokenizer KIND --vocabulary N` makes a corpus with another one",
    },
)


def _training(*names: str) -> tuple[str, ...]:
    return tuple(f"training.{name}" for name in names)


OF_RUN = Unread(("tokenizer",), "the tokenizer is that of the run")
CUT_ONCE = Unread(("input.cut_anew",), "rows are those of the first epoch")

_OF_FINETUNING = {
    "optimizer.lr": "learning_rate",
    "optimizer.weight_decay": "weight_decay",
    "schedule.warmup": "warmup",
    "budget": "epochs",
}
_OF_BOTH = ("batch", "micro_batch", "clip", "average", "optimizer", "schedule")

UNREAD: Mapping[str, Sequence[Unread]] = {
    "pretrain": [OF_CORPUS],
    "tune": [OF_CORPUS],
    "babylm": [],
    "finetune": [
        OF_CORPUS,
        Unread(
            ("training",),
            "fine-tuning has settings of its own",
            but=_training("precision", "activation_checkpointing"),
            options={
                f"training.{key}": f"give --option {name}=..."
                for key, name in (*_OF_FINETUNING.items(), *((name, name) for name in _OF_BOTH))
            },
        ),
    ],
    "evaluate a mixture": [
        OF_RUN,
        CUT_ONCE,
        Unread(
            ("training",),
            "nothing is trained",
            but=_training("precision", "batch", "micro_batch", "validation_examples"),
        ),
    ],
    "evaluate a corpus": [
        OF_RUN,
        CUT_ONCE,
        Unread(
            ("training",),
            "nothing is trained",
            but=_training("precision", "batch", "micro_batch"),
            options={"training.validation_examples": "give --examples"},
        ),
    ],
    "score": [OF_RUN, CUT_ONCE, Unread(("training",), "nothing is trained, and texts are scored in float32")],
    "peek": [
        OF_CORPUS,
        Unread(
            ("training",),
            "nothing is trained",
            but=_training("batch", "micro_batch", "first_batch", "curriculum", "budget", "validation_examples"),
        ),
    ],
    "speed": [
        CUT_ONCE,
        Unread(("input.length",), "rows are as long as --lengths says", options={"input.length": "give --lengths"}),
        Unread(
            ("training",),
            "steps are measured, of --batch-tokens tokens",
            but=_training("precision", "compile", "optimizer", "clip", "activation_checkpointing"),
            options={f"training.{name}": "give --batch-tokens" for name in ("batch", "micro_batch")},
        ),
    ],
}
"""What each verb does not read of a recipe; `show` prints all of it."""


def require_effect(verb: str, overrides: Overrides, replaced: Mapping[str, str] = {}) -> None:
    """Refuse overrides that would change nothing.

    Args:
        verb: a key of `UNREAD`.
        overrides: the overrides.
        replaced: keys that options of the command line replace, with the options.

    Raises:
        UserError: an override would change nothing; the message names the first one.
    """
    for key in (path for given, value in parsed(overrides).items() for path in _leaves(given, value)):
        for at, option in replaced.items():
            if overlap(key, at):
                raise UserError(f"--set {key}: {option} replaces it; give one of them")
        for each in UNREAD[verb]:
            if any(within(key, at) for at in each.keys) and not any(within(key, at) for at in each.but):
                option = next((f": {option}" for at, option in each.options.items() if within(key, at)), "")
                raise UserError(
                    f"--set {key}: would change nothing here, because {each.why}{option or '; leave it out'}"
                )


def require_effect_on_held_out_rows(of_training: Sequence[Collection[str]], overrides: Overrides) -> None:
    """Refuse overrides of fields that matter in training alone, where nothing is trained.

    Args:
        of_training: the names of these fields, for each objective of the recipe.
        overrides: the overrides.

    Raises:
        UserError: an override is of such a field; the message names the first one.
    """
    for key in (path for given, value in parsed(overrides).items() for path in _leaves(given, value)):
        for index, names in enumerate(of_training):
            if any(within(key, f"objective.{index}.{name}") for name in names):
                raise UserError(
                    f"--set {key}: would change nothing here, because it matters in training alone; leave it out"
                )


def _leaves(key: str, value: Any) -> Iterator[str]:
    """The keys of the single values that a value at a key consists of."""
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _leaves(f"{key}.{name}", inner)
    else:
        yield key
