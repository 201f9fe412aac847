import pytest
import torch
from tests.conftest import shrink
from typer.testing import CliRunner

import bakeoff
from bakeoff.cli.app import app
from bakeoff.errors import UserError
from bakeoff.generation.config import GenerationConfig
from bakeoff.generation.sampling import PromptSeed, chooser
from bakeoff.training.pretrain import pretrain


def trained(name, corpus, folder, **changes):
    recipe = shrink(name, **({"training.budget": {"steps": 50}, "training.optimizer.lr": 1e-2} | changes))
    return pretrain(recipe, corpus.path, folder / name, device="cpu", progress=False)


@pytest.fixture(scope="module")
def runs(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return {name: trained(name, corpus, folder) for name in ("gpt-tiny", "t5-tiny", "bart-tiny")}


def test_a_causal_run_goes_on_in_the_manner_of_its_text(runs):
    greedy = bakeoff.GenerationConfig(tokens=30, temperature=0)
    (text,) = bakeoff.generate(runs["gpt-tiny"], ["The river"], greedy)
    assert "the" in text.lower()
    assert "[" not in text
    assert bakeoff.generate(runs["gpt-tiny"].path, ["The river"], greedy) == [text]
    assert bakeoff.generate(runs["gpt-tiny"], [""], greedy) != [""]  # a text of its own


def test_marks_are_filled_and_numbered(runs):
    config = bakeoff.GenerationConfig(tokens=20, temperature=0)
    (text,) = bakeoff.generate(runs["t5-tiny"], ["The [MASK] finds the old [MASK]."], config)
    assert text.startswith("[1] ")
    (text,) = bakeoff.generate(runs["bart-tiny"], ["The [MASK] finds the old river."], config)
    assert "[MASK]" not in text
    assert text


def test_a_prompt_leaves_a_position_to_write_at(runs):
    run, one = runs["gpt-tiny"], bakeoff.GenerationConfig(tokens=1, temperature=0)
    (ids, _), longest = run.tokenizer.encode(["river"])[0], run.recipe.model.longest_input
    assert len(ids) == 1
    assert len(bakeoff.generate(run, ["river " * (longest - 2)], one)) == 1  # the separator is the first token
    with pytest.raises(UserError, match=f"{longest} tokens are too long for this model, which has {longest}"):
        bakeoff.generate(run, ["river " * (longest - 1)], one)


def test_what_is_refused(runs, corpus, tmp_path):
    with pytest.raises(UserError, match="tokens are too long for this model, which has 512"):
        bakeoff.generate(runs["gpt-tiny"], ["river " * 600])
    with pytest.raises(UserError, match="101 \\[MASK\\], but the run knows 100 marks"):
        bakeoff.generate(runs["t5-tiny"], ["[MASK]" * 101])
    with pytest.raises(UserError, match="length_penalty: it is of a search, and sampling has none; give beams, too"):
        bakeoff.load(runs["gpt-tiny"]).generate(["The river"], length_penalty=1.0)
    bert = trained("bert-tiny", corpus, tmp_path, **{"training.budget": {"steps": 2}})
    with pytest.raises(UserError, match="cannot write"):
        bakeoff.generate(bert, ["The river"])


def test_the_command(runs):
    run = str(runs["gpt-tiny"].path)
    options = ["--tokens", "5", "--top-p", "0.9", "--seed", "1"]
    first = CliRunner().invoke(app, ["generate", run, "The river", *options])
    assert first.exit_code == 0
    piped = CliRunner().invoke(app, ["generate", run, *options, "--json"], input="The river\n")
    assert first.output.strip() in piped.output
    one, greedy = (
        CliRunner().invoke(app, ["generate", run, "The river", *way])
        for way in (["--beams", "1"], ["--temperature", "0"])
    )
    assert one.output == greedy.output != CliRunner().invoke(app, ["generate", run, "The river"]).output
    wrong = CliRunner().invoke(app, ["generate", run, "The river", "--beams", "4", "--top-k", "3"])
    assert isinstance(wrong.exception, UserError)
    assert "a search does not sample" in str(wrong.exception)


def test_every_seed_and_number_of_a_prompt_has_random_numbers_of_its_own():
    """Prompt 1 of seed 0 is not prompt 0 of seed 1, nor does anything depend on the rows beside it."""
    seeds = [PromptSeed(seed, number) for seed in range(10) for number in range(10)]
    scores = torch.zeros(len(seeds), 1000).log_softmax(-1)

    def drawn(seeds):
        choose = chooser(GenerationConfig(), seeds)
        return torch.stack([choose(scores[: len(seeds)], list(range(len(seeds)))) for _ in range(4)], 1).tolist()

    together = drawn(seeds)
    assert len(set(map(tuple, together))) == len(seeds)
    assert [drawn([seed])[0] for seed in seeds[::17]] == together[::17]
