import json

import pytest
from keyword_task import write_jsonl, write_tsv

from bakeoff.errors import UserError
from bakeoff.tasks.clusters import cluster_numbers
from bakeoff.tasks.data import load_task
from bakeoff.tasks.kinds.choice import ChoiceConfig
from bakeoff.tasks.kinds.classification import ClassificationConfig
from bakeoff.tasks.kinds.multilabel import MultilabelConfig
from bakeoff.tasks.kinds.question_answering import QuestionAnsweringConfig
from bakeoff.tasks.kinds.regression import RegressionConfig
from bakeoff.tasks.kinds.sequence_to_sequence import SequenceToSequenceConfig
from bakeoff.tasks.kinds.tagging import TaggingConfig

ROWS = [{"text": f"a text {n}", "target": n % 2, "article": "ab"[n // 3 % 2]} for n in range(12)]
KINDS = {
    "classification": (ClassificationConfig, {"text_column": "text", "label_column": "target"}),
    "regression": (RegressionConfig, {"text_column": "text", "label_column": "target"}),
    "multilabel": (MultilabelConfig, {"text_column": "text", "label_column": ["target"]}),
    "sequence_to_sequence": (SequenceToSequenceConfig, {"text_column": "text", "label_column": "target"}),
}


def clusters(config):
    data = load_task(config)
    assert not data.clusters or len(data.clusters) == len(data.test)
    return list(data.clusters)


def of(kind, path, **changes):
    return kind(**{"train": path, "dev": path, "test": path, **changes})


@pytest.mark.parametrize("ending", ["tsv", "jsonl"])
@pytest.mark.parametrize("name", KINDS)
def test_a_column_names_the_clusters(tmp_path, name, ending):
    path = tmp_path / f"rows.{ending}"
    (write_tsv if ending == "tsv" else write_jsonl)(path, ROWS)
    kind, columns = KINDS[name]
    assert clusters(of(kind, path, **columns, cluster_column="article")) == [0, 0, 0, 1, 1, 1] * 2
    assert clusters(of(kind, path, **columns)) == []  # no two texts are equal
    with pytest.raises(UserError, match=r"rows.*articel.*did you mean 'article'"):
        load_task(of(kind, path, **columns, cluster_column="articel"))
    with pytest.raises(
        UserError, match=rf"rows.{ending}: cluster_column: 'target' is the label, and rows of one label"
    ):
        load_task(of(kind, path, **columns, cluster_column="target"))


def test_rows_with_equal_texts_are_one(tmp_path):
    write_tsv(tmp_path / "a.tsv", [*ROWS, ROWS[0], ROWS[1], ROWS[0]])
    kind, columns = KINDS["classification"]
    assert clusters(of(kind, tmp_path / "a.tsv", **columns)) == [*range(12), 0, 1, 0]


def test_a_cell_without_a_name_is_a_cluster_of_its_own(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", [{**row, "article": None if n % 4 else "x"} for n, row in enumerate(ROWS)])
    kind, columns = KINDS["classification"]
    config = of(kind, tmp_path / "a.jsonl", **columns, cluster_column="article")
    assert clusters(config) == [0, 1, 2, 3, 0, 4, 5, 6, 0, 7, 8, 9]


def test_the_column_may_be_one_of_the_texts(tmp_path):
    """The premise of MultiNLI, which has three hypotheses; the passage of BoolQ."""
    write_tsv(tmp_path / "a.tsv", [{"one": f"p{n // 3}", "other": f"h{n}", "label": n % 3} for n in range(9)])
    columns = {"text_column": "one", "pair_column": "other", "label_column": "label"}
    config = of(ClassificationConfig, tmp_path / "a.tsv", **columns, cluster_column="one")
    assert clusters(config) == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_a_held_out_split_parts_no_cluster(tmp_path):
    write_tsv(tmp_path / "a.tsv", [{"text": f"t{n}", "label": n % 2, "doc": f"d{n % 37}"} for n in range(370)])
    config = ClassificationConfig(
        train=tmp_path / "a.tsv", text_column="text", label_column="label", cluster_column="doc"
    )
    data = load_task(config)
    documents = [{int(each.texts[0][1:]) % 37 for each in part} for part in (data.train, data.dev, data.test)]
    assert sum(map(len, documents)) == 37
    assert 50 <= len(data.test) <= 100
    assert max(data.clusters) + 1 == len(documents[2])


@pytest.mark.parametrize("name", ["a.tsv", "a.jsonl"])
def test_a_column_that_is_not_there_is_told_by_its_setting(name, tmp_path):
    rows = [{"text": f"t{n}", "label": n % 2} for n in range(40)]
    (write_tsv if name == "a.tsv" else write_jsonl)(tmp_path / name, rows)
    config = ClassificationConfig(train=tmp_path / name, text_column="text", label_column="label", cluster_column="doc")
    with pytest.raises(
        UserError, match=r"no (column|field) 'doc' .*\); name another with cluster_column, or leave it out$"
    ):
        load_task(config)


def squad(path, articles, titled=True):
    data = [
        {
            **({"title": f"article {a}"} if titled else {}),
            "paragraphs": [
                {
                    "context": f"In article {a} part {p} stands the word.",
                    "qas": [
                        {"id": f"{a}-{p}-{q}", "question": f"which {q}?", "answers": [{"text": "word"}]} for q in "xy"
                    ],
                }
                for p in range(2)
            ],
        }
        for a in range(articles)
    ]
    path.write_text(json.dumps({"data": data}))
    return of(QuestionAnsweringConfig, path)


def test_questions_on_one_article_belong_together(tmp_path):
    """By the titles of SQuAD's layout; without these, or of a single article, by contexts."""
    assert clusters(squad(tmp_path / "a.json", 3)) == [0] * 4 + [1] * 4 + [2] * 4
    assert clusters(squad(tmp_path / "a.json", 30)) == [n // 4 for n in range(120)]
    by_context = [n // 2 for n in range(12)]
    assert clusters(squad(tmp_path / "a.json", 3, titled=False)) == by_context
    assert clusters(squad(tmp_path / "a.json", 1)) == [0, 0, 1, 1]
    with pytest.raises(UserError, match=r"a.json: cluster_column: such a file has no column 'title'; leave it out"):
        load_task(squad(tmp_path / "a.json", 3).model_copy(update={"cluster_column": "title"}))
    rows = [{"question": f"q{n}", "context": f"the word {n // 2}", "answer": "word", "of": n // 4} for n in range(8)]
    write_jsonl(tmp_path / "a.jsonl", rows)
    config = of(QuestionAnsweringConfig, tmp_path / "a.jsonl")
    assert clusters(config) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert clusters(config.model_copy(update={"cluster_column": "of"})) == [0] * 4 + [1] * 4


def test_questions_of_choice_on_one_text_belong_together(tmp_path):
    rows = [{"article": f"text {n // 3}", "question": f"q{n}", "options": ["a", "b"], "answer": "A"} for n in range(6)]
    write_jsonl(tmp_path / "a.jsonl", [*rows, {**rows[0], "question": "z", "answer": "B"}])
    columns = {"text_column": "article", "pair_column": "question", "choices": "options", "label_column": "answer"}
    assert clusters(of(ChoiceConfig, tmp_path / "a.jsonl", **columns)) == [0, 0, 0, 1, 1, 1, 0]


def test_sentences_of_a_marked_document_belong_together(tmp_path):
    one = "{mark}a X\n\nb Y\n\n"
    path = tmp_path / "a.conll"
    path.write_text("".join(one.format(mark="-DOCSTART- -X-\n\n") for _ in range(3)))
    assert clusters(of(TaggingConfig, path)) == [0, 0, 1, 1, 2, 2]
    for end in ("\n", "\n\n"):  # a mark ends the sentence before it, and begins none
        path.write_text("".join(f"-DOCSTART- -X-{end}a X\n\nb Y\n" for _ in range(3)))
        assert clusters(of(TaggingConfig, path)) == [0, 0, 1, 1, 2, 2]
    path.write_text("-DOCSTART- -X-\n\na X\n\nb Y\n\nc Y\n\n")  # one mark says nothing
    assert clusters(of(TaggingConfig, path)) == []
    universal = tmp_path / "a.conllu"
    word = "1\t{word}\t_\t{tag}\t_\t_\t0\t_\t_\t_\n\n"
    text = "".join(
        f"# newdoc id = {n}\n# text = a\n{word.format(word=f'a{n}', tag='X')}# text = b\n"
        f"{word.format(word=f'b{n}', tag='Y')}"
        for n in range(2)
    )
    universal.write_text(text)
    assert clusters(of(TaggingConfig, universal)) == [0, 0, 1, 1]
    universal.write_text(text.replace("\n\n# newdoc", "\n# newdoc"))
    assert clusters(of(TaggingConfig, universal)) == [0, 0, 1, 1]
    universal.write_text(text.replace("\n\n# text", "\n# text"))
    with pytest.raises(UserError, match=r"a\.conllu:5: a sentence begins without a blank line before it; put one"):
        clusters(of(TaggingConfig, universal))
    universal.write_text(text.replace("# newdoc", "# source"))
    assert clusters(of(TaggingConfig, universal)) == []
    lists = tmp_path / "a.jsonl"
    write_jsonl(lists, [{"words": [f"w{n}"], "tags": ["XY"[n % 2]], "by": n // 2} for n in range(4)])
    config = of(TaggingConfig, lists, text_column="words", label_column="tags", cluster_column="by")
    assert clusters(config) == [0, 0, 1, 1]
    assert cluster_numbers(config, lists, load_task(config).test) == [0, 0, 1, 1]
