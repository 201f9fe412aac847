"""The searches in a comparison's report: figures for each recipe, and a table of the chosen values."""

from bakeoff.comparison.reporting.search_findings import COLUMNS, carried, rows
from bakeoff.comparison.results import Results
from bakeoff.report.charts import Figure
from bakeoff.report.elements import legend, note, panels, table
from bakeoff.tuning.candidates import short, written
from bakeoff.tuning.report import look_styles, loss_figures


def search_figures(results: Results) -> list[Figure]:
    """The figures of held-out losses over the searched values, for each recipe."""
    found = []
    for number, entry in enumerate(results.recipes, 1):
        if entry.search is None:
            continue
        for key, figure in loss_figures(entry.search, f"search-{number}"):
            caption = f"held-out loss over {short(key)}; {written(entry.search.winner.values[key])} is chosen"
            found.append(figure._replace(title=entry.label, caption=caption))
    return found


def search_section(results: Results, figures: list[Figure]) -> str:
    """The section of the searches, with table and figures; empty if the plan has no search."""
    if results.search is None:
        return ""
    parts = [
        "<h2>What was searched before</h2>",
        note(f"{carried(results)} Cost: in pre-trainings, beside the budget."),
        table(COLUMNS, rows(results), text=2),
        note(
            "Each dot is a trial at one of the steps at which all were compared; only dots of one colour compare, and "
            "only within a recipe. A cross at the top is a trial that diverged, the dashed line the value that was "
            "chosen."
        ),
    ]
    looks: dict[str, tuple[str, list[int]]] = {}
    for entry in results.recipes:
        looks |= look_styles(entry.search) if entry.search is not None else {}
    return "\n".join([*parts, legend(looks), *panels(figures, titled=True)])
