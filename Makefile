# Two commands for a newcomer: `make demo` and `make test`. Both set up .venv first.
PYTHON ?= python3
BIN := .venv/bin
JOBS ?= 2
# One thread a process: the processes share the cores. Compiled files are kept: where the
# environment forbids them, each process compiles the tests, and hundreds of processes vitnas.
PYTEST = env -u PYTHONDONTWRITEBYTECODE OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal

.PHONY: demo test slow nightly check format setup clean

demo: setup
	$(BIN)/python search.py

test: setup
	$(PYTEST)

# One process more than elsewhere: many of these tests wait for processes that they start.
slow: JOBS = 3
slow: setup
	$(PYTEST) -m "slow and not nightly"

# All exports, networks at full size, every benchmark, new examples for all properties, third
# parties' tests: hours.
nightly: setup
	$(PYTEST) -m nightly
	$(PYTEST) --hypothesis-profile=seek $$(grep -rl "hypothesis import given\|hypothesis import example" tests)
	$(BIN)/python -m tests.timm_suite

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_floors.py

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

setup: .venv/ready

# Exact versions, then vitnas itself in editable form with nothing more to fetch.
.venv/ready: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist *.egg-info
