"""report.md and tables.tex: read as a reader of Markdown and of LaTeX reads them."""

import itertools
import re
import shutil
import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from report_pages import HOSTILE
from synthetic_results import as_errors, make_results
from test_execution import FakeEngine, folder, plan  # noqa: F401

from bakeoff.comparison.execution import compare
from bakeoff.comparison.planning.grid import GridFacts
from bakeoff.comparison.reporting import latex as latex_tables
from bakeoff.comparison.reporting import markdown_report
from bakeoff.comparison.reporting.cautions import cautions
from bakeoff.comparison.reporting.latex import latex, write_latex
from bakeoff.comparison.reporting.markdown_report import write_markdown
from bakeoff.comparison.reporting.plain_cells import Cell, PlainTable
from bakeoff.comparison.reporting.plain_tables import difference_from, plain_tables
from bakeoff.comparison.reporting.report import write_report
from bakeoff.display.markdown import sentence
from bakeoff.display.text import visible

SIGNS = {
    r"\textbackslash{}": "\\",
    r"\textasciitilde{}": "~",
    r"\textasciicircum{}": "^",
    r"\textless{}": "<",
    r"\textgreater{}": ">",
    r"\textbar{}": "|",
    r"\textquotedbl{}": '"',
    r"\ldots{}": "…",
    r"$\pm$": "±",
    r"$\times$": "×",
    "$-$": "−",
    "--": "–",
    "``": "“",
    "''": "”",
    **{f"\\{sign}": sign for sign in "&%$#_{}"},
}


BOLD = re.compile(r"\\textbf\{((?:[^{}\\]|\\.)*)\}")


def typeset(text):
    """What a line of LaTeX shows; a command or a sign that is not known is an error."""
    shown = ""
    while text:
        known = next((source for source in SIGNS if text.startswith(source)), None)
        assert known or text[0] not in "\\&%$#_{}~^", text
        shown += SIGNS[known] if known else text[0]
        text = text[len(known or " ") :]
    return shown


def squeezed(text):
    return " ".join(visible(text).split())


@given(st.text())
@example(r"100 % of $a_1 & b^2 {x} ~ \alpha # “q” <b> | \"")
def test_any_text_is_shown_as_it_is_in_latex(text):
    if "--" not in text and "``" not in text and "''" not in text:  # which the fonts of LaTeX join
        assert typeset(latex(text)) == squeezed(text)


@given(st.text(), st.text(), st.text())
@example("1. see ", "training.lr", ", and - no more")
def test_a_sentence_is_a_paragraph_with_its_code(before, inside, after):
    before, inside, after = (re.sub("[`\n\r]", "", each) for each in (before, inside, after))
    value = f"a{before} `{inside}`{after}" if inside else f"a{before}{after}"
    tokens = MarkdownIt("commonmark").parse(sentence(value))
    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    shown = [each for each in tokens[1].children if each.content]
    assert {each.type for each in shown} <= {"text", "text_special", "code_inline"}
    assert squeezed("".join(each.content for each in shown)) == squeezed(value.replace("`", ""))
    assert [each.type for each in shown].count("code_inline") == bool(inside)


def tables_of(page):
    """The tables of a Markdown file: for each its rows, of each cell its text and whether it is in bold."""
    tokens = MarkdownIt("commonmark").enable("table").parse(page)
    tables = []
    for before, token in itertools.pairwise(tokens):
        if token.type == "thead_open":
            tables.append([])
        elif token.type == "tr_open":
            tables[-1].append([])
        elif token.type == "inline" and before.type in ("td_open", "th_open"):
            shown = "".join(each.content for each in token.children if each.type in ("text", "text_special"))
            others = {each.type for each in token.children} - {"text", "text_special", "strong_open", "strong_close"}
            assert not others, token.content
            tables[-1][-1].append((shown, any(each.type == "strong_open" for each in token.children)))
    return tables


@pytest.fixture(scope="module", params=["plain", "hostile", "errors", "two seeds", "one recipe"])
def results(request):
    return {
        "plain": make_results,
        "hostile": lambda: make_results(names=HOSTILE, tasks=("a | b", "**c** $x_1$ & [d](e)"), rows=300),
        "errors": lambda: as_errors(make_results(), "TREC"),
        "two seeds": lambda: make_results(seeds=2),
        "one recipe": lambda: make_results(names=["alone"], scratch=False),
    }[request.param]()


def unbroken(cell):
    """A cell whose lines are joined again."""
    broken = re.fullmatch(r"\\shortstack\[[lr]\]\{(.*)\}", cell)
    return " ".join(line.removeprefix("{}") for line in broken[1].split(r"\\")) if broken else cell


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="LaTeX is not installed")
def test_latex_takes_the_tables_and_none_is_wider_than_the_text(results, tmp_path):
    write_latex(results, tmp_path / "tables.tex")
    written = (tmp_path / "tables.tex").read_text(encoding="utf-8")
    latin = "".join(sign if sign < "\u0250" else "x" for sign in written)  # other scripts need a font that has them
    (tmp_path / "tables.tex").write_text(latin, encoding="utf-8")
    packages = r"\usepackage[T1]{fontenc} \usepackage{booktabs,graphicx}"
    assert packages in written
    page = rf"\documentclass{{article}}{packages}\begin{{document}}\input{{tables}}\end{{document}}"
    (tmp_path / "page.tex").write_text(page)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False)
    assert made.returncode == 0, made.stdout[-1000:]
    assert "Overfull" not in made.stdout


@pytest.mark.parametrize(("name", "needs"), [("naïve Ωx", True), ("naïve – “x”", False), ("比較", True), ("😀", True)])
def test_latex_says_what_names_in_other_scripts_need(name, needs, tmp_path):
    write_latex(make_results(names=[name, "plain"]), tmp_path / "tables.tex")
    opening = (tmp_path / "tables.tex").read_text(encoding="utf-8").splitlines()[:4]
    assert any("fontspec" in line for line in opening) == needs


def test_cells_are_the_same_in_markdown(results, tmp_path):
    write_markdown(results, tmp_path / "report.md")
    page = (tmp_path / "report.md").read_text(encoding="utf-8")
    expected = [
        [[(visible(name).strip(), False) for name in table.head]]
        + [[(visible(cell.whole).strip(), any(run.strong for run in cell.runs)) for cell in row] for row in table.rows]
        for table in plain_tables(results)
    ]
    assert tables_of(page) == expected
    assert page.startswith("# ")


def test_cells_are_the_same_in_latex(results, tmp_path):
    write_latex(results, tmp_path / "tables.tex")
    text = (tmp_path / "tables.tex").read_text(encoding="utf-8")
    bodies = re.findall(r"\\toprule\n(.*?)\\bottomrule", text, re.DOTALL)
    tables = list(plain_tables(results))
    assert len(bodies) == len(tables) == text.count(r"\begin{tabular}") == text.count(r"\end{table}")
    for body, table in zip(bodies, tables, strict=True):
        lines = [line.removesuffix(r" \\").removeprefix("{}") for line in body.splitlines() if line != r"\midrule"]
        cells = [[*map(unbroken, re.split(r"(?<!\\) & ", line))] for line in lines]
        for found, row in zip(cells[1:], table.rows, strict=True):
            for shown, cell in zip(found, row, strict=True):
                assert typeset(BOLD.sub(r"\1", shown)) == squeezed(cell.whole)
                if len(cell.whole) <= 36:  # longer ones are broken into lines
                    bold = [run.text for run in cell.runs if run.strong]
                    assert [typeset(each) for each in BOLD.findall(shown)] == [squeezed(each) for each in bold]
        assert [typeset(cell) for cell in cells[0]] == [squeezed(name) for name in table.head]


SECTIONS = ["Which differences are real", "Score against cost", "What each factor does", "Until a held-out loss of 4"]
"""The sections of a page that have tables."""


def test_markdown_has_the_tables_of_the_page(tmp_path):
    cells = {"one": {"width": "64"}, "two": {"width": "128"}}
    grid = GridFacts(name="grid", factors={"width": ["64", "128"]}, cells=cells)
    results = make_results(names=["one", "two"], grids=[grid]).model_copy(update={"until_loss": 4.0})
    write_report(results, tmp_path / "report.html")
    write_markdown(results, tmp_path / "report.md")
    page, written = ((tmp_path / name).read_text(encoding="utf-8") for name in ("report.html", "report.md"))
    sections = {part.partition("<")[0]: part for part in page.split("<h2>")[1:]}
    parts = {part.partition("\n")[0]: part for part in written.split("\n## ")[1:]}
    for title in SECTIONS:
        here = [part for name, part in parts.items() if name == title or name.startswith(f"{title}: ")]
        found = "\n".join(here)
        assert sections[title].count("<table>") == len(re.findall(r"^\|---", found, re.MULTILINE)) > 0
        assert "in charts" not in found.lower()
        numbers = re.findall(r"<td>([^<]+)<", sections[title])
        assert numbers
        assert all(visible(number) in found for number in numbers), title


def test_a_space_before_what_is_in_bold_stays(tmp_path, monkeypatch):
    cell = Cell("DESC 2/3; ", False, [Cell("ENTY 1/3", True), Cell(" and more")])
    table = PlainTable("rows", "Rows", "Texts.", ["Row", "said"], [[Cell("1"), cell]], {1})
    for module in (markdown_report, latex_tables):
        monkeypatch.setattr(module, "plain_tables", lambda results: [table])
    write_markdown(make_results(), tmp_path / "report.md")
    write_latex(make_results(), tmp_path / "tables.tex")
    page, tables = ((tmp_path / name).read_text(encoding="utf-8") for name in ("report.md", "tables.tex"))
    assert "| 1 | DESC 2/3; **ENTY 1/3** and more |" in page
    assert "|---|---|\n" in page  # text is at the left
    assert r"1 & DESC 2/3; \textbf{ENTY 1/3} and more \\" in tables
    assert r"\begin{tabular}{ll}" in tables


def test_an_ablation_says_how_far_every_recipe_is_from_the_first_of_the_plan(results):
    if len(results.recipes) == 1:
        return
    base = results.recipes[0].label
    for analysis in results.analyses:
        for label in list(analysis.pretrained)[1:]:
            found, turned = difference_from(analysis, label, base), difference_from(analysis, base, label)
            apart = analysis.pretrained[label].mean - analysis.pretrained[base].mean
            assert found.difference == pytest.approx(apart)
            assert turned.difference == pytest.approx(-apart)
            if found.interval:
                assert found.interval[0] <= found.difference <= found.interval[1]
                assert turned.interval == pytest.approx((-found.interval[1], -found.interval[0]))
    (ablation,) = [table for table in plain_tables(results) if table.name == "ablation"]
    assert [row[0].text for row in ablation.rows] == [entry.label for entry in results.recipes]
    assert "±" in ablation.rows[0][1].text
    assert ablation.rows[1][1].text[0] in "+−"


def test_the_baseline_of_a_plan_is_the_base_of_its_ablation():
    results = make_results().model_copy(update={"baseline": "gpt-tiny"})
    (ablation,) = [table for table in plain_tables(results) if table.name == "ablation"]
    assert ablation.rows[0][0].text == "gpt-tiny"
    assert len(ablation.rows) == len(results.recipes)


def test_a_column_is_named_after_its_task_and_its_unit():
    results = make_results()
    first, *others = results.tasks
    renamed = f"words, {first.metric_title}"
    results = results.model_copy(
        update={
            "tasks": [first.model_copy(update={"name": renamed}), *others],
            "analyses": [
                each.model_copy(update={"task": renamed}) if each.task == first.name else each
                for each in results.analyses
            ],
            "finished_seeds": [0],
        }
    )
    tables = {table.name: table for table in plain_tables(results)}
    assert f"{renamed}, %" in tables["scores"].head
    assert f"{renamed}, points" in tables["ablation"].head
    assert tables["scores"].caption.startswith("Mean over 1 seed on test")
    # Without predictions of a baseline there is no difference from it, and no column.
    for each in results.analyses:
        paired = any(name.startswith(each.task) for name in tables["baseline"].head) if "baseline" in tables else False
        assert paired == bool(each.against_baseline)


def test_they_stand_beside_the_report(folder):  # noqa: F811
    compare(plan(folder, seeds=1), folder / "out", engine=FakeEngine())
    assert "| one |" in (folder / "out" / "report.md").read_text()
    assert r"\toprule" in (folder / "out" / "tables.tex").read_text()
    listed = (folder / "out" / "bakeoff.sha256").read_text()
    assert "report.md" in listed
    assert "tables.tex" in listed


def test_differences_beyond_the_noise_are_in_bold_however_small(tmp_path):
    """As on the page, where a gain that is within the plan's margin is in bold, too."""
    results = make_results()
    (first, *others) = results.analyses
    small = {"real": True, "margin": 0.5, "verdict": "equivalent"}
    gains = {label: gain.model_copy(update=small) for label, gain in first.gains.items()}
    pairs = [pair.model_copy(update=small) for pair in first.pairs]
    changed = first.model_copy(update={"gains": gains, "pairs": pairs})
    tables = {each.name: each for each in plain_tables(results.model_copy(update={"analyses": [changed, *others]}))}
    assert all(row[2].strong for row in tables["gains"].rows)
    assert all(row[1].strong for row in tables["ablation"].rows[1:])


def test_captions_speak_of_what_is_there():
    named = ("scores", "gains", "ablation", "baseline")
    (scores, *others) = [table for table in plain_tables(make_results(seeds=1)) if table.name in named]
    assert "±" not in scores.caption
    assert "over 1 seed" in scores.caption
    assert others
    assert not any("interval" in table.caption or "bold" in table.caption for table in others)


@pytest.mark.parametrize(
    ("budget", "own", "shown"),
    [
        ("tokens=5M", {}, "5M tokens each"),
        ("epochs=1", {}, "1 epoch each"),
        ("epochs=1", {"bert": "epochs=3"}, "unequal budgets"),
        ("0", {"bert": "epochs=3", "albert": "epochs=1"}, "unequal budgets"),
    ],
)
def test_the_opening_has_the_budget_of_all(budget, own, shown, tmp_path):
    results = make_results(names=["bert", "albert"])
    facts = results.budget.model_copy(update={"text": budget, "own": own, "steps": {}})
    write_markdown(results.model_copy(update={"budget": facts}), tmp_path / "report.md")
    assert f", {shown}, " in (tmp_path / "report.md").read_text(encoding="utf-8").splitlines()[2]


def test_settings_of_a_fine_tuning_stand_in_one_line():
    results = make_results(names=["one", "two"])
    settings = {"freeze": "model", "learning_rate": [0.003, 0.01], "unshare": True}
    first = results.recipes[0].model_copy(update={"finetune": settings})
    told = cautions(results.model_copy(update={"recipes": [first, results.recipes[1]]}))
    assert any("“one” with freeze: model, learning_rate: [0.003, 0.01], unshare: true." in each for each in told)
