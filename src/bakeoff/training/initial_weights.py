"""The first weights of a training that come from other runs, or from the text, instead of chance."""

import re
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor

from bakeoff.config import Config
from bakeoff.corpus.mixture import AnyCorpus, Mixture, corpora_of
from bakeoff.corpus.neighbours import neighbour_vectors
from bakeoff.distributed.processes import Processes
from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import PretrainingModel, build_on_meta
from bakeoff.models.layer_map import GrowBy, grown, model_sources, stack_sources
from bakeoff.optimization.decay_by_passes import DecayByPasses
from bakeoff.optimization.optimizers.base_config import DecayConfig
from bakeoff.recipe import Recipe
from bakeoff.runs.run import Run
from bakeoff.stored_tensors import StoredTensors
from bakeoff.tensors import load_tensors
from bakeoff.training_config import TokenVectorsConfig

TOKEN_TABLE = "model.embedding.tokens.weight"


def steps_of(run: Run) -> int:
    """The steps that have trained a run's weights: its own, and those of the runs that its first weights came from."""
    return run.step() + int(run.environment.get("steps_before", 0))


def texts_of(run: Run) -> dict[str, int]:
    """The texts that have trained a run's weights, its start's among them: tokens by the fingerprint of each.

    Of a run from before they were recorded it is the text whose passes its decay followed, if it followed any.
    """
    environment = run.environment
    if (recorded := environment.get("texts")) is not None:
        return {str(fingerprint): int(tokens) for fingerprint, tokens in recorded.items()}
    if environment["corpus"] is None:
        return {}
    asked = Recipe.parse(environment["recipe"], str(run.path)).training.optimizer
    passes, fitted, summary = getattr(asked, "weight_decay", None), run.recipe.training.optimizer, run.summary
    if not isinstance(passes, DecayByPasses) or not isinstance(fitted, DecayConfig) or not summary["steps"]:
        return {}
    tokens = passes.steps_a_pass(fitted.rate, fitted.decay) * summary["tokens"] / summary["steps"]
    return {environment["corpus"]["fingerprint"]: round(tokens)}


@torch.no_grad()
def set_token_vectors(
    module: PretrainingModel, corpus: AnyCorpus, config: TokenVectorsConfig, seed: int, processes: Processes
) -> None:
    """Give the table of tokens the vectors of what stands beside each in the text; tokens that it lacks keep theirs."""
    table, vocabulary = module.model.embedding.weight, corpus.tokenizer.size
    shares = corpus.shares if isinstance(corpus, Mixture) else (1.0,)
    texts = [(each.train, share) for each, share in zip(corpora_of(corpus), shares, strict=True)]
    width = table.shape[1]
    found = torch.from_numpy(processes.once(lambda: neighbour_vectors(texts, vocabulary, width, config.window, seed)))
    known = found.any(dim=1)
    vectors = found[known] * (config.scale * width**0.5)
    table[:vocabulary][known.to(table.device)] = vectors.to(table)


def options_as(origin: str) -> str:
    """The options of a training that begins as the words of a `Start` say, with the names of the runs left open."""
    if origin.startswith("with the encoder from"):
        return "--encoder-from RUN" + (" --decoder-from RUN" if " and the decoder from " in origin else "")
    grown_to = re.search(r", grown to (\d+) layers by (\w+)$", origin)
    return "--from RUN" + (f" --grow {grown_to[1]} --grow-by {grown_to[2]}" if grown_to else "")


class Start(Config):
    """Runs to take weights from: one, which may grow deeper, or one for the encoder and perhaps one for the decoder."""

    run: Path | None = None
    """Run whose weights to start from."""
    grow: int | None = Field(default=None, gt=0)
    """With `run`: number of layers of the new, deeper model; None: as many as the run's."""
    grow_by: GrowBy = "repeat"
    """With `grow`: order of the copied layers, repeat or interleave. Layers 1 2 become 1 2 1 2, or 1 1 2 2."""
    encoder: Path | None = None
    """Run to take the weights of the encoder and of the embedding from (sequence-to-sequence)."""
    decoder: Path | None = None
    """Run to take the weights of the decoder from (sequence-to-sequence); attention to the encoder stays fresh where
    that run has none."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.run is None) == (self.encoder is None):
            raise ValueError(
                "give either --from or --encoder-from"
                + (", to which --grow and --decoder-from belong" if self.run is None else ", not both")
            )
        if self.grow is not None and self.run is None:
            raise ValueError("--grow is for --from; encoder and decoder start from runs that are as deep as they are")
        if self.grow is None and self.grow_by != "repeat":
            raise ValueError("--grow-by has no effect without --grow LAYERS; give both, or leave it out")
        if self.decoder is not None and self.encoder is None:
            raise ValueError("--decoder-from needs --encoder-from, whose run has the token table")
        return self

    def __str__(self) -> str:
        """The runs in words, such as `from runs/small, grown to 12 layers by repeat`."""
        if self.run is None:
            return f"with the encoder from {self.encoder}" + (
                f" and the decoder from {self.decoder}" if self.decoder else ""
            )
        return f"from {self.run}" + (f", grown to {self.grow} layers by {self.grow_by}" if self.grow else "")

    def recipe(self) -> Recipe:
        """The run's recipe, with its steps and its new layers, and the optimizer, precision and compilation asked for.

        A learning rate or a decay that followed the run's length and text follows those of the new training.

        Raises:
            UserError: there is no such run, or encoder and decoder have runs of their own, which needs a recipe.
        """
        if self.run is None:
            raise UserError(f"{self}: name the recipe of the sequence-to-sequence model")
        run = Run.open_finished(self.run)
        asked = Recipe.parse(run.environment["recipe"], str(self.run)).training
        kept: dict[str, Any] = {"training.precision": asked.precision, "training.compile": asked.compile}
        kept |= {"training.optimizer": asked.optimizer.model_dump(mode="json")}
        return self.fit(run.recipe.changed(kept))

    def steps(self) -> int:
        """The steps that have trained the first weights.

        0 where encoder and decoder come from runs of their own, because the attention between them is fresh.

        Raises:
            UserError: there is no such run.
        """
        return 0 if self.run is None else steps_of(Run.open_finished(self.run))

    def texts(self) -> dict[str, int]:
        """The texts that have trained the first weights: tokens by the fingerprint of each.

        Raises:
            UserError: a run is missing or unfinished.
        """
        found: dict[str, int] = {}
        for path in (self.run, self.encoder, self.decoder):
            if path is not None:
                found |= texts_of(Run.open_finished(path))
        return found

    def fit(self, recipe: Recipe) -> Recipe:
        """A recipe with as many layers as the run grows to.

        Raises:
            UserError: the recipe has more layers than that.
        """
        return recipe if self.grow is None else recipe.changed(grown(recipe.model, self.grow, self.grow_by))

    def load(self, module: PretrainingModel, corpus: AnyCorpus) -> dict[str, Any]:
        """Put the runs' weights into a module with fresh weights.

        Returns:
            How many `tensors` were taken, how many the module has (`of`), which parts of it stayed `fresh`, and, of
            one whole run, what is `unused` (`heads.nsp`, `model.encoder.parts.mixer.*.function.query_norm.weight`).

        Raises:
            UserError: a run is missing or unfinished, has another tokenizer than the corpus, or does not fit.
        """
        if self.run is not None:
            sources = [self._whole(Run.open_finished(self.run), module)]
        else:
            assert self.encoder is not None
            if module.model.encoder is None or module.model.decoder is None:
                raise UserError(f"{self}: this model is not sequence-to-sequence; start it with --from RUN")
            sources = [_encoder(Run.open_finished(self.encoder), module)]
            if self.decoder is not None:
                sources.append(_decoder(Run.open_finished(self.decoder), module))
        sources[0].run.require_tokenizer_of(corpus)
        tensors: dict[str, Tensor] = {}
        unused: list[str] = []
        for source in sources:
            tensors |= source.read(module)
            unused += [] if self.run is None else source.unused()
        module.load_state_dict(tensors, strict=False)
        state = module.state_dict()
        assert all(torch.equal(state[name].cpu(), tensor) for name, tensor in tensors.items())
        fresh = sorted({_part_of(name) for name in state if name not in tensors})
        return {"tensors": len(tensors), "of": len(state), "fresh": fresh, "unused": unused}

    def _whole(self, run: Run, module: PretrainingModel) -> "WeightSource":
        """The whole model and the heads of the run's objectives; its generator too, unless the run grows."""
        old = build_on_meta(run.recipe, run.tokenizer.size)
        by = None if self.grow is None else self.grow_by
        if all(len(stack.layers) == self.grow for stack in old.model.stacks().values()):
            raise UserError(f"--grow {self.grow}: {run.path} has {self.grow} layers already")
        try:
            sources = model_sources(old.model, module.model, by)
        except UserError as error:
            raise UserError(f"{run.path}: {error}") from None
        names = {f"model.{name}": f"model.{source}" for name, source in sources.items()}
        state = module.state_dict()
        names |= {name: name for name in state if name.startswith("heads.") and name.split(".")[1] in old.heads}
        if by is None and old.generator is not None:
            names |= {name: name for name in state if name.startswith("generator.")}
        return WeightSource(run, names, [name for name in state if name.startswith("model.")])


class WeightSource(NamedTuple):
    """The tensors that are taken from one run."""

    run: Run
    """The run whose weights are taken."""
    names: dict[str, str]
    """The name in the run of each tensor, by its name in the module."""
    needed: list[str]
    """Tensors of the module that must come from the run."""

    def read(self, module: PretrainingModel) -> dict[str, Tensor]:
        """Read the tensors; returns them by their names in the module.

        Raises:
            UserError: a tensor is missing, or has another shape.
        """
        state, file = module.state_dict(), load_tensors(self.run.path / "model.safetensors")
        for name in [*self.needed, *self.names]:
            source = self.names.get(name, name)
            if name not in self.names or source not in file:
                raise UserError(
                    f"{self.run.path}: this model needs {name}, which the run's does not have; begin from a run of the "
                    "same model, or train the run's, whose recipe.yaml is a recipe"
                )
            if name == TOKEN_TABLE and file[source].shape[1:] == state[name].shape[1:]:
                # The tokenizer's tokens come first in both; marks that an objective adds to them may be more or fewer.
                common = file[source][: len(state[name])]
                file[source] = torch.cat([common, state[name][len(common) :].cpu()])
            if file[source].shape != state[name].shape:
                there, here = tuple(file[source].shape), tuple(state[name].shape)
                other = "" if source == name else f" ({source})"
                raise UserError(
                    f"{self.run.path}: {name} is {here} here, but {there} there{other}; give this recipe the sizes of "
                    f"{self.run.path}/recipe.yaml by --set, or begin from a run of its own sizes"
                )
        return {name: file[source] for name, source in self.names.items()}

    def unused(self) -> list[str]:
        """What is not taken of the run: heads, and tensors that the model does not have, those of all layers as one."""
        file, taken = StoredTensors(self.run.path / "model.safetensors"), {*self.names.values()}
        model = {name for name in file if name.startswith("model.")}
        parts = {*map(_part_of, file.keys() - model - taken)} - {_part_of(name) for name in taken - model}
        return sorted({re.sub(r"\.\d+\b", ".*", name) for name in model - taken} | parts)


def _encoder(run: Run, module: PretrainingModel) -> WeightSource:
    """The tensors of the encoder and of the input's embedding, the token table among them."""
    needed = [name for name in module.state_dict() if name.startswith(("model.encoder.", "model.embedding."))]
    old = build_on_meta(run.recipe, run.tokenizer.size)
    names = _stack_names(run, old, module, "encoder") | {name: name for name in needed if "model.embedding." in name}
    return WeightSource(run, names, needed)


def _decoder(run: Run, module: PretrainingModel) -> WeightSource:
    """The tensors of the decoder, and those of its embedding that the run has too.

    Encoder and decoder share one embedding config, so the decoder's embedding may have, say, a norm that the run lacks.
    """
    old = build_on_meta(run.recipe, run.tokenizer.size)
    names = _stack_names(run, old, module, "decoder")
    embedding = "model.target_embedding." if run.recipe.model.sequence_to_sequence else "model.embedding."
    there = old.state_dict()
    for name in module.state_dict():
        source = name.replace("model.target_embedding.", embedding)
        if name.startswith("model.target_embedding.") and source in there:
            names[name] = source
    return WeightSource(run, names, [])


def _stack_names(run: Run, old: PretrainingModel, module: PretrainingModel, side: str) -> dict[str, str]:
    stack = old.model.stacks().get(side)
    if stack is None:
        raise UserError(f"--{side}-from {run.path}: that run's model has no {side}")
    try:
        sources = stack_sources(stack, module.model.stacks()[side], side)
    except UserError as error:
        raise UserError(f"--{side}-from {run.path}: {error}") from None
    return {f"model.{side}.{name}": f"model.{side}.{source}" for name, source in sources.items()}


def _part_of(name: str) -> str:
    """The part of the module that a tensor belongs to, such as `model.decoder.parts.cross` or `heads.mlm`."""
    pieces = name.split(".")
    return ".".join(
        pieces[: 2 if pieces[0] == "heads" else 1]
        if pieces[0] in ("heads", "generator")
        else pieces[: 4 if pieces[2] == "parts" else 3]
    )
