"""GLUE (Wang et al. 2019), and BoolQ and COPA of SuperGLUE (2019), whose official tests have no labels."""

from collections.abc import Mapping
from typing import Any

from bakeoff.tasks.datasets.dataset import DataSet, Form, HubForm

OFFICIAL_DEV = "the official test has no labels: test is the official dev, and dev is held out of train"
"""The remark on a benchmark that does not publish the labels of its test."""

_TRAIN, _DEV, _TEST = ("train.tsv",), ("dev.tsv",), ("test.tsv", "test-labeled.tsv")


def _glue(
    title: str, settings: Mapping[str, Any], hub: str, names: Mapping[str, str | None] | None = None, **more: Any
) -> DataSet:
    """A task of GLUE, whose folder has train.tsv and dev.tsv, and perhaps a labelled test.tsv.

    Args:
        title: the name and the source of the task.
        settings: values of the task's config, such as columns.
        hub: the config of the Hub's `nyu-mll/glue`.
        names: the names of the classes in GLUE's files, by the Hub's numbers or names.
        more: `hub_settings`, values of the config for the Hub; `forms` in place of the usual ones; `kind`, if not
            classification; `validation`, the Hub's name of GLUE's dev; or fields of `DataSet`.
    """
    validation = more.pop("validation", "validation")
    hub_settings = {**more.pop("hub_settings", {}), **({"label_names": names} if names else {})}
    kind = more.pop("kind", "classification")
    forms = more.pop("forms", ()) or (
        Form(_TRAIN, _DEV, _TEST),
        Form(_TRAIN, (), _DEV, remark=OFFICIAL_DEV),
    )
    return DataSet(
        title,
        kind,
        forms,
        settings,
        HubForm(f"nyu-mll/glue:{hub}", {"train": "train", "test": validation}, hub_settings, OFFICIAL_DEV),
        **more,
    )


def _pair(first: str, second: str, label: str = "label") -> dict[str, str]:
    return {"text_column": first, "pair_column": second, "label_column": label}


_ENTAILMENT: dict[str, str | None] = {"0": "entailment", "1": "not_entailment"}
_THREE: dict[str, str | None] = {"0": "entailment", "1": "neutral", "2": "contradiction"}
_COLA = {"header": False, "text_column": "4", "label_column": "2"}
_MNLI = _pair("sentence1", "sentence2", "gold_label") | {"label_names": {"-": None}}
_MRPC = _pair("#1 String", "#2 String", "Quality")
_STSB = {"header": False, "separator": "tab", "extra_columns": True, **_pair("6", "7", "5")}
_YES_NO: dict[str, str | None] = {"true": "yes", "false": "no"}

GLUE = {
    "cola": _glue(
        "CoLA, acceptability of sentences (Warstadt et al. 2018)",
        {"metric": "matthews"},
        "cola",
        hub_settings={
            "text_column": "sentence",
            "label_column": "label",
            "label_names": {"unacceptable": "0", "acceptable": "1"},
        },
        forms=(
            Form(
                ("in_domain_train.tsv", "raw/in_domain_train.tsv"),
                ("in_domain_dev.tsv", "raw/in_domain_dev.tsv"),
                ("out_of_domain_dev.tsv", "raw/out_of_domain_dev.tsv"),
                _COLA,
                "the official test has no labels: dev is the official in-domain dev, test the out-of-domain dev "
                "(GLUE's dev is both together)",
            ),
            Form(_TRAIN, (), _DEV, _COLA, OFFICIAL_DEV),
        ),
    ),
    "sst2": _glue(
        "SST-2, sentiment of film reviews (Socher et al. 2013)",
        {"text_column": "sentence", "label_column": "label"},
        "sst2",
        {"negative": "0", "positive": "1"},
    ),
    "mrpc": _glue(
        "MRPC, paraphrases (Dolan and Brockett 2005)",
        {"positive": "1", "metric": "f1"},
        "mrpc",
        {"not_equivalent": "0", "equivalent": "1"},
        hub_settings=_pair("sentence1", "sentence2"),
        forms=(
            Form(
                ("msr_paraphrase_train.txt",),
                (),
                ("msr_paraphrase_test.txt",),
                {**_MRPC, "separator": "tab"},
            ),
            Form(_TRAIN, _DEV, _TEST, _MRPC),
            Form(_TRAIN, (), _TEST, _MRPC),
            Form(_TRAIN, (), _DEV, _MRPC, OFFICIAL_DEV),
        ),
    ),
    "stsb": _glue(
        "STS-B, similarity of sentences (Cer et al. 2017)",
        {"metric": "spearman"},
        "stsb",
        kind="regression",
        hub_settings=_pair("sentence1", "sentence2"),
        forms=(
            Form(
                ("sts-train.csv", "sts-train.tsv"),
                ("sts-dev.csv", "sts-dev.tsv"),
                ("sts-test.csv", "sts-test.tsv"),
                _STSB,
            ),
            Form(_TRAIN, (), _DEV, _pair("sentence1", "sentence2", "score"), OFFICIAL_DEV),
        ),
    ),
    "qqp": _glue(
        "QQP, duplicate questions of Quora (Iyer et al. 2017)",
        {**_pair("question1", "question2", "is_duplicate"), "broken_rows": "skip", "positive": "1", "metric": "f1"},
        "qqp",
        {"not_duplicate": "0", "duplicate": "1"},
        hub_settings=_pair("question1", "question2"),
    ),
    "mnli": _glue(
        "MultiNLI, entailment (Williams et al. 2018), matched genres",
        _MNLI,
        "mnli",
        _THREE,
        validation="validation_matched",
        hub_settings=_pair("premise", "hypothesis"),
        forms=(Form(_TRAIN, (), ("dev_matched.tsv",), remark=OFFICIAL_DEV),),
    ),
    "mnli_mismatched": _glue(
        "MultiNLI, entailment (Williams et al. 2018), mismatched genres",
        _MNLI,
        "mnli",
        _THREE,
        validation="validation_mismatched",
        hub_settings=_pair("premise", "hypothesis"),
        forms=(Form(_TRAIN, (), ("dev_mismatched.tsv",), remark=OFFICIAL_DEV),),
    ),
    "qnli": _glue(
        "QNLI, whether a sentence answers a question (Rajpurkar et al. 2016)",
        _pair("question", "sentence"),
        "qnli",
        _ENTAILMENT,
    ),
    "rte": _glue(
        "RTE, entailment (Dagan et al. 2006 and others)",
        _pair("sentence1", "sentence2"),
        "rte",
        _ENTAILMENT,
    ),
    "wnli": _glue(
        "WNLI, pronouns as entailment (Levesque et al. 2012)",
        _pair("sentence1", "sentence2"),
        "wnli",
        {"not_entailment": "0", "entailment": "1"},
    ),
}
"""The nine tasks of GLUE by name; MNLI is two."""

SUPERGLUE = {
    "boolq": DataSet(
        "BoolQ, yes or no questions about a passage (Clark et al. 2019)",
        "classification",
        (
            Form(("train.jsonl",), (), ("val.jsonl",), {"label_column": "label"}, OFFICIAL_DEV),
            Form(("train.jsonl",), (), ("dev.jsonl",), {"label_column": "answer"}, OFFICIAL_DEV),
        ),
        {"text_column": "question", "pair_column": "passage", "label_names": _YES_NO},
        HubForm("google/boolq", {"train": "train", "test": "validation"}, {"label_column": "answer"}, OFFICIAL_DEV),
    ),
    "copa": DataSet(
        "COPA, causes and effects (Roemmele et al. 2011)",
        "choice",
        (Form(("train.jsonl",), (), ("val.jsonl",), remark=OFFICIAL_DEV),),
        {
            "text_column": "premise",
            "pair_column": "question",
            "choices": ["choice1", "choice2"],
            "label_column": "label",
        },
        HubForm("aps/super_glue:copa", {"train": "train", "test": "validation"}, remark=OFFICIAL_DEV),
    ),
}
"""Two tasks of SuperGLUE by name."""
