"""The output of `bakeoff evaluate --texts`: a line for each text as soon as it is scored, and the figures of all."""

import json
import sys
from typing import TYPE_CHECKING, Any

from bakeoff.cli.answers import on_one_line
from bakeoff.cli.output import print_table
from bakeoff.display.terminal import show, write, write_json
from bakeoff.display.wording import counted, number

if TYPE_CHECKING:
    from bakeoff.inference.scoring import TextScores

SHOWN = 60
"""The most characters of a text that are shown."""


def print_scores(scores: "TextScores", changed: dict[str, Any], as_json: bool) -> None:
    """Print a table with one row per text, or one JSON object with the list `results`, one entry per line."""
    from bakeoff.inference.totals import Totals
    from bakeoff.tasks.language.score_texts import figures_of, heading

    totals = Totals(scores.last_word)
    if as_json:
        write_json(json.dumps(heading(scores), ensure_ascii=False).removesuffix("}") + ', "results": [')
    elif scores.per is not None:
        show(f"{'text':>4}  {'surprisal':>9}  {'tokens':>6}  {'start':>6}  {'end':>6}  {scores.per}")
    else:
        last = "last word" if scores.last_word else "text"
        show(f"{'log-probability':>15}  {'tokens':>7}  {'likeliest' if scores.last_word else 'per token':>9}  {last}")
    for score in scores:
        totals.add(score)
        if as_json:
            separator = ",\n" if totals.texts > 1 else ""
            write_json(separator + json.dumps(figures_of(score, scores.last_word), ensure_ascii=False), end="")
            sys.stdout.flush()
            continue
        if score.parts is not None:
            for each in score.parts:
                figures_and_place = f"{each.surprisal:>9.4f}  {each.tokens:>6}  {each.start:>6}  {each.end:>6}"
                write(f"{totals.texts:>4}  {figures_and_place}  {on_one_line(each.text)}".rstrip())
            sys.stdout.flush()
            continue
        own = score.log_probability
        third = f"{own / score.tokens:.4f}" if own is not None and score.tokens else "-"
        if scores.last_word:
            third = "-" if score.likeliest is None else "yes" if score.likeliest else "no"
        shown = score.text if len(score.text) <= SHOWN else score.text[: SHOWN - 3] + "..."
        write(f"{number(own):>15}  {score.tokens:>7}  {third:>9}  {shown}".rstrip())
        sys.stdout.flush()
    figures = {**totals.figures(), **({"set": changed} if changed else {})}
    if as_json:
        if totals.texts:
            write_json("")
        write_json("], " + json.dumps(figures, ensure_ascii=False, default=str).removeprefix("{"))
        return
    show()
    print_table({**totals_text(figures, scores.measure), **set_text(changed)})


def totals_text(figures: dict[str, Any], measure: str) -> dict[str, str]:
    """The figures of all texts together."""

    def known(name: str, digits: int = 4) -> str:
        return "-" if figures[name] is None else f"{figures[name]:,.{digits}f}"

    rows = {"texts": f"{figures['texts']:,}  words {figures['words']:,}  tokens {figures['tokens']:,}"}
    if figures["blank"]:
        rows["texts"] += f"  blank {figures['blank']:,}"
    if figures["unknown"]:
        rows["texts"] += f"  of them unknown {figures['unknown']:,}"
    if figures["no_number"]:
        rows["texts"] += f"  no number, all unknown {figures['no_number']:,}"
    rows[measure.replace("_", "-")] = f"{known('log_probability')} nats"
    if "accuracy" in figures:
        rows["last words"] = f"accuracy {known('accuracy')}  perplexity {known('word_perplexity', 2)}"
        return rows
    pseudo = "pseudo-" if measure == "pseudo_log_likelihood" else ""
    rows[f"{pseudo}perplexity"] = f"{known('perplexity', 2)} per token  {known('word_perplexity', 2)} per word"
    rows["bits per byte"] = known("bits_per_byte")
    if figures["bits_per_byte"] is None and figures["hidden_characters"]:
        rows["bits per byte"] = f"no number: unknown tokens hide {figures['hidden_characters']:,} characters"
    return rows


def pairs_text(figures: dict[str, Any]) -> dict[str, str]:
    """Rows with the share of minimal pairs whose good sentence is the likelier one, in all, by kind and by group."""
    rows = {"pairs": f"{figures['pairs']:,}  ties {figures['ties']:,}  read {figures['reading']}"}
    if figures["unknown"]:
        rows["pairs"] += f"  with unknown tokens {figures['unknown']:,}"
    sizes = figures["group_pairs"]
    over = f"mean over {counted(len(sizes), 'group')}, {figures['accuracy_of_pairs']:.4f} over pairs"
    rows["accuracy"] = f"{figures['accuracy']:.4f}  {over}"
    for sort in ("field", "linguistics_term"):
        rows |= {f"{sort} {name}": f"{value:.4f}" for name, value in figures.get(sort, {}).items()}
    if len(sizes) > 1:
        rows |= {
            f"group {name}": f"{value:.4f}  {counted(sizes[name], 'pair')}" for name, value in figures["groups"].items()
        }
    return rows


def labels_text(labels: dict[str, dict[str, float]]) -> dict[str, str]:
    """A row for each label, with the scores of finding it and its number in the data."""
    return {
        f"label {name}": f"F1 {own['f1']:.4f}  precision {own['precision']:.4f}  recall {own['recall']:.4f}  "
        f"count {own['count']:,}"
        for name, own in labels.items()
    }


def set_text(changed: dict[str, Any]) -> dict[str, str]:
    """A row with the keys that were changed; empty where there are none."""
    return {"set": "  ".join(f"{key}={json.dumps(value)}" for key, value in changed.items())} if changed else {}


def simplest_text(kind: str, scores: dict[str, float]) -> dict[str, str]:
    """A row with the simplest answers, which need no model, and their scores."""
    from bakeoff.tasks.registry import TASKS

    return {TASKS[kind].simplest: "  ".join(f"{name} {value:.4f}" for name, value in scores.items())}
