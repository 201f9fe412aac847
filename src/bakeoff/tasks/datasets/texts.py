"""Classification of texts: sentiment, topics, questions, toxicity, in English and Chinese."""

from bakeoff.tasks.datasets.dataset import HUB_SPLITS, DataSet, Form, HubForm
from bakeoff.tasks.datasets.glue import OFFICIAL_DEV

_TEXT = {"text_column": "text", "label_column": "label"}
_TOPICS = {"1": "World", "2": "Sports", "3": "Business", "4": "Sci/Tech"}
_FIVE = {"0": "very negative", "1": "negative", "2": "neutral", "3": "positive", "4": "very positive"}
_POLARITY = {"0": "negative", "4": "positive", "2": None}
_OF_TRAIN = "dev and test are held out of Kaggle's train.csv, and no official test"
_TOXIC = ["toxic", "severe_toxic", "obscene", "threat", "insult", "identity_hate"]
_TNEWS = {
    "100": "news_story",
    "101": "news_culture",
    "102": "news_entertainment",
    "103": "news_sports",
    "104": "news_finance",
    "106": "news_house",
    "107": "news_car",
    "108": "news_edu",
    "109": "news_tech",
    "110": "news_military",
    "112": "news_travel",
    "113": "news_world",
    "114": "news_stock",
    "115": "news_agriculture",
    "116": "news_game",
}

TEXTS = {
    "imdb": DataSet(
        "IMDb, sentiment of film reviews (Maas et al. 2011)",
        "classification",
        (
            Form(("aclImdb/train", "train"), (), ("aclImdb/test", "test"), {"layout": "class_folders"}),
            Form(("train.jsonl",), (), ("test.jsonl",), {"label_names": {"0": "neg", "1": "pos"}}),
        ),
        _TEXT,
        HubForm("stanfordnlp/imdb", {"train": "train", "test": "test"}, {"label_names": {"0": "neg", "1": "pos"}}),
    ),
    "sst5": DataSet(
        "SST-5, sentiment in five grades, whole sentences (Socher et al. 2013)",
        "classification",
        (
            Form(
                ("train.txt", "trees/train.txt", "trainDevTestTrees_PTB/trees/train.txt"),
                ("dev.txt", "trees/dev.txt", "trainDevTestTrees_PTB/trees/dev.txt"),
                ("test.txt", "trees/test.txt", "trainDevTestTrees_PTB/trees/test.txt"),
                {"layout": "trees"},
            ),
        ),
        {**_TEXT, "label_names": _FIVE},
        HubForm("SetFit/sst5", HUB_SPLITS),
    ),
    "trec": DataSet(
        "TREC, six coarse types of questions (Li and Roth 2002)",
        "classification",
        (
            Form(
                ("train_5500.label",),
                (),
                ("TREC_10.label",),
                {"layout": "coarse_and_fine", "encoding": "latin-1"},
            ),
            Form(("train.tsv",), (), ("test.tsv",)),
        ),
        _TEXT,
        HubForm("CogComp/trec", {"train": "train", "test": "test"}, {"label_column": "coarse_label"}),
    ),
    "ag_news": DataSet(
        "AG News, topics of title and description (Zhang et al. 2015)",
        "classification",
        (
            Form(
                ("train.csv",),
                (),
                ("test.csv",),
                {"text_column": "Title", "pair_column": "Description", "label_column": "Class Index"},
            ),
            Form(
                ("train.csv",),
                (),
                ("test.csv",),
                {"header": False, "text_column": "2", "pair_column": "3", "label_column": "1"},
            ),
        ),
        {"label_names": _TOPICS},
        HubForm(
            "fancyzhx/ag_news",
            {"train": "train", "test": "test"},
            {**_TEXT, "label_names": {str(int(number) - 1): name for number, name in _TOPICS.items()}},
            "title and description are one text on the Hub",
        ),
    ),
    "sentiment140": DataSet(
        "Sentiment140, sentiment of tweets (Go et al. 2009)",
        "classification",
        (
            Form(
                ("training.1600000.processed.noemoticon.csv",),
                (),
                ("testdata.manual.2009.06.14.csv",),
                {"header": False, "encoding": "latin-1", "text_column": "6", "label_column": "1"},
                "test is the manual one without its neutral rows",
            ),
        ),
        {"label_names": _POLARITY},
        HubForm(
            "stanfordnlp/sentiment140",
            {"train": "train", "test": "test"},
            {"text_column": "text", "label_column": "sentiment"},
            "test is the manual one without its neutral rows",
        ),
    ),
    "civil_comments": DataSet(
        "CivilComments, toxicity as the share of people who find a comment toxic (Borkan et al. 2019)",
        "regression",
        (
            Form(
                ("train.csv",),
                (),
                (),
                {"text_column": "comment_text", "label_column": "target"},
                _OF_TRAIN,
            ),
        ),
        {},
        HubForm(
            "google/civil_comments",
            HUB_SPLITS,
            {"text_column": "text", "label_column": "toxicity"},
        ),
    ),
    "wiki_toxic": DataSet(
        "WikiToxic, whether a comment on Wikipedia is toxic (Jigsaw 2017)",
        "classification",
        (
            Form(
                ("train.csv",),
                (),
                (),
                {"text_column": "comment_text", "label_column": "toxic"},
                _OF_TRAIN,
            ),
        ),
        {"label_names": {"0": "not toxic", "1": "toxic"}, "positive": "toxic", "metric": "f1"},
        HubForm(
            "OxAISH-AL-LLM/wiki_toxic",
            HUB_SPLITS,
            {"text_column": "comment_text", "label_column": "label"},
        ),
    ),
    "wiki_toxic_kinds": DataSet(
        "WikiToxic, which of six kinds of toxicity a comment on Wikipedia has (Jigsaw 2017)",
        "multilabel",
        (
            Form(
                ("train.csv",),
                (),
                (),
                {},
                _OF_TRAIN,
            ),
        ),
        {"text_column": "comment_text", "label_column": _TOXIC, "metric": "auc"},
        HubForm("thesofakillers/jigsaw-toxic-comment-classification-challenge", {"train": "train"}, {}, _OF_TRAIN),
    ),
    "chnsenticorp": DataSet(
        "ChnSentiCorp, sentiment of Chinese reviews of hotels, notebooks and books (Tan)",
        "classification",
        (Form(("train.tsv",), ("dev.tsv",), ("test.tsv",), {"text_column": "text_a"}),),
        {"label_column": "label"},
        HubForm("lansinuote/ChnSentiCorp", HUB_SPLITS, {"text_column": "text"}),
    ),
    "lcqmc": DataSet(
        "LCQMC, Chinese questions of the same meaning (Liu et al. 2018)",
        "classification",
        (
            Form(
                ("train.tsv",),
                ("dev.tsv",),
                ("test.tsv",),
                {"text_column": "text_a", "pair_column": "text_b", "label_column": "label"},
            ),
            Form(
                ("train.tsv",),
                ("dev.tsv",),
                ("test.tsv",),
                {"header": False, "text_column": "1", "pair_column": "2", "label_column": "3"},
            ),
        ),
        {},
        HubForm(
            "C-MTEB/LCQMC",
            HUB_SPLITS,
            {"text_column": "sentence1", "pair_column": "sentence2", "label_column": "score"},
        ),
    ),
    "tnews": DataSet(
        "TNEWS, topics of Chinese headlines (CLUE, Xu et al. 2020)",
        "classification",
        (Form(("train.json",), (), ("dev.json",), remark=OFFICIAL_DEV),),
        {"text_column": "sentence", "label_column": "label_desc"},
        HubForm(
            "clue/clue:tnews",
            {"train": "train", "test": "validation"},
            {"label_column": "label", "label_names": _TNEWS},
            OFFICIAL_DEV,
        ),
    ),
}
"""Data sets of texts with a class or a number each, by name."""
