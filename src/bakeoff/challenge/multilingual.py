"""The evaluation of BabyLM's multilingual track: its zero-shot tasks and its tasks with labels, in the official forms.

Both follow the folder `multilingual` of babylm-org/babylm-eval as it was on 2026-07-10: lm-eval's multiple choice, with
texts after a prompt and a space, and `finetune/finetune_classification.py`.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bakeoff.challenge.labelled import LabelledTask
from bakeoff.challenge.languages import LANGUAGES
from bakeoff.challenge.suites import Choice, Sizes, Suite, name_of, several, solutions, text_of, whole_number
from bakeoff.recipe import Recipe
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.pooling import natural_pooling

ZERO_SHOT = "zeroshot"
"""The folder of the data sets that lm-eval takes from the Hub, each in a folder named after its task."""

LABELS = "finetune/data/multilingual"
"""The folder of the official files with labels."""

SEEDS = (12, 13, 14)
"""The seeds of the fine-tunings; 12 is the official one, whose predictions are submitted."""

EVALUATED_AT_ONCE = 8
"""The official script leaves out the last rows, which do not fill a batch of this size."""

LONGEST = 128
"""The most tokens of a row with labels."""

NOT_DONE = [
    "pos (tagging): not made here; the organisers' finetune_token_classification.py makes it of the exports",
]
"""Parts of the official evaluation that are not made here."""


def _pair(good: str, bad: str) -> Callable[[Mapping[str, Any], str], Choice]:
    def read(row: Mapping[str, Any], name: str) -> Choice:
        texts = text_of(row, good), text_of(row, bad)
        return Choice(name_of(row, "UID") if "UID" in row else name, texts, (0, 0), texts)

    return read


def _hidden(row: Mapping[str, Any], name: str) -> Choice:
    whole = json.dumps(row, indent=2, ensure_ascii=False)  # as lm-eval makes its `doc_hash`
    choice = _pair("sentence_good", "sentence_bad")(row, name)
    return choice._replace(digest=hashlib.sha256(whole.encode()).hexdigest())


def _mubench(row: Mapping[str, Any], name: str) -> Choice:
    answers, label = several(row, "choices"), row["label"]
    right = answers.index(label) if label in answers else whole_number(row, "label")
    return _after(row, answers, right, name)


def _global_piqa(row: Mapping[str, Any], name: str) -> Choice:
    return _after(row, solutions(row), whole_number(row, "label"), name)


def _after(row: Mapping[str, Any], answers: tuple[str, ...], right: int, name: str) -> Choice:
    """Answers after a prompt and a space; spaces at the end of the prompt belong to the answers, as in lm-eval."""
    prompt = text_of(row, "prompt", blank=True)
    texts = tuple(f"{prompt} {answer}" if prompt.strip() else answer for answer in answers)
    return Choice(name, texts, (len(prompt.rstrip()),) * len(answers), answers, right)


def _suite(
    key: str,
    read: Callable[[Mapping[str, Any], str], Choice],
    sizes: Sizes = Sizes(None, None),
    folder: str | None = None,
    **others: Any,
) -> Suite:
    """A zero-shot task, which is scored on all of its items in every checkpoint."""
    place = f"{ZERO_SHOT}/{folder or key}"
    settings: dict[str, Any] = {"over_items": True, "as_lm_eval": True, "tables": True, **others}
    return Suite(key, key, place, place, read, sizes, **settings)


_BLIMP = _pair("sentence_good", "sentence_bad")


def _mubench_suites(code: str) -> list[Suite]:
    return [_suite(f"{each}_{code}_mubench", _mubench) for each in ("hellaswag", "winogrande", "xstorycloze")]


def _piqa_suites(code: str) -> list[Suite]:
    settings: dict[str, Any] = {"ties": "first", "per_token": True}
    return [
        _suite(f"global_piqa_parallel_{code}", _global_piqa, Sizes(None, 103), **settings),
        _suite(f"global_piqa_nonparallel_{code}", _global_piqa, Sizes(None, 100), **settings),
    ]


_XCOMPS = _pair("acceptable_sent", "unacceptable_sent")
_MULTIBLIMP = _pair("sen", "wrong_sen")

SUITES: dict[str, tuple[Suite, ...]] = {
    "eng": (
        _suite("blimp", _BLIMP, Sizes(67, 59_875), "blimp_babylm_filtered"),
        _suite("multiblimp_eng", _MULTIBLIMP),
        *_mubench_suites("en"),
        *_piqa_suites("en"),
    ),
    "nld": (
        _suite("blimp_nl", _BLIMP, Sizes(22, 8_400)),
        _suite("multiblimp_nld", _MULTIBLIMP),
        *_mubench_suites("nl"),
        _suite("xcomps_nl", _XCOMPS),
        *_piqa_suites("nl"),
    ),
    "zho": (
        _suite("zhoblimp", _BLIMP, Sizes(118, None)),
        *_mubench_suites("zh"),
        _suite("xcomps_zh", _XCOMPS),
        _suite("hanzi_structure", _hidden, ties="wrong", hidden=True),
        _suite("hanzi_pinyin", _hidden, ties="wrong", hidden=True),
        *_piqa_suites("zh"),
    ),
}
"""The zero-shot tasks of each language. Sizes are those that the pipeline says; None: it does not."""


def suites_of(languages: Sequence[str]) -> tuple[Suite, ...]:
    """The zero-shot tasks of languages."""
    return tuple(suite for code in languages for suite in SUITES[code])


def _sentence(row: Mapping[str, Any]) -> tuple[str, None]:
    return text_of(row, "sentence", blank=True), None


def _premise(row: Mapping[str, Any]) -> tuple[str, str]:
    return text_of(row, "premise", blank=True), text_of(row, "hypothesis", blank=True)


_ROWS = {"arc": 480, "belebele": 176, "bmlama": 1208, "include": 112, "mnli": 1776, "sib200": 200, "truthfulqa": 112}
_ROWS["xnli"] = 2000
_WITHOUT = {"eng": "include", "nld": "xnli", "zho": ""}


def tasks_of(languages: Sequence[str]) -> tuple[LabelledTask, ...]:
    """The tasks with labels of languages, as `scripts/finetune_model.sh` has them."""
    found = []
    for code in languages:
        short = LANGUAGES[code].short
        for name, rows in _ROWS.items():
            if name != _WITHOUT[code]:
                texts = _premise if name in ("mnli", "xnli") else _sentence
                place = f"{LABELS}/{short}/{name}/{name}_{short}"
                found.append(
                    LabelledTask(
                        f"{name}_{short}",
                        texts,
                        rows,
                        place=place,
                        settings=settings_of,
                        whole_batches=EVALUATED_AT_ONCE,
                        named_labels=True,
                    )
                )
    return tuple(found)


def settings_of(task: LabelledTask, recipe: Recipe) -> FinetuneConfig:
    """The official settings: 5e-5 falling to 0, batches of 64, at most 10 passes, three without a better one end it."""
    longest = recipe.model.longest_input
    return FinetuneConfig.parse(
        {
            "learning_rate": 5e-5,
            "batch": 64,
            "epochs": 10,
            "warmup": 0.0,
            "weight_decay": 0.0,
            "evaluations": 10,
            "patience": 3,
            "length": LONGEST if longest is None else min(LONGEST, longest),
            "pooling": "last" if natural_pooling(recipe) == "last" else "cls",
        },
        task.name,
    )
