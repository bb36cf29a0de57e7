"""docs/guides/runners.md: the session with curl, run by a shell as it is printed there, against a server of its own."""

import json

from tests.acceptance.session import run_session, shell_blocks


def test_the_printed_session_runs() -> None:
    _installation, *blocks = shell_blocks("guides/runners.md")
    assert len(blocks) == 4
    lines = [line for line in run_session(blocks).splitlines() if line]
    heartbeat = json.loads(lines[-5])
    assert heartbeat == {"cancel": [], "grace": {}, "stale": [], "lease_seconds": 60}
    assert [*lines[-9:-5], *lines[-4:]] == [
        "running", "204", "204", "204", "hello world", "200", "stale_attempt", '{"ended": 0}',
    ]  # fmt: skip
