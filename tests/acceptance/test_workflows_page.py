"""Pages that are programs, and print what they say."""

from pathlib import Path

import pytest
from tests.acceptance.printed_program import run_as_printed


@pytest.mark.parametrize("page", ["guides/workflows.md", "guides/waits.md", "guides/batch.md"])
def test_the_page_runs_as_printed(database: str, tmp_path: Path, page: str) -> None:
    run_as_printed(page, database, tmp_path)
