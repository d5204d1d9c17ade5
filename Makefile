# Two commands do everything on a fresh machine: make demo, make test.
PYTHON ?= python3
BIN := .venv/bin
THREADS := OMP_NUM_THREADS=1

.PHONY: venv demo test test-slow fuzz bench lint clean

venv: .venv/.fresh

# Made anew whenever the pins change; does nothing when it is fresh.
.venv/.fresh: requirements.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

demo: venv
	$(BIN)/headcount demo --out demo

# Two processes of one thread each: two OpenMP pools on few cores slow each other down.
test: venv lint
	$(THREADS) $(BIN)/python -m pytest -n 2 --dist loadgroup

test-slow: venv
	$(THREADS) $(BIN)/python -m pytest -m slow

# 100,000 mutated files for every reader, about two minutes of CPU; SEED=1 makes others.
SEED ?= 0
fuzz: venv
	$(THREADS) nice -n 10 $(BIN)/python tests/fuzz --cases 100000 --seed $(SEED)

bench: venv
	$(BIN)/python -m benchmarks

lint: venv
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy

clean:
	rm -rf .venv demo bench.json build
