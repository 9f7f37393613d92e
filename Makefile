# make install   set up .venv with everything the project needs
# make demo      render videos, learn to align them without labels, open-able report in demo/report.html
# make browser   the page that aligns two clips in a browser, in build/browser (needs npm)
# make test      the whole test suite (sets up first)
# make test-lowest  tests with the oldest versions that pyproject.toml allows, but for torch
# make check     ruff, mypy --strict, import table, Containerfile, and what would be published (make dist)
# make dist      wheel and source distribution in dist/, checked
# make docs      the documentation as a site in build/site; a broken link is an error
# make format    ruff format and safe fixes
# make bench     the speed benchmarks, each against a named baseline (results: benchmarks/reproduce.py)

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
JOBS ?= 2
LOWEST := .venv-lowest
LOWEST_TESTS := $(addprefix tests/,alignment losses embeddings/test_embedding_set.py data video cli/test_align.py)
BENCHMARKS := decode base_speed feature_cache evaluate align synth

PAGE_FILES := $(wildcard docs/browser/*) src/cycleback/web/page/vendor/mediabunny.min.mjs scripts/build_browser.py

.PHONY: install chromium browser browser-if-npm demo test test-lowest check dist docs format bench clean

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -m venv $(VENV) 2>/dev/null || $(PYTHON) -m virtualenv $(VENV) 2>/dev/null \
	  || { [ "$$(id -u)" = 0 ] && apt-get update -q && apt-get install -qy python3-venv && $(PYTHON) -m venv $(VENV); } \
	  || { echo "error: cannot make a virtual environment; install it with: sudo apt-get install python3-venv" >&2; exit 2; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(STAMP)

chromium:  # for the tests of the studio's page, which are skipped without it
	@command -v chromium >/dev/null \
	  || { [ "$$(id -u)" = 0 ] && apt-get update -q && apt-get install -qy --no-install-recommends chromium; } >/dev/null 2>&1 \
	  || echo "note: no chromium; the tests of the studio's page are skipped" >&2

browser: build/browser/index.html

build/browser/index.html: $(STAMP) $(PAGE_FILES)
	OMP_NUM_THREADS=1 $(BIN)/python scripts/build_browser.py -o build/browser

browser-if-npm: install  # the tests of that page are skipped without it
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory browser; else false; fi \
	  || echo "note: no page for browsers (needs npm and its registry); its tests are skipped" >&2

demo: install
	$(BIN)/cycleback demo --out demo --overwrite

test: install chromium browser-if-npm
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist loadfile

test-lowest:
	rm -rf $(LOWEST)
	$(PYTHON) -m venv $(LOWEST)
	$(PYTHON) scripts/lowest_versions.py > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/python -m pip install --quiet -c $(LOWEST)/constraints.txt -e . \
	  'pytest>=8' 'pytest-timeout>=2.3' 'hypothesis>=6.100' 'imageio-ffmpeg>=0.5'
	OMP_NUM_THREADS=1 $(LOWEST)/bin/python -m pytest -q -W ignore::DeprecationWarning $(LOWEST_TESTS)

check: install dist
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_architecture.py
	@! test -x $(BIN)/hadolint || $(BIN)/hadolint Containerfile

dist: install
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/*

docs: install
	$(BIN)/mkdocs build --strict

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: install
	@for name in $(BENCHMARKS); do echo "== $$name"; $(BIN)/python benchmarks/$$name.py --json || exit 1; done

clean:
	rm -rf $(VENV) $(LOWEST) demo .pytest_cache .mypy_cache .ruff_cache build dist
