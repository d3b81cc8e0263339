# `make run` and `make test` set up what they need: a virtual environment in .venv and, for the tests, Prometheus,
# ZooKeeper, Java, Redis and Memcached.
# Works with GNU make >= 3.81 (macOS) and a POSIX sh.

# Byte code is kept even where the environment says otherwise: the tests start thousands of processes, and without it each
# would compile Ardea anew.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest
PAIR := --numprocesses 2 --dist worksteal

# $(call phase,NAME,COMMAND) runs one phase and says how long it took.
phase = printf '\n== %s\n' '$(1)'; began=$$(date +%s); $(2) && echo "== $(1): ok after $$(($$(date +%s) - began)) s"

.PHONY: help run test check format style types layers generated unit soak bench proto image clean
.DEFAULT_GOAL := help

help: ## print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

run: .venv/.installed ## count the words of Python's own sources in two containers
	$(BIN)/ardea run examples/word_count.py --containers 2 --logs report

test: .venv/.installed .venv/.system style types layers generated unit ## lint, types, layers, and every test
	@$(call phase,tests of real processes two at a time,$(PYTEST) tests/process -m "not alone" $(PAIR) --durations=10)
	@$(call phase,tests of real processes one at a time,$(PYTEST) tests/process -m alone --durations=10)

check: .venv/.installed style types layers generated unit ## the quick part of the tests, under three minutes

format: .venv/.installed ## format the code and apply ruff's safe fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

style: .venv/.installed
	@$(call phase,style,$(BIN)/ruff format --check . && $(BIN)/ruff check .)

types: .venv/.installed
	@$(call phase,types,$(BIN)/mypy && $(BIN)/mypy --platform darwin --cache-dir .mypy_cache/darwin)

layers: .venv/.installed
	@$(call phase,layers,$(BIN)/lint-imports --no-logo)

generated: .venv/.installed
	@$(call phase,generated code,scripts/proto.sh --check)

unit: .venv/.installed
	@$(call phase,unit tests,$(PYTEST) tests/unit --numprocesses auto --durations=10)

soak: .venv/.installed .venv/.system ## the long tests at full size
	ARDEA_SOAK=1 $(PYTEST) -m soak --timeout=0 --durations=0

bench: .venv/.installed ## measure; options through ARGS="words --containers 1 -o json"
	$(BIN)/python -m benchmarks $(ARGS)

proto: .venv/.installed ## generate the protocol's code anew from ardea/protocol/*.proto
	scripts/proto.sh

image: ## build ardea:dev, or IMAGE=NAME, with buildah or docker; EXTRAS="arrow kubernetes zookeeper" adds packages
	scripts/image.sh "$(or $(IMAGE),ardea:dev)" $(if $(EXTRAS),--build-arg EXTRAS="$(EXTRAS)")

clean: ## remove everything that make made
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.installed: pyproject.toml scripts/venv.sh
	@scripts/venv.sh
	@touch $@

.venv/.system: .venv/.installed scripts/prometheus.sh scripts/zookeeper.sh scripts/java.sh scripts/stores.sh
	@scripts/prometheus.sh
	@scripts/java.sh
	@scripts/zookeeper.sh
	@scripts/stores.sh
	@touch $@
