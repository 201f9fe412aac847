import json
import math

import pytest
import torch
from tests.conftest import shrink
from tests.valid_charts import charts_in

import bakeoff
from bakeoff.errors import UserError
from bakeoff.inspection.layers import layers_of
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.context import Context
from bakeoff.training.stages import make_batches

CPU = torch.device("cpu")


def measured(name, corpus, **changes):
    torch.manual_seed(0)
    recipe = shrink(name, **changes)
    module = PretrainingModel(recipe, corpus.tokenizer.size).eval()
    batches = make_batches(recipe, module, corpus, seed=0, split="validation").fixed(8)
    return module, batches, layers_of(module, batches, CPU)


@pytest.mark.parametrize("name", ["albert-tiny", "gpt-tiny", "t5-tiny", "xlnet-tiny", "elmo-tiny"])
def test_distances_are_those_of_states_that_hooks_see(name, corpus):
    """A loop over tokens, with padding, packed documents, a source, a second stream, and two directions."""
    module, batches, layers = measured(name, corpus)
    assert [layer.layer for layer in layers] == [1, 2] * len(module.model.stacks())
    for side, stack in module.model.stacks().items():
        before, after = [], []
        stack.layers[0][0].register_forward_pre_hook(lambda part, args, kept=before: kept.append(args[0].detach()))
        stack.layers[0][-1].register_forward_hook(lambda part, args, out, kept=after: kept.append(out[0].detach()))
        distances, cosines = [], []
        for batch in batches:
            before.clear()
            after.clear()
            module(batch)
            encodes = side == "encoder" and batch.row.source is not None
            ids = batch.row.source.ids if encodes else batch.row.ids
            padding_mask = (
                batch.row.source.padding_mask
                if encodes
                else batch.row.padding_mask
                if batch.row.documents is None
                else batch.row.documents > 0
            )
            if side == "backward_decoder" and padding_mask is not None:
                padding_mask = padding_mask.flip(1)
            for row in range(len(ids)):
                for place in range(ids.shape[1]):
                    if padding_mask is None or padding_mask[row, place]:
                        # With shared layers the first part's first call, and the last part's first one.
                        x, y = before[0][row, place].double(), after[0][row, place].double()
                        distances.append(math.sqrt(sum((y - x) ** 2)))
                        cosines.append(float(x @ y / (x.norm() * y.norm())))
        layer = next(each for each in layers if each.stack == side)
        assert layer.l2_distance == pytest.approx(sum(distances) / len(distances), rel=1e-5)
        assert layer.cosine_similarity == pytest.approx(sum(cosines) / len(cosines), rel=1e-4)
        degrees = [math.degrees(math.acos(cosine)) for cosine in cosines]
        assert layer.degrees == pytest.approx(sum(degrees) / len(degrees), rel=1e-3)


@pytest.mark.parametrize("name", ["conv-light-encoder-tiny", "conv-dynamic-lm-tiny", "conv-dense-encoder-tiny"])
def test_kernels_are_what_the_layer_answers_an_impulse_with(name, corpus):
    module, _, layers = measured(name, corpus)
    mixer = module.model.stack.layers[0][0].function
    (kernels,) = layers[0].kernels
    assert len(kernels.offsets) == mixer.kernel
    weights = torch.tensor(kernels.weights)
    if "dense" not in name:
        torch.testing.assert_close(weights.sum(-1), torch.ones(len(weights)))
    if "dynamic" in name:  # without a token's own say all taps are alike
        mixer.prediction.weight.data.zero_()
        even = mixer.kernels(torch.randn(1, 5, 32), Context())
        torch.testing.assert_close(even, torch.full_like(even, 1 / mixer.kernel))
        return
    impulse = torch.zeros(1, 41, 32)
    impulse[0, 20, 0] = 1.0
    answer = mixer.convolve(impulse, None, None)[0]
    for tap, offset in enumerate(kernels.offsets):
        found = answer[20 - offset].norm() if "dense" in name else answer[20 - offset, 0]
        expected = mixer.taps[:, tap, 0].norm() if "dense" in name else weights[0, tap]
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("name", ["gcnn-tiny", "tcn-encoder-tiny"])
def test_dense_kernels_are_how_far_an_impulse_moves_the_convolution(name, corpus):
    module, _, layers = measured(name, corpus)
    convolution = module.model.stack.layers[1][0].convolutions[-1]
    (kernels,) = layers[1].kernels
    impulses = torch.zeros(32, 41, 32)
    impulses[torch.arange(32), 20, torch.arange(32)] = 1.0  # a row for each input channel
    answer = convolution(impulses, Context())[0] - convolution.bias
    found = torch.stack([answer[:, 20 - offset].norm(dim=0) for offset in kernels.offsets], dim=1)
    torch.testing.assert_close(torch.tensor(kernels.weights)[-len(found) :], found)


def test_a_window_shows_how_much_each_place_weighs(corpus):
    torch.manual_seed(0)
    recipe = shrink("com-lm-tiny")
    module = PretrainingModel(recipe, corpus.tokenizer.size).eval()
    mixer = module.model.stack.layers[0][0]
    for column in mixer.columns:
        column.output.weight.data.unflatten(1, (mixer.window, -1))[:, :-2] = 0.0
    batches = make_batches(recipe, module, corpus, seed=0, split="validation").fixed(8)
    (kernels,) = layers_of(module, batches, CPU)[0].kernels
    assert kernels.offsets == list(range(1 - mixer.window, 1))
    weights = torch.tensor(kernels.weights)
    assert len(weights) == sum(column.output.out_features for column in mixer.columns)
    assert (weights[:, :-2] == 0).all()
    assert (weights[:, -2:] > 0).all()
    assert (
        layers_of(
            PretrainingModel(
                shrink("cnn-lm-tiny", **{"model.decoder.block.reduce": "max_pool"}), corpus.tokenizer.size
            ).eval(),
            batches,
            CPU,
        )[0].kernels
        == []
    )


def test_layers_that_change_the_width_have_no_distance(corpus):
    _, _, layers = measured("com-lm-tiny", corpus)
    assert layers[0].l2_distance is None


def test_a_run_is_inspected_into_two_files(corpus, tmp_path):
    run = bakeoff.pretrain(shrink("conv-light-encoder-tiny"), corpus.path, tmp_path / "run", progress=False)
    found = bakeoff.inspect(run.path, examples=8)
    assert found.examples == 8
    written = json.loads((run.path / "inspect" / "inspect.json").read_text())
    assert written == json.loads(json.dumps(found.model_dump()))
    page = (run.path / "inspect" / "inspect.html").read_text()
    assert 'id="kernels-encoder-2-mixer"' in page
    assert charts_in(page)
    assert "src=" not in page.partition("<script")[0]
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UserError, match="choose another --out"):
        bakeoff.inspect(run.path, out=tmp_path / "file")
    for name in ("inspect.json", "inspect.html"):
        folder = tmp_path / name.replace(".", "-")
        folder.mkdir()
        (folder / name).write_text("mine", encoding="utf-8")
        with pytest.raises(UserError, match=f"{name}: is there already, and not from this command"):
            bakeoff.inspect(run.path, out=folder)
        assert [path.read_text(encoding="utf-8") for path in folder.iterdir()] == ["mine"]
    environment = run.environment
    environment["corpus"]["path"] = str(tmp_path / "gone")
    (run.path / "environment.json").write_text(json.dumps(environment))
    (run.path / "bakeoff.sha256").unlink()
    with pytest.raises(UserError, match="is not there any more; give one with --corpus"):
        bakeoff.inspect(run.path)
