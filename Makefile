# make install   set up .venv with everything the project needs
# make demo      render videos, learn to align them without labels, open-able report in demo/report.html
# make test      the whole test suite (sets up first)
# make check     ruff, mypy --strict, import table
# make format    ruff format and safe fixes
# make bench     the speed benchmarks, each against a named baseline (results: benchmarks/reproduce.py)

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
JOBS ?= 2
BENCHMARKS := decode base_speed feature_cache evaluate align synth

.PHONY: install chromium demo test check format bench clean

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

demo: install
	$(BIN)/cycleback demo --out demo --overwrite

test: install chromium
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist loadfile

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_architecture.py

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: install
	@for name in $(BENCHMARKS); do echo "== $$name"; $(BIN)/python benchmarks/$$name.py --json || exit 1; done

clean:
	rm -rf $(VENV) demo .pytest_cache .mypy_cache .ruff_cache build dist
