"""The section of a report on where recipes differ: on which classes, on texts of which length, on which rows."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from statistics import fmean
from typing import Any

from bakeoff.comparison.reporting.measures import ShownMetric, learned_baselines
from bakeoff.comparison.reporting.tables import NOTHING, interval_below
from bakeoff.comparison.results import Baseline, Results
from bakeoff.comparison.statistics.breakdown import DifferingRow, LengthScores
from bakeoff.comparison.task_analysis import Analysis
from bakeoff.display.wording import counted, percent
from bakeoff.report.elements import frame, head, note
from bakeoff.tasks.scores.label_scores import LabelScore

MOST_CLASSES = 12
"""The most classes in a table; the others are in results.json."""

MOST_CHARACTERS = 60
"""The most characters of a prediction."""


def where_section(results: Results) -> str:
    """The section, as HTML; empty where nothing is known of classes, lengths and rows."""
    parts = [part for analysis in results.analyses for part in _of_task(results, analysis)]
    if not parts:
        return ""
    remark = (
        "Where to look, and no claim: no verdict says which of these differences are noise. Means over seeds with "
        "pre-trained weights, on test."
    )
    return "\n".join(["<h2>Where they differ</h2>", note(remark), *parts])


def _of_task(results: Results, analysis: Analysis) -> Iterator[str]:
    measure = ShownMetric.of(results, analysis.task)
    baseline = next(iter(measure.strongest(learned_baselines(results, analysis.task))), None)
    tables = [
        table
        for table in (
            _classes(results, analysis, baseline),
            _lengths(measure, analysis, baseline),
            _rows(analysis.differing_rows),
        )
        if table
    ]
    if tables:
        yield f"<h3>{escape(analysis.task)}</h3>"
        yield from tables


def class_scores(results: Results, task: str) -> dict[str, dict[str, LabelScore]]:
    """The scores of each class, label or type of spans by recipe, means over fine-tunings with pre-trained weights."""
    scores: dict[str, dict[str, LabelScore]] = {}
    for entry in results.recipes:
        runs = [each.labels for each in entry.scores if (each.task, each.initialisation) == (task, "pretrained")]
        for name in dict.fromkeys(name for run in runs for name in run):
            known = [run[name] for run in runs if name in run]
            means = {key: fmean(getattr(each, key) for each in known) for key in ("precision", "recall", "f1")}
            scores.setdefault(name, {})[entry.label] = LabelScore(**means, count=max(each.count for each in known))
    return scores


def _classes(results: Results, analysis: Analysis, baseline: Baseline | None) -> str:
    """The table of classes, those first of which recipes' F1 differs most."""
    scores = class_scores(results, analysis.task)
    if not scores:
        return ""

    def apart(name: str) -> float:
        values = [each.f1 for each in scores[name].values()]
        return max(values) - min(values)

    shown = sorted(scores, key=lambda name: (-apart(name), name))[:MOST_CLASSES]
    columns = list(analysis.pretrained)
    simple: Mapping[str, LabelScore] = {} if baseline is None else baseline.labels
    rows = []
    for name in shown:
        cells = [f"<td>{max(each.count for each in scores[name].values()):,}</td>"]
        cells += [_class_cell(scores[name].get(label)) for label in columns]
        cells += [_class_cell(simple.get(name))] if simple else []
        rows.append(f'<tr><th scope="row">{escape(name)}</th>{"".join(cells)}</tr>')
    names = ["Class", "in test", *columns, *([baseline.name] if baseline is not None and simple else [])]
    more = len(scores) - len(shown)
    rest = f" {more:,} more are in results.json." if more else ""
    return note(
        f"Classes: F1 in %, with precision and recall; those first on which recipes differ most.{rest}"
    ) + frame(head(names), rows)


def _class_cell(score: LabelScore | None) -> str:
    if score is None:
        return NOTHING
    return f"<td>{percent(score.f1)}<small>{percent(score.precision)} · {percent(score.recall)}</small></td>"


def _lengths(measure: ShownMetric, analysis: Analysis, baseline: Baseline | None) -> str:
    """The table of scores on short, middling and long rows."""
    parts = analysis.by_length
    if not parts:
        return ""
    rows = []
    for label in analysis.pretrained:
        cells = ""
        for part in parts:
            spread = part.pretrained.get(label)
            if spread is None:
                cells += NOTHING
            else:
                cells += f"<td>{measure.value(spread.mean)}{interval_below(measure, spread)}</td>"
        rows.append(f'<tr><th scope="row">{escape(label)}</th>{cells}</tr>')
    if baseline is not None and all(part.baseline is not None for part in parts):
        cells = "".join(f"<td>{measure.value(part.baseline or 0.0)}</td>" for part in parts)
        rows.append(f'<tr class="baseline"><th scope="row">{escape(baseline.name)}</th>{cells}</tr>')
    heading = note(f"Lengths: {measure.heading} on test rows by the number of their characters, with 95 % intervals.")
    return heading + frame(head(["Recipe", *map(length_text, parts)]), rows)


def length_text(part: LengthScores) -> str:
    """A third of the rows by length in words: 12 to 40 characters, 667 rows."""
    lengths = f"{part.shortest:,}" if part.shortest == part.longest else f"{part.shortest:,} to {part.longest:,}"
    return f"{lengths} characters, {counted(part.rows, 'row')}"


def _rows(rows: Sequence[DifferingRow]) -> str:
    """The table of the rows on which recipes differ most steadily."""
    if not rows:
        return ""
    labels = list(rows[0].predictions)
    names = ["Row", "text", "right", *labels]
    made = [
        f'<tr><th scope="row" class="number">{row.row:,}</th><td class="reading">{escape(row.text)}</td>'
        f'<td class="text">{escape(answer_text(row.label))}</td>'
        + "".join(f'<td class="text">{_predicted(row, label)}</td>' for label in labels)
        + "</tr>"
        for row in rows
    ]
    heading = note(
        "Rows on which recipes differ whatever the seed: the worst seed of one is above the best of another. Of each "
        "recipe its predictions, with the number of fine-tuned models that gave them; right ones in bold."
    )
    return heading + frame(head(names, text=len(names)), made)


def _predicted(row: DifferingRow, label: str) -> str:
    """The cell of a recipe's predictions for a row."""
    predictions = row.predictions[label]
    if all(isinstance(each, int | float) and not isinstance(each, bool) for each in [row.label, *predictions]) and any(
        isinstance(each, float) for each in [row.label, *predictions]
    ):
        return f"{fmean(predictions):.3g}<small>{min(predictions):.3g} to {max(predictions):.3g}</small>"
    counts = Counter(_compared(row, each) for each in predictions)
    right = _compared(row, row.label)
    parts = []
    for text, count in counts.most_common():
        shown = f"{escape(text)} {count}/{len(predictions)}"
        parts.append(f"<b>{shown}</b>" if text == right else shown)
    return "<br>".join(parts)


def _compared(row: DifferingRow, prediction: Any) -> str:
    """A prediction in words: of an answer for each word, how many are right."""
    if row.word_by_word:
        right = sum(one == other for one, other in zip(prediction, row.label, strict=True))
        return f"{right} of {len(row.label)} right"
    return answer_text(prediction)


def answer_text(answer: Any) -> str:
    """An answer of predictions.jsonl in few words."""
    if isinstance(answer, list):
        text = " ".join(each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in answer)
    else:
        text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    text = text or "(nothing)"
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"
