"""The code of docs/guides/schedules.md does what it says, as printed."""

import re
from pathlib import Path
from typing import Any

from fenceline.client.app_parts import app_parts
from fenceline.client.schedule_decorator import declare_schedules

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "schedules.md"


async def test_the_page_runs_as_printed(database: str) -> None:
    declared, operators = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    program: dict[str, Any] = {}
    exec(declared.replace("Fenceline()", f"Fenceline({database!r})"), program)  # noqa: S102 - it is our own
    app = program["app"]
    try:
        await declare_schedules(app_parts(app))
        assert [schedule.name for schedule in await app.schedules.list()] == ["heartbeat", "ping-far", "report"]
        indented = operators.replace("\n", "\n    ")
        exec(f"async def operate(app):\n    {indented}", program)  # noqa: S102 - as above
        await program["operate"](app)
        report = await app.schedules.get("report")
        assert (report.cron, report.paused, report.source) == ("30 4 * * *", False, "code")
        assert all(run.weekday() < 5 for run in report.next_runs(10))
    finally:
        await app.close()
