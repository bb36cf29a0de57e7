"""What a running handler may not ask for, as SQL that must be refused: (SQLSTATE, SQL, what the message says)."""


def asked(function: str, values: str, sqlstate: str, *says: str) -> tuple[str, str, tuple[str, ...]]:
    """By the live attempt."""
    return sqlstate, f"select fenceline.{function}({{running}}, '{{attempt}}', {values})", says


def child(values: str, sqlstate: str, *says: str) -> tuple[str, str, tuple[str, ...]]:
    return asked("add_children", values, sqlstate, *says)


#: Text that does not shrink when it is stored.
LARGE = "(select to_jsonb(string_agg(md5(i::text), '')) from generate_series(1, 40000) i)"
NOT_A_STEP = "is not valid: use 1 to 200 characters"

CONTEXT_REFUSALS = [
    (
        "FL012",
        "select fenceline.record_step({finished}, '{attempt}', 's')",
        ("attempt {attempt} of job {finished_id}",),
    ),
    ("FL012", "select fenceline.save_checkpoint({queued}, '{attempt}', '1')", ("is gone: nothing was changed",)),
    (
        "FL012",
        "select fenceline.add_children({queued}, '{attempt}', 'k', array['{{}}'::json])",
        ("{queued_id} is gone",),
    ),
    asked("record_step", "'paid', 'other'", "FL021", "step 'paid' of job {running_id} was done with other arguments"),
    asked("record_step", "''", "FL007", f"step name '' {NOT_A_STEP}"),
    asked("record_step", "null", "FL007", f"step name NULL {NOT_A_STEP}"),
    asked("record_step", "repeat('x', 201)", "FL007", NOT_A_STEP),
    asked("record_step", f"'large', 'h', {LARGE}", "FL005", "the result of step 'large' has", "at most 1048576"),
    asked("list_steps_ahead", "array['a', null]", "FL007", NOT_A_STEP),
    asked("save_checkpoint", LARGE, "FL005", "the checkpoint has", "at most 1048576"),
    asked("set_progress", f"null, {LARGE}", "FL005", "the progress has", "at most 1048576"),
    asked("set_progress", "''", "FL007", "phase '' is not valid: use 1 to 200 characters"),
    asked(
        "move_items", "'done', array['a']", "FL007", "cannot be moved to 'done': use in_progress, completed, skipped"
    ),
    asked("move_items", "null, array['a']", "FL007", "cannot be moved to NULL"),
    asked("move_items", "'failed', array['a', '']", "FL007", "an item needs a name of 1 to 500 characters"),
    asked("move_items", "'failed', array['a'], repeat(md5('a'), 100000)", "FL005", "the progress has"),
    asked("write_log", "'{{}}'", "FL007", "use a JSON array of objects"),
    child("'No', array['{{}}'::json]", "FL002", "kind 'No' is not a valid name"),
    child("'k', array['[]'::json]", "FL007", "args of child 1 (kind 'k') must be a JSON object"),
    child("'k', array[null]::json[]", "FL007", "args of child 1 (kind 'k') must be a JSON object"),
    child(f"'k', array['{{{{}}}}', json_build_object('a', {LARGE})]", "FL005", "args of child 2", "at most 1048576"),
    child("""'k', array['{{"n": 1e5000}}'::json]""", "FL006", "args of a child (kind 'k')", "exponent"),
    child("'k', array['{{}}'::json], '[]'", "FL007", "options must be a JSON object"),
    child("""'k', array['{{}}'::json], '{{"priority": 99999}}'""", "FL003", "priority 99999"),
    child("""'k', array['{{}}'::json], '{{"colour": 1}}'""", "FL007", "unknown option colour for kind 'k'"),
    child("""'k', array['{{}}'::json], '{{"tenant": "other"}}'""", "FL007", "tenant of its parent, 'default', not to"),
]
