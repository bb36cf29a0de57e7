"""The catalogue of tables: Iceberg's own, in a SQLite file, with the data in the folder beside it."""

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.exceptions import NoSuchTableError

from fenceline import NotFound

#: A commit waits so long for whoever else is committing.
COMMIT_WAIT_SECONDS = 300


def open_catalog() -> Any:
    """The catalogue in `$WAREHOUSE`, else in ./.warehouse."""
    from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415 - takes a second, which a supervisor need not spend

    folder = Path(os.environ.get("WAREHOUSE", ".warehouse")).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    uri = f"sqlite:///{folder}/catalog.db?timeout={COMMIT_WAIT_SECONDS}"
    return SqlCatalog("local", uri=uri, warehouse=folder.as_uri())


def load_table(db: str, table: str) -> Any:
    """Raises NotFound."""
    try:
        return open_catalog().load_table((db, table))
    except NoSuchTableError as error:
        raise NotFound(f"there is no table {db}.{table}") from error


def make_sample_table(db: str, table: str, *, appends: int = 12) -> None:
    """A table as a stream leaves it: a file and a snapshot for every few rows."""
    catalog = open_catalog()
    catalog.create_namespace_if_not_exists(db)
    if catalog.table_exists((db, table)):
        return
    made = catalog.create_table((db, table), schema=pa.schema([("id", pa.int64()), ("amount", pa.float64())]))
    for start in range(0, appends * 10, 10):
        made.append(pa.table({"id": list(range(start, start + 10)), "amount": [1.5] * 10}))
