from collections.abc import Callable
from pathlib import Path

import pytest

from fenceline.database.grants import code_checksum, file_checksums
from fenceline.database.schema_files import SchemaFileInvalid, SchemaFiles, read_schema_files

FUNCTION = "create or replace function fenceline.{name}() returns int language sql as 'select 1';"


def test_our_own_files_keep_the_rules() -> None:
    files = read_schema_files()
    assert files.number >= 1
    assert all(file.roles or "-- roles: none" in file.text for file in files.code)


def test_roles_are_read_and_admin_has_what_anybody_has(write_schema: Callable[..., SchemaFiles]) -> None:
    texts = {
        "shared": "-- roles: producer, worker\n" + FUNCTION.format(name="shared"),
        "hidden": "-- roles: none\n" + FUNCTION.format(name="hidden"),
        "powerful": "-- roles: admin\n" + FUNCTION.format(name="powerful"),
    }
    roles = {file.name: file.roles for file in write_schema(functions=texts).code}
    assert roles["shared"] == ("producer", "worker", "admin")
    assert roles["hidden"] == ()
    assert roles["powerful"] == ("admin",)


@pytest.mark.parametrize(
    "path, text, rule",
    [
        ("functions/one.sql", FUNCTION.format(name="one"), "`-- roles: `"),
        ("functions/one.sql", "-- roles: everybody\n" + FUNCTION.format(name="one"), "not a role: everybody"),
        ("functions/one.sql", "-- roles: none\n" + FUNCTION.format(name="two"), "fenceline.one"),
        (
            "functions/one.sql",
            "-- roles: none\n" + FUNCTION.format(name="one") + "\n" + FUNCTION.format(name="two"),
            "no other",
        ),
        (
            "reads/schema_version.sql",
            "-- roles: none\n" + FUNCTION.format(name="schema_version"),
            "more than one file",
        ),
        ("migrations/0001_pre_step.sql", "select 1;", "compatible_from: N"),
        ("migrations/0001_pre_step.sql", "-- compatible_from: 2\nselect 1;", "N from 1 to 1"),
        ("migrations/0002_pre_step.sql", "-- compatible_from: 1\nselect 1;", "without a gap"),
        ("migrations/0001_step.sql", "-- compatible_from: 1\nselect 1;", "NNNN_pre_what"),
    ],
)
def test_a_file_that_breaks_a_rule_is_refused(
    tmp_path: Path, write_schema: Callable[..., SchemaFiles], path: str, text: str, rule: str
) -> None:
    write_schema()
    (root,) = tmp_path.iterdir()
    (root / path).parent.mkdir(exist_ok=True)
    (root / path).write_text(text)
    with pytest.raises(SchemaFileInvalid, match=rule):
        read_schema_files(root)


def test_a_folder_in_a_folder_changes_neither_the_order_nor_what_a_database_remembers(
    tmp_path: Path, write_schema: Callable[..., SchemaFiles]
) -> None:
    texts = {name: "-- roles: none\n" + FUNCTION.format(name=name) for name in ("alpha", "beta", "gamma")}
    flat = write_schema(functions=texts)
    (root,) = tmp_path.iterdir()
    (root / "functions" / "zone").mkdir()
    (root / "functions" / "alpha.sql").rename(root / "functions" / "zone" / "alpha.sql")
    nested = read_schema_files(root)
    assert [file.name for file in nested.code] == [file.name for file in flat.code]
    assert file_checksums(nested) == file_checksums(flat)
    assert code_checksum(nested) == code_checksum(flat)
    assert "functions/zone/alpha.sql" in [file.path for file in nested.code]
