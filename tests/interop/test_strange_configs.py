"""A config.json of each family with values of other types and sizes: taken, or refused in one line, soon and in little
memory."""

import json
import random
import resource
import shutil

import pytest
import torch
from safetensors.torch import save_file

import bakeoff
from bakeoff.errors import UserError
from bakeoff.interop.config_reader import ConfigReader
from tests.attacks.strange_values import VALUES, changed, places
from tests.interop import decoder_models, finetuned_models, test_decoder_families, test_encoders, test_fairseq
from tests.interop.test_own_exports import exported

pytest.importorskip("transformers")

MOST_KILOBYTES = 500_000
IN_HASTE = 6
"""Cases of each folder that every run of the tests tries, always the same."""
MOST_KILOBYTES = 500_000


def write_lightconv(folder, _):
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(test_fairseq.ARGS | {"encoder_kernel_size_list": [3, 5, 7]}))
    tokens = [f"t{number} {99 - number}\n" for number in range(test_fairseq.TOKENS - 4)]
    (folder / "dict.txt").write_text("".join(tokens))
    weights = test_fairseq.tensors("dynamic")
    place = "encoder.layers.1.conv.weight_linear.weight"
    weights[place] = torch.zeros(test_fairseq.H * 5, test_fairseq.D)
    save_file(weights, folder / "model.safetensors")


def write_own(folder, corpus):
    exported("conv-light-encoder-tiny", corpus, folder.parent)
    (folder.parent / "out").rename(folder)
    (folder.parent / "run").rename(folder.parent / "exported run")


FOLDERS = {
    **{
        name: (lambda folder, _, name=name: test_encoders.saved(folder, name))
        for name in ("bert", "roberta", "albert", "distilbert", "electra", "electra generator")
    },
    **{
        name: (lambda folder, _, make=make: decoder_models.saved(folder, *make()))
        for name, make in test_decoder_families.MODELS.items()
    },
    **{
        name: (lambda folder, _, name=name: finetuned_models.saved(folder, name))
        for name in ("bert labels", "gpt2 tags", "xlnet choices", "modernbert numbers", "modernbert classes")
    },
    "lightconv": write_lightconv,
    "own": write_own,
}


@pytest.fixture(scope="module")
def folder(request, corpus, tmp_path_factory):
    """A folder of the kind that the test names, and what stands in its config.json."""
    folder = tmp_path_factory.mktemp("strange") / "theirs"
    torch.manual_seed(0)
    FOLDERS[request.param](folder, corpus)
    return folder, json.loads((folder / "config.json").read_text())


class Read(dict):
    """A config that notes which of its keys are asked for."""

    asked: set[str]

    def get(self, key, default=None):
        self.asked.add(key)
        return super().get(key, default)

    def __getitem__(self, key):
        self.asked.add(key)
        return super().__getitem__(key)


def attack(folder, config, key, value):
    (folder / "config.json").write_text(json.dumps(changed(config, key, value)))
    run = folder.with_name("run")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    message = ""
    try:
        bakeoff.import_model(folder, run)
    except UserError as error:
        message = str(error)
        assert not run.exists()
    finally:
        shutil.rmtree(run, ignore_errors=True)
    assert "\n" not in message
    assert len(message) < 1500
    message.encode()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_KILOBYTES


def cases(folder, config, monkeypatch):
    """Every key that importing reads, those below it too, with every value."""
    made, asked = ConfigReader.__init__, set()

    def noting(self, values, *others):
        noted = Read(values)
        noted.asked = asked
        made(self, noted, *others)

    (folder / "config.json").write_text(json.dumps(config))
    with monkeypatch.context() as patch:
        patch.setattr(ConfigReader, "__init__", noting)
        bakeoff.import_model(folder, folder.with_name("run"))
    shutil.rmtree(folder.with_name("run"))
    keys = {(name,) for name in asked} | set(places({name: each for name, each in config.items() if name in asked}))
    return [(key, value) for key in sorted(keys, key=str) for value in VALUES]


@pytest.mark.parametrize("folder", FOLDERS, indirect=True)
def test_strange_values_are_taken_or_refused(folder, monkeypatch):
    tried = cases(*folder, monkeypatch)
    for case in random.Random(1).sample(tried, IN_HASTE):
        attack(*folder, *case)


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS, indirect=True)
def test_every_strange_value_is_taken_or_refused(folder, monkeypatch):
    for case in cases(*folder, monkeypatch):
        attack(*folder, *case)


@pytest.mark.parametrize("folder", ["bert", "electra"], indirect=True)
def test_keys_that_say_how_transformers_works_stay_behind(folder, tmp_path):
    """An export compares the same numbers, takes no memory for labels that are none, and names nobody's kernels."""
    folder, config = folder
    added = {
        "num_labels": 10**9,
        "return_dict": False,
        "attn_implementation": "somebody/kernels",
        "_experts_implementation": "somebody/kernels",
    }
    (folder / "config.json").write_text(json.dumps(config | added))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    done = bakeoff.export(bakeoff.import_model(folder, tmp_path / "run").path, tmp_path / "out")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_KILOBYTES
    assert done.largest_difference is not None
    assert 0 < done.largest_difference < 1e-3
    written = json.loads((done.path / "config.json").read_text())
    assert not written.keys() & (added.keys() - {"return_dict"})


@pytest.mark.parametrize("folder", ["t5"], indirect=True)
@pytest.mark.parametrize("value", [[1], {}, "a", 1.5, 10**30], ids=str)
def test_ids_that_transformers_refuses(folder, value, tmp_path):
    """No weights contradict the id of padding; transformers gives up at anything else than a number."""
    folder, config = folder
    (folder / "config.json").write_text(json.dumps(config | {"pad_token_id": value}))
    run = bakeoff.import_model(folder, tmp_path / "run")
    message = ""
    try:
        bakeoff.export(run.path, tmp_path / "out")
    except UserError as error:
        message = str(error)
    assert "\n" not in message
    assert (tmp_path / "out").exists() == (not message)
    assert not isinstance(value, list | dict) or "transformers cannot" in message
