"""Scores of texts, for `score` and for `evaluate --texts`: each as soon as it is known, and the figures of all."""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bakeoff.cli.shared.output_files import TABLES, require_out, save_records
from bakeoff.cli.shared.printing import print_table, remark_unfinished, set_text
from bakeoff.cli.shared.texts import on_one_line
from bakeoff.display.terminal import show, tell, write, write_json
from bakeoff.display.wording import number
from bakeoff.scoring.options import ScoreOptions
from bakeoff.unread_keys import require_effect

if TYPE_CHECKING:
    from bakeoff.scoring.texts import TextScores
    from bakeoff.scoring.totals import Totals


SHOWN = 60
"""The most characters of a text that are shown."""


SCORES_AT_ONCE = 4096
"""Number of scores that are written at once."""


def score_texts(
    run: Path,
    texts: Path | Sequence[tuple[str, ...]],
    options: ScoreOptions,
    *,
    out: Path | None,
    overrides: Sequence[str],
    device: str,
    json: bool,
) -> None:
    """Score texts and print the scores, or write them; arguments as of the verb.

    Raises:
        UserError: the run cannot score these texts, or there is a mistake in the file.
    """
    from bakeoff.distributed.launch import together
    from bakeoff.scoring.totals import Totals
    from bakeoff.tasks.evaluate import opened
    from bakeoff.tasks.language import open_scores
    from bakeoff.unread_keys import parsed

    require_effect("score", overrides)
    require_out(out, (*TABLES, ".npy"))
    changed = opened(run, overrides)
    remark_unfinished(changed)
    if out is None:
        with together() as processes:
            _print_scores(
                open_scores(changed, texts, options, processes.device_name(device), processes),
                parsed(overrides),
                json,
            )
        return
    scores = open_scores(changed, texts, options, device)
    totals = Totals(scores.last_word)
    if out.suffix == ".npy":
        import numpy as np

        from bakeoff.arrays import write_array

        name = "log_probability" if scores.per is None else "surprisal"
        numbers = (np.array([each[name] for each in part]) for part in _records(scores, totals))
        write_array(out, numbers, (), "<f8")
    else:
        save_records(out, _records(scores, totals))
    rows = {**_totals_text(totals.figures(), scores.measure), **set_text(parsed(overrides))}
    tell(f"{out}: {totals.texts:,} scores")
    for name, value in rows.items():
        tell(f"{name:<{max(map(len, rows))}}  {value}")


def _records(scores: "TextScores", totals: "Totals") -> Iterator[list[dict[str, Any]]]:
    """Records of the scores with their texts, part by part; each part is added to `totals`.

    Where words or tokens were asked for, each has a record with the number of its text, from 1 on.
    """
    from bakeoff.tasks.language import figures_of

    part: list[dict[str, Any]] = []
    for each in scores:
        totals.add(each)
        if each.parts is None:
            part.append({"text": each.text, **figures_of(each, scores.last_word)})
        else:
            part += [{"number": totals.texts, **of_part._asdict()} for of_part in each.parts]
        if len(part) >= SCORES_AT_ONCE:
            yield part
            part = []
    yield part


def _print_scores(scores: "TextScores", changed: dict[str, Any], as_json: bool) -> None:
    """Print a table with one row per text, or one JSON object with the list `results`, one entry per line."""
    from bakeoff.scoring.totals import Totals
    from bakeoff.tasks.language import figures_of, heading

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
                figures_and_span = f"{each.surprisal:>9.4f}  {each.tokens:>6}  {each.start:>6}  {each.end:>6}"
                write(f"{totals.texts:>4}  {figures_and_span}  {on_one_line(each.text)}".rstrip())
            sys.stdout.flush()
            continue
        log_probability = score.log_probability
        third = f"{log_probability / score.tokens:.4f}" if log_probability is not None and score.tokens else "-"
        if scores.last_word:
            third = "-" if score.likeliest is None else "yes" if score.likeliest else "no"
        shown = score.text if len(score.text) <= SHOWN else score.text[: SHOWN - 3] + "..."
        write(f"{number(log_probability):>15}  {score.tokens:>7}  {third:>9}  {shown}".rstrip())
        sys.stdout.flush()
    figures = {**totals.figures(), **({"set": changed} if changed else {})}
    if as_json:
        if totals.texts:
            write_json("")
        write_json("], " + json.dumps(figures, ensure_ascii=False, default=str).removeprefix("{"))
        return
    show()
    print_table({**_totals_text(figures, scores.measure), **set_text(changed)})


def _totals_text(figures: dict[str, Any], measure: str) -> dict[str, str]:
    """The figures of all texts together."""

    def known(name: str, digits: int = 4) -> str:
        return "-" if figures[name] is None else f"{figures[name]:,.{digits}f}"

    rows = {"texts": f"{figures['texts']:,}  words {figures['words']:,}  tokens {figures['tokens']:,}"}
    if figures["unknown"]:
        rows["texts"] += f"  of them unknown {figures['unknown']:,}"
    if figures["blank"]:
        rows["texts"] += f"  blank {figures['blank']:,}"
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
