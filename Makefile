# Every target creates .venv when it is missing and installs what it needs.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
TORCH := .venv/.torch-installed
DOCS := .venv/.docs-installed
RELEASE := .venv/.release-installed
# A process a core, each of which takes 0.6 GB.
SIDE_BY_SIDE := -n auto --maxprocesses 4 --dist worksteal
RUNTIME := build/runtime/.installed
# Asked before an environment is made that could not be used; runs on any Python.
NEW_ENOUGH := import sys; sys.exit(None if sys.version_info >= (3, 11) else \
  '$(PYTHON) is Python %d.%d; 3.11 or newer is needed: make ... PYTHON=python3.12' % sys.version_info[:2])

.PHONY: docs serve-docs reference
.PHONY: package test-wheel test-minimal licences check-licences sbom
.PHONY: demo pictures browser lint test test-cluster test-torch torch accuracy soak check check-all fix bench clean
.DEFAULT_GOAL := test

$(STAMP): pyproject.toml
	@test -x $(BIN)/pip || $(PYTHON) -c "$(NEW_ENOUGH)"
	test -x $(BIN)/pip || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $@

demo: $(STAMP)  ## plan the example model and say where its picture is
	$(BIN)/sapp-ppb plan examples/llama2_70b.json -s 16 -i 2 -mb 32 -mem 56000 -o build/demo --force
	@echo "open build/demo/report.html in a browser; the picture is build/demo/timeline.png, the plan build/demo/plan.json"

pictures: $(STAMP)  ## draw the pictures of the README and of the documents anew
	$(BIN)/python examples/before_and_after.py docs/images/before_and_after.png
	$(BIN)/python docs/site/make_pictures.py

reference: $(STAMP)  ## write docs/reference/ anew, from options and docstrings
	$(BIN)/python docs/site/make_reference.py

$(DOCS): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev,docs]"
	touch $@

docs serve-docs: export NO_MKDOCS_2_WARNING = 1
docs: $(DOCS)  ## the documents as a site in build/site; a link that leads nowhere fails
	$(BIN)/mkdocs build --quiet
	@echo "open build/site/index.html in a browser"

serve-docs: $(DOCS)  ## the same site while pages are written, on http://127.0.0.1:8000
	$(BIN)/mkdocs serve

browser:  ## a Chromium for the tests of the report page, where it can be had
	@.ci/browser

test: $(STAMP) browser  ## unit tests, laws, golden files, doctests
	$(BIN)/python -m pytest $(SIDE_BY_SIDE)

test-cluster: $(STAMP)  ## sweeps on a Dask scheduler and a Ray of this machine, and Parquet; installs the extras
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev,dask,ray,parquet]"
	$(BIN)/python -m pytest -m cluster

$(TORCH): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev,torch]"
	touch $@

torch: $(TORCH)  ## PyTorch, for the two targets below

test-torch: $(TORCH)  ## our orders and times against PyTorch's in real processes; about 5 minutes
	$(BIN)/python -m pytest tests_torch

accuracy: $(TORCH)  ## measure the table of docs/accuracy.md anew
	$(BIN)/python benchmarks/accuracy.py --keep

soak: $(STAMP)  ## laws on random problems for SAPP_PPB_SOAK_SECONDS or 20 minutes, then hostile input and faults
	$(BIN)/python -m soak

lint: $(STAMP)  ## format, lint, types, arrows between rooms, unused dependencies
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry src

check: TESTS = -m "not slow"
check-all: browser
check check-all: lint  ## what must hold before a change is proposed; check-all with the slow tests
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) --cov $(TESTS)
	$(BIN)/python -m build --no-isolation --wheel --outdir build/dist

$(RELEASE): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev,release]"
	touch $@

package: $(RELEASE)  ## wheel and sdist in dist/, built twice: equal byte for byte, and with what they should hold
	$(BIN)/python -m release.pack

test-wheel: package  ## the tests of the sdist with the installed wheel, by PYTHON; about 5 minutes
	$(BIN)/python -m release.try_wheel --python $(PYTHON) -- $(SIDE_BY_SIDE) -q -m "not slow and not cluster"

test-minimal: package  ## the same with the oldest dependencies; old ones say much about newer ones of their own
	$(BIN)/python -m release.try_wheel --python $(PYTHON) --constraints requirements/minimal.txt -- \
	  $(SIDE_BY_SIDE) -q -m "not slow and not cluster" -W ignore::DeprecationWarning

$(RUNTIME): package  # an environment with what a user gets, and nothing else
	rm -rf build/runtime
	$(PYTHON) -m venv --without-pip build/runtime
	$(BIN)/python -m pip --python build/runtime/bin/python install --quiet --disable-pip-version-check dist/*.whl
	$(BIN)/python -m pip --python build/runtime/bin/python check
	touch $@

licences: $(RUNTIME)  ## write docs/licences.md
	$(BIN)/python -m release.licences --write

check-licences: $(RUNTIME)  ## the licences of all dependencies go with ours, and docs/licences.md names them
	$(BIN)/python -m release.licences

sbom: $(RUNTIME)  ## what a user gets, as CycloneDX, beside the wheel
	$(BIN)/cyclonedx-py environment --output-reproducible --pyproject pyproject.toml \
	  --output-file dist/sapp-ppb.cdx.json build/runtime/bin/python

fix: $(STAMP)  ## format, and repair what ruff can repair
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(STAMP)  ## speed and quality on the cases of benchmarks/
	$(BIN)/python benchmarks/run.py --keep

clean:  ## remove what was built, the environment excepted
	rm -rf build dist .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
