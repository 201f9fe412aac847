"""The simulation of verdicts goes by the package's verdicts, and its worlds are what they say."""

from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def scripts(monkeypatch):
    """Scripts import each other as files of one folder."""
    monkeypatch.syspath_prepend(FOLDER)


def test_tables_at_once_are_the_verdicts_of_the_package():
    from verdicts import twin

    (line,) = twin(1)
    assert float(line.split()[2]) < 1e-4


@pytest.mark.parametrize("changes", [{}, {"tails": 3}, {"in_common": 0.8}, {"anew": 0.2, "own": 0.8}])
def test_a_recipe_is_as_good_as_its_world_says(changes):
    from simulated_answers import POINT, World

    world = World((0.7, 0.9), 4, 300, 3 * POINT, **changes)
    tables = world.tables(np.random.default_rng(0), 150)
    assert tables.scores.mean((0, 2)) == pytest.approx([0.7, 0.9], abs=0.01)
    of_seeds = tables.scores.var(2, ddof=1).mean(0) - np.einsum("taa->ta", tables.anew).mean(0) / 300
    assert 0.015**2 < of_seeds[0] < 0.06**2


def test_what_rows_contribute_has_the_mean_of_the_score():
    from simulated_metrics import METRICS, table

    for metric in METRICS:
        groups = table(metric, np.random.default_rng(0), (0.05, 0.05), 2, 300)
        for group in groups.values():
            assert group.answers[0].by_seed.mean(1) == pytest.approx(list(group.scores.values()), abs=0.03)
