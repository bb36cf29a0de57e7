"""The Python API: pages of directives, from which mkdocstrings makes the text out of the docstrings."""

from collections.abc import Callable, Mapping
from functools import partial

import fenceline.credentials
import fenceline.errors
import fenceline.public
import fenceline.testing

#: Page → heading, what it is about, and what is on it. What is in `fenceline.__all__` and in none of them is on the last.
GROUPS: dict[str, tuple[str, str, list[str]]] = {
    "reference/app.md": (
        "App and handlers",
        "Register handlers and enqueue jobs. `app.sync` and `handler.sync` have the same methods for blocking code.",
        [
            "fenceline.public.Fenceline",
            "fenceline.public.Handler",
            "fenceline.public.BatchHandler",
            "fenceline.client.handler.OptionedEnqueuer",
            "fenceline.public.Group",
            "fenceline.client.sync_app.SyncFenceline",
        ],
    ),
    "reference/jobs.md": (
        "Jobs, lanes, schedules, the system",
        "The methods of `app.jobs`, `app.lanes`, `app.schedules`, `app.system` and `app.stats`, and of a job's handle. Methods that change something take `actor=`, which is recorded in the audit log (default: the app's actor), and most take a `reason`. Lists return pages: `limit` is their size, `cursor` where to continue.",
        [
            "fenceline.public.Job",
            "fenceline.public.SyncJob",
            "fenceline.client.jobs.Jobs",
            "fenceline.client.job_filters.JobFilters",
            "fenceline.client.lanes.Lanes",
            "fenceline.client.schedules.Schedules",
            "fenceline.client.system.System",
            "fenceline.client.stats.Statistics",
        ],
    ),
    "reference/context.md": (
        "The context of a handler",
        "What a handler receives as its first parameter, `ctx`. [Handlers](../guides/handlers.md) shows how to use it.",
        [
            "fenceline.public.Context",
            "fenceline.public.SyncContext",
            "fenceline.public.BatchContext",
            "fenceline.public.SyncBatchContext",
            "fenceline.public.BatchItem",
            "fenceline.context.attempt.Request",
            "fenceline.context.attempt.Parent",
            "fenceline.context.items.Items",
            "fenceline.context.transaction.TransactionConnection",
        ],
    ),
    "reference/testing.md": (
        "The test kit",
        "The fixtures of the pytest plugin and what they provide. [Testing](../guides/testing.md) has tests to copy.",
        [
            "fenceline.pytest_plugin.fenceline_app",
            "fenceline.pytest_plugin.fenceline_dsn",
            "fenceline.pytest_plugin.fenceline_databases",
            "fenceline.testing.TestedApp",
            "fenceline.testing.SyncTestedApp",
            "fenceline.testing.FakeCredentials",
            "fenceline.testing.drain",
        ],
    ),
    "reference/credentials.md": (
        "Credential providers",
        "For `Fenceline(credentials=…)`: they exchange the `identity` of a job for temporary credentials just before it runs. See [Identity](../guides/credentials.md#identity).",
        [f"fenceline.credentials.{name}" for name in fenceline.credentials.__all__],
    ),
}
EXCEPTIONS = (
    "reference/exceptions.md",
    "Exceptions",
    "Exceptions that a handler raises to control its job, and exceptions that callers may have to catch. [Errors](errors.md) lists every code with cause and cure.",
)
RECORDS = (
    "reference/records.md",
    "Records and values",
    "Return values of the methods above, and types for annotations.",
)


def remaining() -> tuple[list[str], list[str]]:
    """The public names that are on none of the pages above: exceptions, and the rest."""
    placed = {name.rpartition(".")[2] for _, _, names in GROUPS.values() for name in names}
    left = [name for name in fenceline.public.__all__ if name not in placed]
    raised = [name for name in left if _is_exception(getattr(fenceline.public, name))]
    return [f"fenceline.public.{name}" for name in raised], [
        f"fenceline.public.{name}" for name in left if name not in raised
    ]


def _is_exception(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, BaseException)


def directives(heading: str, about: str, names: list[str]) -> str:
    return f"# {heading}\n\n{about}\n\n" + "\n".join(f"::: {name}\n" for name in names)


def documented() -> dict[str, list[str]]:
    """Page → names on it."""
    raised, records = remaining()
    return {page: names for page, (_, _, names) in GROUPS.items()} | {EXCEPTIONS[0]: raised, RECORDS[0]: records}


PAGES: Mapping[str, Callable[[], str]] = {
    page: partial(directives, heading, about, names) for page, (heading, about, names) in GROUPS.items()
} | {
    page: partial(directives, heading, about, names)
    for (page, heading, about), names in zip((EXCEPTIONS, RECORDS), remaining(), strict=True)
}
