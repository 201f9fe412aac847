import csv
import json
import re
from xml.etree import ElementTree

import pytest
from report_pages import HOSTILE, Page, charts_of, page_of
from synthetic_results import as_errors, make_results

from bakeoff.comparison.comparable import comparable_losses
from bakeoff.comparison.facts import SameAnswer, StartFacts
from bakeoff.comparison.reporting import tables
from bakeoff.comparison.reporting.cautions import MOST, cautions
from bakeoff.comparison.reporting.cut_texts import CutTask
from bakeoff.comparison.reporting.findings import findings
from bakeoff.comparison.reporting.latex import write_latex
from bakeoff.comparison.reporting.markdown_report import write_markdown
from bakeoff.comparison.reporting.measures import ShownMetric
from bakeoff.comparison.reporting.report import write_report
from bakeoff.comparison.reporting.terminal import print_results
from bakeoff.comparison.results import Failure, Results
from bakeoff.comparison.results_csv import write_csv
from bakeoff.display.text import visible
from bakeoff.display.wording import duration, listed, memory, p_value, percent, points, quantity, quoted
from bakeoff.errors import UserError
from bakeoff.objectives.held_out import what_differs
from bakeoff.tasks.cut_rows import CutRows

SHAPES = {"svg", "g", "path", "text", "line", "rect", "defs", "clipPath", "linearGradient", "stop"}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(make_results(names=HOSTILE, rows=300), path)
    return path


def test_one_file_that_loads_nothing(written):
    html = written.read_text(encoding="utf-8")
    page = Page(html)
    assert page.loads == []
    assert not re.search(r"@import|url\(", re.search(r"<style>(.*?)</style>", html, re.DOTALL)[1])
    assert "default-src 'none'" in html
    assert "link" not in page.tags
    assert "iframe" not in page.tags
    assert "img" not in page.tags


def test_one_bundle_for_all_charts(written):
    page = Page(written.read_text(encoding="utf-8"))
    _, bundle, draw = page.scripts
    assert sum(len(script) > 500_000 for script in page.scripts) == 1
    assert "window.vegaEmbed" in bundle
    assert "vegaEmbed(" in draw
    drawn = charts_of(page)
    assert len(drawn) == 2 * 5 + 2 + 2 * 4 + 2
    assert all("$schema" not in chart for chart in drawn.values())
    assert written.stat().st_size < 2_000_000


def test_labels_are_text_and_not_markup(written):
    html = written.read_text(encoding="utf-8")
    page = Page(html)
    drawn = json.dumps(json.loads(page.scripts[0]), ensure_ascii=False)
    for label in map(visible, HOSTILE):
        assert label in page.text
        assert json.dumps(label, ensure_ascii=False) in drawn
    assert html.count("alert(1)</script>") == 0
    assert page.tags.count("script") == 3
    assert page.tags.count("b") == html.split("<script")[0].count("<b>")


def test_figures_beside_it(written):
    folder = written.parent / "figures"
    assert len(list(folder.glob("*.svg"))) == len(list(folder.glob("*.png"))) == 2 * 5 + 2 + 2 * 4 + 2
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in folder.glob("*.png"))
    for file in folder.glob("*.svg"):
        assert {element.tag.rpartition("}")[2] for element in ElementTree.parse(file).iter()} <= SHAPES


def ends_of_axes(node):
    """The numeric ends of all scales of a chart."""
    if isinstance(node, dict):
        domain = node.get("domain")
        if isinstance(domain, list) and all(isinstance(each, int | float) for each in domain):
            yield domain
        for each in node.values():
            yield from ends_of_axes(each)
    elif isinstance(node, list):
        for each in node:
            yield from ends_of_axes(each)


def test_no_axis_begins_where_no_value_can_be(tmp_path):
    """Neither losses, shares of rows, times nor numbers of parameters are negative, nor is a share above 100 %."""
    results = make_results(depths=[6.8, 0.02, 6.8, 2.2], tasks=("T",))
    (analysis,) = results.analyses
    near = {"gpt-tiny": 0.001, "bert-mini": 0.999}
    spreads = {
        label: spread.model_copy(
            update={"mean": near[label], "seeds": dict.fromkeys(spread.seeds, near[label]), "interval": (-0.2, 1.2)}
        )
        if label in near
        else spread
        for label, spread in analysis.pretrained.items()
    }
    results = results.model_copy(update={"analyses": [analysis.model_copy(update={"pretrained": spreads})]})
    drawn = json.loads(page_of(results, tmp_path).scripts[0])
    ends = {name: list(ends_of_axes(chart)) for name, chart in drawn.items()}
    assert all(ends.values()), ends
    assert all(low >= 0 for axes in ends.values() for low, _ in axes)
    assert ends["layers-cosine_similarity"][-1][1] <= 1
    assert [0, 100] in ends["scores-1"]
    assert [0, 100] in ends["pareto-1-latency"]


def test_a_clear_winner():
    results = make_results()
    found = findings(results)
    assert found.headline == (
        "conv-light-encoder-tiny is the best of all 4 recipes on both tasks, and the difference is real. On SST-2 and "
        "TREC the best recipe is ahead of TF-IDF with logistic regression, beyond the noise (by 12.1 and 8.6 points)."
    )
    assert any(line.startswith("Pre-training raises") for line in found.details)
    assert any(line.startswith("Pre-training lowers the accuracy of albert-tiny") for line in found.details)


def test_nothing_is_claimed_from_two_seeds():
    results = make_results(seeds=2)
    found = findings(results)
    assert found.headline.startswith("Nothing can be claimed yet: 2 seeds cannot show whether a difference is real.")
    assert not any("beyond the noise" in line for line in [found.headline, *found.details])
    assert any("not finished: 2 of 3 seeds" in line for line in cautions(results))


def test_equal_recipes_have_no_winner():
    results = make_results(names=["bert-mini", "gpt-tiny"], tasks=("SST-2",), rows=200)
    equal = results.analyses[0].pairs[0].model_copy(update={"real": False, "difference": 0.001})
    results = results.model_copy(update={"analyses": [results.analyses[0].model_copy(update={"pairs": [equal]})]})
    found = findings(results)
    assert found.headline.startswith("No winner: the difference between the two recipes is within the noise.")
    assert "cannot be told apart from it" in found.details[0]


def test_winner_on_one_task_only():
    results = make_results()
    last = results.analyses[1]
    undecided = last.model_copy(update={"pairs": [pair.model_copy(update={"real": False}) for pair in last.pairs]})
    found = findings(results.model_copy(update={"analyses": [results.analyses[0], undecided]}))
    told = "conv-light-encoder-tiny is best on SST-2; on TREC the leaders cannot be told apart."
    assert found.headline.startswith(told)


def test_beside_a_winner_the_leaders_of_each_other_task_are_what_they_are_shown_to_be():
    results = make_results(tasks=("SST-2", "TREC", "CoLA"))
    changed = [results.analyses[0]]
    for analysis, verdict in zip(results.analyses[1:], ("equivalent", "undecided"), strict=True):
        word = {"verdict": verdict, "real": False, "margin": 0.5}
        changed.append(analysis.model_copy(update={"pairs": [pair.model_copy(update=word) for pair in analysis.pairs]}))
    told = "best on SST-2; on TREC the leaders are equivalent, on CoLA they cannot be told apart."
    headline = findings(results.model_copy(update={"analyses": changed})).headline
    assert headline.startswith(f"conv-light-encoder-tiny is {told}")


@pytest.mark.parametrize(
    ("verdicts", "told"),
    [
        ("uu", "No winner: on each task, the leaders cannot be told apart."),
        ("ee", "No winner: on each task, the leaders are equivalent."),
        ("eu", "No winner: on SST-2 the leaders are equivalent, on TREC they cannot be told apart."),
    ],
)
def test_without_a_winner_the_leaders_of_each_task_are_what_they_are_shown_to_be(verdicts, told):
    """Where a recipe lacks a measure, which has no common list of leaders."""
    results = make_results()
    changed = []
    for analysis, verdict in zip(results.analyses, verdicts, strict=True):
        word = {"verdict": "equivalent" if verdict == "e" else "undecided", "real": False, "margin": 0.5}
        changed.append(analysis.model_copy(update={"pairs": [pair.model_copy(update=word) for pair in analysis.pairs]}))
    gone = "albert-tiny"
    pairs = [pair for pair in changed[1].pairs if gone not in (pair.first, pair.second)]
    kept = {label: each for label, each in changed[1].pretrained.items() if label != gone}
    changed[1] = changed[1].model_copy(update={"pairs": pairs, "pretrained": kept})
    assert findings(results.model_copy(update={"analyses": changed})).headline.startswith(told)


@pytest.mark.parametrize(
    ("share", "told"), [({"mlm": 0.96, "clm": 0.5}, True), ({"mlm": 0.94, "clm": 0.94}, False), ({"nsp": 2.0}, False)]
)
def test_one_of_several_objectives_that_has_learned_no_more_than_frequencies_is_told(share, told):
    """The loss of whether two sentences follow each other has nothing to do with frequencies."""
    results = make_results(names=["bert-mini"], tasks=("T",), seeds=1)
    (entry,) = results.recipes
    (run,) = entry.runs
    losses = {name: factor * run.unigram_entropy for name, factor in share.items()}
    last = run.curve[-1].model_copy(update={"losses": losses})
    changed = entry.model_copy(update={"runs": [run.model_copy(update={"curve": [*run.curve[:-1], last]})]})
    found = " ".join(cautions(results.model_copy(update={"recipes": [changed]})))
    assert ("Pre-training ended above the unigram entropy" in found) == told


def test_one_recipe_alone(tmp_path):
    results = make_results(names=["bert-mini"], tasks=("SST-2",), scratch=False, rows=100)
    assert findings(results).headline.startswith("Only bert-mini was measured")
    text = page_of(results, tmp_path).text
    assert "from scratch" not in text.split("How it was measured")[0].split("Recipe")[1].split("Most frequent")[0]


def test_tasks_with_few_test_rows_are_told():
    (told,) = (line for line in cautions(make_results(tasks=("T",), rows=19)) if line.startswith("Few test rows"))
    assert told.startswith("Few test rows: “T” has 19. ")
    assert not any("Few test rows" in line for line in cautions(make_results(tasks=("T",), rows=20)))


def test_cautions():
    found = "\n".join(cautions(make_results()))
    assert "above the unigram entropy, or less than 5 % below it, for albert-tiny (seeds 0, 1 and 2)" in found
    assert "bert-mini (seed" not in found
    assert "No gain from pre-training" not in found  # pre-training harms it, which the answer says
    assert sum("lowers the accuracy of albert-tiny" in each for each in findings(make_results()).details) == 2
    results = make_results()
    changed = [
        each.model_copy(
            update={
                "gains": {**each.gains, "albert-tiny": each.gains["albert-tiny"].model_copy(update={"real": False})}
            }
        )
        for each in results.analyses
    ]
    found = "\n".join(cautions(results.model_copy(update={"analyses": changed})))
    assert "No gain from pre-training could be shown for albert-tiny on SST-2 and TREC." in found
    assert "TF-IDF" not in found
    worthless = "no recipe compared here is worth its cost on SST-2 and TREC"
    assert worthless in cautions(make_results(baseline=0.97))[0]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("seeds", "above", "words"),
    [
        (3, 0.1, "10.0 points ahead of the best recipe, conv-light-encoder-tiny ({mean} %), beyond the noise (95 %"),
        (3, 0.002, "0.2 points ahead of the best recipe, conv-light-encoder-tiny ({mean} %), within the noise (95 %"),
        (3, 0, "level with the best recipe, conv-light-encoder-tiny ({mean} %), within the noise (95 %"),
        (3, -0.002, "0.2 points behind the best recipe, conv-light-encoder-tiny ({mean} %), within the noise (95 %"),
        (3, -0.1, "10.0 points behind the best recipe, conv-light-encoder-tiny ({mean} %), beyond the noise (95 %"),
        (1, 0.1, "10.0 points ahead of the best recipe, conv-light-encoder-tiny ({mean} %); how much of that is noise"),
        (1, -0.1, "10.0 points behind the best recipe, conv-light-encoder-tiny ({mean} %); how much of that is noise"),
    ],
)
def test_the_headline_has_the_baseline_with_its_distance_and_its_noise(seeds, above, words, turned):
    """Also of a metric of which less is better."""
    best = make_results(seeds=seeds, tasks=("SST-2",)).analyses[0].pretrained["conv-light-encoder-tiny"].mean
    results = make_results(seeds=seeds, tasks=("SST-2",), baseline=best + above)
    told = f"TF-IDF with logistic regression ({100 * (best + above):.1f} %) is "
    if turned:
        results = as_errors(results, "SST-2")
        words = words.replace("10.0 points", "0.150").replace("0.2 points", "0.003").replace("{mean} %", "{mean}")
        told, best = f"TF-IDF with ridge regression ({1.5 * (1 - best - above):.3f}) is ", 0.015 * (1 - best)
    shown = f"{100 * best:.3f}" if turned else f"{100 * best:.1f}"
    headline = findings(results).headline
    assert told + words.format(mean=shown) in headline
    first = headline.startswith("TF-IDF")
    assert first == (above > 0.01)  # what a reader has to know first
    told = "".join(cautions(results))
    assert ("worth its cost" in told) == (seeds > 2 and above > 0.01)  # which noise alone is no reason to say
    assert ("It has not been shown that any recipe" in told) == (abs(above) < 0.01 or (seeds < 3 and above > 0))


def test_the_interval_of_a_distance_is_that_of_the_mean():
    results = make_results(tasks=("SST-2",), baseline=0.97)
    spread = results.analyses[0].pretrained["conv-light-encoder-tiny"]
    low, high = (100 * (0.97 - each) for each in reversed(spread.interval))
    assert f"(95 % interval {low:+.1f} to {high:+.1f} points)" in findings(results).headline
    below = make_results(tasks=("SST-2",), baseline=0.5)
    low, high = (100 * (each - 0.51) for each in spread.interval)  # the answer without a model is the better baseline
    headline = findings(below).headline
    assert "What needs no model (“most frequent class”) (51.0 %) is" in headline
    assert f"(95 % interval {low:+.1f} to {high:+.1f} points)" in headline
    wide = {
        label: each.model_copy(update={"interval": (-5.0, 6.5)}) for label, each in below.analyses[0].pretrained.items()
    }
    analysis = below.analyses[0].model_copy(update={"pretrained": wide})
    few = findings(below.model_copy(update={"analyses": [analysis]})).headline
    assert "within the noise (95 % interval −51.0 to +49.0 points)" in few  # no accuracy is below 0 or above 100


def test_baselines_of_several_tasks_are_one_sentence_and_each_has_a_detail():
    results = make_results()
    baselines = [
        baseline.model_copy(update={"test": {"accuracy": 0.97 if baseline.task == "TREC" else 0.5}})
        for baseline in results.baselines
    ]
    found = findings(results.model_copy(update={"baselines": baselines}))
    first = "On TREC TF-IDF with logistic regression is ahead of the best recipe, beyond the noise (by"
    assert found.headline.startswith(first)
    second = "; on SST-2 the best recipe is ahead of TF-IDF with logistic regression, beyond the noise (by"
    assert second in found.headline
    assert sum("the best recipe, conv-light-encoder-tiny (" in line for line in found.details) == 2
    few = make_results(seeds=1)
    best = few.analyses[0].pretrained["conv-light-encoder-tiny"].mean
    baselines = [
        baseline.model_copy(update={"test": {"accuracy": best if baseline.task == "SST-2" else 0.99}})
        for baseline in few.baselines
    ]
    told = findings(few.model_copy(update={"baselines": baselines})).headline
    assert "On SST-2 the best recipe cannot be told apart from TF-IDF with logistic regression; " in told
    assert "; on TREC TF-IDF with logistic regression is ahead of the best recipe (by " in told
    none = findings(results.model_copy(update={"baselines": []}))
    assert none.headline.endswith("and the difference is real.")
    assert not any("neural" in line for line in [*none.details, none.headline])


def test_labels_that_are_words_stand_in_quotation_marks():
    results = make_results(names=["published, as it is", "the", "gpt-tiny", "a and b"], tasks=("word order", "TREC"))
    failure = Failure(recipe="the worst", seed=1, training="pre-training the worst", message="infinite")
    start = {"source": "runs/bert", "run": "r", "origin": None, "steps": 5, "weights": "0", "tensors": 3, "of": 3}
    entries = [
        entry.model_copy(update={"starts": dict.fromkeys(range(3), StartFacts(**start, fresh=[]))})
        if entry.label == "the"
        else entry
        for entry in results.recipes
    ]
    results = results.model_copy(update={"failures": [failure], "recipes": entries})
    found = findings(results)
    text = " ".join([found.headline, *found.details, *cautions(results)])
    assert "“published, as it is”" in text
    assert "“the” starts from runs/bert" in text
    for label in ("published, as it is", "a and b", "word order", "the worst ("):
        assert text.count(label) == text.count(f"“{label}".removesuffix(" (")) or label.endswith("(")
    assert "“gpt-tiny”" not in text
    assert "“TREC”" not in text


def test_cautions_are_one_for_each_kind_and_the_first_five_stand_at_the_top(tmp_path):
    names = [f"albert-{number}" for number in range(8)]
    results = make_results(
        names=names, seeds=2, tasks=("one-1", "two-2", "three-3"), rows=100, baseline=0.99, depths=[0.02] * 4
    )
    lost = [Failure(recipe=f"lost-{n}", seed=0, training="pre-training", message="infinite") for n in range(3)]
    tasks = [task.model_copy(update={"notes": [f"a note on {task.name}", "another"]}) for task in results.tasks]
    results = results.model_copy(update={"failures": lost, "tasks": tasks})
    told = cautions(results)
    assert MOST == 5 < len(told) < 10
    assert told[0].startswith("The comparison is not finished")
    assert all(name in " ".join(told) for name in [*names, "lost-0", "lost-2", "a note on one-1", "a note on three-3"])
    write_report(results, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    top, _, rest = page.partition('class="cautions"')[2].partition("<details>")
    assert top.count("<li>") == MOST
    assert rest.partition("</details>")[0].count("<li>") == len(told) - MOST


def test_targets_that_were_cut_are_not_said_to_be_longer_than_rows():
    cut = CutRows(length=64, longest=20, rows=53, of_rows=60, tokens=291, of_tokens=1000)
    assert CutTask("titles", ["t5-tiny"], True, {"test": cut}).sentence(("test",)) == (
        "on “titles”, rows of 64 tokens with targets of at most 20 leave out a part of 53 of the 60 test rows (29.1 % "
        "of their tokens)"
    )


def test_cut_texts_are_told_for_each_task_and_recipe(results, tmp_path):

    def cut(length, rows, tokens):
        return CutRows(length=length, rows=rows, of_rows=800, tokens=tokens, of_tokens=10_000)

    entries = []
    for entry in results.recipes:
        length, rows, tokens = (64, 3, 5) if entry.label == "gpt-tiny" else (32, 317, 2310)
        own = {"train": cut(length, 0, 0), "dev": cut(length, 0, 0), "test": cut(length, rows, tokens)}
        scores = [s.model_copy(update={"cut": own}) if s.task == "TREC" else s for s in entry.scores]
        entries.append(entry.model_copy(update={"scores": scores}))
    results = results.model_copy(update={"recipes": entries})
    (told,) = (line for line in cautions(results) if line.startswith("Texts were cut."))
    assert told == (
        "Texts were cut. On TREC, rows of 32 tokens for bert-mini, albert-tiny and conv-light-encoder-tiny leave out a "
        "part of 317 of the 800 test rows (23.1 % of their tokens); on TREC, rows of 64 tokens for gpt-tiny leave out "
        "a part of 3 of the 800 test rows (less than 0.1 % of their tokens)."
    )
    assert "Not read: On TREC, rows of 32 tokens for" in page_of(results, tmp_path).text
    write_csv(results, tmp_path / "results.csv")
    with open(tmp_path / "results.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {
        (row["task"], row["recipe"] == "gpt-tiny", row["test_rows_cut"], row["test_tokens_cut"]) for row in rows
    } == {
        ("TREC", True, "3", "5"),
        ("TREC", False, "317", "2310"),
        ("SST-2", True, "", ""),
        ("SST-2", False, "", ""),
    }


def test_a_pretraining_that_did_not_arrive_is_said():
    results = make_results(names=["bert-mini"], rows=100)
    entry = results.recipes[0]
    scores = [score.model_copy(update={"transferred_tensors": 0}) for score in entry.scores]
    results = results.model_copy(update={"recipes": [entry.model_copy(update={"scores": scores})]})
    assert any("No tensor of bert-mini was taken over" in line for line in cautions(results))


def test_errors_are_ranked_and_told_the_other_way_round():
    """What is said of errors is what was said of accuracies, with other numbers."""
    before = make_results(tasks=("STS-B",))
    after = as_errors(before, "STS-B")
    assert findings(after).headline.partition(" TF-IDF")[0] == findings(before).headline.partition(" TF-IDF")[0]
    best, gain, harm = findings(after).details
    mean, size = after.analyses[0].pretrained["conv-light-encoder-tiny"].mean, -after.analyses[0].pairs[0].difference
    lead = f"On STS-B, conv-light-encoder-tiny is best with {mean:.3f} (mean absolute error), {size:.3f} ahead of bert"
    assert best.startswith(lead)
    low, high = after.analyses[0].pairs[0].interval
    assert best.endswith(f"(95 % interval {-high:+.3f} to {-low:+.3f}).")
    assert gain.startswith("Pre-training lowers the mean absolute error of bert-mini, conv-light-encoder-tiny and gpt")
    assert harm.startswith("Pre-training raises the mean absolute error of albert-tiny on STS-B by 0.")
    assert cautions(after) == cautions(before)


def test_a_report_of_several_kinds(tmp_path):
    results = as_errors(make_results(rows=300), "TREC")
    page = page_of(results, tmp_path)
    assert "SST-2accuracy, %" in page.text
    assert "TRECmean absolute error (less is better)" in page.text
    assert "Without a model51.0most frequent class0.735mean of train" in page.text
    assert "Without a neural network78.0TF-IDF with logistic regression0.330TF-IDF with ridge regression" in page.text
    assert "regression; 2,000 train, 400 dev, 300 test rows; train train.tsv" in page.text
    charts = {name: chart for name, chart in json.loads(page.scripts[0]).items() if "absolute" in json.dumps(chart)}
    (dots,) = (chart for name, chart in charts.items() if name.startswith("scores"))
    mean = results.analyses[1].pretrained["bert-mini"].mean
    (drawn,) = (
        row["x"]
        for row in dots["layer"][1]["data"]["values"]
        if (row["recipe"], row["kind"]) == ("bert-mini", "pre-trained")
    )
    assert drawn == pytest.approx(mean)
    order = next(layer["encoding"]["y"]["sort"] for layer in dots["layer"] if "sort" in layer["encoding"]["y"])
    assert (order[0], order[-1]) == ("conv-light-encoder-tiny", "albert-tiny")
    values = [row["x"] for layer in dots["layer"] for row in layer["data"]["values"] if "x" in row]
    named = [layer for layer in dots["layer"] if layer["mark"]["type"] == "text"]
    assert named
    for layer in named:  # a name on the right half stands before its line, so that it is not cut
        (line,) = layer["data"]["values"]
        assert (layer["mark"]["align"] == "right") == (line["x"] > (min(values) + max(values)) / 2)
    table = page.text.split("Recipe")[1]
    assert table.index("conv-light-encoder-tiny") < table.index("bert-mini") < table.index("albert-tiny")


def test_where_nothing_can_be_claimed_of_a_task_the_report_says_why():
    results = make_results(tasks=("SST-2",))
    unknown = {"p": None, "adjusted_p": None, "real": None, "interval": None}
    (analysis,) = results.analyses
    changes = {"pairs": [pair.model_copy(update=unknown) for pair in analysis.pairs]}
    changes["gains"] = {label: gain.model_copy(update=unknown) for label, gain in analysis.gains.items()}
    results = results.model_copy(update={"analyses": [analysis.model_copy(update=changes)]})
    assert any("On SST-2 no difference is called real: how much chance is in the 800" in x for x in cautions(results))
    assert findings(results).headline.startswith("No winner")
    assert not any("called real" in line for line in cautions(make_results()))


@pytest.mark.parametrize("largest", [0.0, 0.0123, 0.75, 4.2, 23.4, 1234.0])
def test_scales_of_their_own_have_three_digits(largest):
    facts = as_errors(make_results(rows=50), "TREC").tasks[1]
    shown = ShownMetric(facts, largest).value(largest)
    assert shown == {0.0: "0.00", 0.0123: "0.0123", 0.75: "0.750", 4.2: "4.20", 23.4: "23.4", 1234.0: "1,234"}[largest]


@pytest.mark.parametrize(
    ("half", "shown"),
    [
        (0.0, "2.21"),
        (0.3, "2.21"),
        (0.0354, "2.205"),
        (0.0356, "2.21"),
        (0.0045, "2.205"),
        (0.0012, "2.2053"),
        (1e-9, "2.205313"),
    ],
)
def test_scales_of_their_own_have_the_decimals_of_their_intervals(half, shown):
    facts = as_errors(make_results(rows=50), "TREC").tasks[1]
    assert ShownMetric(facts, 2.2053126, half).value(2.2053126) == shown
    assert ShownMetric(make_results(rows=50).tasks[0], 0.8, half).value(0.8123) == "81.2"


def test_the_narrowest_interval_of_a_task_sets_the_decimals_everywhere(tmp_path, capsys):
    """On the page, in Markdown, in LaTeX and on the console alike, of means and of differences."""
    results = as_errors(make_results(rows=50), "TREC", scale=20)
    narrow = [
        pair.model_copy(update={"interval": (pair.difference - 0.0021, pair.difference + 0.0021)})
        for pair in next(each for each in results.analyses if each.task == "TREC").pairs
    ]
    analyses = [each.model_copy(update={"pairs": narrow} if each.task == "TREC" else {}) for each in results.analyses]
    results = results.model_copy(update={"analyses": analyses})
    measure = ShownMetric.of(results, "TREC")
    assert (measure.decimals, ShownMetric(measure.task, measure.largest).decimals) == (4, 2)
    best = next(each for each in analyses if each.task == "TREC").pretrained["bert-mini"]
    print_results(results, tmp_path)
    write_report(results, tmp_path / "report.html")
    write_markdown(results, tmp_path / "report.md")
    write_latex(results, tmp_path / "tables.tex")
    shown = [capsys.readouterr().out, *((tmp_path / name).read_text("utf-8") for name in ("report.html", "report.md"))]
    for text in (*shown, (tmp_path / "tables.tex").read_text("utf-8")):
        assert f"{best.mean:.4f}" in text
        assert f"{best.mean:.5f}" not in text


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"unit": "%"}, (0.0, 1.0)),
        ({"unit": "× 100"}, (-1.0, 1.0)),
        ({"unit": "", "lower_is_better": True}, (0.0, 7.0)),
        ({"unit": ""}, (-7.0, 7.0)),
    ],
)
def test_intervals_are_cut_at_what_values_can_be(changes, expected):
    facts = make_results(rows=50).tasks[0].model_copy(update=changes)
    assert ShownMetric(facts).cut((-7.0, 7.0)) == expected
    assert ShownMetric(facts).cut((0.2, 0.3)) == (0.2, 0.3)


@pytest.mark.parametrize(
    ("count", "scratch", "expected"), [(3, True, [3]), (4, True, [2, 2]), (7, True, [2, 3, 2]), (6, False, [6])]
)
def test_scores_of_many_tasks_are_in_several_tables(count, scratch, expected):
    names = [f"task {number}" for number in range(count)]
    html = tables.scores(make_results(names=["a", "b"], tasks=names, rows=50, scratch=scratch))
    parts = html.split("<table>")[1:]
    assert [sum(f"{name}<br>" in part for name in names) for part in parts] == expected
    assert "".join(names) == "".join(name for part in parts for name in names if f"{name}<br>" in part)
    assert all(part.index("<tr><th>a") < part.index("<tr><th>b") for part in parts) or all(
        part.index("<tr><th>a") > part.index("<tr><th>b") for part in parts
    )


@pytest.mark.parametrize(("metric", "unit"), [("accuracy", "%"), ("matthews", "× 100")])
def test_results_from_before_there_were_other_kinds_are_read(tmp_path, metric, unit):
    results = make_results(rows=50)
    results.write_json(tmp_path / "results.json")
    found = json.loads((tmp_path / "results.json").read_text())
    for task in found["tasks"]:
        for key in ("kind", "metric_title", "unit", "lower_is_better"):
            del task[key]
        task["metric"] = metric
    for baseline in found["baselines"]:
        del baseline["name"]
        baseline["kind"] = {"simplest": "majority", "learned": "tfidf_logistic_regression"}[baseline["kind"]]
    found["floors"] = found.pop("baselines")
    (tmp_path / "results.json").write_text(json.dumps(found))
    read = Results.read(tmp_path / "results.json")
    assert read.baselines == results.baselines
    assert {(task.kind, task.unit, task.lower_is_better) for task in read.tasks} == {("classification", unit, False)}


def test_losses_share_a_panel_only_if_they_compare(results):
    found = {panel.title: [entry.label for entry in panel.entries] for panel in comparable_losses(results)}
    assert found["Masked tokens (mlm), ngram 1"] == ["bert-mini", "conv-light-encoder-tiny"]
    assert found["Masked tokens (mlm), ngram 3"] == ["albert-tiny"]
    assert found["Next token (clm)"] == ["gpt-tiny"]
    assert {panel.unit for panel in comparable_losses(results) if panel.objective == "clm"} == {"bits per byte"}


@pytest.mark.parametrize(
    ("own", "other", "words"),
    [
        ({"rate": 0.3, "map_bias": True}, {"rate": 0.3, "map_bias": False}, ["with map bias"]),
        ({"rate": 0.3, "map_bias": False}, {"rate": 0.15, "map_bias": True}, ["rate 0.3", "without map bias"]),
        ({"first_rate": None, "map_bias": True}, {"first_rate": 0.3, "map_bias": True}, ["without first rate"]),
        ({"first_rate": 0.3}, {}, ["first rate 0.3"]),
        ({"generator": {"width": 64, "layers": 2}}, {"generator": {"width": 32, "layers": 2}}, ["generator width 64"]),
        ({"spans": [1, 2]}, {"spans": [1]}, ["spans 1, 2"]),
        ({"rate": 0.3}, {"rate": 0.3}, []),
    ],
)
def test_panels_of_one_objective_are_told_apart_by_what_differs_alone(own, other, words):
    assert what_differs(own, [own, other]) == what_differs(own, [other, own, other]) == words


@pytest.mark.parametrize("training", [{"first_rate": 0.3}, {"masking": "static", "copies": 10}, {"weight": 2.0}])
def test_losses_compare_by_what_held_out_text_hides(training, results):
    """Whatever is hidden in training."""
    rates = {"bert-mini": {"rate": 0.3, "held_out_rate": 0.15}, "conv-light-encoder-tiny": training}
    for entry in results.recipes:
        if entry.label in rates:
            entry.recipe["objective"][0] |= rates[entry.label]
    together = [[each.label for each in panel.entries] for panel in comparable_losses(results)]
    assert ["bert-mini", "conv-light-encoder-tiny"] in together


def test_results_survive_their_file(results, tmp_path):
    results.write_json(tmp_path / "results.json")
    assert Results.read(tmp_path / "results.json") == results
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(UserError, match="not the results of a comparison"):
        Results.read(tmp_path / "other.json")
    with pytest.raises(UserError, match="No such file"):
        Results.read(tmp_path / "none.json")


def test_csv_is_tidy(results, tmp_path):
    write_csv(results, tmp_path / "results.csv")
    lines = (tmp_path / "results.csv").read_text().splitlines()
    assert len(lines) == 1 + 4 * 3 * 2 * 2
    assert lines[0].startswith("recipe,seed,task,finetune_seed,initialisation,")
    assert len({len(line.split(",")) for line in lines}) == 1
    cells = list(csv.DictReader(lines))
    assert {(row["recipe"], row["latency_seconds"]) for row in cells if row["initialisation"] == "pretrained"} == {
        (each.recipe, str(each.seconds)) for each in results.latencies
    }
    assert {row["latency_seconds"] for row in cells if row["initialisation"] == "scratch"} == {""}
    assert not list(tmp_path.glob("*.partial"))


@pytest.mark.parametrize("name", ["bert-mini", "gpt2", "SST-2", "TREC", "runs/bert", "a_b", "owner/name@main", "BoW"])
def test_names_that_no_sentence_could_have_stand_alone(name):
    assert quoted(name) == name


@pytest.mark.parametrize(
    "name", ["published, as it is", "the", "A", "word order", "Mine", "bert-mini, tuned", "x-", ""]
)
def test_names_that_a_sentence_could_have_are_quoted(name):
    assert quoted(name) == f"“{name}”"


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (percent(0.81234), "81.2"),
        (percent(-0.05), "−5.0"),
        (points(0.0312), "+3.1"),
        (points(-0.0312), "−3.1"),
        (quantity(12_345_678), "12.3 M"),
        (quantity(999_960), "1.0 M"),
        (quantity(110e6), "110 M"),
        (quantity(512), "512"),
        (memory(None), "not measured"),
        (memory(3 * 2**30), "3.0 GiB"),
        (duration(90), "90 s"),
        (duration(600), "10.0 min"),
        (duration(9000), "2.5 h"),
        (p_value(0.0001), "< 0.001"),
        (p_value(0.0312), "0.031"),
        (listed(["a", "b", "c"]), "a, b and c"),
        (listed([]), ""),
    ],
)
def test_numbers_as_a_reader_wants_them(made, expected):
    assert made == expected


def with_pairs(results, verdicts, task=0):
    """The results with other verdicts on the differences between the best recipe and the others, by label."""
    analysis = results.analyses[task]
    pairs = [pair.model_copy(update={"real": verdicts.get(pair.second, pair.real)}) for pair in analysis.pairs]
    analyses = [
        analysis.model_copy(update={"pairs": pairs}) if i == task else a for i, a in enumerate(results.analyses)
    ]
    return results.model_copy(update={"analyses": analyses})


@pytest.mark.parametrize("verdicts", [(True, False, True), (False, True, False), (True, True, False), (False,) * 3])
def test_of_two_means_the_lower_is_not_marked_alone(verdicts):
    """A recipe with much noise may not be told apart from the best although one above it is."""
    results = make_results(tasks=("SST-2",))
    measure, analysis = ShownMetric.of(results, "SST-2"), results.analyses[0]
    order = measure.ranked(analysis)
    results = with_pairs(results, dict(zip(order[1:], verdicts, strict=True)))
    bold = tables.leaders(measure, results.analyses[0])
    marked = [label in bold for label in order]
    assert marked == sorted(marked, reverse=True)
    assert marked == [True, *(not any(verdicts[: i + 1]) for i in range(3))]
    headline = findings(results).headline
    led = [label for label in order if f"“{label}”" in headline or label in headline]
    if headline.startswith("No single winner") and len(bold) > 1:
        assert set(led) >= bold
    for label in set(order) - bold:
        assert f"{label} lead" not in headline


@pytest.mark.parametrize(
    ("by", "words"),
    [(0.0, "level with"), (0.0004, "less than 0.1 points ahead of"), (0.0006, "0.1 points ahead of")],
)
def test_no_difference_is_zero_points(by, words):
    results = make_results(names=["bert-mini", "gpt-tiny"], tasks=("SST-2",), seeds=2)
    pair = results.analyses[0].pairs[0].model_copy(update={"difference": by})
    analysis = results.analyses[0].model_copy(update={"pairs": [pair]})
    told = findings(results.model_copy(update={"analyses": [analysis], "baselines": []})).details[0]
    assert f", {words} " in told
    assert "0.0 points" not in told


def test_gains_have_their_intervals_on_the_page():
    results = make_results(tasks=("SST-2",))
    gain = results.analyses[0].gains["bert-mini"]
    low, high = map(points, gain.interval)
    assert f"<small>{low} to {high}</small>" in tables.scores(results)
    few = make_results(tasks=("SST-2",), seeds=2)
    assert " to " not in tables.scores(few)


def test_the_table_of_results_has_the_held_out_losses(tmp_path):
    results = make_results(tasks=("SST-2",))
    write_csv(results, tmp_path / "results.csv")
    with open(tmp_path / "results.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        entry = next(each for each in results.recipes if each.label == row["recipe"])
        last = entry.runs[int(row["seed"])].curve[-1]
        for name in ("mlm", "nsp", "sop", "clm"):
            wanted = last.losses.get(name) if row["initialisation"] == "pretrained" else None
            assert row[f"held_out_loss_{name}"] == ("" if wanted is None else str(wanted))
        bits = last.bits_per_byte.get("clm") if row["initialisation"] == "pretrained" else None
        assert row["bits_per_byte_clm"] == ("" if bits is None else str(bits))
        assert row["held_out_loss"] == ""  # results of older versions, whose runs do not have it


def test_models_with_one_answer_are_told():
    results = make_results(tasks=("SST-2", "TREC"))
    same = [
        SameAnswer(recipe="bert-mini", seed=seed, initialisation=start, answer=answer)
        for seed, start, answer in ((0, "pretrained", "yes"), (2, "pretrained", "yes"), (1, "scratch", "no"))
    ]
    first = results.analyses[0].model_copy(update={"same_answers": same})
    results = results.model_copy(update={"analyses": [first, results.analyses[1]]})
    (told,) = (line for line in cautions(results) if line.startswith("The same answer"))
    assert "bert-mini on SST-2 (seeds 0 and 2: yes); bert-mini from scratch on SST-2 (seed 1: no)." in told
    assert cautions(results).index(told) < MOST


@pytest.mark.parametrize(
    ("scores", "fallen"),
    [
        ((0.71, 0.505, 0.72), True),
        ((0.71, 0.50, 0.72, 0.715), True),
        ((0.71, 0.69, 0.72), False),  # not down to what needs no model
        ((0.53, 0.50, 0.52), False),  # all of them are near it
        ((0.53, 0.50, 0.5305), False),  # what 1,000 rows make of chance
        ((0.475, 0.33, 0.48), False),  # the others are no better than what needs no model, either
        ((0.71, 0.505), False),  # two seeds do not say which is the odd one
        ((0.9, 0.505, 0.60), False),  # seeds that differ as much among themselves
    ],
)
def test_a_seed_that_fell_is_told(scores, fallen):
    results = make_results(names=["a-recipe", "other"], tasks=("SST-2",), seeds=len(scores), rows=1000)
    spread = results.analyses[0].pretrained["a-recipe"].model_copy(update={"seeds": dict(enumerate(scores))})
    changed = {**results.analyses[0].pretrained, "a-recipe": spread}
    results = results.model_copy(update={"analyses": [results.analyses[0].model_copy(update={"pretrained": changed})]})
    told = [line for line in cautions(results) if line.startswith("No better than what needs no model, unlike")]
    assert len(told) == fallen
    if fallen:
        assert f"a-recipe on SST-2 (seed 1: {100 * scores[1]:.1f} %, the others from 71.0 %)" in told[0]
