"""Python calls every SQL function that is there for it, in one place, with parameters that it has."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import Connect

import fenceline.database.calls
from fenceline.database.call import As, Function, Sql, function, statement
from fenceline.database.calls import enqueue
from fenceline.database.decoding import nothing
from fenceline.database.schema_files import read_schema_files
from fenceline.model.sealed import seal_json

CALLS = Path(fenceline.database.calls.__file__).parent
SOURCE = CALLS.parent.parent
#: Functions with a role that no call is for.
NOT_CALLED = {
    # People, and programs in other languages, at an SQL prompt.
    "message_id": "names a job at the backend that delivers it: the view jobs shows it",
    "id_time": "tells people when a job was made",
    "parse_public_id": "reads an id that people have: Python does it itself",
    "public_ids": "ids of many jobs, in SQL of users",
    "retry_delay": "lets users try a retry policy",
    "upkeep": "all of the upkeep at once, by hand",
    "expire_jobs": "a part of maintain, by hand",
    "promote_timers": "a part of maintain, by hand",
    # What programs of 0.1 call.
    "find_triggers": "0.1: trigger_keys has the scheme too",
    "get_job": "0.1: describe_job says more",
    "lanes": "0.1: describe_lanes says more",
    "list_jobs": "0.1: page_jobs bounds the bytes of a page",
    "list_locks": "0.1: describe_locks knows keys and resource locks too",
    "prune": "0.1: prune_some says whether there is more",
    "stats_backlog": "0.1: stats_waiting knows whose jobs they are",
    "use_token": "0.1: identify_token says what it is bound to",
}


#: Who asks on a connection whose schema may be missing, old or wrong, and so not by a call.
WITHOUT_CALLS = (*(SOURCE / "doctor").glob("*.py"), SOURCE / "database" / "schema_state.py")


def named_functions() -> Iterator[tuple[str, frozenset[str]]]:
    """Each place that names a function, with the parameters that it names."""
    for path in sorted(CALLS.glob("*.py")):
        module = ast.parse(path.read_text())
        makers = {id(node): maker for maker in module.body for node in ast.walk(maker)}
        for node in ast.walk(module):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "function":
                assert isinstance(node.args[0], ast.Constant), f"{path.name}: a function's name is a constant"
                named = {word.arg for word in node.keywords if word.arg} | given(node, makers[id(node)], module)
                yield str(node.args[0].value), frozenset(f"p_{name}" for name in named)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                for name, arguments in re.findall(r"fenceline\.(\w+)\(([^)]*)\)", node.value):
                    places = arguments.split(",") if arguments.strip() else []
                    assert all(" => $" in place for place in places), f"{path.name}: {name} is called by position"
                    yield name, frozenset(place.split("=>")[0].strip() for place in places)


def given(node: ast.Call, maker: ast.stmt, module: ast.Module) -> set[str]:
    """What a function's second argument passes on: `locals()` is the parameters around it, without the viewer."""
    if len(node.args) == 1:
        return set()
    assert isinstance(maker, ast.FunctionDef)
    source = ast.unparse(node.args[1])
    if source == "given":  # what every enqueue says
        return set(enqueue._given("k", As("json", "{}"), "{}", None, None))
    if maker.args.kwarg is not None and source == maker.args.kwarg.arg:  # `**settings`: whatever its callers name
        own = {argument.arg for argument in maker.args.kwonlyargs}
        return {word.arg for call in calls_of(maker.name, module) for word in call.keywords if word.arg} - own
    assert source == "locals()", f"{ast.unparse(node)}: which parameters are these?"
    parameters = {argument.arg for argument in (*maker.args.args, *maker.args.kwonlyargs)}
    local = {
        name.id
        for statement in maker.body
        if isinstance(statement, ast.Assign) and node not in ast.walk(statement)
        for name in statement.targets
        if isinstance(name, ast.Name)
    } | {inner.name for inner in maker.body if isinstance(inner, ast.FunctionDef)}
    assert local == set(), f"{maker.name}: locals() would pass on these too"
    return parameters - {"viewer"}


def calls_of(name: str, module: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            yield node


def test_each_function_with_a_role_is_called_in_exactly_one_place() -> None:
    with_roles = {file.name for file in read_schema_files().code if file.kind == "function" and file.roles}
    named = Counter(name for name, _parameters in named_functions())
    assert {name: count for name, count in named.items() if count > 1} == {}
    assert named.keys() - with_roles == set(), "of these Python has no right to call"
    asked = {name for path in WITHOUT_CALLS for name in re.findall(r"fenceline\.(\w+)\(", path.read_text())}
    missing = with_roles - named.keys() - NOT_CALLED.keys() - asked
    assert missing == set(), "nobody calls these: add a call, or a reason"
    assert NOT_CALLED.keys() & named.keys() == set(), "there is a call now"
    assert NOT_CALLED.keys() - with_roles == set(), "there is no such function any more"


async def test_every_parameter_is_one_of_the_function(connect: Connect) -> None:
    rows = await (await connect()).fetch(
        "select proname, array(select name from unnest(proargnames, proargmodes) a(name, mode) "
        "where mode is null or mode in ('i', 'b')) as names from pg_proc where pronamespace = 'fenceline'::regnamespace"
    )
    known = {row["proname"]: frozenset(row["names"]) for row in rows}
    wrong = {name: names - known[name] for name, names in named_functions() if names - known[name]}
    assert wrong == {}


def test_a_statement_has_a_parameter_for_each_value_in_its_order() -> None:
    call = statement(
        "select {}, {}",
        function("outer", name="a", inner=function("inner", args=As("json", "{}", seal_json), column=Sql("r.id"))),
        As("numeric", As("text", "7")),
        decode=nothing,
    )
    assert call.sql == (
        "select fenceline.outer(p_name => $1, p_inner => fenceline.inner(p_args => cast($2 as json), "
        "p_column => r.id)), cast(cast($3 as text) as numeric)"
    )
    assert call.parameters == ("a", "{}", "7")
    assert call.seals == {1: seal_json}


def test_arguments_are_taken_from_the_parameters_of_a_call_without_the_viewer() -> None:
    def call(job_id: int, viewer: str, *, reason: str | None) -> Function:
        return function("act_on_job", locals(), job_id=str(job_id), actor=viewer)

    assert call(3, "ann", reason=None) == Function("act_on_job", {"job_id": "3", "reason": None, "actor": "ann"})


def test_a_tuple_is_an_array_for_every_driver() -> None:
    assert statement("select {}", ("a", "b"), decode=nothing).parameters == (["a", "b"],)


@pytest.mark.parametrize("value", [None, 3, ["a"]])
def test_whatever_is_no_piece_of_sql_is_a_parameter(value: object) -> None:
    call = statement("select {}", value, decode=nothing)
    assert (call.sql, call.parameters) == ("select $1", (value,))
