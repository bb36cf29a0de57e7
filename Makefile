# Each target works as the first command typed on a machine with Python 3.11, make and a package index.

PYTHON ?= python3
WORKERS ?= 2

INSTALLED := .venv/.installed

.PHONY: up test check bench chaos clean

up: $(INSTALLED)
	.venv/bin/fenceline up

# On the embedded PostgreSQL 18, or on the server that FENCELINE_TEST_DSN names.
test: $(INSTALLED)
	.venv/bin/pytest -n $(WORKERS) --dist loadgroup --ignore=tests/chaos $(ARGS)

check: $(INSTALLED)
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports

bench: $(INSTALLED)
	.venv/bin/python -m benchmarks $(ARGS)

chaos: $(INSTALLED)
	.venv/bin/python -m tests.chaos $(ARGS)

clean:
	rm -rf .venv .fenceline .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache dist

$(INSTALLED): pyproject.toml
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,embedded]'
	touch $@
