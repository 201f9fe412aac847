"""The batches of a training whose rows change on the way, and the floating-point operations of their tokens."""

from collections.abc import Iterator

import torch

from bakeoff.batching.batch import Batch
from bakeoff.batching.batches import Batches, BatchSizes
from bakeoff.batching.rows import TargetDrawing, TextRows
from bakeoff.corpus.mixture import AnyCorpus, Mixture, corpora_of
from bakeoff.distributed.processes import ALONE, Processes
from bakeoff.errors import UserError
from bakeoff.learner.dropouts import Dropouts
from bakeoff.learner.pretraining_model import PretrainingModel, build_on_meta
from bakeoff.optimization.curriculum import shares, stage_at
from bakeoff.randomness.draws import key_of
from bakeoff.recipe import Recipe
from bakeoff.resources.enough_memory import require_memory
from bakeoff.training.teachers import teachers_on_meta


def require_kind(recipe: Recipe, corpus: AnyCorpus) -> None:
    """Refuse a text for a recipe that wants pairs, and pairs for a recipe that wants a text.

    Raises:
        UserError: the corpus is of the wrong kind.
    """
    kind = recipe.objective[0].kind
    if corpus.pairs and not recipe.input.parallel:
        raise UserError(f"{corpus.path}: holds pairs, on which translation is trained; {kind} needs a text")
    if recipe.input.parallel and not corpus.pairs:
        raise UserError(
            f"{corpus.path}: holds a text, but {kind} needs pairs; prepare them with `bakeoff prepare --source A "
            "--target B`"
        )


def make_batches(
    recipe: Recipe,
    module: PretrainingModel,
    corpus: AnyCorpus,
    seed: int,
    split: str = "train",
    processes: Processes = ALONE,
) -> Batches:
    """The batches of a recipe over a split of a corpus, without targets for the objectives whose weight is 0.

    Of each step's batch they hold the micro-batches of this one of the processes.

    Raises:
        UserError: the corpus holds pairs and the recipe wants a text, or the other way round; or the split has no rows
            for the recipe; or there is no such split.
    """
    require_kind(recipe, corpus)
    training = recipe.training
    steps = training.budget.steps if split == "train" else None
    sizes = BatchSizes(training.batch, training.at_once, steps, training.first_batch)
    drawing = TargetDrawing(recipe.objective, module.objectives, recipe.idle)
    mixture = corpus if isinstance(corpus, Mixture) else None
    seeds = [seed] if mixture is None else [_seed_of(seed, number) for number in range(len(mixture.corpora))]
    texts = [
        TextRows(each.split(split), each.tokenizer, recipe.input, drawing, text_seed)
        for each, text_seed in zip(corpora_of(corpus), seeds, strict=True)
    ]
    return Batches(texts, sizes, seed, mixture, processes)


def _seed_of(seed: int, number: int) -> int:
    """The seed for one corpus of a mixture, by its number, so that no two corpora are read and masked alike."""
    return key_of(seed, number, "corpus of a mixture") >> 1


def require_rows(recipe: Recipe, corpus: AnyCorpus, device: torch.device) -> None:
    """Refuse a corpus that a recipe cannot be trained on, or whose held-out text has no rows for it.

    Args:
        recipe: the recipe.
        corpus: the text.
        device: device of the training, whose memory must suffice.

    Raises:
        UserError: the recipe cannot be trained so; the message says why.
    """
    module = build_on_meta(recipe, corpus.tokenizer.size)
    require_memory(recipe, module.parameter_count(), device)
    Stages(recipe, module, corpus, seed=0).first_rows()
    make_batches(recipe, module, corpus, seed=0, split="validation").fixed(recipe.training.validation_examples)


def require_shares(processes: Processes, recipe: Recipe, begun: bool) -> None:
    """Refuse more processes than a batch of a recipe has micro-batches; `begun`: the run has, and its recipe is fixed.

    Raises:
        UserError: there are more.
    """
    for stage in recipe.stages():
        batch = stage.training.batch
        micro_batch = 1 if stage.training.micro_batch == "auto" else stage.training.at_once  # which cuts it for all
        if isinstance(batch, int) and isinstance(micro_batch, int):
            sizes = batch, micro_batch, "rows", None if begun else "--set training.micro_batch={}"
        else:
            whole, part = (size if isinstance(size, int) else size.tokens for size in (batch, micro_batch))
            sizes = whole, part, "tokens", None if begun else "--set 'training.micro_batch={{tokens: {}}}'"
        processes.require_shares(recipe.name, *sizes)


class Stages:
    """The batches of each stage of a recipe's curriculum; most recipes have a single one.

    Args:
        recipe: the recipe.
        module: its model and heads, on any device.
        corpus: the text.
        seed: the run's seed.
        processes: the processes that train together.
    """

    def __init__(
        self,
        recipe: Recipe,
        module: PretrainingModel,
        corpus: AnyCorpus,
        seed: int,
        processes: Processes = ALONE,
    ) -> None:
        self.pad = corpus.tokenizer.pad
        self._of = module, corpus, seed, processes
        self.curriculum = recipe.training.curriculum
        self.steps = recipe.training.budget.steps
        self.words_per_token = corpus.words_per_token
        recipes = recipe.stages()
        others = [build_on_meta(each, corpus.tokenizer.size) for each in recipes[:-1]]  # the last is the recipe's
        self.modules = [*others, module]
        """The model and heads of each stage, all but the last without memory."""
        self.batches = [
            make_batches(each, of_stage, corpus, seed, processes=processes)
            for each, of_stage in zip(recipes, self.modules, strict=True)
        ]
        changing = any(stage.dropout is not None for stage in self.curriculum)
        # The last one anew, for the module in training may have the dropout of another stage by now.
        self.dropouts = Dropouts([*others, build_on_meta(recipes[-1], corpus.tokenizer.size)]) if changing else None
        """The dropout of each stage; None: all have one."""
        self.flops_per_token = [each.flops_per_token() for each in self.modules]
        """Floating-point operations of a token in each stage; if they change from step to step, those at its middle."""
        teachers = [*teachers_on_meta(recipe, corpus)]
        if teachers:
            self.flops_per_token = [
                flops + sum(each.flops_of_reader(teacher) for teacher in teachers)
                for flops, each in zip(self.flops_per_token, self.modules, strict=True)
            ]
        self._rise = [0] * len(recipes)  # change of each stage's operations, from its first step to its last
        if any(each.at(0.0).objective != each.objective for each in recipes):
            ends = [
                [build_on_meta(each.at(progress), corpus.tokenizer.size).flops_per_token() for progress in (0.0, 1.0)]
                for each in recipes
            ]
            self._rise = [last - first for first, last in ends]
        self._share = recipe.training.batch_share

    def in_other_parts(self, recipe: Recipe) -> "Stages":
        """The same batches, cut as a recipe with another `training.micro_batch` says."""
        return Stages(recipe, *self._of)

    def first_rows(self) -> None:
        """Make a batch of each stage, so that a corpus without rows is refused before anything is trained.

        Raises:
            UserError: the text has no such rows.
        """
        for batches in self.batches:
            batches.step(0)

    def at(self, step: int) -> int:
        """The number of the stage that a step belongs to, in a training whose budget is in steps."""
        assert self.steps is not None
        return stage_at(self.curriculum, step, self.steps)

    def step(self, step: int) -> list[Batch]:
        """This process's micro-batches of one step, of `micro_batch` rows; each stage has an order of its own."""
        return self.batches[self.at(step)].step(step)

    def spare(self) -> Batch:
        """The first micro-batch of the training, for a process that has none in a step."""
        return self.batches[0].spare()

    def flops_at(self, step: int) -> int:
        """Floating-point operations of one token in a step of a training whose budget is in steps."""
        assert self.steps is not None
        return self._flops(self.at(step), step / self.steps)

    def _flops(self, stage: int, progress: float) -> int:
        return self.flops_per_token[stage] + round(self._rise[stage] * (progress - 0.5))

    def means(self) -> tuple[float, float]:
        """Tokens and floating-point operations of a step, on average over the training.

        Within a stage the rows of a batch and the operations of a token change evenly, so that three steps of the stage
        are enough for the mean of their product (Simpson's rule).
        """
        tokens = flops = 0.0
        for stage, progress, stage_tokens in self._points():
            tokens, flops = tokens + stage_tokens, flops + stage_tokens * self._flops(stage, progress)
        return tokens, flops

    def _points(self) -> Iterator[tuple[int, float, float]]:
        """Points of the training: stage, share of the training, and tokens that they add to those of a mean step."""
        begin = 0.0
        for stage, (share, batches) in enumerate(zip(shares(self.curriculum), self.batches, strict=True)):
            for weight, point in ((1, 0.0), (4, 0.5), (1, 1.0)):
                progress = begin + point * share
                yield stage, progress, share * weight / 6 * self._share(progress) * batches.tokens_per_step
            begin += share

    @property
    def tokens_a_pass(self) -> float:
        """Tokens that are read in a pass over the text: those that it has, unless an objective takes some out."""
        _, corpus, _, _ = self._of
        read = text = 0.0
        for stage, _, stage_tokens in self._points():
            read, text = read + stage_tokens, text + stage_tokens / self.batches[stage].kept_share
        return corpus.train_tokens * read / text
