"""A stranger's tokenizer.json: refused in one line, in little memory, or used."""

import base64
import json
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bakeoff.errors import UserError
from bakeoff.preparation.encoding.pool import encode_jobs
from bakeoff.tokenizer import file as tokenizer_file
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig

WORDS = {"type": "WordLevel", "vocab": {"[UNK]": 0, "a": 1}, "unk_token": "[UNK]"}
PIECES = {"type": "Unigram", "vocab": [["<unk>", 0.0], ["a", -1.0]], "unk_id": 0}
BYTES = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]], "unk_token": "a"}


def tokenizer(**changes):
    values = {"version": "1.0", "added_tokens": [], "model": WORDS, "pre_tokenizer": {"type": "Whitespace"}}
    return json.dumps(values | changes)


def added(**changes):
    values = {"content": "<x>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {"id": 2, "special": True, **values, **changes}


def steps(step, count):
    return {"type": "Sequence", "normalizers": [step] * count}


def replace(old, new):
    return {"type": "Replace", "pattern": {"String": old}, "content": new}


def charsmap(data):
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(data).decode()}


HOSTILE = {
    "an id of billions": tokenizer(model={**WORDS, "vocab": {"[UNK]": 0, "a": 2_000_000_000}}),
    "an id beyond 32 bits": tokenizer(model={**WORDS, "vocab": {"[UNK]": 0, "a": 2**40}}),
    "a largest id": tokenizer(model={**WORDS, "vocab": {"[UNK]": 0, "a": 2**32 - 1}}),
    "an id far from the others": tokenizer(model={**WORDS, "vocab": {"[UNK]": 0, "a": 1_000_000}}),
    "an added id of billions": tokenizer(added_tokens=[added(id=4_294_967_290)]),
    "a negative id": tokenizer(model={**WORDS, "vocab": {"[UNK]": 0, "a": -1}}),
    "no unknown token": tokenizer(model={**WORDS, "vocab": {"a": 0}}),
    "no unknown token of pieces of words": tokenizer(
        model={"type": "WordPiece", "vocab": {"a": 0}, "unk_token": "[UNK]", "continuing_subword_prefix": "##"}
        | {"max_input_chars_per_word": 100}
    ),
    "no unknown piece": tokenizer(model={**PIECES, "unk_id": None}),
    "no pieces": tokenizer(model={**PIECES, "vocab": [], "unk_id": None}),
    "an unknown piece that is not there": tokenizer(model={**PIECES, "unk_id": 7}),
    "a panic in reading": tokenizer(model={**BYTES, "continuing_subword_prefix": "########"}),
    "a panic in encoding": tokenizer(pre_tokenizer={"type": "FixedLength", "length": 0}),
    "a panic between the bytes of a character": tokenizer(
        normalizer=replace("a", ""), added_tokens=[added(content="a", normalized=True, special=False, lstrip=True)]
    ),
    "a prefix without end": tokenizer(model={**BYTES, "continuing_subword_prefix": "#" * 100_000}),
    "a table of characters that is none": tokenizer(normalizer=charsmap(b"")),
    "a table of characters of gigabytes": tokenizer(normalizer=charsmap(b"\xfc\xff\xff\xff" + bytes(8))),
    "a table of characters with wild jumps": tokenizer(normalizer=charsmap(b"\4\0\0\0\xff\xff\xff\x7fabcd")),
    "a text that grows": tokenizer(normalizer=steps(replace("a", "aaaaaaaaaa"), 12)),
    "a text that grows at every step": tokenizer(normalizer=steps({"type": "Prepend", "prepend": "x" * 40}, 3)),
    "a decoder that grows": tokenizer(decoder={"type": "Sequence", "decoders": [replace("", "x" * 9)] * 9}),
    "depth": '{"model":' * 100_000,
    "depth of lists": '{"model": ' + "[" * 100_000,
    "no model": json.dumps({"version": "1.0"}),
    "no object": "[]",
    "nothing": "",
    "no JSON": "\0",
    "a vocabulary that is none": tokenizer(model={**WORDS, "vocab": 3}),
    "added tokens that are none": tokenizer(added_tokens=[1, None]),
    "one of two": '{"bakeoff": "two vocabularies", "source": "{}"}',
    "two numbers": '{"bakeoff": "two vocabularies", "source": 1, "target": 2}',
    "half of two": '{"bakeoff": "two vocabularies",',
    "two of two": '{"bakeoff": "two vocabularies", "source": '
    + json.dumps('{"bakeoff": "two vocabularies", "source": "", "target": ""}')
    + ', "target": ""}',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_refused_in_one_line(name, tmp_path, capfd):
    file = tmp_path / "tokenizer.json"
    file.write_text(HOSTILE[name], encoding="utf-8")
    with pytest.raises(UserError) as found:
        Tokenizer.load(file)
    assert str(found.value).startswith(f"{file}: ")
    assert "\n" not in str(found.value)
    assert len(str(found.value)) < 600
    assert capfd.readouterr().err == ""  # not a word of the library's panic


def test_what_is_no_file_is_not_read(tmp_path, monkeypatch):
    for path in ("/dev/zero", tmp_path):
        with pytest.raises(UserError, match=r"not a file|no such tokenizer"):
            Tokenizer.load(path)
    (tmp_path / "large.json").touch()
    monkeypatch.setattr(tokenizer_file, "MOST_BYTES", -1)
    with pytest.raises(UserError, match="too many"):
        Tokenizer.load(tmp_path / "large.json")


HARMLESS = {
    "words": tokenizer(),
    "pieces": tokenizer(model=PIECES),
    "bytes": tokenizer(model=BYTES),
    "a gap of unused ids": tokenizer(model={**WORDS, "vocab": {"[UNK]": 0, "a": 5_000}}),
    "a step that replaces": tokenizer(normalizer=replace(" ", "▁")),
    "padding without end": tokenizer(
        padding={"strategy": {"Fixed": 10**12}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0}
        | {"pad_type_id": 0, "pad_token": "[PAD]"}
    ),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_others_are_used(name):
    made = Tokenizer.from_string(HARMLESS[name])
    ((ids, _),) = made.encode(["a a é"])
    assert ((ids >= 0) & (ids < made.size)).all()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from([0.5, -1e300, float("inf")]) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.sampled_from(sorted(HARMLESS)), st.data())
def test_any_value_in_any_place_is_refused_or_used(name, data):
    values = json.loads(HARMLESS[name])
    node = values
    while True:
        key = data.draw(st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node))))
        if not isinstance(node[key], dict | list) or not node[key] or data.draw(st.booleans()):
            break
        node = node[key]
    node[key] = data.draw(JSON)
    try:
        made = Tokenizer.from_string(json.dumps(values))
    except UserError as error:
        assert "\n" not in str(error)  # noqa: PT017  # either is right
    else:
        assert made.size <= tokenizer_file.MOST_IDS
        made.encode(["A text."])


def test_a_panic_behind_the_first_text_is_an_error_of_the_user_too():
    made = Tokenizer.train(TokenizerConfig(kind="byte_bpe", size=300), ["some text"])
    made._where = "mine.json"

    class Panics:
        def encode(self, texts):
            raise type("PanicException", (BaseException,), {})("index out of bounds\nat line 3")

    made._encoder = Panics()
    with pytest.raises(UserError, match=r"^mine\.json: this tokenizer fails on a text.*index out of bounds at line 3"):
        made.encode(["x"])


def test_other_things_than_panics_pass():
    with pytest.raises(KeyboardInterrupt), tokenizer_file.guarded("x", "y"):
        raise KeyboardInterrupt


def test_what_else_is_printed_while_it_is_quiet_comes_after_it(capfd):
    with tokenizer_file.quiet():
        subprocess.run([sys.executable, "-c", "import sys; sys.stderr.write('a note')"], check=True)
    assert capfd.readouterr().err == "a note"


def refuse(tokenizer, job):
    raise UserError(f"{job}: cannot be encoded")


def test_an_error_of_the_user_in_a_worker_is_one_here():
    made = Tokenizer.train(TokenizerConfig(kind="byte_bpe", size=300), ["some text"])
    with pytest.raises(UserError, match=r"^text: cannot be encoded$"):
        list(encode_jobs(made, ["text"], 1, refuse))


def test_a_tokenizer_far_larger_than_the_model_is_refused_before_it_is_built(tmp_path, monkeypatch):
    vocabulary = {"[UNK]": 0, **{f"w{number}": number for number in range(1, 5000)}}
    (tmp_path / "tokenizer.json").write_text(tokenizer(model={**WORDS, "vocab": vocabulary}))
    assert Tokenizer.load(tmp_path, 5004).size == 5004  # with the four special tokens that it lacks
    monkeypatch.setattr("bakeoff.tokenizer.tokenizer.tokenizers.Tokenizer", None)
    with pytest.raises(UserError, match="5,000 tokens, but the model's table has 500: this is another model's"):
        Tokenizer.load(tmp_path, 500)
