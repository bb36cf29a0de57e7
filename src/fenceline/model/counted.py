"""Counts as people read them."""


def counted(count: int, thing: str) -> str:
    """`1 job`, `2 jobs`, `12,000 jobs`."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"
