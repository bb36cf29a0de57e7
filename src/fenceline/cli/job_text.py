"""Progress, log lines and errors of jobs, each as one short line."""

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from fenceline.cli.output import duration

if TYPE_CHECKING:
    from fenceline.cli.queue import QueueJob
    from fenceline.model.job import LogLine, PhaseRecord


async def read_log(job: "QueueJob", after: "LogLine | None" = None) -> "AsyncIterator[LogLine]":
    """What the job has logged, or what it has logged after a line."""
    while page := await job.logs(after=after):
        for line in page:
            yield line
        after = page[-1]


def log_text(line: "LogLine") -> str:
    """`12:30:05 info    reading`."""
    return f"{line.at.astimezone():%H:%M:%S} {line.level:<7} {line.message}"


def progress_text(phase: str | None, progress: Mapping[str, Any] | None, *, bar: int = 0) -> str:
    """`inventory 3/9 reading …`; with `bar`, a bar that many cells wide comes before the numbers."""
    parts = [phase] if phase else []
    if progress:
        done, total, message = progress.get("done"), progress.get("total"), progress.get("message")
        if bar and is_number(done) and is_number(total) and total:
            parts.append(draw_bar(done / total, bar))
        if done is not None:
            parts.append(f"{done}/{total}" if total is not None else f"{done}")
        if message:
            parts.append(str(message))
    return " ".join(parts)


def phase_text(phase: "PhaseRecord", *, bar: int = 0) -> str:
    """`3/9 reading …  5 completed, 1 failed`: its progress and items."""
    return "  ".join(filter(None, (progress_text(None, phase.progress, bar=bar), count_items(phase.progress))))


def phase_duration(phase: "PhaseRecord") -> str:
    return "" if phase.ended_at is None else duration((phase.ended_at - phase.started_at).total_seconds())


def count_items(progress: Mapping[str, Any] | None) -> str:
    """`5 completed, 1 failed`: the sets that are not empty."""
    sets = (progress or {}).get("items")
    if not isinstance(sets, Mapping):
        return ""  # the handler has put a value of its own under this name
    counts = {name: len(items) for name, items in sets.items() if isinstance(items, list)}
    order = ("in_progress", "completed", "skipped", "failed")
    return ", ".join(f"{counts[name]} {name.replace('_', ' ')}" for name in order if counts.get(name))


def draw_bar(share: float, cells: int) -> str:
    """A bar of this many cells, filled to an eighth of a cell."""
    eighths = round(max(0.0, min(1.0, share)) * cells * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")).ljust(cells, "░")


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def error_line(error: Mapping[str, Any] | None) -> str:
    """`ConnectionError: no route to host`; a code that says more than `error` comes first."""
    if not error:
        return ""
    code = error.get("code")
    parts = [None if code == "error" else code, error.get("type"), error.get("message")]
    return ": ".join(str(part).partition("\n")[0] for part in parts if part)
