# Each target sets up .venv by itself; nothing needs to be activated.
PYTHON ?= python3
PIP = .venv/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
BIN = .venv/bin
# pip compiles what it copies, and not what is used where it stands: a command starts sooner.
COMPILE = @$(BIN)/python -m compileall -q client/reticent server/reticent_server
PROJECTS = pyproject.toml client/pyproject.toml server/pyproject.toml

.PHONY: install demo test packages check docs bench audit mutants nightly generated contract clean

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.server: $(PROJECTS) constraints.txt | .venv/bin/python
	$(PIP) --editable ./client
	$(PIP) --editable './server[files,word]'
	$(COMPILE)
	@touch $@

.venv/.demo: $(PROJECTS) constraints.txt | .venv/bin/python
	$(PIP) --editable ./client
	$(PIP) --editable './server[demo]'
	@touch $@

.venv/.test: $(PROJECTS) constraints.txt | .venv/bin/python
	$(PIP) --editable './client[pandas,plot,word,yaml]'
	$(PIP) --editable './server[dask,demo,files,word]' '.[test]'
	$(COMPILE)
	@touch $@

.venv/.bench: .venv/.test
	$(PIP) '.[bench]'
	@touch $@

install: .venv/.server          ## the server and its command line, in .venv

demo: .venv/.demo               ## a whole session on real data
	$(BIN)/reticent demo

# Tests make and free arrays of some MiB all the time. The allocator keeps their pages: to get them from the system
# and to clear them each time takes as long as the work on them. One thread a process, as there are as many
# processes as cores; compiled files are kept, since some tests start interpreters.
TESTS = test audit mutants nightly
$(TESTS): export MALLOC_MMAP_THRESHOLD_ = 268435456
$(TESTS): export MALLOC_TRIM_THRESHOLD_ = 268435456
$(TESTS): export OMP_NUM_THREADS = 1
$(TESTS): export OPENBLAS_NUM_THREADS = 1
$(TESTS): export PYTHONDONTWRITEBYTECODE =

# FAST=1, for the inner loop: of the tests that take no long time, in the folders that start nothing, one case each.
INNER = $(addprefix tests/server/,access accounting api catalog chain domain engine fitting formula kinds numerics pipeline web)
SELECTED = $(if $(FAST),--one-case -m 'not audit and not slow' tests/client tests/kinds tests/privacy $(INNER),-m 'not audit' tests)

# More processes than cores: some tests wait, for a deadline or for a process that they started.
test: .venv/.test               ## the test suite; with FAST=1 a minute's selection of it; NOISE_SEED=N shifts its seeds
	$(BIN)/python -m pytest -n 3 --dist worksteal --noise-seed $(or $(NOISE_SEED),0) $(SELECTED)

packages: .venv/.test           ## the wheels in empty environments, the image and the compose file's services
	$(BIN)/python -m tools.packages

check: .venv/.test              ## format, lint, docstrings, types, layers, licences, requirements
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python tools/docstrings.py
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/licences.py
	$(BIN)/python tools/imports.py

docs: .venv/.test               ## the documentation as a site, in build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: .venv/.bench             ## speed and accuracy, against peers
	$(BIN)/python -m benchmarks

audit: .venv/.test              ## long statistical, privacy and fault tests
	$(BIN)/python -m pytest -n 2 --dist worksteal -m audit tests

nightly: .venv/.bench           ## audit, bench, mutants, gauntlet and the figures of the docs; one report in build
	$(BIN)/python tools/nightly.py --resume

mutants: .venv/.test            ## break the code on purpose: every mutant must turn a test red
	$(BIN)/python tools/mutants.py

generated: .venv/.test         ## the clients' methods and the schema of a release, from the server's kinds
	$(BIN)/python tools/client_methods.py
	$(BIN)/python tools/release_schema.py
	$(BIN)/python tools/r_methods.py

contract: .venv/.test           ## store this version's interface, which later versions are compared with
	$(BIN)/python tools/contract.py --store

clean:
	rm -rf .venv build dist
