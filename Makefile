# Everything here needs only make and Python 3.11 or later: each target makes the virtual
# environment that it needs and refreshes it when pyproject.toml or its file of requirements changes.
#
#   make PYTHON=python3.12 test      another interpreter
#   make test TESTS=tests/ops        some of the tests
#   make test PYTEST_FLAGS='-x -q'   pytest's own options
#   make demo DEMO_FLAGS='--steps 200'

PYTHON       ?= python3
WORKERS      ?= auto
TESTS        ?= tests
CONFORMANCE  ?= tests/conformance
# What `make test-oldest` and `make test-newest` run.
CORE_TESTS   ?= tests/graph tests/passes tests/runtime tests/test_requirements.py
# What generates programs or waits for deadlines takes long, and does not depend on versions.
CORE_IGNORED ?= $(wildcard tests/runtime/test_random_*.py tests/runtime/test_fuzz*.py) \
                tests/runtime/test_parts.py tests/runtime/test_stopping.py tests/runtime/test_exit.py
PYTEST_FLAGS ?=
DEMO_FLAGS   ?=
BENCH_FLAGS  ?=
QUEUE_FLAGS  ?= $(filter --quick,$(BENCH_FLAGS))
LOOP_FLAGS   ?= $(filter --quick,$(BENCH_FLAGS))
FIRST_FLAGS  ?= $(filter --quick,$(BENCH_FLAGS))
PLACEMENT_FLAGS ?= $(filter --quick,$(BENCH_FLAGS))
VARIABLES_FLAGS ?= $(filter --quick,$(BENCH_FLAGS))
KERNEL_FLAGS ?= $(filter --quick,$(BENCH_FLAGS))
EMBEDDING_FLAGS ?= $(filter --quick,$(BENCH_FLAGS))
INPUT_FLAGS ?= $(filter --quick,$(BENCH_FLAGS))
LENGTHS_FLAGS ?= $(filter --quick,$(BENCH_FLAGS))
REPEATED_FLAGS ?= $(filter --quick,$(BENCH_FLAGS))
BUSY_FLAGS ?= $(filter --quick,$(BENCH_FLAGS))
CLUSTER_FLAGS ?= $(filter --quick,$(BENCH_FLAGS))
SOAK_FLAGS   ?= --faults 30
FUZZ_FLAGS   ?= --count 100000
COORDINATION_FLAGS ?= $(filter --quick,$(BENCH_FLAGS))
SUMMARY_FLAGS ?= $(filter --quick,$(BENCH_FLAGS))
CHECKPOINT_FLAGS ?= $(filter --quick,$(BENCH_FLAGS))
EVALUATION_FLAGS ?=

# Bytecode is kept, even where the environment forbids it: the tests start hundreds of processes,
# each of which would compile the whole package again.
unexport PYTHONDONTWRITEBYTECODE

VENV        := .venv
LINT_VENV   := .venv-lint
PEER_VENV   := .venv-conformance
OLDEST_VENV := .venv-oldest
NEWEST_VENV := .venv-newest
# A stamp records a finished installation; an interrupted one leaves none and is done again.
RUNTIME     := $(VENV)/.installed-runtime
DEVELOPMENT := $(VENV)/.installed-development
LINTING     := $(LINT_VENV)/.installed
CONFORMING  := $(PEER_VENV)/.installed-conformance
MEASURING   := $(PEER_VENV)/.installed-benchmarks

# One file runs in one worker, so that module-level set-up (a compiled graph) is paid once.
PYTEST := -m pytest -n $(WORKERS) --dist loadfile $(PYTEST_FLAGS)
PIP    := -m pip --disable-pip-version-check install --quiet

# An environment with pip in it: one whose making was interrupted is made again.
make-environment = $(1)/bin/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(1)

# The first of the given versions of Python that is here; pyenv's need not be on the PATH.
find-python = $(shell for version in $(1); do \
  for python in $(HOME)/.pyenv/versions/$$version.*/bin/python$$version python$$version; do \
    "$$python" -c 'import venv, ensurepip' 2>/dev/null && { command -v "$$python"; exit; }; \
  done; done)
OLDEST_PYTHON ?= $(call find-python,3.11)
NEWEST_PYTHON ?= $(call find-python,3.15 3.14 3.13 3.12)

.DEFAULT_GOAL := help
.PHONY: help demo test lint format supported test-oldest test-newest core-tests conformance bench evaluation soak fuzz \
  clean check-python

help: ## Show the targets.
	@echo 'runnel: make TARGET'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)$$/\1|\2/p' $(firstword $(MAKEFILE_LIST)) \
	  | while IFS='|' read -r target what; do printf '  %-12s %s\n' "$$target" "$$what"; done

demo: $(RUNTIME) ## Train a classifier on the bundled digits and print its held-out accuracy.
	$(VENV)/bin/python examples/digits_classifier.py $(DEMO_FLAGS)

test: lint $(DEVELOPMENT) ## Lint, check the types and run the tests (without TensorFlow).
	$(VENV)/bin/python $(PYTEST) $(TESTS) --ignore=$(CONFORMANCE)

lint: $(LINTING) ## Check style, formatting and types.
	$(LINT_VENV)/bin/ruff check .
	$(LINT_VENV)/bin/ruff format --check .
	$(LINT_VENV)/bin/mypy

format: $(LINTING) ## Sort the imports and format every file.
	$(LINT_VENV)/bin/ruff check --select I --fix .
	$(LINT_VENV)/bin/ruff format .

supported: test-oldest test-newest ## Run the core's tests at both ends of what is supported.

test-oldest: ## Python 3.11 with the oldest JAX, NumPy and the rest (requirements/oldest.txt).
	@python='$(OLDEST_PYTHON)'; if test -z "$$python"; then \
	  echo 'skipped: no Python 3.11 was found (make test-oldest OLDEST_PYTHON=/path/to/python3.11)'; \
	else \
	  $(MAKE) core-tests PYTHON="$$python" VENV=$(OLDEST_VENV) \
	    INSTALL_FLAGS='--constraint requirements/oldest.txt'; \
	fi

test-newest: ## The newest Python that is here, with today's JAX, NumPy and the rest.
	@python='$(NEWEST_PYTHON)'; if test -z "$$python"; then \
	  echo 'skipped: no Python later than 3.11 was found' \
	       '(make test-newest NEWEST_PYTHON=/path/to/python3.13)'; \
	else \
	  $(MAKE) lint PYTHON="$$python" LINT_VENV=$(NEWEST_VENV)-lint && \
	  $(MAKE) core-tests PYTHON="$$python" VENV=$(NEWEST_VENV) \
	    INSTALL_FLAGS='--upgrade --upgrade-strategy eager'; \
	fi

core-tests: check-python
	@echo 'Installing runnel into $(VENV)'
	@$(call make-environment,$(VENV))
	@$(VENV)/bin/python $(PIP) $(INSTALL_FLAGS) --editable '.[dev]'
	$(VENV)/bin/python $(PYTEST) $(CORE_TESTS) $(addprefix --ignore=,$(CORE_IGNORED))

conformance: export TF_CPP_MIN_LOG_LEVEL ?= 3
conformance: $(CONFORMING) ## Compare with TensorFlow, live (installs tensorflow-cpu).
	$(PEER_VENV)/bin/python $(PYTEST) $(CONFORMANCE)

bench: export TF_CPP_MIN_LOG_LEVEL ?= 3
bench: $(MEASURING) ## Measure side by side with TensorFlow, JAX and PyTorch (installs them).
	status=0; $(PEER_VENV)/bin/python -m benchmarks.foundation $(BENCH_FLAGS) || status=$$?; \
	$(PEER_VENV)/bin/python -m benchmarks.queues $(QUEUE_FLAGS) || status=$$?; \
	$(PEER_VENV)/bin/python -m benchmarks.control_flow $(LOOP_FLAGS) || status=$$?; \
	$(PEER_VENV)/bin/python -m benchmarks.first_steps $(FIRST_FLAGS) || status=$$?; \
	$(PEER_VENV)/bin/python -m benchmarks.placement $(PLACEMENT_FLAGS) || status=$$?; \
	$(PEER_VENV)/bin/python -m benchmarks.many_variables $(VARIABLES_FLAGS) || status=$$?; \
	$(PEER_VENV)/bin/python -m benchmarks.kernels $(KERNEL_FLAGS) || status=$$?; \
	$(PEER_VENV)/bin/python -m benchmarks.repeated_structure $(REPEATED_FLAGS) || status=$$?; \
	$(PEER_VENV)/bin/python -m benchmarks.embeddings $(EMBEDDING_FLAGS) || status=$$?; \
	$(PEER_VENV)/bin/python -m benchmarks.input $(INPUT_FLAGS) || status=$$?; \
	$(PEER_VENV)/bin/python -m benchmarks.images $(INPUT_FLAGS) || status=$$?; \
	$(PEER_VENV)/bin/python -m benchmarks.varying_lengths $(LENGTHS_FLAGS) || status=$$?; \
	$(PEER_VENV)/bin/python -m benchmarks.busy_machine $(BUSY_FLAGS) || status=$$?; \
	$(PEER_VENV)/bin/python -m benchmarks.cluster $(CLUSTER_FLAGS) || status=$$?; \
	$(PEER_VENV)/bin/python -m benchmarks.coordination $(COORDINATION_FLAGS) || status=$$?; \
	$(PEER_VENV)/bin/python -m benchmarks.collectives $(COORDINATION_FLAGS) || status=$$?; \
	$(PEER_VENV)/bin/python -m benchmarks.second_start || status=$$?; \
	$(PEER_VENV)/bin/python -m benchmarks.summaries $(SUMMARY_FLAGS) || status=$$?; \
	$(PEER_VENV)/bin/python -m benchmarks.checkpoints $(CHECKPOINT_FLAGS) || status=$$?; \
	$(PEER_VENV)/bin/python -m benchmarks.report && exit $$status

evaluation: export TF_CPP_MIN_LOG_LEVEL ?= 3
evaluation: $(MEASURING) ## Run the paper's evaluation again, and write docs/evaluation.md.
	$(PEER_VENV)/bin/python -m benchmarks.evaluation $(EVALUATION_FLAGS)

fuzz: $(DEVELOPMENT) ## Changed files, client messages and frames, 100,000 of each (hours).
	status=0; for what in mutated_files distributed.mutated_messages distributed.mutated_frames; do \
	  $(VENV)/bin/python -m tests.$$what $(FUZZ_FLAGS) || status=$$?; done; exit $$status

soak: $(RUNTIME) ## Train a job whose tasks are killed and stopped again and again.
	$(VENV)/bin/python -m benchmarks.soak $(SOAK_FLAGS)

clean: ## Remove the environments, caches and build outputs.
	rm -rf runnel/native/*.so $(VENV) $(LINT_VENV) $(PEER_VENV) $(OLDEST_VENV) $(NEWEST_VENV) $(NEWEST_VENV)-lint build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

# Fails early, and says what to do, where the interpreter cannot serve.
check-python:
	@command -v $(PYTHON) >/dev/null 2>&1 || { \
	  echo "error: '$(PYTHON)' was not found; install Python 3.11 or later, or name one:" \
	       "make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: runnel needs Python 3.11 or later, and '$(PYTHON)' is" \
	       "$$($(PYTHON) -V 2>&1); name another one: make PYTHON=python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "error: '$(PYTHON)' has no venv module; on Debian and Ubuntu:" \
	       "apt-get install python3-venv" >&2; exit 1; }

# Order-only: the check runs first, but does not make an up-to-date environment stale.
$(RUNTIME): pyproject.toml setup.py | check-python
	@echo 'Installing runnel into $(VENV) (a minute or two, only when pyproject.toml changed)'
	@$(call make-environment,$(VENV))
	@$(VENV)/bin/python $(PIP) --editable .
	@$(VENV)/bin/python -m runnel.native
	@touch $@

$(DEVELOPMENT): $(RUNTIME)
	@echo "Installing the tests' tools into $(VENV)"
	@$(VENV)/bin/python $(PIP) --editable '.[dev]'
	@$(VENV)/bin/python $(PIP) --editable '.[tested]' || \
	  echo 'WARNING: not all of the extra "tested" (Ray, the schemas of Kubernetes) can be installed' \
	       'for this Python, as is said above: tests that need the rest are skipped' >&2
	@touch $@

# Made anew each time, so that it holds exactly what the files say. mypy reads packages and imports
# none, so those that it sees are the ones for Python 3.11, whichever interpreter runs it.
$(LINTING): requirements/lint.txt requirements/typed.txt | check-python
	@echo 'Installing the tools that check style and types into $(LINT_VENV)'
	@rm -rf $(LINT_VENV)
	@$(PYTHON) -m venv $(LINT_VENV)
	@$(LINT_VENV)/bin/python $(PIP) --no-deps --requirement requirements/lint.txt
	@site=$$($(LINT_VENV)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') && \
	  $(LINT_VENV)/bin/python $(PIP) --no-deps --requirement requirements/typed.txt \
	    --target "$$site" --python-version 3.11 --only-binary :all:
	@touch $@

$(CONFORMING): pyproject.toml setup.py | check-python
	@echo 'Installing runnel and TensorFlow into $(PEER_VENV) (a few minutes, only when pyproject.toml changed)'
	@$(call make-environment,$(PEER_VENV))
	@$(PEER_VENV)/bin/python $(PIP) --editable '.[dev,conformance]'
	@touch $@

$(MEASURING): $(CONFORMING)
	@echo 'Installing PyTorch into $(PEER_VENV)'
	@$(PEER_VENV)/bin/python $(PIP) --editable '.[dev,benchmarks]'
	@touch $@
