"""docs/guides/integrations.md shows the examples as they are."""

import re

from tests.integrations.examples import FOLDER


def test_the_page_shows_the_examples() -> None:
    page = (FOLDER.parents[1] / "docs" / "guides" / "integrations.md").read_text()
    examples = "\n".join(path.read_text() for path in FOLDER.glob("*.py"))
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 10
    assert [block for block in blocks if block not in examples] == []
