"""Measurement of what the layers of a comparison's pre-trained models do, once for each model."""

from collections.abc import Collection, Mapping
from pathlib import Path

import torch

from bakeoff.comparison.layer_profiles import KernelProfile, LayerProfile, RecipeLayers
from bakeoff.comparison.running.engine import Engine
from bakeoff.comparison.running.kept import digest_of, read_kept, write_kept
from bakeoff.comparison.running.planned import PlannedTrainings
from bakeoff.corpus.mixture import open_corpus
from bakeoff.display.wording import counted
from bakeoff.errors import UserError
from bakeoff.inspection.inspect import layers_on_held_out_text
from bakeoff.inspection.layers import Kernels, Layer
from bakeoff.jobs.runner import Say
from bakeoff.resources.device import resolve_device
from bakeoff.runs.run import Run

LAYERS = "layers.json"
"""The file in a comparison's directory with the measured layers."""


def layers_of_recipes(
    planned: PlannedTrainings, corpora: Mapping[str, Path], without: Collection[str], engine: Engine, say: Say
) -> list[RecipeLayers]:
    """The layers of every recipe's model, measured where no earlier call has done it.

    Args:
        planned: the trainings, all of which have finished.
        corpora: the corpus of each recipe, by label.
        without: labels of recipes that are left out.
        engine: the engine, which measures.
        say: a function that shows a line before any is measured.
    """
    path, circumstances = planned.out / LAYERS, {"corpus": planned.corpus}
    kept = read_kept(path, circumstances, RecipeLayers)
    known = {(each.recipe, each.trained): each for each in kept}
    models = {
        (recipe.name, digest_of(training)): training
        for recipe in planned.plan.recipes
        if recipe.name not in without
        for training in [planned.pretraining(recipe, planned.plan.seeds[0])]
    }
    if missing := [key for key in models if key not in known]:
        say(f"measuring the layers of {counted(len(missing), 'model')} on held-out text")
    for key in missing:
        layers = engine.layers(models[key].directory, corpora[key[0]], planned.plan.device)
        known[key] = RecipeLayers(recipe=key[0], layers=layers, trained=key[1])
    ordered = [known[key] for key in models]
    if ordered != kept:
        write_kept(path, circumstances, ordered)
    return ordered


def measure_layers(folder: Path, corpus: Path, device: str) -> list[LayerProfile]:
    """The layers of a run; none if the corpus has another tokenizer, as it may for a run that is compared as it is."""
    run, text = Run.open_finished(folder), open_corpus(corpus)
    try:
        run.require_tokenizer_of(text)
    except UserError:
        return []
    layers, _ = layers_on_held_out_text(run, text, resolve_device(device))
    return [_profile(layer) for layer in layers]


def _profile(layer: Layer) -> LayerProfile:
    return LayerProfile(
        stack=layer.stack,
        layer=layer.layer,
        l2_distance=layer.l2_distance,
        cosine_similarity=layer.cosine_similarity,
        kernels=[_kernels(each) for each in layer.kernels],
    )


def _kernels(kernels: Kernels) -> KernelProfile:
    sizes = torch.tensor(kernels.weights).abs().sum(0)
    shares = sizes / sizes.sum().clamp(min=1e-30)
    return KernelProfile(
        kind=kernels.kind,
        offsets=kernels.offsets,
        shares=[round(float(share), 6) for share in shares],
        mean_distance=kernels.mean_distance,
    )
