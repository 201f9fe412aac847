"""What there is to do with a run does its work with an imported one, or refuses it in one line."""

import json

import pytest
from typer.testing import CliRunner

import bakeoff
from bakeoff.cli.app import app
from bakeoff.errors import UserError
from tests.interop.elsewhere import write_byte_bpe, write_wordpiece

transformers = pytest.importorskip("transformers")

SIZES = {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An encoder and a decoder of others as runs, and a corpus with the encoder's tokenizer."""
    folder = tmp_path_factory.mktemp("imported")
    transformers.utils.logging.disable_progress_bar()
    for name in ("bert", "gpt2"):
        (folder / f"{name}-theirs").mkdir()
    rows = write_wordpiece(folder / "bert-theirs")
    config = transformers.BertConfig(vocab_size=rows, max_position_embeddings=40, **SIZES)
    transformers.BertForMaskedLM(config).save_pretrained(folder / "bert-theirs")
    rows = write_byte_bpe(folder / "gpt2-theirs")
    sizes = {"n_embd": 12, "n_layer": 1, "n_head": 2, "n_positions": 40, "bos_token_id": 2, "eos_token_id": 2}
    transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=rows, **sizes)).save_pretrained(
        folder / "gpt2-theirs"
    )
    for name in ("bert", "gpt2"):
        bakeoff.import_model(folder / f"{name}-theirs", folder / "runs" / name)
    (folder / "text.txt").write_text("\n".join(f"the model reads {n}. a b c. the end." for n in range(200)))
    tokenizer = folder / "runs/bert/tokenizer.json"
    bakeoff.prepare(folder / "text.txt", folder / "corpus", tokenizer=tokenizer, document_per_line=True, workers=1)
    return folder


DONE = (
    ("evaluate RUNS/bert --corpus FOLDER/corpus --json", "loss"),
    ("generate RUNS/gpt2 the --tokens 3", ""),
    ("embed RUNS/bert the", "["),
    ("check RUNS/bert", "model.safetensors"),
    ("runs RUNS --json", "bert"),
    ("inspect RUNS/bert --corpus FOLDER/corpus --examples 4", ""),
    ("fill RUNS/bert [MASK]", "["),
)


@pytest.mark.parametrize(("command", "told"), DONE, ids=[command.split()[0] for command, _ in DONE])
def test_it_works(command, told, folder):
    words = [word.replace("RUNS", str(folder / "runs")).replace("FOLDER", str(folder)) for word in command.split()]
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, "Traceback" in done.output) == (0, False), done.output
    assert told in done.output


def test_lists_know_what_they_are(folder):
    done = CliRunner().invoke(app, ["runs", str(folder / "runs"), "--json"])
    listed = json.loads(done.stdout)
    listed = listed if isinstance(listed, list) else listed["runs"]
    assert {each["state"] for each in listed} == {"finished"}
    assert {each["loss"] for each in listed} == {None}


REFUSED = (
    ("generate RUNS/bert the", "mlm and cannot write"),
    ("inspect RUNS/bert", "--corpus"),
    ("pretrain --out RUNS/bert --resume", "train it further: --from"),
    ("evaluate RUNS/bert --data x.tsv", "fine-tune it first"),
    ("predict RUNS/bert the", "a fine-tuned run is needed"),
    ("speed RUNS/bert", "is a run; give"),
)


@pytest.mark.parametrize(("command", "told"), REFUSED, ids=[command.split()[0] for command, _ in REFUSED])
def test_it_is_refused_in_one_line(command, told, folder):
    words = [word.replace("RUNS", str(folder / "runs")) for word in command.split()]
    with pytest.raises(UserError) as caught:
        app(words, standalone_mode=False)
    assert "\n" not in str(caught.value)
    assert told in str(caught.value)
