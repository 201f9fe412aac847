"""Every page that is written, read by an HTML parser: names are text, and the only programs are those of the page."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.comparison.synthetic_results import make_results
from tests.valid_charts import charts_in

from bakeoff.comparison.reporting.report import write_report
from bakeoff.comparison.results import Results
from bakeoff.display.text import visible
from bakeoff.inspection.layers import Kernels, Layer
from bakeoff.inspection.page import write_page as write_inspection
from bakeoff.recipe_files import load_recipe
from bakeoff.report import page as pages
from bakeoff.report.charts import GREY, PALETTE, Figure, styles
from bakeoff.report.elements import figure_element, items, legend
from bakeoff.report.page import embedded_json, html_page
from bakeoff.throughput.page import write_page as write_speeds
from bakeoff.throughput.results import Measurement, SpeedResults
from bakeoff.tuning.outputs import write_outputs
from bakeoff.tuning.ranges import Range
from bakeoff.tuning.report import write_report as write_search
from bakeoff.tuning.results import Trial, TuningResults

HOSTILE = [
    "</SCRIPT><script>alert(1)</script>",
    "</script ><img src=x onerror=alert(1)>",
    "<!--<script>",
    "]]> --> </style><style>*{display:none}",
    '" onmouseover="alert(1)" \'',
    "\u2028\u2029\u202e\x00\x1b[2J",
    "$title ${body} {{x}} &lt;b&gt; &amp",
    "=1+1",
]
VOID = {"meta", "link", "img", "br"}


class Page(HTMLParser):
    """What a browser would see."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.elements, self.open, self.text, self.raw = [], [], "", []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)
        if tag in ("script", "style"):
            self.raw.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("script", "style"):
            self.raw[-1] += data
        else:
            self.text += data

    def handle_comment(self, data):
        raise AssertionError(f"a comment: {data[:80]}")


def sha256(text):
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def require_safe_page(path):
    """A page with its charts, which are valid, too."""
    html = path.read_text(encoding="utf-8")
    charts_in(html)
    return require_safe(html)


def require_safe(html):
    """The page as a parser sees it, once all is as it must be in any page."""
    page = Page(html)
    assert page.open == []
    scripts = [attributes for tag, attributes in page.elements if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "specifications"}, {"type": "module"}, {"type": "module"}]
    style, specifications, bundle, draw = page.raw
    assert bundle == pages._bundle()
    assert draw == pages._asset("page.js")
    assert style == pages._asset("page.css")
    assert not re.search("[<>&\u2028\u2029]", specifications)
    drawn = json.loads(specifications)
    assert isinstance(drawn, dict)
    policies = [a["content"] for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"]
    # The hashes are of what stands in the file, as the browser takes them.
    assert policies == [
        f"default-src 'none'; base-uri 'none'; form-action 'none'; style-src {sha256(style)}; "
        f"script-src {sha256(bundle)} {sha256(draw)}"
    ]
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"link", "img", "iframe", "object", "embed", "base", "form", "audio", "video"}
    for _, attributes in page.elements:
        assert not any(name.startswith("on") or name in ("style", "src", "href", "srcset") for name in attributes)
    assert [tag for tag, _ in page.elements].index("meta") < [tag for tag, _ in page.elements].index("style")
    return page, drawn


SHORT = pages._inside_script("const text = '</script><!--'; window.vegaEmbed = text;")
"""In the place of the drawing library, a megabyte, which takes long to be parsed."""


@given(
    st.recursive(
        st.none() | st.text() | st.floats(allow_nan=False, allow_subnormal=False) | st.sampled_from(HOSTILE), st.lists
    )
)
@example(HOSTILE)
def test_embedded_json_is_harmless_and_means_the_same(values):
    text = embedded_json(values)
    assert not re.search("[<>&\u2028\u2029]", text)
    assert json.loads(text) == values


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=40)
@given(
    st.lists(st.text() | st.sampled_from(HOSTILE) | st.text(st.sampled_from("<>/!-scriptSCRIPT&;'\" =")), min_size=3)
)
@example(HOSTILE)
def test_any_page(names):
    title, caption, *labels = names
    figure = Figure("figure-1", title, caption, None)
    body = legend({label: ("#000000", [1, 0]) for label in labels}) + figure_element(figure)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "_bundle", lambda: SHORT)
        page, drawn = require_safe(html_page(title, body, {"figure-1": {"labels": labels, title: caption}}))
    assert drawn["figure-1"]["labels"] == labels
    for label in (caption, *labels):
        assert visible(label, "\n\t") in page.text
    (labelled,) = [a for _, a in page.elements if a.get("role") == "img"]
    assert labelled["aria-label"] == visible(f"{title}, {caption}", "\n\t")


def test_what_stands_between_backticks_is_code_and_nothing_else_becomes_markup():
    assert items(["`a<b>` and `c`"]) == "<li><code>a&lt;b&gt;</code> and <code>c</code></li>"
    assert items(["one ` alone, <code>"]) == "<li>one ` alone, &lt;code&gt;</li>"


def test_lines_of_many_recipes_have_looks_of_their_own():
    looks = styles([str(number) for number in range(4 * len(PALETTE))])
    assert len({(colour, *dash) for colour, dash in looks.values()}) == len(looks)
    assert len({*PALETTE, GREY}) == len(PALETTE) + 1  # grey is what stands beside


def test_a_report_with_hostile_names(tmp_path, monkeypatch):
    monkeypatch.setattr("bakeoff.comparison.reporting.report._write_figures", lambda *arguments: None)
    names = [f"{name}{i}" for i, name in enumerate(HOSTILE)]
    text = json.dumps(make_results(names=names, tasks=tuple(HOSTILE[:2]), rows=60).model_dump(mode="json"))
    evil = json.dumps(HOSTILE[0])[1:-1]
    for field in ("title", "created", "device", "path", "fingerprint", "tokenizer", "train"):
        text = re.sub(rf'"{field}": "', lambda found: found[0] + evil, text)
    for field in ("machine", "versions"):
        text = re.sub(rf'"{field}": {{"', lambda found: found[0] + evil, text)
    results = Results.model_validate_json(text)
    write_report(results, tmp_path / "report.html")
    page, drawn = require_safe_page(tmp_path / "report.html")
    for name in names:
        assert visible(name) in page.text
        assert visible(name) in json.dumps(drawn, ensure_ascii=False).replace('\\"', '"').replace("\\\\", "\\")
    assert page.text.count("alert(1)") > 20


@pytest.mark.slow
def test_speeds_of_recipes_with_hostile_names(tmp_path):
    measurements = [
        Measurement(
            recipe=name,
            length=length,
            rows=1,
            parameters=1,
            position_table=None,
            training_tokens_per_second=1000 / length,
            inference_tokens_per_second=None,
            latency_ms=None,
            generation_ms=None,
            memory_bytes=None,
            problem=f"fails: {name}" if length == 128 else None,
        )
        for name in HOSTILE
        for length in (64, 128)
    ]
    results = SpeedResults(
        environment={"threads": 1, "device_name": HOSTILE[0], "precision": HOSTILE[1]},
        created=HOSTILE[2],
        batch_tokens=4,
        seconds=1.0,
        vocabulary=dict.fromkeys(HOSTILE, 9),
        precision={},
        measurements=measurements,
    )
    write_speeds(results, tmp_path / "speed.html")
    page, _ = require_safe_page(tmp_path / "speed.html")
    for name in HOSTILE:
        assert f"fails: {visible(name)}" in page.text
    results.write(tmp_path)
    table = (tmp_path / "speed.csv").read_text(encoding="utf-8")
    assert "\n'=1+1,64," in table
    assert "\n=" not in table


def test_an_inspection_of_a_run_with_a_hostile_name(tmp_path):
    kernels = Kernels(part=HOSTILE[0], kind=HOSTILE[1], offsets=[-1, 0], weights=torch.ones(2, 2).tolist())
    layer = Layer(stack=HOSTILE[2], layer=1, l2_distance=1.0, cosine_similarity=0.5, degrees=60.0, kernels=[kernels])
    write_inspection(tmp_path / "inspect.html", HOSTILE[0], HOSTILE[1], [layer])
    page, _ = require_safe_page(tmp_path / "inspect.html")
    assert visible(HOSTILE[0]) in page.text


def test_a_search_with_hostile_names(tmp_path):
    key = HOSTILE[0]
    values = [*HOSTILE, 1e-3]
    trials = [
        Trial(
            number=number,
            values={key: value},
            steps=4,
            evaluations=[2, 4],
            losses=[2.0, 1.0 + number][: 1 + number % 2],
        )
        for number, value in enumerate(values)
    ]
    results = TuningResults(
        recipe=HOSTILE[1],
        corpus=HOSTILE[2],
        corpus_fingerprint=HOSTILE[5],
        budget=f"steps={HOSTILE[3]}",
        seed=0,
        measured_as=[],
        ranges=[Range(key=key, text=HOSTILE[4], own=HOSTILE[6], choices=values)],
        trials=trials,
        states=[trial.state for trial in trials],
        best=1,
        before={key: HOSTILE[6]},
        seconds=1.0,
        tokens=1,
        full_trainings=1.0,
        environment={"device_name": HOSTILE[3]},
        cautions=HOSTILE,
    )
    recipe = load_recipe("bert-tiny", {"name": HOSTILE[0]})
    write_search(results, recipe, tmp_path / "report.html")
    page, drawn = require_safe_page(tmp_path / "report.html")
    for name in HOSTILE:
        assert visible(name) in page.text
        assert visible(name) in json.dumps(drawn, ensure_ascii=False).replace('\\"', '"').replace("\\\\", "\\")
    write_outputs(results, recipe, tmp_path)
    text = (tmp_path / "recipe.yaml").read_text(encoding="utf-8")
    assert load_recipe(tmp_path / "recipe.yaml") == recipe
    assert visible(text, "\n") == text


def test_names_that_are_written_from_right_to_left_leave_the_sentence_in_its_order():
    """Without isolation a browser shows numbers and commas between two such names in the names' direction."""
    page = Page(items(["שלום רב is 2.0 points ahead of עולם, 3 of <b>"]))
    assert page.text == "שלום רב is 2.0 points ahead of עולם, 3 of <b>"
    assert [tag for tag, _ in page.elements] == ["li", "bdi", "bdi"]
    assert "<bdi>שלום רב</bdi> is" in items(["שלום רב is 2.0 points ahead of עולם"])
