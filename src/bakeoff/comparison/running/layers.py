"""Measurement of what the layers of a comparison's pre-trained models do, once for each model."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from bakeoff.comparison.layer_profiles import KernelProfile, LayerProfile, LayerSimilarity, RecipeLayers
from bakeoff.comparison.running.engine import Engine
from bakeoff.comparison.running.kept import digest_of, read_kept, write_kept
from bakeoff.comparison.running.planned import PlannedPretraining, PlannedTrainings
from bakeoff.corpus.mixture import AnyCorpus, corpora_of, open_corpus
from bakeoff.display.wording import counted, quoted
from bakeoff.errors import UserError
from bakeoff.inspection.inspect import layers_on_held_out_text
from bakeoff.inspection.layers import Kernels, Layer
from bakeoff.inspection.similarity import Vectors, debiased_cka, layer_vectors
from bakeoff.jobs.runner import Say
from bakeoff.resources.device import resolve_device
from bakeoff.runs.run import Run

LAYERS = "layers.json"
"""The file in a comparison's directory with the measured layers."""
SIMILARITIES = "similarities.json"
"""The file in a comparison's directory with the similarities of layers."""

SENTENCES, FEWEST_SENTENCES = 256, 20
"""The most sentences by whose vectors layers are compared, and the number that is too few."""


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
    models = _models(planned, without)
    keys = [(name, digest_of(training)) for name, training in models.items()]
    if missing := [key for key in keys if key not in known]:
        say(f"measuring the layers of {counted(len(missing), 'model')} on held-out text")
    for name, trained in missing:
        layers = engine.layers(models[name].directory, corpora[name], planned.plan.device)
        known[name, trained] = RecipeLayers(recipe=name, layers=layers, trained=trained)
    ordered = [known[key] for key in keys]
    if ordered != kept:
        write_kept(path, circumstances, ordered)
    return ordered


def similarities_of_recipes(
    planned: PlannedTrainings, without: Collection[str], engine: Engine, say: Say
) -> list[LayerSimilarity]:
    """How alike the layers of each recipe are to those of one: the plan's baseline, or its first recipe.

    Args:
        planned: the trainings, all of which have finished.
        without: labels of recipes that are left out.
        engine: the engine, which measures.
        say: a function that shows a line before any is measured.
    """
    path, circumstances = planned.out / SIMILARITIES, {"corpus": planned.corpus}
    kept = read_kept(path, circumstances, LayerSimilarity)
    known = {(each.first, each.second, each.trained): each for each in kept}
    models = _models(planned, without)
    base = planned.plan.baseline if planned.plan.baseline in models else next(iter(models), "")
    marks = {name: digest_of(training) for name, training in models.items()}
    keys = [(base, name, (marks[base], marks[name])) for name in models if name != base]
    if missing := [key for key in keys if key not in known]:
        say(f"comparing the layers of {counted(len(missing), 'model')} with those of {quoted(base)}")
        folders = [models[name].directory for _, name, _ in missing]
        device = planned.plan.device
        found = engine.similarities(models[base].directory, folders, planned.plan.corpus, device)
        for key, values in zip(missing, found, strict=True):
            first, second, trained = key
            known[key] = LayerSimilarity(first=first, second=second, values=values, trained=trained)
    ordered = [known[key] for key in keys]
    if ordered != kept:
        write_kept(path, circumstances, ordered)
    return ordered


def _models(planned: PlannedTrainings, without: Collection[str]) -> dict[str, PlannedPretraining]:
    """The pre-training of each recipe whose model is measured, by label: that of the first seed."""
    seed = planned.plan.seeds[0]
    return {each.name: planned.pretraining(each, seed) for each in planned.plan.recipes if each.name not in without}


def measure_similarities(base: Path, others: Sequence[Path], corpus: Path, device: str) -> list[list[list[float]]]:
    """The similarity of each layer of a run to each layer of others; empty where one gives texts no vectors."""
    texts = _sentences(open_corpus(corpus))
    first = _vectors(base, texts, device)
    found = []
    for folder in others:
        second = _vectors(folder, texts, device) if first else []
        found.append([[round(debiased_cka(one, other), 4) for other in second] for one in first] if second else [])
    return found


def _vectors(folder: Path, texts: Sequence[str], device: str) -> list[Vectors]:
    try:
        return layer_vectors(Run.open_finished(folder), texts, device) if len(texts) > FEWEST_SENTENCES else []
    except UserError:
        return []


def _sentences(corpus: AnyCorpus) -> list[str]:
    """Sentences of held-out text, spread over all of it."""
    opened = corpora_of(corpus)[0]
    split = opened.validation
    starts = split.sentences
    chosen = np.unique(np.linspace(0, len(starts) - 2, SENTENCES).astype(int))
    texts = (opened.tokenizer.decode(split.tokens[starts[i] : starts[i + 1]]) for i in chosen)
    return [text for text in texts if text.strip()]


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
