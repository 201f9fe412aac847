"""The task head of an imported model, and the task and settings with which Bakeoff uses it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import tokenizers
from torch import Tensor

from bakeoff.errors import UserError
from bakeoff.interop.config_reader import ConfigReader
from bakeoff.interop.families import Family, NotSaid
from bakeoff.interop.families.task_heads import CHOICES, PURPOSES, SEQUENCE, TaskHead
from bakeoff.interop.hugging_face import bakeoff_settings
from bakeoff.interop.hugging_face.bakeoff_settings import NOT_KNOWN, BakeoffSettings
from bakeoff.interop.hugging_face.folder import CONFIG, Folder
from bakeoff.interop.hugging_face.tokenizer_settings import SETTINGS, TOKENIZER
from bakeoff.recipe import Recipe
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.heads.heads import HeadedModel
from bakeoff.tasks.pooling import natural_pooling
from bakeoff.tasks.reading.labels import label_text
from bakeoff.tasks.registry import TASKS
from bakeoff.tasks.rows.inputs import SHORTEST, InputFormat
from bakeoff.tasks.task import Task
from bakeoff.tasks.task_config import HeadClass, TaskConfig
from bakeoff.tokenizer import file as tokenizer_file
from bakeoff.tokenizer.file import guarded
from bakeoff.tokenizer.tokenizer import Tokenizer

REGRESSION, ONE_CLASS = "regression", "single_label_classification"
"""Values of `problem_type`: one number, and one class of several."""
WRITING = ("ForConditionalGeneration", "ForSeq2SeqLM", "ForCausalLM")
"""Endings of the names of classes that write texts."""
GENERIC = ("PreTrainedTokenizerFast", "TokenizersBackend")
"""Classes of tokenizers that do what tokenizer.json says, where that of a family knows what stands around texts."""
SEGMENTS = "token_type_ids"
"""transformers' name of segment ids, of which a tokenizer says whether it gives them."""
WITHOUT_SEGMENTS = ("Roberta", "XLMRoberta", "Camembert")
"""Beginnings of the names of classes of tokenizers that give none by themselves."""
SEGMENTS_UNTIL_5 = ("Albert", "XLNet", "PreTrainedTokenizerFast")
"""Beginnings of the names of classes that give them in transformers 4, and none in transformers 5."""
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
    config = ConfigReader(folder.json(CONFIG), folder.where)
    ending, saved, file = _class_of(config), bakeoff_settings.read(config), str(out.absolute() / NOT_KNOWN)
    if saved is not None and saved.generates and ending in WRITING and not pairs:
        return _writer(family.writing(ending, recipe), saved, recipe, file)
    end = next((each for each in PURPOSES if ending.removesuffix("Simple") == f"For{each}"), None)
    if end is None:
        if pairs:
            raise UserError(f"{folder.path}: --pairs is for fine-tuned models of labels, and this is none")
        return None
    form = family.form(end, recipe, config)
    head = family.task(form, recipe)
    if not head.architecture.endswith(ending):
        raise NotSaid(f"of the family's classes {head.architecture} has a counterpart here")
    outputs = _outputs(head, tensors, folder)
    problem = _problem(config, outputs) if end == SEQUENCE else None
    names = _names(config, outputs) if end != CHOICES else []
    if saved is not None and not saved.fits(end, problem, names):
        saved = None  # the settings are those of an earlier head
    kind = _kind_elsewhere(end, problem) if saved is None else type(saved.config(file))
    if pairs and not kind.takes_pairs:
        (name,) = TASKS.names(kind)
        raise UserError(f"{folder.path}: --pairs: a model for {name} reads no single texts; leave it out")
    pairs = pairs or (saved is not None and saved.pairs)
    length = _length(folder, recipe)
    formats, of_pairs = [InputFormat(tokenizer, recipe, length, separators=count) for count in (1, 2)], kind.sides != 1
    separators = _separators(folder, family, formats, pairs or of_pairs)
    _require_segments(folder, formats[separators - 1], pairs or of_pairs)
    head_settings = {"pooling": form.pooling, "pooler": form.pooler, "layers": form.layers, "length": length}
    head_settings |= {"transform": form.transform, "separators": separators}
    if saved is not None:
        settings = saved.config(file, "pair" if pairs and kind.takes_pairs else None)
        head_settings |= saved.finetune(settings, recipe)
        task = saved.restored(settings)
    else:
        assert kind.exported is not None
        columns = {**(kind.exported.columns or {}), **({"pair_column": "pair"} if pairs else {})}
        settings = kind.parse({"train": file, **columns}, folder.where)
        task = settings.restore(kind.labels_of(names), f"{folder.where}: id2label")
    return ImportedHead(head, task, FinetuneConfig.parse(head_settings, folder.where))


def _writer(head: TaskHead, saved: BakeoffSettings, recipe: Recipe, file: str) -> ImportedHead:
    """The head of a run that was fine-tuned to generate text, which Bakeoff's settings alone tell from pre-training.

    Raises:
        UserError: the settings are not those of such a run.
    """
    settings = saved.config(file)
    head_settings = {"pooling": natural_pooling(recipe), **saved.finetune(settings, recipe)}
    return ImportedHead(head, saved.restored(settings), FinetuneConfig.parse(head_settings, saved.where))


def _class_of(config: ConfigReader) -> str:
    """The ending of the class's name, from `For` on; empty: the config names no class, or several."""
    names = config.values.get("architectures")
    if not isinstance(names, list) or len(names) != 1 or not isinstance(names[0], str):
        return ""
    _, marker, rest = names[0].partition("For")
    return marker + rest


def _outputs(head: TaskHead, tensors: Mapping[str, Tensor], folder: Folder) -> int:
    """The number of outputs of the last linear layer."""
    (name,) = next(link.theirs for link in head.links if link.ours == ("output.weight",))
    if name not in tensors:
        raise UserError(f"{folder.path}: the tensor {name} is missing")
    return len(tensors[name]) if tensors[name].dim() else 0


def _problem(config: ConfigReader, outputs: int) -> str:
    """The `problem_type` of a class for sequences, or transformers' default if there is none."""
    if config.values.get("problem_type") is None:
        return REGRESSION if outputs == 1 else ONE_CLASS
    problems = [REGRESSION, ONE_CLASS, "multi_label_classification"]
    problem = config.choice("problem_type", {each: each for each in problems}, "")
    if problem == REGRESSION and outputs != 1:
        raise NotSaid(f"it gives {outputs} numbers, and a regression here one")
    if problem == ONE_CLASS and outputs == 1:
        raise NotSaid("it has a single class, and nothing to tell apart")
    return problem


def _kind_elsewhere(end: HeadClass, problem: str | None) -> type[TaskConfig]:
    """The kind of task of a model that was fine-tuned elsewhere, by its class and `problem_type`."""
    for kind in TASKS.values():
        head = kind.exported
        if head is not None and head.ending == end and head.problem_type == problem and head.columns is not None:
            return kind
    raise AssertionError(end, problem)


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


def _require_segments(folder: Folder, rows: InputFormat, pair: bool) -> None:
    """Refuse a tokenizer that gives texts other segments than rows here have.

    Raises:
        NotSaid: it does.
    """
    own = _segments(rows, pair)
    if not rows.segments or not any(own):
        return
    if not _gives_segments(folder):
        raise NotSaid(
            f"its tokenizer gives no {SEGMENTS}, and rows here have segments; if it learned with them, name them in "
            f"{SETTINGS}, in model_input_names"
        )
    theirs = _made(folder, pair) if folder.json(SETTINGS).get("tokenizer_class") in GENERIC else None
    if theirs is not None and [segment for _, segment in theirs] != own:
        shown, here = (" ".join(map(str, each)) for each in ([segment for _, segment in theirs], own))
        texts = "two texts" if pair else "a text"
        raise NotSaid(f"its tokenizer gives the segments {shown} around {texts}, and rows here have {here}")


def _gives_segments(folder: Folder) -> bool:
    """Whether the folder's tokenizer says which text of a pair each token is of, in the transformers that wrote it."""
    settings, config = folder.json(SETTINGS), folder.json(CONFIG)
    names, made_by = settings.get("model_input_names"), settings.get("tokenizer_class")
    if isinstance(names, list):
        return SEGMENTS in names
    made_by = {"albert": "Albert", "xlnet": "XLNet"}.get(str(config.get("model_type"))) if made_by is None else made_by
    if str(made_by).startswith(SEGMENTS_UNTIL_5):
        major = str(config.get("transformers_version", "")).partition(".")[0]
        return not major.isdecimal() or int(major) < 5
    return made_by != "TokenizersBackend" and not str(made_by).startswith(WITHOUT_SEGMENTS)


def _segments(rows: InputFormat, pair: bool) -> list[int]:
    """The segment of each special token and text of `_around`."""
    before, between, after = rows.around
    last = int(pair)
    of_texts = [0] * (len(before) + 1) + ([0] * len(between) + [1] if pair else [])
    return of_texts + ([last] * (len(after) - 1) + [2] if rows.start_last else [last] * len(after))


def _around(rows: InputFormat, pair: bool) -> list[int | None]:
    """The special tokens around the texts of a row; None stands for a text."""
    before, between, after = rows.around
    return [*before, None, *([*between, None] if pair else []), *after]


def _frame(folder: Folder, pair: bool) -> list[int | None] | None:
    """The special tokens of the folder's tokenizer around texts, each text None; no list: its files do not say it."""
    made = _made(folder, pair)
    return None if made is None else [token for token, _ in made]


def _made(folder: Folder, pair: bool) -> list[tuple[int | None, int]] | None:
    """What the folder's tokenizer makes of a text or two: each special token, and each text as None, with its segment.

    No list: its files do not say it, and the class of the tokenizer knows it.
    """
    path = folder.file(TOKENIZER)
    if path is None:
        return None
    with guarded(str(path), "not a tokenizer.json of the tokenizers library"):
        inner = tokenizers.Tokenizer.from_str(tokenizer_file.read(path))
        if inner.post_processor is None and folder.json(SETTINGS).get("tokenizer_class") not in GENERIC:
            return None
        inner.no_padding()
        made = inner.encode("a", "a") if pair else inner.encode("a")
    frame: list[tuple[int | None, int]] = []
    of_text: int | None = -1
    for number, special, text, segment in zip(
        made.ids, made.special_tokens_mask, made.sequence_ids, made.type_ids, strict=True
    ):
        if special:
            frame.append((number, segment))
        elif text != of_text:
            frame.append((None, segment))
            of_text = text
    return frame
