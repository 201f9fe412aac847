"""`bakeoff finetune`, `evaluate` and `predict`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bakeoff.cli.answers import Blank, TextsFile, on_one_line, print_answers, print_json_answers, texts_of
from bakeoff.cli.output import (
    Device,
    Errors,
    Json,
    Seed,
    Set,
    Threads,
    losses_text,
    print_json,
    print_table,
    remark_unfinished,
    threads_of,
)
from bakeoff.cli.scores import pairs_text, print_scores, set_text
from bakeoff.cli.task_values import Data, Dataset, Files, choices_value, task_of
from bakeoff.errors import UserError

if TYPE_CHECKING:
    from bakeoff.tasks.finetuned_run import FinetuneResult
    from bakeoff.tasks.predict import Predicted
    from bakeoff.tasks.task import Task


def finetune(
    source: Annotated[str, typer.Argument(metavar="RUN|RECIPE", help="A pre-trained run, or a recipe from scratch.")],
    out: Annotated[Path, typer.Option(help="Directory of the fine-tuned run.")],
    train: Annotated[Path | None, typer.Option(help="Labelled .csv, .tsv or .jsonl to learn from.")] = None,
    dataset: Dataset = None,
    data: Data = None,
    task: Annotated[
        str | None,
        typer.Option(
            help="What is learnt: classification (default), multilabel, regression, ... (docs/tasks.md).",
        ),
    ] = None,
    text_column: Annotated[str | None, typer.Option(help="Column with the text, words, context or question.")] = None,
    label_column: Annotated[
        list[str],
        typer.Option(help="Column with what is to be predicted; for multilabel, repeated, the column of each label."),
    ] = [],  # noqa: B006
    dev: Annotated[
        Path | None, typer.Option(help="File that decides when to stop. Default: a part of --train.")
    ] = None,
    test: Annotated[
        Path | None, typer.Option(help="File that the results come from. Default: a part of --train.")
    ] = None,
    pair_column: Annotated[str | None, typer.Option(help="Column with the second text of a pair.")] = None,
    spans_column: Annotated[
        str | None, typer.Option(help="For tagging: field with spans of a raw text, in place of tags.")
    ] = None,
    start_column: Annotated[
        str | None, typer.Option(help="For question answering: column with the character at which the answer begins.")
    ] = None,
    choices: Annotated[
        list[str], typer.Option(help="For choice: column with the list of choices; or, repeated, the column of each.")
    ] = [],  # noqa: B006
    metric: Annotated[str | None, typer.Option(help="What dev decides by. Default: the task's first.")] = None,
    unshare: Annotated[bool, typer.Option("--unshare", help="Copy shared layers apart before training.")] = False,
    freeze: Annotated[
        str | None,
        typer.Option(help="Keep weights: model, or the embedding and so many of the lowest layers (0: that alone)."),
    ] = None,
    reinitialise_last: Annotated[
        int | None, typer.Option(min=0, help="Begin so many of the topmost layers with fresh weights.")
    ] = None,
    truncate: Annotated[
        str | None, typer.Option(help="Of texts that are too long, read their head, head+tail, or all in windows.")
    ] = None,
    search: Annotated[
        bool, typer.Option("--search", help="Try four learning rates with two numbers of epochs; dev decides.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on, exactly, with what was stopped.")] = False,
    train_rows: Annotated[int | None, typer.Option(help="Learn from the first so many rows only.")] = None,
    options: Annotated[
        list[str],
        typer.Option(
            "--option",
            metavar="KEY=VALUE",
            help="A setting of fine-tuning or of the task, e.g. epochs=5 (docs/tasks.md).",
        ),
    ] = [],  # noqa: B006
    corpus: Annotated[Path | None, typer.Option(help="From scratch: the corpus whose tokenizer to use.")] = None,
    tokenizer: Annotated[Path | None, typer.Option(help="From scratch: a tokenizer.json, instead of --corpus.")] = None,
    set: Set = [],  # noqa: B006
    seed: Seed = 0,
    errors: Errors = "strict",
    device: Device = "auto",
    threads: Threads = "auto",
    json: Json = False,
) -> None:
    """Fine-tune a pre-trained run, or train a recipe from scratch, on labelled data.

    Example: bakeoff finetune runs/bert --train train.tsv --dev dev.tsv --test test.tsv --text-column sentence
    --label-column label --out runs/bert-sst2

    Example: bakeoff finetune runs/bert --dataset sst2 --data glue/SST-2 --out runs/bert-sst2
    """
    from bakeoff.overrides import parse_override
    from bakeoff.recipe_files import load_recipe, recipe_names
    from bakeoff.tasks.finetune import finetune as finetune_model
    from bakeoff.tasks.finetune_config import FinetuneConfig

    given: dict[str, Any] = {
        "kind": task and task.replace("-", "_"),
        "train": train,
        "dev": dev,
        "test": test,
        "train_rows": train_rows,
        "errors": errors,
        "text_column": text_column,
        "pair_column": pair_column,
        "label_column": label_column[0] if len(label_column) == 1 else label_column or None,
        "spans_column": spans_column,
        "start_column": start_column,
        "choices": choices_value(choices),
        "metric": metric,
    }
    begun: Any = Path(source)
    if not begun.exists() or begun.suffix in (".yaml", ".yml"):
        if corpus is None and tokenizer is None and source not in recipe_names() and begun.suffix == "":
            raise UserError(f"{source}: no such run (nor a recipe: `bakeoff recipes` lists them)")
        begun = load_recipe(source, set)
        if corpus is None and tokenizer is None:
            raise UserError(
                f"{source}: a recipe is trained from scratch and needs a tokenizer: give --corpus or --tokenizer"
            )
    elif set:
        raise UserError(f"--set changes a recipe, but {source} is a run, whose model is fixed")
    settings = dict(parse_override(text, "--option") for text in options)
    flags = {
        "unshare": unshare or None,
        "freeze": int(freeze) if freeze is not None and freeze.isdecimal() else freeze,
        "reinitialise_last": reinitialise_last,
        "truncate": truncate,
        "search": search or None,
    }
    settings |= {name: value for name, value in flags.items() if value is not None}
    asked = task_of(Files(dataset, data, given), settings, "finetune")
    result = finetune_model(
        begun,
        asked,
        out,
        config=FinetuneConfig.parse(settings, "--option"),
        seed=seed,
        tokenizer=tokenizer or corpus,
        device=device,
        threads=threads_of(threads),
        resume=resume,
    )
    if json:
        print_json(result.model_dump(mode="json"))
        return
    scores = {
        part: "  ".join(f"{name} {value:.4f}" for name, value in own.items()) for part, own in result.scores.items()
    }
    print_table(
        {
            "run": out,
            "rows": "  ".join(f"{part} {count:,}" for part, count in result.rows.items()),
            "pre-trained": f"{result.transferred_tensors} of {result.total_tensors} tensors",
            **scores,
            **_simplest(result.kind, result.simplest),
            **_search(result),
            **{f"note {number + 1}": note for number, note in enumerate(result.notes)},
        }
    )


def evaluate(
    run: Annotated[Path, typer.Argument(help="A run.")],
    corpus: Annotated[
        Path | None, typer.Option(help="For a pre-trained run: a corpus with the same tokenizer.")
    ] = None,
    split: Annotated[str, typer.Option(help="Of --corpus: validation, test or train.")] = "validation",
    examples: Annotated[
        int | None, typer.Option(min=1, help="Of --corpus: rows to measure on, spread evenly. Default: all.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="For a fine-tuned run: a labelled file.")] = None,
    text_column: Annotated[
        str | None, typer.Option(help="Of --data, by default as in fine-tuning; of --texts, by default text.")
    ] = None,
    pair_column: Annotated[str | None, typer.Option(help="Of --data: column with the second text of a pair.")] = None,
    label_column: Annotated[str | None, typer.Option(help="Of --data: column with the class.")] = None,
    texts: Annotated[
        Path | None,
        typer.Option(help="For a pre-trained run: texts, each to get its log-probability; - is standard input."),
    ] = None,
    source_column: Annotated[
        str | None, typer.Option(help="Of --texts with pairs, for sequence-to-sequence runs. Default: source.")
    ] = None,
    target_column: Annotated[str | None, typer.Option(help="The one that is scored. Default: target.")] = None,
    last_word: Annotated[
        bool, typer.Option("--last-word", help="Of --texts: score each text's last word alone (LAMBADA).")
    ] = False,
    stride: Annotated[
        int | None,
        typer.Option(help="Of --texts longer than a row: tokens that each further row adds. Default: half a row."),
    ] = None,
    minimal_pairs: Annotated[
        Path | None,
        typer.Option(help="For a pre-trained run: pairs of sentences, the first to be the likelier one (BLiMP)."),
    ] = None,
    reading: Annotated[
        Literal["forwards", "pseudo", "pseudo_words"] | None,
        typer.Option(help="Of --minimal-pairs: how they are read. Default: forwards where the run can, else pseudo."),
    ] = None,
    set: Set = [],  # noqa: B006
    errors: Errors = "strict",
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Measure a pre-trained run on held-out text or on texts of a file, or a fine-tuned run on another labelled file.

    Example: bakeoff evaluate runs/bert --corpus corpora/mine --split test

    Example: bakeoff evaluate runs/gpt --texts candidates.txt --json

    Example: bakeoff evaluate runs/bert --minimal-pairs blimp.jsonl.gz

    Example: bakeoff evaluate runs/xl --corpus corpora/mine --set model.decoder.block.mixer.memory=640
    """
    from bakeoff.runs.changed_run import parsed
    from bakeoff.tasks.evaluate import evaluate as evaluate_run
    from bakeoff.tasks.evaluate import opened

    if corpus is None and (split != "validation" or examples is not None):
        raise UserError("--split and --examples belong to --corpus DIR")
    if data is None and (pair_column is not None or label_column is not None):
        raise UserError("--pair-column and --label-column belong to --data FILE")
    if (corpus is not None or minimal_pairs is not None) and text_column is not None:
        raise UserError("--text-column belongs to --data FILE or --texts FILE")
    others = (corpus, data, minimal_pairs, reading)
    if texts is not None and all(each is None for each in others):  # else it is refused below
        from bakeoff.tasks.score_texts import open_scores

        changed = opened(run, set)
        remark_unfinished(changed)
        scores = open_scores(
            changed,
            texts,
            text_column=text_column,
            source_column=source_column,
            target_column=target_column,
            errors=errors,
            last_word=last_word,
            stride=stride,
            device=device,
        )
        print_scores(scores, parsed(set), json)
        return
    figures = evaluate_run(
        run,
        corpus=corpus,
        split=split,
        examples=examples,
        data=data,
        text_column=text_column,
        pair_column=pair_column,
        label_column=label_column,
        errors=errors,
        texts=texts,
        source_column=source_column,
        target_column=target_column,
        last_word=last_word,
        stride=stride,
        minimal_pairs=minimal_pairs,
        reading=reading,
        overrides=set,
        device=device,
    )
    if corpus is not None or minimal_pairs is not None:
        remark_unfinished(opened(run))
    if json:
        print_json(figures)
    elif "groups" in figures:
        print_table({**pairs_text(figures), **set_text(figures.get("set", {}))})
    elif "losses" in figures:
        print_table(
            {
                "rows": f"{figures['examples']:,} of the {figures['of_examples']:,} of {figures['split']}",
                **losses_text(figures, figures["split"]),
                **_words_text(figures),
                **set_text(figures.get("set", {})),
            }
        )
    else:
        print_table(
            {
                "rows": f"{figures['rows']:,}",
                **{name: f"{value:.4f}" for name, value in figures["scores"].items()},
                **_simplest(figures["kind"], figures["simplest"]),
                **{f"note {number}": note for number, note in enumerate(figures.get("notes", ()), 1)},
            }
        )


def _search(result: "FinetuneResult") -> dict[str, str]:
    """What dev chose among several settings, and what trying all of them cost."""
    if not result.trials:
        return {}
    return {
        "chosen": f"learning rate {result.learning_rate:g}, the best of {len(result.trials)} trainings, which took "
        f"{result.seconds:.0f} s together"
    }


def _simplest(kind: str, scores: dict[str, float]) -> dict[str, str]:
    """What answers without a model, and its scores."""
    from bakeoff.tasks.registry import TASKS

    return {TASKS[kind].simplest: "  ".join(f"{name} {value:.4f}" for name, value in scores.items())}


def _words_text(figures: dict[str, Any]) -> dict[str, str]:
    """The perplexity per word, where there is one."""
    return {
        f"{name} per word": f"perplexity {value:.2f}  {figures['words']:,} words"
        for name, value in figures.get("perplexity_per_word", {}).items()
    }


def predict(
    run: Annotated[Path, typer.Argument(help="A fine-tuned run.")],
    text: Annotated[list[str] | None, typer.Argument(help="Texts; absent: those of --texts.")] = None,
    pair: Annotated[list[str], typer.Option(help="The second text, once for each text, in the same order.")] = [],  # noqa: B006
    texts: TextsFile = None,
    text_column: Annotated[
        str | None, typer.Option(help="Of --texts with columns. Default: as in fine-tuning, as for the next.")
    ] = None,
    pair_column: Annotated[str | None, typer.Option(help="Column with the second text of a pair.")] = None,
    errors: Errors = "strict",
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Say what a fine-tuned run makes of texts: the class, the number, the words' tags, the choice or the text.

    Pairs are separated by a tab, in lines that are read and in those that are printed. For choices give the context and
    then the choices, or a file as in fine-tuning. For question answering the pair's second text is the context.

    Example: bakeoff predict runs/bert-sst2 "A wonderful film." "Two hours that I will never get back."

    Example: bakeoff predict runs/bert-sst2 --texts reviews.csv > classes.tsv
    """
    from bakeoff.tasks.finetuned_run import FinetunedRun
    from bakeoff.tasks.predict import answer, answer_file, require_sides

    opened = FinetunedRun.open(run)
    config, blank = opened.task, Blank()
    if pair_column is not None and config.input_sides != 2:
        raise UserError(f"{run}: this run was fine-tuned on single texts; leave --pair-column out")
    arguments = [list(text or [])]
    if texts is not None and config.reads_files(texts):
        if arguments[0] or pair or text_column or pair_column:
            raise UserError(f"{texts}: is read as in fine-tuning; leave texts and columns out")
        found = answer_file(opened, texts, device=device)
    elif config.input_sides is None:
        if texts is not None or pair or not arguments[0]:
            raise UserError(f"{run}: give the context and its choices, or --texts with a file as in fine-tuning")
        found = answer(opened, [tuple(arguments[0])], device=device)
    else:
        given = dict(zip(("--text-column", "--pair-column"), (text_column, pair_column), strict=True))
        options = list(given)[: config.input_sides]
        columns = [given[option] or column for option, column in zip(options, config.text_columns, strict=True)]
        if arguments[0] or pair:
            require_sides(opened, arguments[0], pair or None)
            arguments += [pair] if pair else []
        is_named = text_column is not None or pair_column is not None
        found = answer(opened, texts_of(arguments, texts, columns, is_named, errors, options), device=device)
    task = opened.learned
    parts = (blank.counted(part) for part in found)
    if json:
        print_json_answers([task.answered(each.example, each.answer) for each in part] for part in parts)
    else:
        print_answers([_predicted(task, each) for each in part] for part in parts)
    blank.tell("what the run gives for a text without words")


def _predicted(task: "Task", found: "Predicted") -> str:
    texts = found.example.texts if task.shows_texts else ()
    shown = "\t".join(on_one_line(text, tabs=len(texts) > 1) for text in texts)
    cells = [on_one_line(cell, tabs=True) for cell in task.shown(found.example, found.answer)]
    return "\t".join([*cells, *([shown] if texts else [])])
