# Two commands do everything on a fresh machine: make demo, make test.
PYTHON ?= python3
BIN := .venv/bin
THREADS := OMP_NUM_THREADS=1
# Exact versions; requirements-ci.lock is the same with hashes, and with the CPU build of torch. It holds every package,
# so that pip need not resolve dependencies: with hashes it would refuse those that are asked for with an extra.
LOCK ?= requirements.lock
# sha256 of the CPU build of torch for Linux, which is not on PyPI; pip prefers a hash of PyPI wherever one is given.
TORCH_CPU_HASH := 6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b

.PHONY: venv demo test test-slow chaos fuzz error-rates bench docs style lint lock clean

venv: .venv/.fresh

# Made anew whenever the pins change; does nothing when it is fresh.
.venv/.fresh: $(LOCK) pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(if $(findstring ci,$(LOCK)),--no-deps) -r $(LOCK)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

demo: venv
	$(BIN)/headcount demo --out demo

# Two processes of one thread each: two OpenMP pools on few cores slow each other down. mypy is one of the tests.
test: venv style
	$(THREADS) $(BIN)/python -m pytest -n 2 --dist worksteal

test-slow: venv
	$(THREADS) $(BIN)/python -m pytest -m slow

SEED ?= 0

# Every command interrupted, starved of disk, locked out and doubled; half an hour on two cores. SEED=1 for others.
chaos: venv
	$(THREADS) PYTHONPATH=tests $(BIN)/python -m chaos --seed $(SEED) --out chaos.json

# 100,000 mutated files for every reader, about two minutes of CPU; SEED=1 for others.
fuzz: venv
	$(THREADS) nice -n 10 $(BIN)/python tests/fuzz --cases 100000 --seed $(SEED)

# How often intervals leave out the truth and p-values are small by chance; half an hour on one core. SEED=1 for others.
error-rates: venv
	$(THREADS) $(BIN)/python tests/error_rates --seed $(SEED)

bench: venv
	$(BIN)/python -m benchmarks

# The documentation as a site, to open at build/site/index.html.
docs: venv
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

style: venv
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks

lint: style
	$(BIN)/mypy

# Write requirements-ci.lock anew after a change of requirements.lock; needs uv.
lock:
	uv pip compile --quiet --generate-hashes --no-deps --no-annotate --python-version 3.11.5 \
		--custom-compile-command "make lock" --output-file requirements-ci.lock requirements.lock
	sed -i -e '/^torch==/,/^[a-z]/{/^    --hash/d;}' -e '/^torch==/a \    --hash=sha256:$(TORCH_CPU_HASH)' requirements-ci.lock

clean:
	rm -rf .venv demo bench.json chaos.json build
