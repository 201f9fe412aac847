"""The page in a real browser; skipped where Playwright or Chromium are not installed."""

import shutil

import pytest

from tests.web.fakes import FakeModel

sync_api = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")]


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser):
    """A page that fails on any error or message in its console."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    page = context.new_page()
    page.set_default_timeout(10_000)
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.problems = problems
    yield page
    context.close()
    assert not problems


def test_masks_of_two_models_by_keyboard_alone(server, page):
    asked = server({"one": FakeModel("fill"), "two": FakeModel("fill")})
    page.goto(f"http://127.0.0.1:{asked.port}/")
    page.wait_for_selector("#ask:not([hidden])")
    seen = []
    for _ in range(9):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.id || document.activeElement.name || 'link'"))
        if seen[-1] == "text":
            break
    assert seen == ["link", "verb", "first", "second", "text"]
    page.keyboard.press("Control+A")
    page.keyboard.type("A [MASK] and a [MASK] <b>here</b>.")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".result:nth-of-type(2) td")
    results = page.locator(".result")
    assert results.count() == 2
    assert results.nth(0).locator("h3").all_inner_texts() == ["Mask 1", "Mask 2"]
    assert "50.0 %" in results.nth(1).inner_text()
    assert page.locator("[aria-live=polite][aria-busy=false]").count() == 2


def test_models_that_can_do_it_are_offered_first(server, page):
    """Who writes fills the end of a text alone; nobody stands beside itself, and what was chosen stays."""
    writers = {name: FakeModel("fill", "generate", "stream") for name in ("gpt", "lstm")}
    asked = server({"gpt": writers["gpt"], "bert": FakeModel("fill"), "lstm": writers["lstm"]})
    page.goto(f"http://127.0.0.1:{asked.port}/")
    page.wait_for_selector("#ask:not([hidden])")

    def chosen():
        return [page.locator("#first").input_value(), page.locator("#second").input_value()]

    assert chosen() == ["bert", ""]
    page.get_by_text("Write", exact=True).click()
    assert chosen() == ["gpt", "lstm"]
    page.select_option("#first", "lstm")
    page.select_option("#second", "")
    page.get_by_text("Fill masks").click()
    assert chosen() == ["bert", ""]
    page.select_option("#second", "gpt")
    assert chosen() == ["bert", "gpt"]

    alone = server(writers)
    page.goto(f"http://127.0.0.1:{alone.port}/")
    page.wait_for_selector("#ask:not([hidden])")
    assert chosen() == ["gpt", "lstm"]
    assert page.locator("#text").input_value().endswith("[MASK]")


def test_the_description_of_the_api_fits_a_phone(server, browser):
    asked = server({"one": FakeModel("fill")})
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(f"http://127.0.0.1:{asked.port}/docs")
    wide = "[...document.querySelectorAll('.scroll')].filter(each => each.scrollWidth > each.clientWidth).length"
    assert page.evaluate(wide) == 0
    assert page.get_by_text("How many tokens for each mask").is_visible()
    page.close()


def test_weights_are_read_without_colour(server, page):
    asked = server({"judge": FakeModel("predict")})
    page.goto(f"http://127.0.0.1:{asked.port}/")
    page.fill("#text", "some \U0001f600 longer words")
    page.click("#go")
    tokens = page.locator(".token")
    tokens.first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.locator(".readout").inner_text().startswith("longer: +0.500 (for long)")
    assert page.locator(".tokens").inner_text() == "some \U0001f600 longer words"
    assert page.locator(".result").get_by_text("75.0 %").first.is_visible()


def test_text_as_it_is_written_and_stopped(server, page):
    model = FakeModel("generate", "stream")
    asked = server({"writer": model})
    page.goto(f"http://127.0.0.1:{asked.port}/")
    page.fill("#text", "slow")
    page.fill("#tokens", "400")
    page.keyboard.press("Enter")
    sync_api.expect(page.locator(".written")).to_contain_text(" 5")
    page.click("#stop")
    page.wait_for_selector("text=Stopped.")
    written = page.locator(".written").inner_text()
    assert written.startswith("slow 0 1 2 3 4 5")
    page.fill("#text", "quick")
    page.fill("#tokens", "3")
    page.keyboard.press("Enter")
    sync_api.expect(page.locator(".written")).to_have_text("quick 0 1 2")
    assert model.written < 400


def test_errors_stand_where_they_belong(server, page):
    asked = server({"one": FakeModel("fill", "score")})
    page.goto(f"http://127.0.0.1:{asked.port}/")
    page.fill("#text", "bad")
    page.click("#go")
    page.wait_for_selector(".result [role=alert]")
    assert "has no [MASK]" in page.locator(".result [role=alert]").inner_text()
    page.problems.clear()  # Chromium notes the status 422
    page.fill("#text", "a [MASK]")
    page.click("#go")
    page.wait_for_selector(".result td")
    assert page.locator("[role=alert]:visible").count() == 0


def test_a_token_is_asked_for(server, page):
    asked = server({"one": FakeModel("fill")}, token="s" * 16)
    page.goto(f"http://127.0.0.1:{asked.port}/")
    page.fill("#token", "wrong")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=a wrong token")
    page.fill("#token", "s" * 16)
    page.keyboard.press("Enter")
    page.wait_for_selector("#ask:not([hidden])")
    page.problems.clear()  # the two 401


def test_a_phone_needs_no_sideways_scrolling(server, browser):
    asked = server({"a-rather-long-name-of-a-model/" + "x" * 40: FakeModel(), "two": FakeModel()})
    context = browser.new_context(viewport={"width": 360, "height": 740}, color_scheme="dark", has_touch=True)
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{asked.port}/")
    for verb in ("fill", "predict", "generate", "score"):
        page.check(f"[value={verb}]")
        page.fill("#text", "[MASK] " + "w" * 200)
        page.click("#go")
        page.wait_for_selector(".result:nth-of-type(2) [aria-busy=false]")
        assert page.evaluate("document.documentElement.scrollWidth") == 360
    small = (
        "[...document.querySelectorAll('button, select, textarea')].filter(e => e.offsetHeight && e.offsetHeight < 44)"
    )
    assert page.evaluate(f"{small}.length") == 0
    context.close()


def test_a_report_of_a_stranger_reaches_nothing(server, page, tmp_path):
    from bakeoff.web.comparison_pages import ComparisonPages

    script = "document.title='ran'; fetch('/models').then(() => parent.document.title='stolen', () => {})"
    (tmp_path / "report.html").write_text(f"<!doctype html><p>the report</p><script>{script}</script>")
    (tmp_path / "test.tsv").write_text("label\ttext\nyes\tan example of the task\n")
    (tmp_path / "results.json").write_text(
        '{"title": "Three", "tasks": [{"name": "t", "files": {"test": "/x/test.tsv"}}]}'
    )
    asked = server({"one": FakeModel("score")}, comparison=ComparisonPages(tmp_path))
    assert asked.raw("GET", "/comparison/report.html")[0] == 401
    page.goto(f"http://127.0.0.1:{asked.port}/")
    page.click("#report summary")
    page.frame_locator("iframe").get_by_text("the report").wait_for()
    page.wait_for_timeout(300)
    assert page.title() == "Bakeoff: try models"
    page.problems.clear()  # what the policy refused
    page.click("#examples summary")
    page.click("text=an example of the task")
    assert page.input_value("#text") == "an example of the task"
