"""The tests of docs/guides/testing.md pass, in a project like the one that the page describes."""

import re
from pathlib import Path

from tests.testing.project import run_pytest

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "testing.md"


def write_project(folder: Path) -> int:
    """The page's files; how many tests they have."""
    text = PAGE.read_text()
    app, *tests = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    [settings] = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    strict = 'filterwarnings = ["error"]\naddopts = ["--strict-markers"]\n'
    (folder / "pyproject.toml").write_text(settings + strict)
    (folder / "shop.py").write_text(app)
    (folder / "test_shop.py").write_text("\n\n".join(tests))
    return "".join(tests).count("def test_")


def test_the_page_is_true(server: str, tmp_path: Path) -> None:
    count = write_project(tmp_path)
    done = run_pytest(tmp_path, FENCELINE_TEST_DSN=server)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{count} passed" in done.stdout
