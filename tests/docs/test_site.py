"""The site of the pages: its reference is whole, its links lead somewhere, and it loads nothing from elsewhere."""

import re
import shutil
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from docs.site import build, commands, keys
from tests.docs.pages import PAGES, ROOT

import bakeoff

REFERENCE = ROOT / "docs" / "reference"


def reference(name):
    """A page of the reference with what is generated."""
    return build.expanded(REFERENCE / f"{name}.md")


def test_every_verb_has_its_place_once():
    placed = re.findall(
        r"^### bakeoff (\S+)\n\n<!-- command \1 -->$", (REFERENCE / "commands.md").read_text(), re.MULTILINE
    )
    assert sorted(placed) == sorted(commands.verbs())


def test_every_option_that_help_shows_is_in_the_reference():
    for verb in commands.verbs():
        section = reference("commands").partition(f"### bakeoff {verb}\n")[2].partition("\n### ")[0]
        options = [parameter for parameter in commands.group().commands[verb].params if not parameter.hidden]
        for option in options:
            if option.param_type_name == "option":
                row = next(line for line in section.splitlines() if f"`{option.opts[0]}`" in line.partition(" | ")[0])
                assert all(f"`{name}`" in row for name in option.secondary_opts)
            else:
                assert f"| `{option.name.upper()}" in section
    assert "`strict|replace`" in reference("commands")


def test_every_key_of_every_config_is_in_the_reference():
    pages = {path.name: reference(path.stem) for path in REFERENCE.glob("*.md")}
    places = build.places()
    assert {*keys.ROOTS.values(), *(config for kinds in keys.KINDS.values() for config in kinds.values())} <= set(
        places
    )
    assert len(places) > 70
    for config, address in places.items():
        page, _, anchor = address.partition("#")
        title = f"{{#{anchor}}}" if f"{{#{anchor}}}" in pages[page] else "\n## "
        rows = pages[page].partition(title)[2]
        for name, field in config.model_fields.items():
            assert f"\n| `{name}` |" in rows, f"{config.__name__}.{name}"
            assert field.description, f"{config.__name__}.{name} has no docstring"


def test_bounds_and_defaults_are_those_of_the_config():
    row = next(line for line in reference("recipe").splitlines() if line.startswith("| `average_last`"))
    assert row.endswith("| whole number ≥ 0, ≤ 100 | `0` |")


def test_the_whole_python_interface_is_in_the_reference():
    pages = [path.read_text() for path in REFERENCE.glob("*.md")]
    named = [name for page in pages for name in re.findall(r"^::: bakeoff\.(\w+)$", page, re.MULTILINE)]
    assert sorted(named) == sorted(bakeoff.__all__)


def test_the_navigation_has_every_page_once(tmp_path):
    build.stage(tmp_path)
    config = yaml.safe_load((ROOT / "docs" / "site" / "mkdocs.yml").read_text())

    def leaves(node):
        if isinstance(node, str):
            return [node]
        return [leaf for each in (node.values() if isinstance(node, dict) else node) for leaf in leaves(each)]

    assert sorted(leaves(config["nav"])) == sorted(
        path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.md")
    )


@pytest.mark.parametrize("page", PAGES[1:], ids=lambda page: page.stem)
def test_a_page_begins_with_what_its_reader_wants(page):
    """After the title a paragraph says so; commands and tables come after it."""
    title, _, rest = page.read_text(encoding="utf-8").partition("\n\n")
    assert title.startswith("# ")
    assert re.match(r"You (want|have|are|know|write|call)\b", rest), f"{page.name}: {rest[:80]}"


class Html(HTMLParser):
    """What a page of the site links to, loads and names, and how many parts of each sort its text has."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loaded, self.names, self.parts, self.inside = [], [], set(), Counter(), False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.names |= {given[key] for key in ("id", "name") if given.get(key)}
        self.inside |= tag == "article"
        if self.inside and tag in ("li", "tr", "pre", "img"):
            self.parts[tag] += 1
        if tag == "a" and "href" in given:
            self.links.append(given["href"] or "./")  # which a browser shows as a folder
        if tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload", "preconnect", "manifest"):
            self.loaded.append(given["href"])
        if tag in ("script", "img", "iframe", "source") and given.get("src"):
            self.loaded.append(given["src"])

    def handle_endtag(self, tag):
        self.inside &= tag != "article"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("zensical", reason='needs zensical: pip install -e ".[docs]"')
    folder = tmp_path_factory.mktemp("docs") / "site"
    build.build(folder)
    return folder


@pytest.mark.slow
def test_every_link_of_the_site_leads_somewhere_and_nothing_is_loaded_from_elsewhere(site):
    pages = {path: Html(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    assert len(pages) > 40
    wrong = []
    for path, page in pages.items():
        if path.name == "404.html":  # whose addresses are those of a server's root
            continue
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                wrong += [(path.name, link)] if link in page.loaded or parts.scheme not in ("https", "mailto") else []
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            known = target.is_file() and (not anchor or target not in pages or anchor in pages[target].names)
            wrong += [] if known else [(path.name, link)]
    assert not wrong
    for path in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", path.read_text(encoding="utf-8")), path.name


@pytest.mark.slow
def test_the_site_reads_pages_as_repositories_show_them(site, tmp_path):
    """Lists, tables, blocks and pictures: the site's Markdown and CommonMark differ where these are nested."""
    markdown_it = pytest.importorskip("markdown_it")
    reader = markdown_it.MarkdownIt("commonmark").enable("table")
    build.stage(tmp_path)
    for path in tmp_path.rglob("*.md"):
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(tmp_path).with_suffix(".html")
        if ":::" not in text:
            wanted = Html(f"<article>{reader.render(text)}").parts
            assert Html((site / name).read_text(encoding="utf-8")).parts == wanted, name


@pytest.mark.slow
def test_a_link_to_nowhere_ends_the_build(monkeypatch, tmp_path):
    pytest.importorskip("zensical", reason='needs zensical: pip install -e ".[docs]"')
    stage = build.stage

    def broken(folder):
        stage(folder)
        (folder / "use.md").write_text("# Use\n\n[there](prepare.md#nothing-of-this-name)\n")

    monkeypatch.setattr(build, "stage", broken)
    with pytest.raises(SystemExit, match=r"use\.md"):
        build.build(tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_a_folder_that_is_no_site_is_left_alone(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(SystemExit, match="is no site"):
        build.build(Path(tmp_path))
    assert (tmp_path / "letter.txt").exists()


@pytest.mark.slow
def test_a_browser_asks_nobody_and_searches(site):
    sync_api = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("Chromium is not installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 844})
        asked, problems = [], []
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: problems.append(str(error)))
        for name in ("index", "results", "reference/recipe", "reference/python"):
            page.goto((site / f"{name}.html").as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
        page.set_viewport_size({"width": 1200, "height": 900})
        page.goto((site / "use.html").as_uri())
        page.keyboard.press("Control+k")
        page.keyboard.type("average_last")
        page.get_by_text(re.compile(r"^\d+ results$")).wait_for()
        browser.close()
    assert not problems
    assert {urlsplit(url).scheme for url in asked} <= {"file", "data", "blob"}
