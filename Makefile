# Two commands for a newcomer: `make demo` and `make test`. Both set up everything they need.
PYTHON ?= python3
VENV ?= .venv
RUN = $(VENV)/bin/python
WORKERS ?= 2

.PHONY: test oldest demo notebooks docs audit audit-deps accuracy mutants fuzz check format assets bench clean

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "geodp needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --upgrade pip
	$(RUN) -m pip install --quiet --editable '.[test]'
	touch $@

test: $(VENV)/.ready
	$(RUN) -m pytest -n $(WORKERS) -q -m "not audit and not accuracy and not mutants and not fuzz"

# pyproj makes numpy 2.0 to 2.3 say this of single points.
OLD_WARNINGS = -W "ignore:Conversion of an array with ndim:DeprecationWarning"

# The fast tests again, with the oldest versions that pyproject.toml allows.
$(VENV)-oldest/.ready: pyproject.toml .ci/oldest.txt
	$(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip install --quiet --constraint .ci/oldest.txt --editable '.[all]' antimeridian build hypothesis pytest pytest-xdist
	touch $@

oldest: $(VENV)-oldest/.ready
	$(VENV)-oldest/bin/python -m pytest -n $(WORKERS) -q -m "not audit and not accuracy and not mutants and not fuzz" $(OLD_WARNINGS) tests

demo: $(VENV)/.ready
	$(RUN) notebooks/demo.py

# Runs the course and stores what it shows.
notebooks: $(VENV)/.ready
	$(RUN) notebooks/execute.py

# The pages, in docs/_build/docs/index.html; what Sphinx warns of is an error. Needs no network.
docs: $(VENV)/.ready
	rm -rf docs/reference
	$(RUN) -m sphinx -c docs --fail-on-warning --keep-going -q . docs/_build

audit: $(VENV)/.ready
	$(RUN) -m pytest -n $(WORKERS) -q -m audit

accuracy: $(VENV)/.ready
	$(RUN) -m pytest -n $(WORKERS) -q -m accuracy

# Plants one deliberate bug at a time, and wants the tests named for it to fail: tests/mutants/KILLED.md.
mutants: $(VENV)/.ready
	$(RUN) -m pytest -n $(WORKERS) -q -m mutants tests/mutants

# Many more hostile inputs than `make test` draws; takes a while, and is not part of CI.
fuzz: $(VENV)/.ready
	$(RUN) -m pytest -n $(WORKERS) -q -m fuzz tests/fuzzing

# Known vulnerabilities of what is installed, by pip-audit in an environment of its own. Asks PyPI's advisory
# service, so it needs the network, and is not part of CI. What it says it skipped was not audited.
audit-deps: $(VENV)/.ready
	$(PYTHON) -m venv $(VENV)-audit
	$(VENV)-audit/bin/python -m pip install --quiet pip-audit
	$(VENV)-audit/bin/pip-audit --progress-spinner off --path $$($(RUN) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')

check: $(VENV)/.ready
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

# What the web page takes over from npm, in the versions that VERSIONS names.
assets:
	bash .ci/assets.sh

format: $(VENV)/.ready
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

clean:
	rm -rf $(VENV) $(VENV)-oldest $(VENV)-audit build dist docs/_build docs/reference *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
