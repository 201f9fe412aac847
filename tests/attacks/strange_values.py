"""Values of every type and size, to stand at any key of a file of others."""

import json

NUMBERS = [0, -1, 1, 2, 3, 2**24, 2**31, 2**63, 10**30, 10**99, -0.5, 0.5, 1.5, 1e300]
TEXTS = ["", "x", "1", "\ud800", "a" * 1000, "é" * 300]
TREES = [
    [],
    [1],
    [-1],
    [[]],
    [None],
    ["a", "a"],
    [2**31] * 9,
    {},
    {"a": 1},
    {"0": "a"},
    {"0": 2**70},
    {"rope_theta": {}},
]
VALUES = [None, True, False, *NUMBERS, *TEXTS, *TREES]


def places(values, key=()):
    """The keys of a tree of plain data, those of its branches too."""
    if key:
        yield key
    if isinstance(values, dict | list):
        for name, value in values.items() if isinstance(values, dict) else enumerate(values):
            yield from places(value, (*key, name))


def changed(values, key, value):
    """A copy of a tree with another value at a key, which is a tuple of names and numbers; (): another tree."""
    if not key:
        return value
    values = json.loads(json.dumps(values))
    branch = values
    for name in key[:-1]:
        branch = branch[name]
    branch[key[-1]] = value
    return values
