"""Data sets for tagging, for questions about texts, and for translation."""

from collections.abc import Mapping, Sequence

from bakeoff.tasks.datasets.dataset import HUB_SPLITS, DataSet, Form, HubForm, Split
from bakeoff.tasks.datasets.glue import OFFICIAL_DEV

TAGGING = {
    "conll2003": DataSet(
        "CoNLL-2003, named entities in English news (Tjong Kim Sang and De Meulder 2003)",
        "tagging",
        (
            Form(("eng.train",), ("eng.testa",), ("eng.testb",)),
            Form(("train.txt",), ("valid.txt", "dev.txt"), ("test.txt",)),
            Form(("train.conll",), ("valid.conll", "dev.conll"), ("test.conll",)),
        ),
        {"text_column": "1", "label_column": "-1", "metric": "f1"},
        HubForm("eriktks/conll2003", HUB_SPLITS, {"text_column": "tokens", "label_column": "ner_tags"}),
    ),
    "universal_dependencies": DataSet(
        "Universal Dependencies, any treebank: universal parts of speech (Nivre et al. 2020)",
        "tagging",
        (Form(("*-ud-train.conllu",), ("*-ud-dev.conllu",), ("*-ud-test.conllu",)),),
        {"text_column": "form", "label_column": "upos", "metric": "accuracy"},
        HubForm("commul/universal_dependencies:en_ewt", HUB_SPLITS, {"text_column": "tokens", "label_column": "upos"}),
    ),
    "peopledaily": DataSet(
        "People's Daily, named entities in Chinese news, by characters",
        "tagging",
        (
            Form(("example.train",), ("example.dev",), ("example.test",)),
            Form(("train.txt",), ("dev.txt",), ("test.txt",)),
            Form(("train.txt",), (), ("dev.txt",), remark="test is the file dev, and dev is held out of train"),
        ),
        {"text_column": "1", "label_column": "-1", "metric": "f1"},
        HubForm(
            "peoples-daily-ner/peoples_daily_ner",
            HUB_SPLITS,
            {"text_column": "tokens", "label_column": "ner_tags"},
        ),
    ),
}
"""Data sets of words with a tag each, by name."""


def _questions_on_hub(repository: str) -> HubForm:
    """The layout of SQuAD on the Hub, with the columns of the library `datasets`."""
    return HubForm(repository, {"train": "train", "test": "validation"}, {"label_column": "answers"}, OFFICIAL_DEV)


READING = {
    "squad": DataSet(
        "SQuAD 1.1, spans that answer questions (Rajpurkar et al. 2016)",
        "question_answering",
        (Form(("train-v1.1.json",), (), ("dev-v1.1.json",), remark=OFFICIAL_DEV),),
        {},
        _questions_on_hub("rajpurkar/squad"),
    ),
    "squad_v2": DataSet(
        "SQuAD 2.0, with questions that have no answer (Rajpurkar et al. 2018)",
        "question_answering",
        (Form(("train-v2.0.json",), (), ("dev-v2.0.json",), remark=OFFICIAL_DEV),),
        {},
        _questions_on_hub("rajpurkar/squad_v2"),
    ),
    "cmrc2018": DataSet(
        "CMRC 2018, spans that answer questions, in Chinese (Cui et al. 2019)",
        "question_answering",
        (Form(("cmrc2018_train.json",), (), ("cmrc2018_dev.json",), remark=OFFICIAL_DEV),),
        {"answer_words": "ideographs"},
        _questions_on_hub("clue/clue:cmrc2018"),
    ),
    "drcd": DataSet(
        "DRCD, spans that answer questions, in traditional Chinese (Shao et al. 2018)",
        "question_answering",
        (Form(("DRCD_training.json",), ("DRCD_dev.json",), ("DRCD_test.json",)),),
        {"answer_words": "ideographs"},
        HubForm("clue/clue:drcd", HUB_SPLITS, {"label_column": "answers"}),
    ),
    "race": DataSet(
        "RACE, questions of English examinations, middle and high school (Lai et al. 2017)",
        "choice",
        (Form(("train", "RACE/train"), ("dev", "RACE/dev"), ("test", "RACE/test"), {"layout": "race"}),),
        {"text_column": "article", "pair_column": "question", "choices": "options", "label_column": "answer"},
        HubForm("ehovy/race:all", HUB_SPLITS),
    ),
}
"""Data sets of questions about a text, by name."""


def _translation(
    title: str,
    source: str,
    target: str,
    names: Sequence[str],
    hub: str,
    within: str = "",
    remark: str = "",
    splits: Mapping[Split, str] = HUB_SPLITS,
) -> DataSet:
    """A data set of pairs of files with a sentence a line, whose endings are the languages.

    Args:
        title: the name of the data set.
        source: the language that is read.
        target: the language that is written.
        names: names of the files of train, dev and test, without the ending.
        hub: its repository on the Hub.
        within: the column on the Hub that holds both languages, with a dot; empty: each language has a column.
        remark: a note on how the data on the Hub differ.
        splits: the Hub's names of the splits.
    """
    train, dev, test = ((f"{name}.{source}",) for name in names)
    columns = {"text_column": within + source, "label_column": within + target}
    form = HubForm(hub, splits, columns, remark)
    return DataSet(title, "sequence_to_sequence", (Form(train, dev, test),), {"label_column": target}, form)


_MULTI30K = ("train", "val", "test_2016_flickr")
_WMT14 = ("train", "newstest2013", "newstest2014")
_IWSLT14 = ("train", "valid", "test")

_RAW = "on the Hub are the sentences as WMT has them, not in words"


def _multi30k(source: str, target: str) -> DataSet:
    return _translation("Multi30k, captions (Elliott et al. 2016)", source, target, _MULTI30K, "bentrevett/multi30k")


def _wmt14(source: str, target: str) -> DataSet:
    title = "WMT 2014 as the Stanford NLP group prepared it"
    return _translation(title, source, target, _WMT14, "wmt/wmt14:de-en", "translation.", _RAW)


def _iwslt14(source: str, target: str) -> DataSet:
    title = "IWSLT 2014, talks, as fairseq prepares them"
    return _translation(title, source, target, _IWSLT14, "bbaaaa/iwslt14-de-en", "translation.")


TRANSLATION = {
    "multi30k_en_de": _multi30k("en", "de"),
    "multi30k_de_en": _multi30k("de", "en"),
    "wmt14_en_de": _wmt14("en", "de"),
    "wmt14_de_en": _wmt14("de", "en"),
    "iwslt14_de_en": _iwslt14("de", "en"),
    "iwslt14_en_de": _iwslt14("en", "de"),
    "iwslt15_en_vi": _translation(
        "IWSLT 2015, talks, as the Stanford NLP group prepared them",
        "en",
        "vi",
        ("train", "tst2012", "tst2013"),
        "thainq107/iwslt2015-en-vi",
        remark="on the Hub dev is said to be a copy of test: dev is held out of train",
        splits={"train": "train", "test": "test"},
    ),
}
"""Data sets of sentences and their translations, by name."""
