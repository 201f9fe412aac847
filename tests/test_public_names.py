"""The package as it is used from Python: its names, and what its objects say of themselves."""

import pytest

import bakeoff
from bakeoff.errors import UserError
from tests.conftest import shrink


def test_dir_lists_the_public_names_all_of_which_are_there():
    names = [name for name in dir(bakeoff) if not name.startswith("_")]
    assert names == sorted(bakeoff.__all__)
    assert all(getattr(bakeoff, name).__doc__ for name in names)


def test_functions_answer_to_their_older_names():
    assert bakeoff.prepare_part is bakeoff.prepare_shard
    assert bakeoff.merge_parts is bakeoff.merge_shards


def test_a_run_opens_by_its_path_and_says_what_it_is(corpus, tmp_path):
    recipe = shrink("gpt-tiny")
    made = bakeoff.pretrain(recipe, corpus.path, tmp_path / "run", progress=False, device="cpu")
    run = bakeoff.Run(str(tmp_path / "run"))
    assert run.recipe == made.recipe
    loss, size = run.summary["validation"]["loss"], run.summary["parameters"]
    assert repr(run) == f"Run('{tmp_path / 'run'}'): gpt-tiny, {size:,} parameters, 12 steps, held-out loss {loss:.4f}"
    (tmp_path / "run" / "summary.json").unlink()
    assert repr(bakeoff.Run(run.path)) == f"Run('{run.path}')"  # it is lost, as the list of checksums says
    (tmp_path / "run" / "bakeoff.sha256").unlink()
    assert repr(bakeoff.Run(run.path)) == f"Run('{run.path}'): gpt-tiny, unfinished, step 0 of 12"
    (tmp_path / "run" / "recipe.yaml").write_text("name: [")
    assert repr(bakeoff.Run(run.path)) == f"Run('{run.path}')"
    for path, problem in ((tmp_path / "none", "no such run"), (tmp_path, "this is not a run: it has no recipe.yaml")):
        advice = "`bakeoff runs FOLDER` lists the runs below a folder"
        with pytest.raises(UserError, match=f"^{path}: {problem}; {advice}$"):
            bakeoff.Run(str(path))


def test_a_corpus_says_what_it_is(corpus):
    counts = [f"{len(split.tokens):,}" for split in (corpus.train, corpus.validation)]
    size = corpus.tokenizer.size
    expected = f"{counts[0]} tokens of train, {counts[1]} tokens of validation, a vocabulary of {size}"
    assert repr(corpus) == f"Corpus.open('{corpus.path}'): {expected}"
