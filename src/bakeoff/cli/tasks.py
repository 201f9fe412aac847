"""`bakeoff finetune`, `evaluate` and `predict`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from bakeoff.cli.scores import print_scores, set_text
from bakeoff.errors import UserError

if TYPE_CHECKING:
    from bakeoff.tasks.predict import Predicted


def finetune(
    source: Annotated[str, typer.Argument(metavar="RUN|RECIPE", help="A pre-trained run, or a recipe from scratch.")],
    train: Annotated[Path, typer.Option(help="Labelled .csv, .tsv or .jsonl to learn from.")],
    text_column: Annotated[str, typer.Option(help="Column with the text.")],
    label_column: Annotated[str, typer.Option(help="Column with the class.")],
    out: Annotated[Path, typer.Option(help="Directory of the fine-tuned run.")],
    task: Annotated[str, typer.Option(help="What is learnt: classification.")] = "classification",
    dev: Annotated[
        Path | None, typer.Option(help="File that decides when to stop. Default: a part of --train.")
    ] = None,
    test: Annotated[
        Path | None, typer.Option(help="File that the results come from. Default: a part of --train.")
    ] = None,
    pair_column: Annotated[str | None, typer.Option(help="Column with the second text of a pair.")] = None,
    metric: Annotated[str, typer.Option(help="accuracy, macro_f1 or matthews: what dev decides by.")] = "accuracy",
    unshare: Annotated[bool, typer.Option("--unshare", help="Copy shared layers apart before training.")] = False,
    train_rows: Annotated[int | None, typer.Option(help="Learn from the first so many rows only.")] = None,
    options: Annotated[
        list[str],
        typer.Option("--option", metavar="KEY=VALUE", help="A fine-tuning setting, e.g. epochs=5 (docs/tasks.md)."),
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
    """
    from bakeoff.overrides import parse_override
    from bakeoff.recipe_files import load_recipe, recipe_names
    from bakeoff.tasks.data import TaskConfig
    from bakeoff.tasks.finetune import finetune as finetune_model
    from bakeoff.tasks.finetune_config import FinetuneConfig

    given: dict[str, Any] = {
        "kind": task,
        "name": train.name.partition(".")[0],
        "train": train,
        "dev": dev,
        "test": test,
        "text_column": text_column,
        "pair_column": pair_column,
        "label_column": label_column,
        "metric": metric,
        "train_rows": train_rows,
        "errors": errors,
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
    result = finetune_model(
        begun,
        TaskConfig.parse(given, "finetune"),
        out,
        config=FinetuneConfig.parse(settings | ({"unshare": True} if unshare else {}), "--option"),
        seed=seed,
        tokenizer=tokenizer or corpus,
        device=device,
        threads=threads_of(threads),
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
            "majority class": f"accuracy {result.majority:.4f} on test",
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
    set: Set = [],  # noqa: B006
    errors: Errors = "strict",
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Measure a pre-trained run on held-out text or on texts of a file, or a fine-tuned run on another labelled file.

    Example: bakeoff evaluate runs/bert --corpus corpora/mine --split test

    Example: bakeoff evaluate runs/gpt --texts candidates.txt --json

    Example: bakeoff evaluate runs/xl --corpus corpora/mine --set model.decoder.block.mixer.memory=640
    """
    from bakeoff.runs.changed_run import parsed
    from bakeoff.tasks.evaluate import evaluate as evaluate_run
    from bakeoff.tasks.evaluate import opened, require_one

    if corpus is None and (split != "validation" or examples is not None):
        raise UserError("--split and --examples belong to --corpus DIR")
    if data is None and (pair_column is not None or label_column is not None):
        raise UserError("--pair-column and --label-column belong to --data FILE")
    if corpus is not None and text_column is not None:
        raise UserError("--text-column belongs to --data FILE or --texts FILE")
    require_one(corpus, data, texts, last_word or source_column is not None or target_column is not None)
    if texts is not None:
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
        overrides=set,
        device=device,
    )
    if corpus is not None:
        remark_unfinished(opened(run))
    if json:
        print_json(figures)
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
                "majority class": f"accuracy {figures['majority']:.4f}",
            }
        )


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
    """Name the class of texts. Pairs are separated by a tab, in lines that are read and in those that are printed.

    Example: bakeoff predict runs/bert-sst2 "A wonderful film." "Two hours that I will never get back."

    Example: bakeoff predict runs/bert-sst2 --texts reviews.csv > classes.tsv
    """
    from bakeoff.tasks.finetuned_run import FinetunedRun
    from bakeoff.tasks.predict import classify, require_sides

    opened = FinetunedRun.open(run)
    task = opened.task
    if pair_column is not None and task.pair_column is None:
        raise UserError(f"{run}: this run was fine-tuned on single texts; leave --pair-column out")
    columns = [text_column or task.text_column]
    options = ["--text-column"]
    if task.pair_column is not None:
        columns, options = [*columns, pair_column or task.pair_column], [*options, "--pair-column"]
    arguments = [list(text or [])]
    if arguments[0] or pair:
        require_sides(opened, arguments[0], pair or None)
        arguments += [pair] if pair else []
    named = text_column is not None or pair_column is not None
    blank = Blank()
    found = classify(opened, texts_of(arguments, texts, columns, named, errors, options), device=device)
    parts = (blank.counted(part) for part in found)
    if json:
        print_json_answers(
            [{"label": each.label, "probability": round(each.probability, 6)} for each in part] for part in parts
        )
    else:
        print_answers([_predicted(each) for each in part] for part in parts)
    blank.tell("the class that the run gives a text without words")


def _predicted(found: "Predicted") -> str:
    shown = "\t".join(on_one_line(text, tabs=len(found.texts) > 1) for text in found.texts)
    return f"{found.label}\t{found.probability:.4f}\t{shown}"
