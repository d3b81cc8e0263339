# `make run` and `make test` set up what they need: a virtual environment in .venv and, for the tests, Prometheus,
# ZooKeeper, Java, Redis, Memcached, PostgreSQL and Chromium.
# Works with GNU make >= 3.81 (macOS) and a POSIX sh.

# Byte code is kept even where the environment says otherwise: the tests start thousands of processes, and without it each
# would compile Ardea anew.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
PHASE := @scripts/phase.sh
PYTEST := $(BIN)/python -m pytest --durations=25
MOST_AT_A_TIME := 4
AT_A_TIME = $(shell $(BIN)/python tests/machine.py $(MOST_AT_A_TIME))# tests of real processes, fewer on a slow machine: half of their time they wait
VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' ardea/versions.py)
SERVERS ?= /dev/null# a shell script that waits for servers of the tests, and exports where they are

.PHONY: help run test test-all check format style types layers generated unit servers processes together alone soak bench proto image dist lock chart clean
.DEFAULT_GOAL := help

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

run: .venv/.installed ## count the words of Python's own sources in two containers
	$(BIN)/ardea run examples/word_count.py --containers 2 --logs report

test: style types layers generated unit processes ## lint, types, layers, unit tests, the tests of real processes that CI runs

test-all: ALL := --all
test-all: MOST_AT_A_TIME := 3# with four, Spark, Kubernetes and browsers starve one another on two cores
test-all: style types layers generated unit processes ## the same with every test, and every example of hypothesis

check: style types layers generated unit ## the quick part of the tests, three minutes

format: .venv/.installed ## format the code and apply ruff's safe fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

style: .venv/.installed
	$(PHASE) style sh -c "$(BIN)/ruff format --check . && $(BIN)/ruff check ."

types: .venv/.installed
	$(PHASE) types sh -c "$(BIN)/mypy --platform darwin --cache-dir .mypy_cache/darwin & $(BIN)/mypy && wait \$$!"

layers: .venv/.installed
	$(PHASE) layers $(BIN)/lint-imports --no-logo

generated: .venv/.installed
	$(PHASE) "generated code" scripts/proto.sh --check

unit: .venv/.installed
	$(PHASE) "unit tests" $(PYTEST) tests/unit tests/simulation --numprocesses 3 $(ALL)

servers: .venv/.installed
	@. $(SERVERS)

processes: together alone

together: servers .venv/.system
	@. $(SERVERS); at_a_time=$(AT_A_TIME); scripts/phase.sh "tests of real processes, $$at_a_time at a time" \
		$(PYTEST) tests/process tests/unit/helm -m "not alone" --numprocesses $$at_a_time --dist loadscope $(ALL)

alone: servers .venv/.system
	@. $(SERVERS); scripts/phase.sh "tests of measured time, one at a time" $(PYTEST) tests/process -m alone $(ALL)

soak: .venv/.installed .venv/.system ## the long tests at full size
	ARDEA_SOAK=1 $(PYTEST) -m soak --all --timeout=0

bench: .venv/.installed ## measure; options through ARGS="words --containers 1 -o json"
	$(BIN)/python -m benchmarks $(ARGS)

proto: .venv/.installed ## generate the protocol's code anew from ardea/protocol/*.proto
	scripts/proto.sh

image: ## build ardea:VERSION or IMAGE=NAME, with BASE=NAME@DIGEST, EXTRAS="cli drpc arrow"; PUSH=HOST/PATH pushes it
	BASE="$(BASE)" PUSH="$(PUSH)" scripts/image.sh "$(or $(IMAGE),$(PUSH:%=%/)ardea:$(VERSION))" \
		$(if $(filter undefined,$(origin EXTRAS)),,--build-arg EXTRAS="$(EXTRAS)")

dist: .venv/.installed ## build wheel and sdist into dist/, and check them
	scripts/dist.sh dist

lock: .venv/.installed ## write anew which versions images install
	$(BIN)/python scripts/lock.py

chart: ## package the chart into build/; PUSH=HOST/PATH pushes it, too
	scripts/chart.sh $(PUSH)

clean: ## remove everything that make made
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.installed: pyproject.toml scripts/venv.sh
	@scripts/venv.sh
	@touch $@

.venv/.system: .venv/.installed scripts/prometheus.sh scripts/zookeeper.sh scripts/java.sh scripts/stores.sh scripts/browser.sh
	@scripts/prometheus.sh
	@scripts/java.sh
	@scripts/zookeeper.sh
	@scripts/stores.sh
	@scripts/browser.sh
	@touch $@
