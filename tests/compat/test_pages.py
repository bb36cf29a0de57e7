"""The pages of docs/moving are programs, and print what they say."""

from pathlib import Path

import pytest
from tests.acceptance.printed_program import DOCS, run_as_printed

PAGES = sorted(path.name for path in (DOCS / "moving").glob("*.md"))


@pytest.mark.parametrize("page", PAGES)
def test_the_page_runs_as_printed(page: str, database: str, tmp_path: Path) -> None:
    run_as_printed(f"moving/{page}", database, tmp_path)
