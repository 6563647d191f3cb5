# Everything a contributor types. `make setup` uses the network, and so do the first `make spark`
# (jars and, where none is here, Debian's Java), the first `make test` (Debian's ZooKeeper and
# Chromium), the first `make site` (Pyodide) and `make pins`, which is for maintainers; the others
# run from .venv.

PYTHON      ?= python3
PYTEST_ARGS ?=
SITE        ?= site
# A worker a core; tests/support/distributing.py says which tests stay together.
WORKERS     ?= -n auto --dist loadgroup --no-loadscope-reorder --max-worker-restart 2

VENV  := .venv
BIN   := $(VENV)/bin
STAMP := $(VENV)/.installed
UV    := uv==0.13.7
# An installed package is compiled; a checkout is not where PYTHONDONTWRITEBYTECODE is set, and then
# every broker that a test or benchmark starts compiles all of it anew.
COMPILE = $(BIN)/python -m compileall -q src

.DEFAULT_GOAL := help
.PHONY: help setup zookeeper chromium spark demo demo-loss test test-fast test-long check bench bench-parts \
  site site-playground map pins clean
MAKEFLAGS += --no-print-directory

help:
	@echo "make setup      create $(VENV) with pinned, hash-checked packages"
	@echo "make spark      have what Spark needs: jars, and a Java where none is here"
	@echo "make demo       a year of flights through a cluster that is broken, and the proof"
	@echo "make demo-loss  the same with unsafe settings: which records are gone, and why"
	@echo "make test-fast  seconds: what to run while you write"
	@echo "make test       everything but the long runs: what CI runs"
	@echo "make test-long  everything"
	@echo "make check      format, lint, types, import contracts, tidy tests"
	@echo "make bench      three brokers against three of Apache Kafka's, side by side"
	@echo "make bench-parts  each part by itself"
	@echo "make site       write a folder for a web server: the playground"
	@echo "make map        write docs/files.md: every module and what it does"
	@echo "make pins       recompile requirements.txt after a change in pyproject.toml"
	@echo "make clean      remove $(VENV) and all caches"

setup: $(STAMP)
	@:

$(STAMP): requirements.txt pyproject.toml
	@command -v $(PYTHON) >/dev/null || { \
	  echo "Holdfast needs Python 3.11 or newer, and '$(PYTHON)' was not found." >&2; \
	  echo "Install one, or name it: make setup PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Holdfast needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." >&2; \
	  echo "Name a newer one: make setup PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "setup: packages into $(VENV) ($$($(PYTHON) --version))"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(COMPILE)
	@touch $@

# Debian's ZooKeeper for the tests. Where it cannot be had, they say so and are skipped.
zookeeper: setup
	@sh scripts/fetch-zookeeper $(VENV)/zookeeper

# Debian's Chromium for the tests of pages, likewise.
chromium: setup
	@sh scripts/fetch-chromium

# Java, Spark's Kafka connector and Delta Lake; afterwards Spark needs no network.
spark: setup
	@sh scripts/fetch-java $(VENV)/java
	@$(BIN)/python -m holdfast.pipeline.spark

demo: setup spark
	@$(COMPILE)
	@$(BIN)/holdfast demo

demo-loss: setup spark
	@$(COMPILE)
	@$(BIN)/holdfast demo --unsafe --data-dir demo-loss

test-fast: setup
	@$(COMPILE)
	@$(BIN)/python -m pytest $(WORKERS) -m "not slow and not long" $(PYTEST_ARGS)

test: setup zookeeper chromium spark
	@$(COMPILE)
	@$(BIN)/python -m pytest $(WORKERS) -m "not long" $(PYTEST_ARGS)

test-long: setup zookeeper chromium spark
	@$(COMPILE)
	@$(BIN)/python -m pytest $(WORKERS) $(PYTEST_ARGS)

check: setup
	@echo "check: format"
	@$(BIN)/ruff format --check --quiet . || { \
	  $(BIN)/ruff format --diff --quiet .; echo "Mend with: $(BIN)/ruff format ." >&2; exit 1; }
	@echo "check: lint"
	@$(BIN)/ruff check --quiet .
	@echo "check: types"
	@$(BIN)/mypy --no-error-summary src tests $(wildcard bench)
	@echo "check: import contracts"
	@$(BIN)/lint-imports --no-cache > $(VENV)/imports.txt 2>&1 || { cat $(VENV)/imports.txt; exit 1; }
	@echo "check: tidy"
	@$(BIN)/python -m pytest -q -p no:randomly tests/tidy

bench: setup
	@$(COMPILE)
	@$(BIN)/python -m bench.against_kafka

bench-parts: setup
	@$(COMPILE)
	@$(BIN)/python bench/core_cycle.py
	@$(BIN)/python bench/storage.py
	@$(BIN)/python bench/store.py
	@$(BIN)/python bench/protocol_codec.py
	@$(BIN)/python bench/records.py
	@$(BIN)/python bench/ledger.py
	@$(BIN)/python bench/log_source.py
	@$(BIN)/python bench/search.py
	@$(BIN)/python bench/search_spark.py --rounds 1
	@$(BIN)/python -m bench.growth --many 1000 --requests 10000
	@$(BIN)/python -m bench.metrics --rounds 4 --partitions 1000
	@$(BIN)/python -m bench.metrics_switched

# A part of the site writes a folder of its own below $(SITE).
site: site-playground
	@echo "site: $(SITE); look at it with: $(BIN)/python -m http.server --bind 127.0.0.1 --directory $(SITE)"

site-playground: setup
	@sh scripts/fetch-pyodide $(VENV)/pyodide
	@$(BIN)/python -m holdfast.web.playground $(SITE)/playground $(VENV)/pyodide

map:
	@$(PYTHON) scripts/file-map

pins:
	@echo "pins: compile requirements.txt (uses the network)"
	@$(PYTHON) -m venv $(VENV)-pins
	@$(VENV)-pins/bin/python -m pip install --quiet --disable-pip-version-check $(UV)
	@$(VENV)-pins/bin/uv pip compile --quiet --universal --python-version 3.11 \
	  --no-python-downloads --generate-hashes --no-header --no-annotate \
	  --group dev pyproject.toml --output-file requirements.txt
	@rm -rf $(VENV)-pins

clean:
	@rm -rf $(VENV) $(VENV)-pins build dist htmlcov .coverage .coverage.* \
	  .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	@find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
