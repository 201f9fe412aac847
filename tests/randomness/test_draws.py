import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bakeoff.randomness.draws import Draws, key_of, philox


def test_philox_gives_the_published_known_answers():
    # kat_vectors of Random123: counter and key of zeros, and of ones.
    zeros = philox(np.zeros((4, 1), np.uint64), 0)
    assert [f"{word:08x}" for word in zeros[:, 0]] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]
    ones = philox(np.full((4, 1), 0xFFFFFFFF, np.uint64), 0xFFFFFFFFFFFFFFFF)
    assert [f"{word:08x}" for word in ones[:, 0]] == ["408f276d", "41c83b0e", "a20bc7c6", "6d5451fd"]


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**63), st.lists(st.integers(0, 2**40), min_size=1, max_size=20), st.integers(1, 9))
def test_an_example_gets_the_same_numbers_in_any_company(seed, examples, count):
    indices = np.array(examples, np.int64)
    epochs = indices % 3
    together = Draws(seed, epochs, indices).words("masks", count)
    alone = [Draws(seed, epochs[i : i + 1], indices[i : i + 1]).words("masks", count)[0] for i in range(len(indices))]
    assert np.array_equal(together, np.stack(alone))


def test_seed_epoch_example_and_stream_all_matter():
    base = (1, 0, 7, "masks")
    others = [(2, 0, 7, "masks"), (1, 1, 7, "masks"), (1, 0, 8, "masks"), (1, 0, 7, "order")]

    def words(seed, epoch, example, stream):
        return Draws(seed, np.array([epoch]), np.array([example])).words(stream, 8).tolist()

    assert all(words(*base) != words(*other) for other in others)
    assert words(*base) == words(*base)
    assert Draws(1, np.array([5]), np.array([7])).static().words("masks", 8).tolist() == words(*base)


def test_keys_differ():
    keys = {key_of(seed, epoch, stream) for seed in range(20) for epoch in range(20) for stream in ("a", "b")}
    assert len(keys) == 800


def test_integers_cover_their_range_evenly():
    indices = np.arange(60_000)
    drawn = Draws(3, np.zeros_like(indices), indices).integers("document", np.full(60_000, 6))
    counts = np.bincount(drawn, minlength=6)
    assert counts.sum() == 60_000
    assert ((counts - 10_000) ** 2 / 10_000).sum() < 20.5  # chi-square with 5 degrees of freedom, p = 0.001
