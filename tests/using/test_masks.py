"""Which masks are filled, and which are refused: at the edges of a row, by the tokenizer's own name, in any order."""

import pytest
from tests.untrained_runs import untrained

import bakeoff
from bakeoff.cli import run as command
from bakeoff.errors import UserError
from bakeoff.preparation.prepare import prepare
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig


@pytest.fixture(scope="module")
def bert(corpus, tmp_path_factory):
    return bakeoff.load(
        untrained("bert-tiny", corpus, tmp_path_factory.mktemp("a") / "run", **{"input.length": 16}), "cpu"
    )


def test_masks_may_be_as_far_apart_as_a_row_is_long(bert):
    assert len(bert.tokenizer.encode(["the"])[0][0]) == 1
    room = 14
    text = "[MASK] " + "the " * (room - 2) + "[MASK]"
    assert [len(each) for each in bert.fill(text, k=3)] == [3, 3]
    padded = "river " * 30 + text + " river" * 30
    assert [len(each) for each in bert.fill(padded, k=3)] == [3, 3]
    assert bert.fill(padded, k=3) == bert.fill(text, k=3)
    with pytest.raises(UserError, match=rf"text 2: its \[MASK\] are {room + 1} tokens apart; a row has {room}"):
        bert.fill(["[MASK]", "[MASK] " + "the " * (room - 1) + "[MASK]"])


def test_a_mask_in_a_long_text_has_half_a_row_on_either_side(bert):
    middle = "the " * 7 + "[MASK]" + " the" * 6
    expected = bert.fill(middle, k=3)
    assert bert.fill("river " * 20 + middle + " river" * 20, k=3) == expected
    assert bert.fill("river " + middle[4:], k=3) != expected


def test_masks_stand_in_the_order_of_the_text(bert):
    text = "The [MASK] finds [MASK] old [MASK]"
    first, second, third = bert.fill(text, k=2)
    assert len({first[0].probability, second[0].probability, third[0].probability}) == 3
    for k in (1, 2):
        for found, own in zip(bert.fill([text, "[MASK]", text], k=k)[2], (first, second, third), strict=True):
            assert [each.id for each in found] == [each.id for each in own[:k]]
            assert found[0].probability == pytest.approx(own[0].probability, rel=1e-3)


def test_the_tokenizers_name_of_the_mask_is_a_mask(corpus, tmp_path, bert):
    name = bert.tokenizer.decode([bert.tokenizer.mask], skip_special=False).strip()
    assert bert.fill(f"The {name} finds", k=2) == bert.fill("The [MASK] finds", k=2)
    from bakeoff.using.filling import masked_parts

    class Named:
        mask = 3

        def decode(self, ids, skip_special):
            assert (ids, skip_special) == ([3], False)
            return "<mask>"

    assert masked_parts("The <mask> finds  [MASK].", Named()) == ["The", " finds", "."]


def test_forwards_one_mask_ends_the_text(corpus, tmp_path):
    run = bakeoff.load(untrained("gpt2-tiny", corpus, tmp_path / "run"), device="cpu")
    for text in ("[MASK] [MASK]", "The [MASK] finds", "[MASK]."):
        with pytest.raises(UserError, match=r"text 2 .* must have one \[MASK\], at its end"):
            run.fill(["[MASK]", text])
    both = bakeoff.load(untrained("gpt-bert-tiny", corpus, tmp_path / "both"), device="cpu")
    assert len(both.fill("The [MASK] finds")) == 1


@pytest.mark.parametrize("kind", ["character", "byte_bpe", "unigram"])
def test_a_token_that_is_white_space_is_named(kind, tmp_path, capsys):
    (tmp_path / "text.txt").write_text("A river is old. " * 60 + "\n\n" + "Some stones are new. " * 60)
    tokenizer = TokenizerConfig(kind=kind, size=280)
    corpus = prepare([tmp_path / "text.txt"], tmp_path / "corpus", tokenizer=tokenizer, workers=0)
    run = bakeoff.load(untrained("bert-tiny", corpus, tmp_path / "run"), "cpu")
    (found,) = run.fill("A [MASK]", k=300)
    assert [each.token for each in found if not each.token] == []
    assert (" " in [each.token for each in found]) is (kind != "unigram" or corpus.tokenizer.id_of("▁") is not None)
    assert command(["fill", str(tmp_path / "run"), "A [MASK]", "-k", "300"]) == 0
    shown = capsys.readouterr().out.rstrip("\n").split("\t")[:-1]
    assert [each for each in shown if not each.strip() or each.startswith(" ")] == []
