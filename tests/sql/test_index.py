"""The index in `sql/README.md`: whoever looks for an operation finds its file there."""

import re
from importlib.resources import files

from fenceline.database.schema_files import read_schema_files

SQL = files("fenceline") / "sql"


def index() -> str:
    """The section of the README that lists the operations."""
    readme = (SQL / "README.md").read_text("utf-8")
    return readme.partition("## Operations")[2].partition("\n## ")[0]


def test_every_function_and_view_is_in_the_index() -> None:
    named = set(re.findall(r"`(\w+)`", index()))
    assert {file.name for file in read_schema_files().code} - named == set()


def test_every_name_in_the_index_exists() -> None:
    rows = index().partition("| to … |")[2].partition("\n\n")[0]
    exists = {file.name for file in read_schema_files().code} | {"ready", "timer", "held"}
    assert set(re.findall(r"`(\w+)`", rows)) - exists == set()


def test_every_folder_of_functions_is_explained() -> None:
    folders = {f"{entry.name}/" for entry in (SQL / "functions").iterdir() if entry.is_dir()}
    assert folders == set(re.findall(r"^\| `(\w+/)` \|", index(), re.MULTILINE))


def test_a_function_that_checks_or_reads_a_value_is_internal() -> None:
    released = {"check_attempts", "read_journal", "read_log"}  # they had other habits, and keep their names
    named = {file.name: file.text for file in read_schema_files().code if file.name.startswith(("check_", "read_"))}
    assert {name for name, text in named.items() if "-- roles: none" not in text} == released


def test_every_bit_of_uses_stands_beside_its_name() -> None:
    readme = (SQL / "README.md").read_text("utf-8")
    table = readme.partition("### `uses`")[2].partition("\n### ")[0]
    names = {int(bit): name for bit, name in re.findall(r"^\| (\d+) \| ([a-z ]+) \|", table, re.MULTILINE)}
    assert len(names) == 10
    found = 0
    for file in read_schema_files().code:
        for bits, said in re.findall(r"uses(?:, 0\))? [&|] ~?(\d+)(?: /\* ([a-z +]+) \*/)?", file.text):
            found += 1
            assert said == " + ".join(name for bit, name in names.items() if int(bits) & bit), file.path
    assert found > 30
