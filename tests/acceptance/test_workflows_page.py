"""Pages that are programs, and print what they say."""

from pathlib import Path

import pytest
from tests.acceptance.printed_program import run_as_printed

PAGES = ["workflows.md", "approval.md", "locks.md", "credentials.md", "waits.md", "batch.md"]


@pytest.mark.parametrize("page", PAGES)
def test_the_page_runs_as_printed(database: str, tmp_path: Path, page: str) -> None:
    run_as_printed(f"guides/{page}", database, tmp_path)
