# Every target sets up what it needs: a virtual environment in .venv with the pinned versions of constraints.txt.
#   make demo        the whole path in minutes
#   make test        what every change must pass
#   make test-all    the same with the long crossings, and with Ray, the Hub's library, trackers, ONNX, GGUF and the site
#   make check       lint and types
#   make docs        these pages as a site with the reference of commands, keys and Python: open site/index.html
#   make wheel       dist/bakeoff-VERSION-py3-none-any.whl, which installs and runs without this folder
#   make mutants     whether the tests notice planted faults: all written by hand, MUTANTS at random, all recipes' values
# Tests run in TEST_JOBS processes, one thread each, file by file: those of the fewest tests, as xdist would have it, are
# not last, because some of these take the longest.
# PIP_OPTIONS passes options to pip, e.g. an index with another build of torch (docs/install.md).

PYTHON ?= python3
PIP_OPTIONS ?=
DEMO_OPTIONS ?=
MUTANTS ?= 100
SEED ?= 0
TEST_JOBS ?= 2
BIN := .venv/bin

# Where an image forbids it, each of the many processes that tests start would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all check docs wheel mutants install clean

demo: .venv/installed
	$(BIN)/bakeoff demo $(DEMO_OPTIONS)

test: .venv/tested
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not slow" -n $(TEST_JOBS) --dist loadfile --no-loadscope-reorder

test-all: .venv/tested-all
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(TEST_JOBS) --dist loadfile --no-loadscope-reorder

check: .venv/tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: .venv/documented
	$(BIN)/python -m docs.site.build site
	@echo "open site/index.html"

wheel: .venv/installed
	rm -rf build
	$(BIN)/python -m pip wheel --disable-pip-version-check $(PIP_OPTIONS) --no-deps --wheel-dir dist .

# One thread, so that processes can be forked from one that has imported torch.
mutants: .venv/mutating
	$(BIN)/python -m tests.mutants.recipes
	OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false $(BIN)/python -m tests.mutants.run --count $(MUTANTS) --seed $(SEED)

install: .venv/installed

.venv/installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --disable-pip-version-check $(PIP_OPTIONS) -c constraints.txt -e .
	touch $@

.venv/tested: .venv/installed
	$(BIN)/python -m pip install --disable-pip-version-check $(PIP_OPTIONS) -c constraints.txt -e ".[dev]"
	touch $@

# Ray, `datasets`, the trackers, ONNX, GGUF and the site's generator take several hundred MB; the tests that need them
# are skipped by `make test`.
.venv/tested-all: .venv/tested
	$(BIN)/python -m pip install --disable-pip-version-check $(PIP_OPTIONS) -c constraints.txt -e ".[hub,ray,track,onnx,gguf,docs]"
	touch $@

.venv/documented: .venv/installed
	$(BIN)/python -m pip install --disable-pip-version-check $(PIP_OPTIONS) -c constraints.txt -e ".[docs]"
	touch $@

.venv/mutating: .venv/tested
	$(BIN)/python -m pip install --disable-pip-version-check $(PIP_OPTIONS) -c constraints.txt -e ".[dev,mutants]"
	touch $@

clean:
	rm -rf .venv .mutants build dist site src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
