# Everything a person needs to set up, try and test accelbench:
#
#   make demo          install, show the hardware, measure four small models
#   make test          install, check the code, run the tests
#
# Both need Python >= 3.11, make and a C compiler, and fetch packages the first time.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# NVIDIA's management library is read through a small package: taken along where it can work.
EXTRAS ?= torch$(if $(shell command -v nvidia-smi 2>/dev/null),$(comma)cuda)
comma := ,

# Each test and each launch is a process. Without cached bytecode each compiles the package anew.
export PYTHONDONTWRITEBYTECODE :=

DEMO := demo
DEMO_MODELS := bert-tiny vit-tiny resnet-tiny gpt2-tiny
BENCHMARKS := fidelity native_loops perturbation cost_per_case memory intervals startup

# An index beside those that pip is configured with; the variable of pip's would replace them.
INDEX ?=
MORE := $(if $(INDEX),--extra-index-url $(INDEX))
# A copy of the package, as `pip install '.[…]'` puts it in place of this tree, would go stale.
COPY := $(wildcard $(VENV)/lib/python*/site-packages/accelbench/__init__.py)
.PHONY: $(COPY)

PIP := $(BIN)/python -m pip --disable-pip-version-check
MADE := $(VENV)/.made
INSTALLED := $(VENV)/.installed
INSTALLED_DEV := $(VENV)/.installed-dev
INSTALLED_FULL := $(VENV)/.installed-full

.DEFAULT_GOAL := help
.PHONY: help demo install test test-full test-times test-cuda wheels browser screenshots check format bench pictures costs constraints clean

help:
	@echo 'make demo         install, show the hardware, measure four small models (minutes)'
	@echo 'make test         install, check the code, run the tests'
	@echo 'make test-full    the tests that make test leaves out (up to an hour)'
	@echo 'make test-times   make test, and where its time goes'
	@echo 'make test-cuda    what only a CUDA GPU can show, by $(PYTHON) with its own PyTorch (9 minutes)'
	@echo 'make wheels       packages that such a Python may lack, into wheels/'
	@echo 'make check        formatting, lint, types and layering only'
	@echo 'make format       format the code'
	@echo 'make bench        the benchmarks of the benchmark; figures go to benchmarks/results/'
	@echo 'make pictures     what the front page shows: outputs, a terminal, pages (minutes)'
	@echo 'make screenshots  every page at three widths, light and dark, as pictures in $(SHOTS)/'
	@echo 'make costs        count FLOPs and bytes of every catalogue model anew'
	@echo 'make constraints  pin the versions anew, from a fresh environment'
	@echo 'make clean        remove $(VENV), $(DEMO)/ and caches'
	@echo
	@echo 'PYTHON=python3.12 chooses another Python, VENV=DIR another place, INDEX=URL a further package index.'

# -- the environment ------------------------------------------------------------------

$(MADE):
	@command -v $(PYTHON) >/dev/null 2>&1 || { \
	  echo 'There is no $(PYTHON) here. Install Python 3.11 or newer, or name one: make PYTHON=python3.12 …' >&2; \
	  exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "accelbench needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Name another: make PYTHON=python3.12 …" >&2; \
	  exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo 'This Python cannot make virtual environments: venv or ensurepip is missing. On Debian and Ubuntu: apt install python3-venv' >&2; \
	  exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(INSTALLED): $(MADE) pyproject.toml constraints.txt $(COPY)
	$(PIP) install $(MORE) -c constraints.txt -e '.[$(EXTRAS)]'
	@touch $@

# Engines that are packages of their own: what `make test` runs, and what `make test-full` runs.
PLUGINS_DEV := plugins/accelbench-ncnn
PLUGINS_FULL := plugins/accelbench-executorch

$(INSTALLED_DEV): $(INSTALLED) $(PLUGINS_DEV)/pyproject.toml
	$(PIP) install $(MORE) -c constraints.txt -e '.[$(EXTRAS),dev]' $(PLUGINS_DEV:%=-e %)
	@touch $@

$(INSTALLED_FULL): $(INSTALLED_DEV) $(PLUGINS_FULL)/pyproject.toml
	$(PIP) install $(MORE) -c constraints.txt $(PLUGINS_FULL:%=-e %)
	@touch $@

install: $(INSTALLED)

# -- looking at it --------------------------------------------------------------------

demo: $(INSTALLED)
	$(BIN)/accelbench hardware
	$(BIN)/accelbench run $(DEMO_MODELS) --batch-sizes 1,8 \
	  --db $(DEMO)/accelbench.duckdb --output-dir $(DEMO)/results
	@echo
	@echo 'Go on with: $(BIN)/accelbench --help'
	@echo '            $(BIN)/accelbench models'
	@echo '            $(BIN)/accelbench db status --db $(DEMO)/accelbench.duckdb'

# -- checking it ----------------------------------------------------------------------

check: $(INSTALLED_DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(INSTALLED_DEV)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Two test processes share the cores. One that dies ends the run: put in its place, another was seen to
# wait for ever for tests that had gone with it.
JOBS ?= 2
REPORT := $(if $(TIMES),--junitxml=$(TIMES))
# A file's tests stay in one process: they share what is dear to make. Files come in the order of
# tests/conftest.py, which has the longest first, not by how many tests they have.
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder \
  --max-worker-restart 0 $(REPORT)

# With RETRY=1, tests that failed are run once more, one at a time, and listed: a defect fails twice.
# Not after a run that was cut short (any other exit code than 1).
RETRIED = || { test $$? -eq 1 && echo 'Failed tests are run once more, one at a time.' && \
  $(BIN)/python -m pytest --last-failed --last-failed-no-failures none -m 'not full and not cuda'; }

test: check browser
	$(PYTEST) -m 'not full and not cuda' $(if $(RETRY),$(RETRIED))

# What `make test` leaves out, and nothing that it runs; docs/testing.md says why it does.
test-full: $(INSTALLED_FULL) browser
	$(PYTEST) -m 'full and not cuda' --timeout 3600

# Runs `make test` and keeps where its time went, under benchmarks/results/.
test-times: $(INSTALLED_DEV)
	@start=$$(date +%s); $(MAKE) --no-print-directory test TIMES=build/times.xml && \
	  $(BIN)/python benchmarks/test_times.py --wall $$(($$(date +%s) - start)) build/times.xml

# The engine and a browser for the tests, where npm can fetch them; checked against pinned sums.
browser: $(INSTALLED_DEV)
	@if command -v npm >/dev/null 2>&1; then $(BIN)/accelbench setup browser --with-chromium; \
	 else echo 'npm is not here: tests in a browser are skipped.'; fi

# On a machine with a GPU, which has its own PyTorch and perhaps no network: nothing is installed.
WHEELS ?= wheels
WHEELS_PYTHON ?= 3.12

test-cuda:
	$(PYTHON) benchmarks/gpu_day --wheels $(WHEELS) $(if $(OUT),--out $(OUT))

wheels:
	$(PYTHON) benchmarks/gpu_day --fetch-wheels $(WHEELS) --python $(WHEELS_PYTHON)

bench: $(INSTALLED_DEV)
	@set -e; for name in $(BENCHMARKS); do \
	  echo "== $$name"; $(BIN)/python benchmarks/$$name.py; done

# -- what is generated ----------------------------------------------------------------

# Everything on the front page is measured anew; PICTURES=gate,pages makes some of it.
PICTURES ?= onnx,gate,choose,pages

pictures: $(INSTALLED_DEV)
	$(BIN)/python benchmarks/front_page.py --only $(PICTURES)

# Pages of a small made-up store. A picture that is other than the one that is there already is named,
# and that one stays beside it as .before.png.
SHOTS ?= build/screenshots

screenshots: $(INSTALLED_DEV) browser
	ACCELBENCH_SCREENSHOTS=$(SHOTS) $(BIN)/python -m pytest -q -rP tests/present/looks/test_layouts.py

costs: $(INSTALLED)
	$(BIN)/python benchmarks/costs.py --write

# torch is named exactly: left open, pip takes the newest, with gigabytes of CUDA packages on Linux.
TORCH_VERSION := 2.13.0

constraints:
	rm -rf build/pins
	$(PYTHON) -m venv build/pins
	build/pins/bin/python -m pip --disable-pip-version-check install \
	  'torch==$(TORCH_VERSION)' '.[torch,cuda,dev]' $(PLUGINS_DEV:%=./%)
	{ sed -n '/^#/p;/^[^#]/q' constraints.txt; \
	  build/pins/bin/python -m pip freeze --exclude accelbench $(PLUGINS_DEV:plugins/%=--exclude %) | sed -E 's/\+[a-z0-9.]+$$//' | \
	  grep -vE '^(nvidia-(cu|nc|nv)|cuda-|triton)' | LC_ALL=C sort -f; } > build/constraints.txt
	mv build/constraints.txt constraints.txt
	rm -rf build/pins

clean:
	rm -rf $(VENV) $(DEMO) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests benchmarks examples plugins -name __pycache__ -type d -prune -exec rm -rf {} +
