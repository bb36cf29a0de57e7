"""What can be done to a table. Each action may be done again: a second run finds little or nothing left to do."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, get_args

import pyarrow.fs as pafs

Action = Literal["rewrite_data_files", "expire_snapshots", "remove_orphan_files"]
#: The order they are done in, whatever the order they were asked for in: each leaves work to the next.
ORDER: tuple[Action, ...] = get_args(Action)


@dataclass(frozen=True, slots=True)
class Rules:
    """`keep_hours`: younger snapshots and files are left alone. `signature`: who wrote it, kept in the snapshot."""

    keep_hours: float
    signature: dict[str, str]

    @property
    def keep_since(self) -> datetime:
        return datetime.now(UTC) - timedelta(hours=self.keep_hours)


def run_action(action: Action, table: Any, rules: Rules) -> dict[str, int]:
    return ACTIONS[action](table, rules)


def rewrite_data_files(table: Any, rules: Rules) -> dict[str, int]:
    """Many small files become one, in one commit. Whoever appends meanwhile wins: then the commit is refused."""
    before = count_files(table)
    if before > 1:
        table.overwrite(table.scan().to_arrow(), snapshot_properties=rules.signature)
    return {"files_before": before, "files_after": count_files(table.refresh())}


def expire_snapshots(table: Any, rules: Rules) -> dict[str, int]:
    """Forget old versions of the table; their files are orphans then."""
    before = len(table.snapshots())
    table.maintenance.expire_snapshots().older_than(rules.keep_since).commit()
    return {"snapshots_before": before, "snapshots_after": len(table.refresh().snapshots())}


def remove_orphan_files(table: Any, rules: Rules) -> dict[str, int]:
    """Delete what no snapshot names: files of expired snapshots, and of writers that died before their commit."""
    storage, folder = pafs.FileSystem.from_uri(table.location())
    named = named_files(table)
    orphans = [
        file
        for file in storage.get_file_info(pafs.FileSelector(folder, recursive=True))
        if file.is_file and file.path not in named and file.mtime < rules.keep_since
    ]
    for orphan in orphans:
        storage.delete_file(orphan.path)
    return {"removed_files": len(orphans), "removed_bytes": sum(orphan.size for orphan in orphans)}


def named_files(table: Any) -> set[str]:
    """Paths of everything that the table's metadata names, this metadata included."""
    names = [
        table.metadata_location,
        *(entry.metadata_file for entry in table.metadata.metadata_log),
        *(snapshot.manifest_list for snapshot in table.snapshots()),
        *(statistics.statistics_path for statistics in table.metadata.statistics),
        *table.inspect.all_manifests()["path"].to_pylist(),
        *table.inspect.all_files()["file_path"].to_pylist(),
    ]
    return {pafs.FileSystem.from_uri(name)[1] for name in names}


def count_files(table: Any) -> int:
    return int(table.inspect.files().num_rows)


ACTIONS: dict[Action, Callable[[Any, Rules], dict[str, int]]] = {
    "rewrite_data_files": rewrite_data_files,
    "expire_snapshots": expire_snapshots,
    "remove_orphan_files": remove_orphan_files,
}
