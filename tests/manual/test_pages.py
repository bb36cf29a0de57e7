"""The code of the guides runs, and does what the pages say; and no page has code that no test runs."""

import asyncio
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import psycopg
import pytest
from cryptography.fernet import Fernet
from tests.acceptance.printed_program import DOCS, run_as_printed
from tests.worker.fleet import FENCELINE

from fenceline import Fenceline

ROOT = DOCS.parent
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAMS = ["guides/one_at_a_time.md", "guides/retries.md", "guides/transactions.md", "guides/limits.md"]
#: Their lines are for the reader's own system: tests/cli/test_docs.py sees that the commands and options exist.
TYPED_ONLY = {"start/deploy.md"} | {
    f"operations/{name}.md" for name in ("upgrades", "backup", "troubleshooting", "sizing")
}


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
        worker.wait(60)


async def ends_of_jobs(database: str) -> list[tuple[str, str | None]]:
    """By name, so the decorator's policy must be said again."""
    ends = []
    async with Fenceline(database) as app:
        for kind, args in (("allocate", {"megabytes": 10}), ("allocate", {"megabytes": 1000}), ("hang", {})):
            job = await app.enqueue(kind, args, max_attempts=1)
            await job.wait(timeout=120)
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
    [program] = blocks("guides/streams.md", "python")
    of_one, rest = program.split("async for event in app.watch", 1)
    compile(in_function(f"async for event in app.watch{rest}"), "streams.md", "exec")
    names: dict[str, Any] = {}
    exec(in_function(of_one), names)  # noqa: S102 - our own page
    async with Fenceline(database) as app:
        job = await app.enqueue("nobody_runs_it")
        await job.cancel()
        await names["page"](app, job, "", "")
    assert "cancelled" in capsys.readouterr().out


def in_function(text: str) -> str:
    return "async def page(app, job, url, token):\n" + "\n".join(f"    {line}" for line in text.splitlines())


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


def test_every_test_that_the_manual_names_exists() -> None:
    for path in DOCS.glob("**/*.md"):
        for named in re.findall(r"(?<![\w/])tests/[\w/]+(?:\.py)?", path.read_text("utf-8")):
            assert (ROOT / named).exists(), f"{path.name} names {named}"


def test_code_of_every_page_is_run_by_a_test() -> None:
    tests = "\n".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("*.py"))
    for path in DOCS.glob("**/*.md"):
        page = path.relative_to(DOCS).as_posix()
        languages = {named for named, _ in BLOCK.findall(path.read_text("utf-8"))}
        assert languages <= {"python", "sh", "text", "sql", "toml", "html", "mermaid", "json"}, page
        if languages & {"python", "sh", "sql", "html"} and not page.startswith("moving/") and page not in TYPED_ONLY:
            folder, _, name = page.rpartition("/")
            named = (f'"{page}"', f'"{folder}" / "{name}"', f"docs/{page}", f'"docs" / "{folder}" / "{name}"')
            assert any(words in tests for words in named), f"no test names {page}"
