"""The charts of a page, each of which is valid Vega-Lite: pages are written without looking."""

import json
import re

import altair


def charts_in(html):
    """The charts of a page by name, checked with Vega-Lite's schema."""
    charts = json.loads(re.search(r'id="specifications">(.*?)</script>', html, re.DOTALL)[1])
    for chart in charts.values():
        altair.TopLevelSpec.validate(chart)
    return charts
