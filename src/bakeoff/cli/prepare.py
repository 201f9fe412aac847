"""`bakeoff prepare`."""

import re
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bakeoff.cli.shared.corpus_options import parse_shard, parse_size, parse_tokenizer, parse_validation
from bakeoff.cli.shared.decorators import noted, taking
from bakeoff.cli.shared.makers import options_of
from bakeoff.cli.shared.options import Json
from bakeoff.cli.shared.printing import print_json, print_table
from bakeoff.display.terminal import suggest
from bakeoff.errors import UserError
from bakeoff.preparation.options import PrepareOptions, PreparePairsOptions

if TYPE_CHECKING:
    from bakeoff.corpus.store import Corpus

SOURCE = ("document_per_line", "document_separator", "field", "deduplicate", "minimum_characters")
PAIR = ("source_field", "target_field", "separate_vocabularies", "longest_pair", "ratio")
FILES = ("validation_source", "validation_target", "test_source", "test_target")
OF_TEXTS_ALONE = ("shard", "merge", "ray")
"""Options for a corpus of texts; they have no meaning for a corpus of pairs."""


@noted
@taking(
    of_pairs=options_of(PreparePairsOptions, *PAIR, *FILES, about="For translation"),
    of_texts=options_of(PrepareOptions, "test", *SOURCE, "shuffle_ngrams", "errors", "seed"),
)
def prepare(
    context: typer.Context,
    out: Annotated[Path, typer.Option(help="Directory to write the corpus to.")],
    texts: Annotated[
        list[str] | None,
        typer.Argument(help="Files, folders or globs: .txt, .jsonl, .csv, .tsv (also .gz, .zst), .parquet, .arrow."),
    ] = None,
    source: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="For translation, in place of TEXTS: files of source sentences, one per line."
        ),
    ] = None,
    target: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="For translation: files of target sentences, line by line the translations of --source.",
        ),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            metavar="KIND|FILE",
            help=(
                "Kind of tokenizer to train on the text (wordpiece, byte_bpe, char_bpe, unigram, word, whitespace or"
                " character), or an existing tokenizer.json. Default: the recipe's, or wordpiece."
            ),
        ),
    ] = None,
    recipe: Annotated[str | None, typer.Option(help="Recipe to take the settings of the tokenizer from.")] = None,
    vocabulary: Annotated[
        int | None,
        typer.Option(min=1, help="Size of the vocabulary, tokenizer.size in a recipe. Default: 8192, or the recipe's."),
    ] = None,
    lowercase: Annotated[
        bool | None,
        typer.Option(
            "--lowercase/--cased",
            help="Lower-case the text; accents are stripped where fewer than 1 % of its letters have one. Default: "
            "cased, or the recipe's.",
        ),
    ] = None,
    end_of_line: Annotated[
        bool | None,
        typer.Option(
            "--end-of-line/--no-end-of-line",
            help="With whitespace or character: make the end of each line a token. Default: no, or the recipe's.",
        ),
    ] = None,
    tokenizer_sample: Annotated[
        str, typer.Option(metavar="SIZE", help="Amount of text to train the tokenizer on, e.g. 50MB.")
    ] = "50MB",
    validation: Annotated[
        list[str] | None,
        typer.Option(metavar="SHARE|FILE", help="Held-out text: a share of the text, or files. Default: 1%."),
    ] = None,
    *,
    of_texts: dict[str, Any],
    of_pairs: dict[str, Any],
    overwrite: Annotated[bool, typer.Option(help="Replace the corpus that is at --out.")] = False,
    shard: Annotated[
        str | None,
        typer.Option(
            "--shard",
            "--part",
            metavar="K/N",
            help="Make only shard K of N, so that N jobs share the work, in any order.",
        ),
    ] = None,
    merge: Annotated[bool, typer.Option(help="Join the shards that --shard made.")] = False,
    ray: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Ray cluster to encode on: local, auto or HOST:PORT (docs/prepare.md)."),
    ] = None,
    json: Json = False,
) -> None:
    """Turn text into a corpus: train a tokenizer (or take one) and store the token ids.

    Example: bakeoff prepare articles/ notes.txt --out corpora/mine --tokenizer unigram --vocabulary 16000

    Example: bakeoff prepare --source train.de --target train.en --out corpora/de-en --recipe transformer-base-wmt
    """
    held_out, sample = parse_validation(validation or ["1%"]), parse_size(tokenizer_sample)
    pairs = bool(source or target)
    if pairs == bool(texts):
        raise UserError("give either texts, or --source and --target")
    typed = {**of_pairs, **of_texts, "shard": shard, "merge": merge, "ray": ray}
    named = {name: value for name, value in typed.items() if _is_given(context, name)}
    texts_alone = {*of_texts, *OF_TEXTS_ALONE} - {*PreparePairsOptions.model_fields, "test"}
    foreign = texts_alone if pairs else {*of_pairs}
    for name in named:
        if name in foreign:
            of, others = ("texts", "pairs") if pairs else ("pairs", "texts")
            raise UserError(f"--{name.replace('_', '-')} is for {of}, not for {others}; leave it out")
    if pairs and (of_texts["test"] or not isinstance(held_out, float)):
        raise UserError(
            "--validation FILE and --test are for texts; of pairs give --validation-source and --validation-target, "
            "--test-source and --test-target"
        )
    if validation and (of_pairs["validation_source"] or of_pairs["validation_target"]):
        raise UserError("--validation SHARE and --validation-source exclude each other; give one of them")
    number = None if shard is None else parse_shard(shard)
    if (shard is not None) + merge + (ray is not None) > 1:
        raise UserError("--shard, --merge and --ray exclude each other; make shards, then merge them, or --ray")
    options = {name: value for name, value in named.items() if name not in OF_TEXTS_ALONE} | {
        "tokenizer": parse_tokenizer(tokenizer, recipe, vocabulary, lowercase, end_of_line),
        "tokenizer_sample": sample,
        "validation": held_out,
    }
    if pairs:
        from bakeoff.preparation.prepare_pairs import prepare_pairs

        if isinstance(options["tokenizer"], Path) and of_pairs["separate_vocabularies"]:
            raise UserError("--tokenizer FILE is taken as it is: leave out --separate-vocabularies")
        paired = prepare_pairs(source or [], target or [], out, overwrite=overwrite, progress=True, **options)
        _show_pairs(paired, out, json)
        return

    from bakeoff.preparation import prepare as preparing

    options |= {"overwrite": overwrite, "progress": True}
    texts = texts or []
    if number is not None:
        made = preparing.prepare_shard(texts, out, *number, **options)
        print_json(made) if json else print_table(_shard_table(made, out))
        return
    if ray is not None:
        from bakeoff.preparation.ray_cluster import prepare_on_ray

        corpus = prepare_on_ray(texts, out, ray, **options)
    else:
        corpus = (preparing.merge_shards if merge else preparing.prepare)(texts, out, **options)
    _show_texts(corpus, out, json)


def _is_given(context: typer.Context, name: str) -> bool:
    """Whether an option was typed; else the default of the options' config counts."""
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def _show_texts(corpus: "Corpus", out: Path, json: bool) -> None:
    """Print what a corpus of texts holds."""
    from bakeoff.text.sentences import LINES

    summary = corpus.summary()
    if json:
        print_json(summary)
        return
    ngrams = summary["shuffled_ngrams"]
    print_table(
        {
            "corpus": str(out),
            "documents": f"{summary['documents']:,}",
            "sentences": f"{summary['sentences']:,}, "
            + ("the lines" if summary["sentence_rule"] == LINES else f"split by {summary['sentence_rule']}"),
            **({} if ngrams is None else {"word order": f"{ngrams}-grams shuffled within each sentence"}),
            "words": f"{summary['words']:,}",
            "tokens": f"{summary['tokens']:,}",
            "held out": f"{_counted(summary['held_out_tokens'], 'tokens')} in "
            + _counted(summary["held_out_documents"], summary["held_out_unit"]),
            **_test_row(summary, "documents"),
            **_hidden_row(summary),
            "vocabulary": f"{summary['vocabulary']:,}",
            "unigram entropy": f"{summary['unigram_entropy']:.3f} nats a token",
            "skipped": _skips(summary),
        }
    )
    suggest(f"bakeoff pretrain laptop-encoder-tiny --corpus {quote(str(out))} --out RUN --budget minutes=10")


def _show_pairs(corpus: "Corpus", out: Path, json: bool) -> None:
    """Print what a corpus of pairs holds."""
    summary = corpus.summary()
    if json:
        print_json(summary)
        return
    tokens, targets = summary["tokens"], summary["target_tokens"]
    separate = corpus.manifest.options["separate_vocabularies"]
    print_table(
        {
            "corpus": str(out),
            "pairs": f"{summary['documents']:,}",
            "words": f"{summary['words']:,}",
            "tokens": f"{tokens - targets:,} of sources, {targets:,} of targets",
            "held out": f"{_counted(summary['held_out_documents'], 'pairs')}, "
            + _counted(summary["held_out_tokens"], "tokens"),
            **_test_row(summary, "pairs"),
            **_hidden_row(summary),
            "vocabulary": f"{summary['vocabulary']:,}" + (", the target's after the source's" if separate else ""),
            "unigram entropy": f"{summary['unigram_entropy']:.3f} nats a token of the targets",
            "skipped": _skips(summary),
        }
    )


def _test_row(summary: dict[str, Any], unit: str) -> dict[str, str]:
    if summary["test_tokens"] is None:
        return {}
    return {"test": f"{_counted(summary['test_tokens'], 'tokens')} in {_counted(summary['test_documents'], unit)}"}


def _hidden_row(summary: dict[str, Any]) -> dict[str, str]:
    """A row on the unknown tokens, and what to do about them; empty where nothing is unknown or hidden."""
    from bakeoff.tokenizer.hidden import MOST_HIDDEN

    if not summary["hidden"]:
        return {}
    advice = ""
    if summary["hidden_characters"] > MOST_HIDDEN * summary["characters"]:
        advice = "; byte_bpe hides nothing, other tokenizers less with a larger --vocabulary"
    return {"unknown": summary["hidden"] + advice}


def _counted(count: int, units: str) -> str:
    """A count with its unit, such as `documents without tokens`. One unit loses the s of its first plural."""
    one = re.sub(r"(?<=[a-z]{3})s\b", "", units, count=1)
    return f"{count:,} {one if count == 1 else units}"


def _skips(summary: dict[str, Any]) -> str:
    return ", ".join(_counted(count, reason) for reason, count in summary["skips"].items()) or "none"


def _shard_table(made: dict[str, Any], out: Path) -> dict[str, str]:
    if made["merged"]:
        return {"corpus": f"{out}: complete already, with this shard"}
    return {"shard": made["shard"], "documents": f"{made['documents']:,}", "tokens": f"{made['tokens']:,}"}
