# make demo                      train examples/jax-digits on this machine, no Kubernetes needed
# make demo EXAMPLE=torch-digits the same with torchrun and DistributedDataParallel
# make test                      all tests          make e2e     real processes, real kubectl, real training
# make check                     lint, types, layers          make bench   numbers, next to kopf and kubernetes_asyncio
PYTHON ?= python3
EXAMPLE ?= jax-digits
BENCH ?=
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
FRAMEWORK = $(firstword $(subst -, ,$(EXAMPLE)))

.PHONY: demo example-exists test e2e bench bench-devcluster bench-progress check format clean
.DELETE_ON_ERROR:

demo: example-exists $(VENV)/.demo-$(FRAMEWORK)
	@exec $(BIN)/trainer demo examples/$(EXAMPLE)/trainjob.yaml

example-exists:
	@test -f examples/$(EXAMPLE)/train.py || \
	  { echo "error: EXAMPLE=$(EXAMPLE): there is no example of this name that runs on this machine; choose one of:" $$(cd examples && ls */train.py | xargs dirname) >&2; exit 2; }

test: $(VENV)/.dev
	$(BIN)/pytest -n 2 tests

e2e: $(VENV)/.dev $(VENV)/.demo-jax $(VENV)/.demo-torch $(VENV)/.demo-tensorflow $(VENV)/.demo-xgboost $(VENV)/.demo-torchtune $(VENV)/.demo-mpi $(VENV)/.demo-mlx $(VENV)/.demo-transformers $(VENV)/.demo-lightning $(VENV)/.demo-keras
	$(BIN)/pytest e2e

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks $(BENCH)

bench-progress: $(VENV)/.dev
	$(BIN)/python -m benchmarks.progress $(BENCH)

bench-devcluster: $(VENV)/.dev
	$(BIN)/python -m benchmarks.devcluster_scale $(BENCH)
	$(BIN)/python -m benchmarks.devcluster_watchers

check: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(VENV)/.dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: $(PYTHON) is older than 3.11; name a newer one: make PYTHON=python3.12" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP_INSTALL) --editable '.[cluster,dev]'
	@touch $@

$(VENV)/.demo-%: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP_INSTALL) --editable '.[cluster,examples-$*]'
	@touch $@
