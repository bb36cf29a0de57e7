"""The code of the guides runs, and does what the pages say; and no page has code that no test runs."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import psycopg
import pytest
from cryptography.fernet import Fernet
from tests.acceptance.printed_program import DOCS, run_as_printed
from tests.acceptance.session import free_port
from tests.manual.test_start import answer
from tests.support.patience import eventually, seconds_left
from tests.worker.fleet import FENCELINE

from fenceline import Fenceline

ROOT = DOCS.parent
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAMS = ["guides/one_at_a_time.md", "guides/retries.md", "guides/transactions.md", "guides/limits.md"]
#: Page → language → the test that runs all blocks of that language.
RUN: dict[str, dict[str, str]] = {
    **{page: {"python": "manual/test_pages.py"} for page in PROGRAMS},
    **{f"moving/{path.name}": {"python": "compat/test_pages.py"} for path in (DOCS / "moving").glob("*.md")},
    "start/first_job.md": {"python": "manual/test_start.py", "sh": "manual/test_start.py"},
    **{
        f"guides/{name}.md": {"python": "acceptance/test_workflows_page.py"}
        for name in ("approval", "batch", "credentials", "locks", "waits", "workflows")
    },
    "guides/dashboard.md": {"html": "dashboard/test_embedding.py"},
    "guides/deliveries.md": {"python": "delivery/test_page.py"},
    "guides/django.md": {"python": "django_project/test_django.py"},
    "guides/encryption.md": {"python": "manual/test_pages.py"},
    "guides/handlers.md": {"python": "acceptance/test_handlers_page.py"},
    "guides/http.md": {"sh": "acceptance/test_http_session.py"},
    "guides/integrations.md": {"python": "integrations/test_page.py"},
    "guides/isolation.md": {"python": "manual/test_pages.py", "sh": "manual/test_pages.py"},
    "guides/runners.md": {"sh": "acceptance/test_runner_session.py"},
    "guides/schedules.md": {"python": "acceptance/test_schedules_page.py"},
    "guides/sql.md": {"sql": "acceptance/test_psql.py"},
    "guides/streams.md": {"python": "manual/test_pages.py"},
    "guides/testing.md": {"python": "testing/test_page.py"},
    "guides/typing.md": {"python": "manual/test_pages.py"},
    "guides/webhooks.md": {"sh": "server/test_incoming_webhooks.py"},
    "operations/sizing.md": {"sql": "manual/test_pages.py"},
}
#: `fenceline` is run by tests/cli/test_printed_commands.py; the rest installs or sets up the reader's own system.
TYPED = re.compile(
    r"fenceline |pip install |export |#|\./manage\.py fenceline |sed -i |eval |_FENCELINE_COMPLETE=|curl -N |  --"
)


def blocks(page: str, language: str) -> list[str]:
    return [text for named, text in BLOCK.findall((DOCS / page).read_text("utf-8")) if named == language]


@pytest.mark.parametrize("page", PROGRAMS)
def test_the_page_runs_as_printed(page: str, database: str, tmp_path: Path) -> None:
    run_as_printed(page, database, tmp_path)


def test_isolated_handlers_end_as_the_page_says(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = "guides/isolation.md"
    [program], [command] = blocks(page, "python"), blocks(page, "sh")
    (tmp_path / "heavy.py").write_text(program)
    monkeypatch.setenv("FENCELINE_DSN", database)
    worker = subprocess.Popen([str(FENCELINE), *command.split()[1:]], cwd=tmp_path)
    try:
        assert asyncio.run(ends_of_jobs(database)) == [
            ("succeeded", None),
            ("failed", "memory_limit"),
            ("failed", "timeout"),
        ]
    finally:
        worker.terminate()
        try:
            worker.wait(seconds_left())
        finally:
            worker.kill()
            worker.wait()


async def ends_of_jobs(database: str) -> list[tuple[str, str | None]]:
    """By name, so the decorator's policy must be said again."""
    ends = []
    async with Fenceline(database) as app:
        for kind, args in (("allocate", {"megabytes": 10}), ("allocate", {"megabytes": 1000}), ("hang", {})):
            job = await app.enqueue(kind, args, max_attempts=1)
            await job.wait(timeout=seconds_left())
            record = await job.get()
            ends.append((str(record.status), (record.error or {}).get("code")))
    return ends


async def test_what_the_page_on_typing_says(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FENCELINE_DSN", database)
    [program] = blocks("guides/typing.md", "python")
    page = sys.modules["page_on_typing"] = ModuleType("page_on_typing")  # where annotations are looked up
    exec(program, page.__dict__)  # noqa: S102 - our own page
    job = await page.ingest.enqueue(path="a.csv")
    assert await page.app.drain() == 1
    assert await job.result() == page.Report(rows=1000)
    await page.app.close()


def test_type_checkers_see_what_the_page_on_typing_says(tmp_path: Path) -> None:
    [program] = blocks("guides/typing.md", "python")
    (tmp_path / "page.py").write_text(program)
    (tmp_path / "wrong.py").write_text(program + "\n\nasync def wrong() -> None:\n    await ingest.enqueue(path=3)\n")
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(ROOT / ".mypy_cache"), "page.py", "wrong.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert re.findall(r"^(\w+\.py):\d+: error", checked.stdout, re.MULTILINE) == ["wrong.py"], checked.stdout


async def test_the_page_on_streams_watches_a_job(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    of_one, of_many, _over_http = blocks("guides/streams.md", "python")
    names: dict[str, Any] = {}
    exec(in_function(of_one), names)  # noqa: S102 - our own page
    async with Fenceline(database) as app:
        job = await app.enqueue("nobody_runs_it")
        await job.cancel()
        await names["page"](app, job)
        assert "cancelled" in capsys.readouterr().out
        exec(in_function(of_many), names)  # noqa: S102 - as above
        watching = asyncio.create_task(names["page"](app, job))
        written = ""

        async def is_told() -> bool:
            """It may not watch yet, so there are failures until one is told."""
            nonlocal written
            failed = await app.enqueue("ingest")
            await failed.cancel()
            written += capsys.readouterr().out
            return "ingest" in written

        try:
            await eventually(is_told, "the page tells of a failure", lambda: written)
        finally:
            watching.cancel()
            await asyncio.wait([watching])


@pytest.fixture
def url(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Of a server of the database."""
    monkeypatch.setenv("FENCELINE_DSN", database)
    port = str(free_port())
    server = subprocess.Popen([str(FENCELINE), "server", "--no-auth", "--port", port])
    try:
        answer(f"http://127.0.0.1:{port}/readyz")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        try:
            server.wait(seconds_left())
        finally:
            server.kill()
            server.wait()


async def test_the_page_on_streams_watches_a_server(
    url: str, database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    *_, over_http = blocks("guides/streams.md", "python")
    names: dict[str, Any] = {}
    exec(in_function(over_http, "job, url, token"), names)  # noqa: S102 - our own page
    async with Fenceline(database) as app:
        job = await app.enqueue("nobody_runs_it")
        await job.cancel()
        await names["page"](job, url, "not asked for")
    assert "cancelled" in capsys.readouterr().out


def in_function(text: str, parameters: str = "app, job") -> str:
    return f"async def page({parameters}):\n" + "\n".join(f"    {line}" for line in text.splitlines())


def test_the_page_on_encryption_makes_a_codec(database: str) -> None:
    [program] = blocks("guides/encryption.md", "python")
    names: dict[str, Any] = {"Fenceline": lambda codec: Fenceline(database, codec=codec)}
    names |= {"newest_key": Fernet.generate_key(), "older_key": Fernet.generate_key()}
    exec(program, names)  # noqa: S102 - our own page
    job = names["app"].sync.enqueue("secret", {"word": "hush"})
    assert job.get().args == {"word": "hush"}
    with psycopg.connect(database) as connection:
        assert "hush" not in str(connection.execute("select args from fenceline.job").fetchone())
    names["app"].sync.close()


def test_the_query_of_the_page_on_sizing_lists_tables(database: str) -> None:
    [query] = blocks("operations/sizing.md", "sql")
    with psycopg.connect(database) as connection:
        rows = connection.execute(query.encode()).fetchall()
    assert any(str(name).startswith("job_") for name, _ in rows)


def test_every_test_that_the_manual_names_exists() -> None:
    for path in DOCS.glob("**/*.md"):
        for named in re.findall(r"(?<![\w/])tests/[\w/]+(?:\.py)?", path.read_text("utf-8")):
            assert (ROOT / named).exists(), f"{path.name} names {named}"


def test_code_of_every_page_is_run_by_a_test() -> None:
    for path in DOCS.glob("**/*.md"):
        page = path.relative_to(DOCS).as_posix()
        run = RUN.get(page, {})
        for language, text in BLOCK.findall(path.read_text("utf-8")):
            if language == "sh" and "sh" not in run:
                wrong = [line for line in text.splitlines() if line and not TYPED.match(line)]
                assert not wrong, f"{page}: no test runs {wrong}"
            else:
                assert language in run or language in {"text", "toml", "mermaid", "json"}, f"{page}: {text[:60]}"
        for test in run.values():
            source = (ROOT / "tests" / test).read_text("utf-8")
            assert path.name in source or '(DOCS / "moving").glob' in source, f"{test} does not name {page}"


def test_every_block_says_its_language() -> None:
    for path in DOCS.glob("**/*.md"):
        fences = re.findall(r"^```(\w*)$", path.read_text("utf-8"), re.MULTILINE)
        assert all(fences[::2]), path
