"""Reports of made-up results, as a browser would see them."""

from html.parser import HTMLParser

from tests.valid_charts import charts_in

from bakeoff.comparison.reporting.report import write_report

HOSTILE = ["<b>bold", "quote\" & '", "</script><script>alert(1)</script>", "中文 {{x}} $title \x1b[2J\u2028"]
"""Labels that are markup, the end of a script, or signs of a terminal where they are not escaped."""


class Page(HTMLParser):
    """What a browser would see: elements, what they load, and the text outside of scripts and styles."""

    def __init__(self, html):
        super().__init__()
        self.html = html
        self.loads, self.scripts, self.tags, self.text, self.raw = [], [], [], "", None
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.raw = tag if tag in ("script", "style") else self.raw
        if tag == "script":
            self.scripts.append("")
        self.loads += [value for name, value in attributes if name in ("src", "href", "srcset", "data", "action")]

    def handle_endtag(self, tag):
        self.raw = None if tag == self.raw else self.raw

    def handle_data(self, data):
        if self.raw == "script":
            self.scripts[-1] += data
        elif self.raw is None:
            self.text += data


def page_of(results, folder):
    """The report of some results, written into a folder."""
    write_report(results, folder / "report.html")
    return Page((folder / "report.html").read_text(encoding="utf-8"))


def charts_of(page):
    """The charts of a report by name, each of which is valid Vega-Lite."""
    return charts_in(page.html)
