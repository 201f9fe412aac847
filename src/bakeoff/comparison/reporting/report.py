"""The report: one HTML file that needs no network, and its figures as PNG and SVG."""

from html import escape
from pathlib import Path

import altair
import vl_convert

from bakeoff.comparison.reporting import tables
from bakeoff.comparison.reporting.cautions import MOST, cautions
from bakeoff.comparison.reporting.charts import colours, curves, dots, trigram_note
from bakeoff.comparison.reporting.cut_texts import cut_notes
from bakeoff.comparison.reporting.decision import decisions
from bakeoff.comparison.reporting.decision_section import decision_figures, decision_section
from bakeoff.comparison.reporting.differences_section import differences_section
from bakeoff.comparison.reporting.factor_findings import factor_figures, factor_section
from bakeoff.comparison.reporting.findings import claims, findings
from bakeoff.comparison.reporting.layer_section import layer_figures, layer_section
from bakeoff.comparison.reporting.search_findings import search_figures, search_section
from bakeoff.comparison.reporting.series_section import series_figures, series_section
from bakeoff.comparison.reporting.unequal import budget_text, budgets, equal_budgets
from bakeoff.comparison.reporting.until_loss import until_section
from bakeoff.comparison.reporting.where_section import where_section
from bakeoff.comparison.results import FIGURES, Results
from bakeoff.comparison.statistics.noise import SEEDS_FOR_A_CLAIM
from bakeoff.display.wording import budget, counted, listed, quantity, quoted, quoted_list
from bakeoff.durable import own_folder, write_atomically
from bakeoff.report.charts import Figure, on_page, specification
from bakeoff.report.elements import figure_element, folded, legend, note, opening, panels
from bakeoff.report.page import html_page
from bakeoff.yaml_files import dump_yaml

INK = "#1c2126"
"""Colour of text in the figures beside the report; figures in the report have the page's colour."""

WITH_LEGEND = ("loss", "search", "pareto", "factors", "rows", "budget", "layers")
"""Prefixes of the names of figures whose files have a legend; in the others each recipe has a line with its name."""


def write_report(results: Results, path: Path) -> None:
    """Write `report.html` and, beside it, `figures/` with every chart as SVG and PNG.

    Args:
        results: the results; nothing else is read.
        path: the HTML file to write.
    """
    losses, scores, searches = list(curves(results)), list(dots(results)), search_figures(results)
    decision, factors = decision_figures(results), list(factor_figures(results))
    layers, of_costs = layer_figures(results), [figure for those in decision.values() for figure in those]
    labels = list(series_figures(results))
    figures = [*scores, *of_costs, *labels, *factors, *losses, *layers, *searches]
    drawn = on_page(figures, lambda figure: _height(figure, results))
    body = [
        _answer(results),
        _scores(results, scores),
        decision_section(results, decision),
        where_section(results),
        series_section(results, labels),
        factor_section(results, factors),
        until_section(results),
        _costs(results),
        _losses(results, losses),
        layer_section(results, layers),
        search_section(results, searches),
        _method(results),
        _recipes(results),
    ]
    page = html_page(results.title, "\n".join(body), drawn)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, page)
    _write_figures(results, figures, path.parent / FIGURES)


def _height(figure: Figure, results: Results) -> int:
    """The height of a figure in pixels: for the scores of seeds it grows with the number of recipes."""
    if figure.name.startswith(WITH_LEGEND):
        return 260
    analysis = results.analyses[int(figure.name.partition("-")[2]) - 1]
    return 40 + max(2, len(analysis.pretrained)) * (44 if analysis.scratch else 30)


def _write_figures(results: Results, figures: list[Figure], folder: Path) -> None:
    """Write every chart on white, with its legend and title, as SVG and PNG for slides and papers."""
    own_folder(folder).mkdir(parents=True, exist_ok=True)
    # Panels are numbered; what an earlier report with other recipes left would be taken for one of these.
    for stale in (path for prefix in (*WITH_LEGEND, "scores") for path in folder.glob(f"{prefix}-*.*")):
        stale.unlink()
    for figure in figures:
        titled = figure.chart.properties(
            title=altair.TitleParams(f"{figure.title}, {figure.caption}", anchor="start", fontSize=13, color=INK)
        )
        drawn = specification(
            titled, width=640, height=_height(figure, results), ink=INK, legend=figure.name.startswith(WITH_LEGEND)
        )
        svg = vl_convert.vegalite_to_svg(drawn)
        (folder / f"{figure.name}.svg").write_text(svg, encoding="utf-8")
        (folder / f"{figure.name}.png").write_bytes(vl_convert.svg_to_png(svg, scale=2))  # nothing is drawn twice


def _answer(results: Results) -> str:
    """The report's opening: the headline, its details and the warnings."""
    answer = findings(results)
    seeds = counted(len(results.finished_seeds), "seed")
    sizes = [counted(len(results.recipes), "recipe"), seeds, counted(len(results.tasks), "task")]
    about = f"{', '.join(sizes)}, {budget_text(results, each=True)}"
    remarks = cautions(results)
    parts = opening(
        f"{results.title} · {about} · {results.created[:10]}",
        answer.headline,
        [*answer.details, *decisions(results)],
        remarks[:MOST],
        remarks[MOST:],
    )
    return "\n".join(parts)


def _scores(results: Results, figures: list[Figure]) -> str:
    """The section of the scores: the table, the dots, and the differences with their verdicts."""
    claim = claims(results)
    bold = (
        "Bold: the best mean of a recipe and those next to it, down to the first that is worse beyond the noise; gains "
        "that exceed the noise."
        if claim
        else f"Nothing is marked as best: that takes {SEEDS_FOR_A_CLAIM} seeds."
    )
    interval = "; below it the 95 % confidence interval for other seeds and other test examples" if claim else ""
    apart = ", its own 95 % interval" if claim else ""
    errors = "; less than zero is better where less of the metric is" * any(t.lower_is_better for t in results.tasks)
    parts = [
        "<h2>Results</h2>",
        note(
            f"Test scores, mean ± standard deviation over seeds{interval}. Gain: what pre-training adds{apart}, "
            f"and relative to from scratch{errors}. {bold}"
        ),
        tables.scores(results),
        *panels(figures, titled=True),
    ]
    filled = "Filled: pre-trained; open: from scratch. " if any(a.scratch for a in results.analyses) else ""
    marks = "Tick: mean; bar: its 95 % interval" if claim else "Tick: mean"
    parts.append(note(f"Each dot is a seed. {filled}{marks}."))
    if cut := [text for task in results.tasks for text in cut_notes(results, task.name)]:
        parts.append(note(f"Not read: {' '.join(cut)}"))
    parts.append(differences_section(results))
    return "\n".join(parts)


def _costs(results: Results) -> str:
    what = "Pre-training, mean over seeds (memory: the highest); time is the clock's"
    of = f"of {budget_text(results) if equal_budgets(results) else 'its own'}"
    of += ", by work" * bool(results.budget.work_seconds_per_step)
    return f"<h2>What each recipe cost</h2>{note(f'{what}; budget spent is {of}.')}{tables.costs(results)}"


def _losses(results: Results, figures: list[Figure]) -> str:
    """The section of the losses: comparable curves, side by side over tokens and over time."""
    parts = [
        "<h2>How they learned</h2>",
        note(
            "Validation loss; a panel holds only losses that can be compared: the same objective and tokenizer, causal "
            "models in bits per byte. Thick: mean over seeds; thin: each seed. A curve that stays at the line “unigram "
            f"entropy” has learned how frequent each token is, and nothing else.{trigram_note(results)}"
        ),
        legend(colours(results)),
        '<div class="panels">',
    ]
    for before, figure in zip([None, *figures], figures, strict=False):
        if before is None or before.title != figure.title:
            parts.append(f"<h3>{escape(figure.title)}</h3>")
        parts.append(figure_element(figure))
    return "\n".join([*parts, "</div>"])


def _method(results: Results) -> str:
    """The section of the method, as a list of terms."""
    corpus = results.corpus
    size = [f"{quantity(corpus.tokens)} tokens"] if corpus.tokens else []
    size += [f"{quantity(corpus.documents)} documents"] if corpus.documents else []
    entropy = f", unigram entropy {corpus.unigram_entropy:.2f} nats" if corpus.unigram_entropy else ""
    searched = (
        " What was searched is chosen on the corpus's validation split alone, once for all seeds."
        if results.search
        else ""
    )
    correction = "Shaffer's correction for the pairs of a task, Holm's for its gains"
    if results.baseline is not None:
        correction = "Holm's correction for the differences from the baseline, and for the gains of a task"
    rows = [
        ("Budget", f"{_budgets(results)} for each pre-training{_budget_note(results)}"),
        ("Seeds", _seeds(results)),
        (
            "Selection",
            "Epochs, learning rates of fine-tuning and the settings of what learns without a neural network are chosen "
            f"on dev alone; every number is from test.{searched}",
        ),
        (
            "Significance",
            "The variance over seeds, moderated by that of the other recipes (Smyth 2004), plus the variance over test "
            f"examples, as in Clark's min F′; Satterthwaite's degrees of freedom; {correction}; level 0.05.",
        ),
        (
            "Corpus",
            f"{corpus.path}: {', '.join(size)}{entropy}; tokenizer {corpus.tokenizer}; checksum {corpus.fingerprint}",
        ),
    ]
    for task in results.tasks:
        counts = ", ".join(f"{number:,} {split}" for split, number in task.rows.items())
        counts += f" (in {task.clusters:,} clusters)" if task.clusters else ""
        classes = f"; {task.classes} classes" if task.classes else ""
        rows.append(
            (task.name, f"{task.kind}; {counts} rows{classes}; {_files(task.files)}{_epochs(results, task.name)}")
        )
    rows.append(("Machine", "; ".join(f"{name} {value}" for name, value in results.machine.items())))
    rows.append(("Device", results.device))
    rows.append(("Versions", ", ".join(f"{name} {value}" for name, value in results.versions.items())))
    rows.append(("Written", results.created))
    terms = "".join(f"<dt>{escape(term)}</dt><dd>{escape(text)}</dd>" for term, text in rows)
    return f"<h2>How it was measured</h2><dl>{terms}</dl>"


def _seeds(results: Results) -> str:
    nested = results.finetune_seeds
    averaged = f" Of each, {nested} fine-tunings are averaged." if nested > 1 else ""
    shared = [quoted(entry.label) for entry in results.recipes if entry.checkpoint is not None]
    fresh = "A seed is a fresh pre-training (other weights, order and masks) with its fine-tuning."
    further = (
        f"A seed of {listed(shared)} begins with the same weights as the others, and has another order and other masks "
        "of the further training, and another fine-tuning."
    )
    kinds = [*([further] if shared else []), *([fresh] if len(shared) < len(results.recipes) else [])]
    if len(kinds) > 1:
        kinds[1] = "Of the others a seed is" + fresh.removeprefix("A seed is")
    return (
        f"{listed([str(seed) for seed in results.finished_seeds])}. {' '.join(kinds)}{averaged} Recipes are "
        "trained seed by seed, so that a slow hour of the machine hits all alike."
    )


def _epochs(results: Results, task: str) -> str:
    """A remark that fine-tunings had more epochs than the default, because the rows are few."""
    scores = [score for entry in results.recipes for score in entry.scores if score.task == task]
    instead = dict.fromkeys(str(each) for score in scores for each in score.default_epochs)
    if not instead:
        return ""
    return f"; fine-tuned for more epochs than the default {listed([*instead], 'or')}, as rows are few (least_steps)"


def _files(named: dict[str, str | None]) -> str:
    return ", ".join(f"{split} {name or 'held out of train'}" for split, name in named.items())


def _budgets(results: Results) -> str:
    """The budget of all pre-trainings, or of each recipe's."""
    if equal_budgets(results):
        return budget_text(results)
    of_budget: dict[str, list[str]] = {}
    for name, text in budgets(results).items():
        of_budget.setdefault(text, []).append(name)
    return "; ".join(f"{budget(text)} of {quoted_list(names)}" for text, names in of_budget.items())


def _budget_note(results: Results) -> str:
    steps = results.budget.steps
    if not steps:
        return ""
    each = ", ".join(f"{label} {steps[label]:,}" for label in steps)
    return (
        ". Minutes were turned into steps by the work of a step (on a CPU processor time), measured in all recipes in "
        f"turns and once more in the first training; they hold for every seed: {each}"
    )


def _recipes(results: Results) -> str:
    complete = [folded(entry.label, dump_yaml(entry.recipe)) for entry in results.recipes]
    return "\n".join(["<h2>The complete recipes</h2>", *complete])
