"""The searches in a comparison's report: a curve of each recipe, and a table of what was chosen."""

from html import escape

from bakeoff.comparison.results import Results
from bakeoff.comparison.search_findings import COLUMNS, carried, rows
from bakeoff.display.charts import Figure
from bakeoff.display.page import figure_element, legend
from bakeoff.tuning.candidates import short, written
from bakeoff.tuning.report import look_styles, loss_figures


def search_figures(results: Results) -> list[Figure]:
    """Losses over what was searched, for each recipe."""
    found = []
    for number, entry in enumerate(results.recipes, 1):
        if entry.search is None:
            continue
        for key, figure in loss_figures(entry.search, f"search-{number}"):
            caption = f"held-out loss over {short(key)}; {written(entry.search.winner.values[key])} is chosen"
            found.append(figure._replace(title=entry.label, caption=caption))
    return found


def search_section(results: Results, figures: list[Figure]) -> str:
    """Table and curves; nothing where nothing was searched."""
    if results.search is None:
        return ""
    head = "".join(f"<th{' class=text' * (i < 2)}>{escape(name)}</th>" for i, name in enumerate(COLUMNS))
    body = "".join(
        f"<tr><th>{escape(row[0])}</th>"
        + "".join(f"<td{' class=text' * (i == 0)}>{escape(cell)}</td>" for i, cell in enumerate(row[1:]))
        + "</tr>"
        for row in rows(results)
    )
    parts = [
        "<h2>What was searched before</h2>",
        f'<p class="note">{escape(carried(results))} Cost: in pre-trainings, beside the budget.</p>',
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>',
        '<p class="note">Each dot is a trial at one of the steps at which all were compared; only dots of one colour '
        "compare, and only within a recipe. A cross at the top is a trial that diverged, the dashed line the value "
        "that was chosen.</p>",
    ]
    looks: dict[str, tuple[str, list[int]]] = {}
    for entry in results.recipes:
        looks |= look_styles(entry.search) if entry.search is not None else {}
    parts += [legend(looks), '<div class="panels">']
    parts += [f"<div><h3>{escape(figure.title)}</h3>{figure_element(figure)}</div>" for figure in figures]
    return "\n".join([*parts, "</div>"])
