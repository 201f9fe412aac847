"""Models of transformers with a decoder, and XLNet, come in and go out with the same numbers."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from bakeoff.generation.config import GenerationConfig
from bakeoff.generation.generate import generate, write
from bakeoff.interop.export import export
from bakeoff.interop.hugging_face.importing import import_model
from bakeoff.objectives.clm import CausalLanguageModelConfig
from bakeoff.row import Row, Source
from bakeoff.runs.run import Run
from tests.interop.decoder_models import PAGE, byte_bpe, char_bpe, saved, unigram
from tests.models.conftest import double, marked_dropout  # noqa: F401 fixtures

transformers = pytest.importorskip("transformers")

EAGER = {"attn_implementation": "eager"}


def gpt2(**changes):
    inner = byte_bpe(["<|endoftext|>"], 331)
    sizes = {"n_positions": 41, "n_embd": 35, "n_layer": 3, "n_head": 5, "n_inner": 51}
    rates = {"resid_pdrop": 0.11, "embd_pdrop": 0.05, "attn_pdrop": 0.2}
    ids = {"bos_token_id": 0, "eos_token_id": 0}
    config = transformers.GPT2Config(
        vocab_size=inner.get_vocab_size(), **sizes, **rates, **ids, layer_norm_epsilon=3e-4, **changes, **EAGER
    )
    return transformers.GPT2LMHeadModel(config), inner


def gpt(**changes):
    inner = char_bpe(151)
    rates = {"resid_pdrop": 0.11, "embd_pdrop": 0.05, "attn_pdrop": 0.2}
    config = transformers.OpenAIGPTConfig(
        vocab_size=inner.get_vocab_size(), n_positions=37, n_embd=35, n_layer=3, n_head=5, **rates, **changes
    )
    return transformers.OpenAIGPTLMHeadModel(config), inner


def bart(**changes):
    inner = byte_bpe(["<s>", "<pad>", "</s>", "<unk>", "<mask>"], 331)
    sizes = {"d_model": 35, "encoder_layers": 2, "decoder_layers": 3, "max_position_embeddings": 43}
    heads = {"encoder_attention_heads": 5, "decoder_attention_heads": 7, "encoder_ffn_dim": 51, "decoder_ffn_dim": 33}
    rates = {"dropout": 0.11, "attention_dropout": 0.2, "activation_dropout": 0.05}
    config = transformers.BartConfig(vocab_size=inner.get_vocab_size(), **sizes, **heads, **rates, **changes, **EAGER)
    return transformers.BartForConditionalGeneration(config), inner


def t5(**changes):
    marks = [f"<extra_id_{number}>" for number in reversed(range(7))]
    inner = unigram(["<pad>", "</s>", "<unk>"], 150, marks)
    sizes = {"d_model": 35, "d_kv": 6, "num_heads": 5, "d_ff": 51, "num_layers": 2, "num_decoder_layers": 3}
    distances = {"relative_attention_num_buckets": 12, "relative_attention_max_distance": 19}
    config = transformers.T5Config(
        vocab_size=inner.get_vocab_size() + 5,  # the published table has more rows than there are tokens, too
        **sizes,
        **distances,
        dropout_rate=0.11,
        decoder_start_token_id=0,
        **changes,
        **EAGER,
    )
    return transformers.T5ForConditionalGeneration(config), inner


def t5_gated():
    model, inner = t5(feed_forward_proj="gated-gelu", tie_word_embeddings=False)
    model.lm_head.weight = torch.nn.Parameter(torch.empty_like(model.shared.weight))
    model.config.tie_word_embeddings = False
    return model, inner


def xlnet(**changes):
    inner = unigram(["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>"], 150, [])
    sizes = {"d_model": 30, "n_layer": 3, "n_head": 5, "d_inner": 51}
    config = transformers.XLNetConfig(vocab_size=inner.get_vocab_size(), **sizes, dropout=0.11, mem_len=None, **changes)
    return transformers.XLNetLMHeadModel(config), inner


MODELS = {
    "gpt2": gpt2,
    "gpt2-untied": lambda: gpt2(tie_word_embeddings=False, scale_attn_weights=False, activation_function="relu"),
    "openai-gpt": gpt,
    "bart": bart,
    "t5": t5,
    "t5-gated": t5_gated,
    "xlnet": xlnet,
}
LENGTH = 33


@pytest.fixture(scope="module", params=MODELS)
def both(request, tmp_path_factory):
    """Their folder, and the run that it becomes."""
    folder = tmp_path_factory.mktemp(request.param)
    model, inner = MODELS[request.param]()
    theirs = saved(folder / "theirs", model, inner)
    return theirs, import_model(theirs, folder / "run")


@pytest.fixture(scope="module")
def in_float64(both):
    """Their model, and ours."""
    theirs, run = both
    return loaded(theirs).double(), run, run.load().double()


def loaded(folder: Path):
    """Their model."""
    config = transformers.AutoConfig.from_pretrained(folder)
    return getattr(transformers, config.architectures[0]).from_pretrained(folder, attn_implementation="eager")


def answers(theirs, run: Run, module, training: bool = False):
    """Their logits and ours in float64, of rows with padding; None for padding's."""
    generator = torch.Generator().manual_seed(1)
    rows = theirs.config.vocab_size
    ids = torch.randint(0, rows, (3, LENGTH), generator=generator)
    padding_mask = torch.arange(LENGTH) < torch.tensor([[LENGTH], [19], [1]])
    module.train(training)
    given = {"input_ids": ids, "attention_mask": padding_mask.long()}
    inputs = Row(ids, padding_mask=padding_mask)
    shown = padding_mask
    if module.model.config.sequence_to_sequence:
        target = torch.randint(0, rows, (3, 13), generator=generator)
        given["decoder_input_ids"], shown = target, torch.ones_like(target, dtype=torch.bool)
        inputs = Row(target, source=Source(ids, padding_mask))
    with torch.no_grad():
        expected = theirs.train(training)(**given).logits
        (head,) = module.heads.values()
        found = head.scores(module.model(inputs)[0], module.model.embedding.weight)[..., :rows]
    return found[shown], expected[shown]


def assert_close(found, expected):
    assert float((found - expected).abs().max()) <= 1e-12 * float(expected.abs().max())


@pytest.mark.usefixtures("double")
def test_the_same_logits(in_float64):
    assert_close(*answers(*in_float64))


@pytest.mark.usefixtures("double", "marked_dropout")
def test_the_same_dropouts(in_float64):
    """Each rate of their config stands where it stands in theirs."""
    assert_close(*answers(*in_float64, training=True))


def test_back_to_the_last_bit(both, tmp_path):
    theirs, run = both
    done = export(run.path, tmp_path / "out")
    assert done.largest_difference is not None
    deeper = run.recipe.model.sequence_to_sequence and "T5" in done.loads_with  # see the test of texts below
    assert any("use_cache=False" in remark for remark in done.remarks) == deeper
    before, after = load_file(theirs / "model.safetensors"), load_file(tmp_path / "out" / "model.safetensors")
    assert before.keys() == after.keys()
    for name, tensor in before.items():
        kept = slice(2, None) if name.endswith("embed_positions.weight") else slice(None)  # the rest is never read
        assert torch.equal(tensor[kept], after[name][kept]), name


def test_tokenizers_agree(both, tmp_path):
    theirs, run = both
    export(run.path, tmp_path / "out")
    made = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    original = transformers.PreTrainedTokenizerFast(tokenizer_file=str(theirs / "tokenizer.json"))
    for text, (ids, _) in zip(PAGE, run.tokenizer.encode(PAGE), strict=True):
        expected = original(text, add_special_tokens=False)["input_ids"]
        assert ids.tolist() == expected
        assert made(text, add_special_tokens=False)["input_ids"] == expected


def test_ends_of_lines_reach_a_model_from_elsewhere(both):
    """Whose texts may have had them; those of Bakeoff's corpora have none."""
    _, run = both
    prompt = "The quick\n\nbrown  fox"
    (ids, _), *_ = run.tokenizer.encode([prompt])
    if not isinstance(run.recipe.objective[0], CausalLanguageModelConfig) or run.tokenizer.decode(ids) != prompt:
        pytest.skip("it does not continue texts, or its tokenizer has no ends of lines")
    (writing,) = write(run, [(prompt,)], GenerationConfig(tokens=1, temperature=0), device="cpu")
    assert writing[0].text.startswith(prompt)


def test_the_same_texts_are_written(both, tmp_path):
    """Greedily, by an export's own generation settings."""
    _, run = both
    if not any(part.generates for part in run.recipe.objective):
        pytest.skip("it does not write")
    export(run.path, tmp_path / "out")
    made = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    config = transformers.AutoConfig.from_pretrained(tmp_path / "out")
    model = getattr(transformers, config.architectures[0]).from_pretrained(tmp_path / "out").eval()
    prompt = "The quick brown fox"
    (ours,) = generate(run, [prompt], GenerationConfig(tokens=8, temperature=0), device="cpu")
    (ids, _), *_ = run.tokenizer.encode([prompt])
    seq2seq = run.recipe.model.sequence_to_sequence
    special = run.tokenizer.special_ids.tolist()
    objective = run.recipe.objective[0]
    allowed = {run.tokenizer.separator, *objective.mark_ids(run.tokenizer)}
    banned = [[token] for token in special if token not in allowed and token < config.vocab_size]
    if seq2seq:
        row = [*objective.before_source(run.tokenizer), *ids, run.tokenizer.separator]
    else:
        row = [run.tokenizer.opening, *ids]
    row = [token for token in row if token < config.vocab_size]
    if len(row) < len(ids) + 1:
        pytest.skip("its vocabulary has no token that a text begins behind")
    assert made(prompt)["input_ids"] == row
    given = torch.tensor([row])
    written = model.generate(
        input_ids=given,
        attention_mask=torch.ones_like(given),
        do_sample=False,
        max_new_tokens=8 + (len(objective.prompt(run.tokenizer)) - 1 if seq2seq else 0),
        bad_words_ids=banned or None,
        use_cache=False,  # theirs has room for as many layers as the encoder has, and the decoder has more
        pad_token_id=0,
    )[0].tolist()
    text = written[len(objective.prompt(run.tokenizer)) :] if seq2seq else written[len(row) :]
    if run.tokenizer.separator in text:
        text = text[: text.index(run.tokenizer.separator)]
    if objective.gap_marks:
        from bakeoff.generation.generate import decoded

        assert ours == decoded(text, run.tokenizer, objective.mark_ids(run.tokenizer))
    elif seq2seq:
        assert ours == run.tokenizer.decode(text) == made.decode(text, skip_special_tokens=True)
    else:
        whole = run.tokenizer.decode([*ids, *text])
        assert whole.endswith(ours)
