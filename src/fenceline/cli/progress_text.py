"""Progress as handlers report it, in one short line."""

from collections.abc import Mapping
from typing import Any


def progress_text(phase: str | None, progress: Mapping[str, Any] | None, *, bar: int = 0) -> str:
    """`inventory 3/9 reading …`; with `bar`, a bar of so many cells before the numbers."""
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


def count_items(progress: Mapping[str, Any] | None) -> str:
    """`5 completed, 1 failed`: the sets that are not empty."""
    sets = (progress or {}).get("items")
    if not isinstance(sets, Mapping):
        return ""  # a handler's own value of that name
    counts = {name: len(some) for name, some in sets.items() if isinstance(some, list)}
    order = ("in_progress", "completed", "skipped", "failed")
    return ", ".join(f"{counts[name]} {name.replace('_', ' ')}" for name in order if counts.get(name))


def draw_bar(share: float, cells: int) -> str:
    """A bar of so many cells, to an eighth of a cell."""
    eighths = round(max(0.0, min(1.0, share)) * cells * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")).ljust(cells, "░")


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
