"""State dicts of fairseq's lightconv, against a naive twin with fairseq's names and layout, in float64."""

import json
import math

import pytest
import torch
from safetensors.torch import save_file

from bakeoff.errors import UserError
from bakeoff.interop.hugging_face.importing import import_model
from bakeoff.row import Row, Source
from tests.models.conftest import double, marked_dropout  # noqa: F401 fixtures
from tests.models.parity import marked

D, H, F, TOKENS = 12, 3, 17, 40
ARGS = {
    "model_type": "lightconv",
    "vocab_size": TOKENS,
    "share_all_embeddings": True,
    **{f"{side}_embed_dim": D for side in ("encoder", "decoder")},
    **{f"{side}_conv_dim": D for side in ("encoder", "decoder")},
    **{f"{side}_attention_heads": H for side in ("encoder", "decoder")},
    **{f"{side}_ffn_embed_dim": F for side in ("encoder", "decoder")},
    **{f"{side}_glu": True for side in ("encoder", "decoder")},
    "encoder_layers": 3,
    "decoder_layers": 2,
    "encoder_kernel_size_list": "[3,4,7]",
    "decoder_kernel_size_list": [3, 5],
    "dropout": 0.3,
    "attention_dropout": 0.1,
    "weight_dropout": 0.2,
    "input_dropout": 0.05,
    "relu_dropout": 0.15,
}
KERNELS = {"encoder": [3, 4, 7], "decoder": [3, 5]}


def tensors(kind):
    """By fairseq's names: Linear is (out, in), LightweightConv1dTBC (H, 1, K), DynamicConv1dTBC (H K, C)."""
    generator = torch.Generator().manual_seed(0)
    made = {"encoder.embed_tokens.weight": (TOKENS, D)}

    def linear(name, out, inner):
        made.update({f"{name}.weight": (out, inner), f"{name}.bias": (out,)})

    for side, kernels in KERNELS.items():
        for number, kernel in enumerate(kernels):
            layer = f"{side}.layers.{number}"
            linear(f"{layer}.linear1", 2 * D, D)
            linear(f"{layer}.linear2", D, D)
            linear(f"{layer}.fc1", F, D)
            linear(f"{layer}.fc2", D, F)
            if kind == "lightweight":
                made[f"{layer}.conv.weight"] = (H, 1, kernel)
            else:
                made[f"{layer}.conv.weight_linear.weight"] = (H * kernel, D)
            norms = ["layer_norms.0", "layer_norms.1"]
            if side == "decoder":
                norms = ["conv_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"]
                for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    linear(f"{layer}.encoder_attn.{name}", D, D)
            for name in norms:
                made.update({f"{layer}.{name}.weight": (D,), f"{layer}.{name}.bias": (D,)})
    return {name: torch.randn(shape, generator=generator) * 0.4 for name, shape in made.items()}


class Twin:
    """fairseq's lightconv, one place after the other."""

    def __init__(self, weights, kind, training):
        self.weights = {name: tensor.double() for name, tensor in weights.items()}
        self.kind, self.training = kind, training

    def drop(self, x, rate):
        return marked(x, rate) if self.training else x

    def linear(self, name, x):
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def norm(self, name, x):
        own = (self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])
        return torch.nn.functional.layer_norm(x, (D,), *own, 1e-5)

    def embed(self, ids):
        """SinusoidalPositionalEmbedding: sines, then cosines; the first position has the number padding_idx + 1 = 2."""
        half = D // 2
        rate = math.log(10000) / (half - 1)
        waves = torch.zeros(ids.shape[1], D)
        for place in range(ids.shape[1]):
            for i in range(half):
                angle = (place + 2) * math.exp(-rate * i)
                waves[place, i], waves[place, half + i] = math.sin(angle), math.cos(angle)
        return self.drop(self.weights["encoder.embed_tokens.weight"][ids] * math.sqrt(D) + waves, 0.3)

    def convolve(self, layer, x, padding_mask, kernel, left):
        x = self.linear(f"{layer}.linear1", self.drop(x, 0.05))
        x = x[..., :D] * torch.sigmoid(x[..., D:]) * padding_mask[..., None]
        y = torch.zeros_like(x)
        for b in range(len(x)):
            for t in range(x.shape[1]):
                if self.kind == "lightweight":
                    raw = self.weights[f"{layer}.conv.weight"][:, 0]
                else:
                    raw = (self.weights[f"{layer}.conv.weight_linear.weight"] @ x[b, t]).view(H, kernel)
                taps = self.drop(raw.softmax(-1), 0.2)
                for channel in range(D):
                    for k in range(kernel):
                        place = t + k - left
                        if 0 <= place < x.shape[1]:
                            y[b, t, channel] += taps[channel // (D // H), k] * x[b, place, channel]
        return self.linear(f"{layer}.linear2", y)

    def attend(self, layer, x, source, padding_mask):
        query, key, value = (
            self.linear(f"{layer}.encoder_attn.{name}_proj", each).unflatten(-1, (H, -1)).transpose(1, 2)
            for name, each in (("q", x), ("k", source), ("v", source))
        )
        scores = query @ key.transpose(2, 3) * (D // H) ** -0.5
        weights = self.drop(scores.masked_fill(~padding_mask[:, None, None], -math.inf).softmax(-1), 0.1)
        return self.linear(f"{layer}.encoder_attn.out_proj", (weights @ value).transpose(1, 2).flatten(-2))

    def network(self, layer, x):
        return self.linear(f"{layer}.fc2", self.drop(self.linear(f"{layer}.fc1", x).relu(), 0.15))

    def logits(self, source, padding_mask, target):
        x = self.embed(source)
        for number, kernel in enumerate(KERNELS["encoder"]):
            layer = f"encoder.layers.{number}"
            left = kernel // 2 if kernel % 2 else (kernel - 1) // 2
            x = self.norm(
                f"{layer}.layer_norms.0", x + self.drop(self.convolve(layer, x, padding_mask, kernel, left), 0.3)
            )
            x = self.norm(f"{layer}.layer_norms.1", x + self.drop(self.network(layer, x), 0.3))
        encoded, x = x, self.embed(target)
        everything = torch.ones_like(target, dtype=torch.bool)
        for number, kernel in enumerate(KERNELS["decoder"]):
            layer = f"decoder.layers.{number}"
            y = self.convolve(layer, x, everything, kernel, kernel - 1)
            x = self.norm(f"{layer}.conv_layer_norm", x + self.drop(y, 0.3))
            y = self.attend(layer, x, encoded, padding_mask)
            x = self.norm(f"{layer}.encoder_attn_layer_norm", x + self.drop(y, 0.3))
            x = self.norm(f"{layer}.final_layer_norm", x + self.drop(self.network(layer, x), 0.3))
        return x @ self.weights["encoder.embed_tokens.weight"].T


def folder(path, kind, kernels="[3,3,7]"):
    """As docs/import.md has it made."""
    path.mkdir()
    values = ARGS | {f"{side}_conv_type": kind for side in ("encoder", "decoder")}
    (path / "config.json").write_text(json.dumps(values | {"encoder_kernel_size_list": kernels}))
    (path / "dict.txt").write_text("".join(f"word{number} {90 - number}\n" for number in range(TOKENS - 4)))
    save_file(tensors(kind), path / "model.safetensors")
    return path


@pytest.fixture(params=["lightweight", "dynamic"])
def imported(request, tmp_path, monkeypatch):
    """The kind, and the run, whose kernels are all odd: those of even size look the other way (docs/import.md)."""
    monkeypatch.setitem(KERNELS, "encoder", [3, 3, 7])
    return request.param, import_model(folder(tmp_path / "theirs", request.param), tmp_path / "run")


@pytest.fixture
def loaded(imported):
    kind, run = imported
    return kind, run.load().double()


@pytest.mark.parametrize("mode", ["evaluation", "training"])
@pytest.mark.usefixtures("double", "marked_dropout")
def test_it_computes_what_fairseq_computes(loaded, mode):
    kind, module = loaded
    generator = torch.Generator().manual_seed(1)
    source, target = (torch.randint(4, TOKENS, (2, length), generator=generator) for length in (9, 5))
    padding_mask = torch.arange(9) < torch.tensor([[9], [6]])
    module.train(mode == "training")
    with torch.no_grad():
        hidden = module.model(Row(target, source=Source(source, padding_mask)))[0]
        found = module.heads["translation"].scores(hidden, module.model.embedding.weight)[..., :TOKENS]
        expected = Twin(tensors(kind), kind, mode == "training").logits(source, padding_mask, target)
    assert float((found - expected).abs().max()) <= 1e-12 * float(expected.abs().max())


def test_its_dictionary_is_the_tokenizer(imported):
    _, run = imported
    ((ids, _),) = run.tokenizer.encode(["word0 word7 never"])
    assert ids.tolist() == [4, 11, 3]
    assert (run.tokenizer.start, run.tokenizer.pad, run.tokenizer.separator) == (0, 1, 2)
    assert run.recipe.objective[0].prompt(run.tokenizer) == [2]


def test_even_kernels_of_encoders_are_refused(tmp_path):
    with pytest.raises(UserError, match=r"encoder_kernel_size_list: 4 is even"):
        import_model(folder(tmp_path / "theirs", "dynamic", "[3,4,7]"), tmp_path / "run")
    assert not (tmp_path / "run").exists()
