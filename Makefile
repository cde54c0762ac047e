# make help lists the targets.  Everything lives in .venv, made from the project's files alone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT := out/hello
T ?= test
# Tests start Python hundreds of times; where it may not keep compiled modules, each time compiles all anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-all unit lit lint types check gpu slow docs site dist clean
.DEFAULT_GOAL := help

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | awk -F'\t' '{printf "  make %-8s %s\n", $$1, $$2}'

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -e .
	@touch $@

# ptxas: only where there is a GPU to assemble for.
$(VENV)/.cuda: $(VENV)/.core
	@if command -v nvidia-smi >/dev/null 2>&1 && nvidia-smi -L >/dev/null 2>&1; then \
	  $(BIN)/python -m pip install -q --disable-pip-version-check -e '.[cuda]'; fi
	@touch $@

$(VENV)/.test: $(VENV)/.core
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[test]'
	@touch $@

$(VENV)/.dev: $(VENV)/.test
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: $(VENV)/.cuda  ## run the first example (GPU, or the CPU interpreter), show its result, keep IR and PTX
	$(BIN)/python examples/hello.py --keep $(OUT)

test: $(VENV)/.test  ## the quick tests (lit and pytest): at most 8 CPU minutes
	$(BIN)/lit -q test examples
	$(BIN)/python -m pytest -q -n auto --dist loadfile test

test-all: $(VENV)/.docs  ## the quick and the slow tests: before an issue is closed, and every night
	$(BIN)/lit -q -Dslow=1 test examples
	$(BIN)/python -m pytest -q -n auto --dist loadfile --all test

unit: $(VENV)/.test  ## pytest only; of one folder: make unit T=test/unit/interp
	$(BIN)/python -m pytest -q -n auto --dist loadfile $(T)

lit: $(VENV)/.test  ## lit only; of one folder: make lit T=test/filecheck/passes
	$(BIN)/lit -v $(T)

lint: $(VENV)/.dev  ## ruff, and the words of docstrings, comments, errors and pages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python test/unit/house/prose.py

types: $(VENV)/.dev  ## pyright, strict; of the examples, as an editor checks them
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/pyright --pythonpath $(BIN)/python -p examples

check: lint types test  ## lint, types and the quick tests: all that a commit must pass

gpu: $(VENV)/.test $(VENV)/.cuda  ## tests that need an NVIDIA GPU
	$(BIN)/python -m pytest -q test/gpu test/gpu_dist

# Random cases: FUZZ=10 draws ten times as many, other ones with SEED.
FUZZ ?= 1
SEED ?= 0
drawn = --count $$(($(FUZZ) * $(1))) --seed $(SEED)

slow: $(VENV)/.test  ## fuzzing, and random cases against independent oracles; more of it: FUZZ=10
	$(BIN)/python test/errors/error_sites.py op
	$(BIN)/python test/oracle/target_grid.py
	$(BIN)/python test/oracle/mutants.py --share $$($(BIN)/python -c 'print(min(1, 0.05 * $(FUZZ)))') --seed $(SEED)
	$(BIN)/python test/oracle/value_mutants.py
	$(BIN)/python test/oracle/rank_mutants.py --missed
	$(BIN)/python test/oracle/attention_fuzz.py --assemble
	$(BIN)/python test/oracle/algebra_fuzz.py $(call drawn,1000)
	$(BIN)/python test/oracle/file_fuzz.py $(call drawn,2000)
	$(BIN)/python test/oracle/form_fuzz.py $(call drawn,10000)
	$(BIN)/python test/oracle/artifact_fuzz.py $(call drawn,20000)
	$(BIN)/python test/oracle/cache_fuzz.py $(call drawn,5000)
	$(BIN)/python test/oracle/value_fuzz.py $(call drawn,200)
	$(BIN)/python test/oracle/sync_fuzz.py $(call drawn,2000)
	$(BIN)/python test/oracle/async_fuzz.py $(call drawn,2000)
	$(BIN)/python test/oracle/memory_fuzz.py $(call drawn,1000)
	$(BIN)/python test/oracle/argument_fuzz.py $(call drawn,1000000)
	$(BIN)/python test/oracle/flow_fuzz.py $(call drawn,2000)
	$(BIN)/python test/oracle/gemm_parts_fuzz.py $(call drawn,100)
	$(BIN)/python test/oracle/conv_fuzz.py $(call drawn,60)
	$(BIN)/python test/oracle/attention_fuzz.py $(call drawn,30)

docs: $(VENV)/.test  ## regenerate docs/dialect.md, docs/reference and the grammars, build the site
	$(BIN)/python -m cute_dialect.tools.docs.dialect
	$(BIN)/python -m cute_dialect.tools.docs.grammar
	$(BIN)/python -m cute_dialect.tools.docs.reference
	$(MAKE) site

$(VENV)/.docs: $(VENV)/.test
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[docs]'
	@touch $@

site: $(VENV)/.docs  ## build the documentation site, out/site/html/index.html; a broken link fails
	CUTE_DEVICE=cpu $(BIN)/python -m cute_dialect.tools.docs.site -o out/site

PYTHONS ?= $(PYTHON)
dist:  ## build sdist and wheel, and use the wheel in clean environments of PYTHONS, and in one without MLIR
	.ci/dist $(PYTHONS)

clean:  ## remove .venv and everything built
	rm -rf $(VENV) out build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
