"""The task head of an imported model, and the task and settings with which Bakeoff uses it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import tokenizers
from torch import Tensor

from bakeoff.errors import UserError
from bakeoff.interop.config_reader import ConfigReader
from bakeoff.interop.families import Family, NotSaid
from bakeoff.interop.families.task_heads import CLASSES, TaskHead
from bakeoff.interop.hugging_face import own_settings
from bakeoff.interop.hugging_face.folder import Folder
from bakeoff.interop.hugging_face.own_settings import NOT_KNOWN, UNSCALED, OwnSettings
from bakeoff.interop.hugging_face.task_export import PROBLEMS
from bakeoff.interop.hugging_face.tokenizer_reading import SETTINGS, TOKENIZER
from bakeoff.recipe import Recipe
from bakeoff.tasks.fitting.finetune_config import FinetuneConfig
from bakeoff.tasks.heads.heads import HeadedModel, natural_pooling
from bakeoff.tasks.reading.labels import label_text
from bakeoff.tasks.registry import parse_task
from bakeoff.tasks.rows.inputs import SHORTEST, InputFormat
from bakeoff.tasks.task import Task
from bakeoff.tokenizer import file as tokenizer_file
from bakeoff.tokenizer.file import guarded
from bakeoff.tokenizer.tokenizer import Tokenizer

COLUMNS: dict[str, dict[str, str]] = {
    "classification": {"text_column": "text", "label_column": "label"},
    "multilabel": {"text_column": "text", "label_column": "labels"},
    "regression": {"text_column": "text", "label_column": "value"},
    "choice": {"text_column": "text", "choices": "choices", "label_column": "label"},
    "tagging": {},
    "question_answering": {},
}
"""Default columns of a file of labelled rows, by kind of task."""
TAKES_PAIRS = ("classification", "multilabel", "regression")
"""Kinds of tasks that read single texts or pairs; no config.json says which."""
NAMED = ("classification", "multilabel", "tagging")
"""Kinds of tasks whose outputs have meaningful names."""
WRITING = ("ForConditionalGeneration", "ForSeq2SeqLM", "ForCausalLM")
"""Endings of the names of classes that write texts."""
LONGEST = 1_000_000
"""The largest length of a row that is believed, in tokens; tokenizers without a limit state more."""


class ImportedHead(NamedTuple):
    """The task head of an imported model."""

    head: TaskHead
    """The head's class and links."""
    task: Task
    """The task that the head answers."""
    config: FinetuneConfig
    """Settings of how texts become rows, and rows vectors."""

    def build(self, recipe: Recipe, vocabulary: int) -> HeadedModel:
        """The model with this head, with new random weights; `vocabulary` is the tokenizer's size."""
        return self.task.build_head(recipe, vocabulary, self.config)


def imported_head(
    folder: Folder,
    family: Family,
    recipe: Recipe,
    tokenizer: Tokenizer,
    tensors: Mapping[str, Tensor],
    out: Path,
    pairs: bool,
) -> ImportedHead | None:
    """The task head that config.json names; None: it names none.

    Args:
        folder: the model's folder.
        family: the model's family.
        recipe: the run's.
        tokenizer: the run's.
        tensors: the model's tensors under the family's names.
        out: the path of the run to be.
        pairs: read pairs of texts, where the kind of task may read either.

    Raises:
        NotSaid: Bakeoff has no such head; the text says why.
        UserError: the config contradicts itself or the tensors; or the model reads no pairs, or has no task head, and
            `pairs` is set.
    """
    config = ConfigReader(folder.json("config.json"), folder.where)
    ending, own, file = _class_of(config), own_settings.read(config), str(out.absolute() / NOT_KNOWN)
    if own is not None and own.writes and ending in WRITING and not pairs:
        return _writer(family.writing(ending, recipe), own, recipe, file)
    kinds = [kind for kind, name in CLASSES.items() if ending.removesuffix("Simple") == f"For{name}"]
    if not kinds:
        if pairs:
            raise UserError(f"{folder.path}: --pairs is for fine-tuned models of labels, and this is none")
        return None
    kind = kinds[0]
    head = family.task(family.form(kind, recipe, config), recipe)
    if not head.architecture.endswith(ending):
        raise NotSaid(f"of the family's classes {head.architecture} has a counterpart here")
    outputs = _outputs(head, tensors, folder)
    if kind == "classification":
        kind = _kind_of_rows(config, outputs)
    if pairs and kind not in TAKES_PAIRS:
        raise UserError(f"{folder.path}: --pairs: a model for {kind} reads no single texts; leave it out")
    names = _names(config, outputs) if kind != "choice" else []
    if own is not None and not own.fits(kind, names if kind in NAMED else []):
        own = None  # the settings are those of an earlier head
    pairs = pairs or (own is not None and own.pairs)
    form = family.form(kind, recipe, config)
    length = _length(folder, recipe)
    separators = _separators(
        folder,
        family,
        [InputFormat(tokenizer, recipe, length, separators=count) for count in (1, 2)],
        pairs or kind in ("question_answering", "choice"),
    )
    told = {"pooling": form.pooling, "pooler": form.pooler, "layers": form.layers, "length": length}
    told |= {"transform": form.transform, "separators": separators}
    if own is not None:
        settings = own.config(file, "pair" if pairs and kind in TAKES_PAIRS else None)
        told |= own.finetune(settings, recipe)
        task = own.restored(settings)
    else:
        columns = COLUMNS[kind] | ({"pair_column": "pair"} if pairs else {})
        settings = parse_task({"kind": kind, "train": file, **columns}, folder.where)
        labels = {"regression": UNSCALED, "choice": {}, "tagging": {"tags": names, "moves": []}}
        labels["question_answering"] = {"unanswerable": False, "threshold": 0.0}
        task = settings.restore(labels.get(kind, names), f"{folder.where}: id2label")
    return ImportedHead(head, task, FinetuneConfig.parse(told, folder.where))


def _writer(head: TaskHead, own: OwnSettings, recipe: Recipe, file: str) -> ImportedHead:
    """The head of a run that was fine-tuned to generate text, which Bakeoff's settings alone tell from pre-training.

    Raises:
        UserError: the settings are not those of such a run.
    """
    settings = own.config(file)
    told = {"pooling": natural_pooling(recipe), **own.finetune(settings, recipe)}
    return ImportedHead(head, own.restored(settings), FinetuneConfig.parse(told, own.where))


def _class_of(config: ConfigReader) -> str:
    """The ending of the class's name, from `For` on; empty: the config names no class, or several."""
    names = config.values.get("architectures")
    if not isinstance(names, list) or len(names) != 1 or not isinstance(names[0], str):
        return ""
    _, found, rest = names[0].partition("For")
    return found + rest


def _outputs(head: TaskHead, tensors: Mapping[str, Tensor], folder: Folder) -> int:
    """The number of outputs of the last linear layer."""
    (name,) = next(link.theirs for link in head.links if link.ours == ("output.weight",))
    if name not in tensors:
        raise UserError(f"{folder.path}: the tensor {name} is missing")
    return len(tensors[name]) if tensors[name].dim() else 0


def _kind_of_rows(config: ConfigReader, outputs: int) -> str:
    """The kind of task of a class for sequences: its `problem_type`, or transformers' default if there is none."""
    said = config.values.get("problem_type")
    if said is None:
        return "regression" if outputs == 1 else "classification"
    kind = config.choice("problem_type", {theirs: ours for ours, theirs in PROBLEMS.items()}, "")
    if kind == "regression" and outputs != 1:
        raise NotSaid(f"it gives {outputs} numbers, and a regression here one")
    if kind == "classification" and outputs == 1:
        raise NotSaid("it has a single class, and nothing to tell apart")
    return kind


def _names(config: ConfigReader, outputs: int) -> list[str]:
    """The names of labels; those that transformers makes up if the config has none.

    Raises:
        UserError: the names are not one for each output, or two are the same.
    """
    said = config.values.get("id2label")
    if said is None:
        return [f"LABEL_{number}" for number in range(outputs)]
    wanted = [str(number) for number in range(outputs)]
    if not isinstance(said, dict) or sorted(said) != sorted(wanted):
        raise UserError(
            f"{config.where}: id2label: a name for each of the head's {outputs} outputs is wanted, not {said!r:.50}"
        )
    names = [label_text(said[number]) for number in wanted]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UserError(f"{config.where}: id2label: {twice[0]!r:.50} is the name of two labels")
    return names


def _length(folder: Folder, recipe: Recipe) -> int:
    """The largest length of a row in tokens: the tokenizer's if the model has room for it, else the recipe's."""
    said, longest = folder.json(SETTINGS).get("model_max_length"), recipe.model.longest_input
    fits = isinstance(said, int) and not isinstance(said, bool) and SHORTEST <= said <= (longest or LONGEST)
    return int(str(said)) if fits else recipe.input.length


def _separators(folder: Folder, family: Family, formats: Sequence[InputFormat], pair: bool) -> int:
    """The number of separators between the texts of a pair.

    Args:
        folder: the model's folder.
        family: the model's family.
        formats: formats of rows with one separator, and with two.
        pair: whether texts are read in pairs.

    Raises:
        NotSaid: the tokenizer puts other special tokens around texts than Bakeoff's rows have.
    """
    theirs = _frame(folder, pair)
    if theirs is None:
        if not family.frames:
            raise NotSaid("its tokenizer puts no special token before a text, and rows here begin with one")
        return family.separators
    framed = [_around(rows, pair) for rows in formats]
    if theirs in framed:
        return family.separators if not pair else 1 + framed.index(theirs)
    inner = tokenizers.Tokenizer.from_str(formats[0].tokenizer.to_string())

    def shown(row: Sequence[int | None]) -> str:
        return " ".join("TEXT" if each is None else str(inner.id_to_token(each)) for each in row)

    raise NotSaid(f"it reads {shown(theirs)}, and rows here are {shown(framed[0])}")


def _around(rows: InputFormat, pair: bool) -> list[int | None]:
    """The special tokens around the texts of a row; None stands for a text."""
    before, between, behind = rows.around
    return [*before, None, *([*between, None] if pair else []), *behind]


def _frame(folder: Folder, pair: bool) -> list[int | None] | None:
    """The special tokens of the folder's tokenizer around texts, each text None; no list: its files do not say it."""
    path = folder.file(TOKENIZER)
    if path is None:
        return None
    with guarded(str(path), "not a tokenizer.json of the tokenizers library"):
        inner = tokenizers.Tokenizer.from_str(tokenizer_file.read(path))
        if inner.post_processor is None:
            return None
        inner.no_padding()
        made = inner.encode("a", "a") if pair else inner.encode("a")
    found: list[int | None] = []
    for number, special in zip(made.ids, made.special_tokens_mask, strict=True):
        if special:
            found.append(number)
        elif not found or found[-1] is not None:
            found.append(None)
    return found
