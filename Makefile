# make run   the main job, with figures to look at     make test   the test suite
# make test-all  the same with the tests marked slow and all draws of random tests, about twice as long
# make lint  style and types                           make bench  speed, as ratios measured side by side
# make pinnacle  the field's public benchmark: every case, half an hour, results/pinnacle/report.html (CASES="wave-1d": some)
# make peers PEERS=/path/to/python  other libraries, where that Python has them, beside this one
# make sensitivity  every empirical number of the solvers halved and doubled, about an hour
# make docs  the site, with its gallery, in docs/_build/html (RANNPDE_SMALL=1: a small gallery)
# make dist  the wheel, checked in an empty environment
# make smoke PYTHON=python3.13  a minute of tests on another Python
# make fuzz  a hundred thousand hostile statements and files
# make honesty COUNT=5000  random problems with known solutions: is anything called converged and wrong?
# make randomised COUNT=1000  random problems as users state them: solved, honestly not, refused, or defective?
# Each creates .venv with known-good versions first; nothing but Python ≥ 3.11 and make is needed.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

COUNT ?= 1000
CASES ?=
PEERS ?= $(BIN)/python
SECONDS ?= 30

# compiled modules are kept: the tests start hundreds of processes that load them
export PYTHONDONTWRITEBYTECODE :=

.PHONY: run test test-all smoke fuzz honesty randomised lint format bench pinnacle peers sensitivity docs dist clean

run: $(READY)
	$(BIN)/rannpde reproduce --quick

test: $(READY)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow"

test-all: $(READY)
	OPENBLAS_NUM_THREADS=1 RANNPDE_FULL=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal

# the least that another Python must pass, in an environment of its own that is thrown away: make smoke PYTHON=python3.13
SMOKE := tests/test_names.py tests/test_grammar.py tests/network/test_network.py tests/pde/test_entry.py \
  tests/studies/run/test_records.py

smoke:
	rm -rf build/smoke
	$(PYTHON) -m venv build/smoke
	build/smoke/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
	  --editable . pytest hypothesis mpmath
	OPENBLAS_NUM_THREADS=1 build/smoke/bin/python -m pytest -q $(SMOKE)
	rm -rf build/smoke

fuzz: $(READY)
	RANNPDE_FUZZ=100000 $(BIN)/python -m pytest -q -s tests/fuzz

honesty: $(READY)
	$(BIN)/python tests/honesty/hunt.py --count $(COUNT)

randomised: $(READY)
	$(BIN)/python tests/randomised/run.py --count $(COUNT) --seconds $(SECONDS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)
	$(BIN)/python -m benchmarks.fit
	$(BIN)/python -m benchmarks.paper
	$(BIN)/python -m benchmarks.theory
	$(BIN)/python -m benchmarks.solve
	$(BIN)/python -m benchmarks.evolve

pinnacle: $(READY)
	$(BIN)/python -m benchmarks.pinnacle $(CASES)

peers: $(READY)
	$(BIN)/python -m benchmarks.peers --python $(PEERS)

sensitivity: $(READY)
	$(BIN)/python -m benchmarks.sensitivity

docs: .venv/.docs
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx -b html -W --keep-going -q docs docs/_build/html

.venv/.docs: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	@touch .venv/.docs

# outside the source, so that what was installed is what runs: styles, scripts and examples must be in the wheel
dist: $(READY)
	rm -rf dist build
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	$(PYTHON) -m venv dist/empty
	dist/empty/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt dist/*.whl
	cd dist/empty && bin/rannpde examples burgers && bin/rannpde solve burgers.toml --tol 1e-4 --quiet
	cd dist/empty && test -s out/burgers.html && test -s out/burgers.npz && bin/python -c 'import rannpde; rannpde.zoo("heat")'
	rm -rf dist/empty build
	@ls dist

# modules are compiled when they are first loaded: compiling all of them takes half of the installation
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "rannpde needs Python 3.11 or newer; call make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $(READY)

clean:
	rm -rf .venv out build dist docs/_build docs/gallery src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
