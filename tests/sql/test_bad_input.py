"""Every refusal: its own SQLSTATE, a message that names the value and the rule, and a database that is unchanged.

The cases are SQL as anybody may send it. Names in braces are what `scene` has prepared.
"""

import re
from dataclasses import dataclass
from typing import Literal

import asyncpg
import pytest
from tests.sql.context_refusals import CONTEXT_REFUSALS
from tests.sql.queue import Queue
from tests.sql.schedule_refusals import SCHEDULE_REFUSALS

from fenceline.database.schema_files import read_schema_files
from fenceline.errors.sqlstates import SQLSTATES, refusal


@dataclass(frozen=True, slots=True)
class Case:
    sqlstate: str
    sql: str
    says: tuple[str, ...]  # all of these stand in the message


def refused(sqlstate: str, sql: str, *says: str) -> Case:
    return Case(sqlstate, sql, says)


def option(sqlstate: str, text: str, *says: str) -> Case:
    """An enqueue with one bad option, alone and beside a good one."""
    return Case(sqlstate, f"select fenceline.enqueue('work', '{{{{}}}}', '{{{{{text}}}}}')", says)


def token(sqlstate: str, text: str, *says: str) -> Case:
    """A token with something wrong about it."""
    return Case(sqlstate, f"select fenceline.create_token(sha256('x'), {text})", says)


ACCESS = [
    token("FL040", "'boss'", "role 'boss' does not exist", "platform_admin"),
    refused("FL040", "select fenceline.set_role('boss', p_create => false)", "role 'boss' does not exist"),
    refused("FL040", "select fenceline.delete_role('boss')", "role 'boss' does not exist"),
    refused("FL041", "select fenceline.revoke_token(99)", "token 99 does not exist"),
    token("FL002", "'viewer', 'No Tenant'", "tenant 'No Tenant' is not a valid"),
    token("FL042", "'viewer', null, 'a:b'", "'a:b'", "without a colon"),
    token("FL042", "'viewer', null, ''", "1 to 100 characters"),
    token("FL042", "'viewer', p_expires_at => '2020-01-01Z'", "of no use"),
    refused("FL042", "select fenceline.set_role('boss', array['jobs:reed'])", "jobs:reed is unknown", "jobs:read"),
    refused("FL042", "select fenceline.set_role('boss', array[null])", "null is unknown"),
    token(
        "FL043",
        "'operator', p_granter_permissions => array['jobs:read']",
        "jobs:read_all",
        "are not yours to give",
    ),
    token(
        "FL043",
        "'viewer', 'a', p_granter_permissions => array['*'], p_granter_tenant => 'b'",
        "tenant 'a' is not yours",
    ),
    refused(
        "FL043",
        "select fenceline.set_role('boss', p_granter_permissions => array['jobs:read'])",
        "only platform_admin changes them",
    ),
    refused("FL044", "select fenceline.set_role('viewer', p_create => true)", "role 'viewer' exists already"),
    refused("FL045", "select fenceline.set_role('viewer', '{{}}')", "role 'viewer' is built in"),
    refused("FL045", "select fenceline.delete_role('viewer')", "role 'viewer' is built in"),
    refused("FL007", "select fenceline.act_on_job({finished}, 'explode', null, null)", "verb 'explode' is unknown"),
    refused(
        "FL007",
        "select * from fenceline.bulk_jobs('delete', null, null, null, null, false, null, false, '{{}}')",
        "verb 'delete' is unknown",
    ),
    refused(
        "FL007",
        "select * from fenceline.bulk_jobs('cancel', null, null, null, null, false, null, false, null, array['done'])",
        "status 'done' is unknown",
    ),
]

LANES = [
    option("FL001", '"lane": "nowhere"', "lane 'nowhere' does not exist", "create it, or leave lane out"),
    refused("FL001", "select * from fenceline.claim_jobs({worker}, 'nowhere')", "lane 'nowhere' does not exist"),
    refused("FL001", "select * from fenceline.claim_jobs({worker}, null)", "lane NULL does not exist"),
    refused("FL001", "select fenceline.set_lane('nowhere', '{{}}', null, false)", "lane 'nowhere' does not exist"),
    refused("FL001", "select fenceline.delete_lane('nowhere')", "lane 'nowhere' does not exist"),
    refused("FL046", "select fenceline.set_lane('system', '{{}}', null, true)", "'system' exists already"),
    refused("FL018", """select fenceline.set_lane('system', '{{"slot": 1}}')""", "'system' has no setting slot"),
    refused("FL018", "select fenceline.set_lane('system', '[]')", "'system' must be a JSON object"),
    refused("FL018", "select fenceline.set_lane('system', null)", "'system' must be a JSON object"),
    *[
        refused(
            "FL018", f"""select fenceline.set_lane('system', '{{{{"{name}": {value}}}}}')""", "'system'", name, rule
        )
        for name, value, rule in [
            ("slots", "-1", "0 or more, or null"),
            ("slots", '"many"', "integer"),
            ("slots", "1.5", "a whole number"),
            ("slots", "1e12", "a whole number"),
            ("poll_interval_ms", "5", "10 to 3600000"),
            ("poll_interval_ms", "null", "10 to 3600000"),
            ("stale_timeout_seconds", "0", "1 or more, or null"),
            ("offline_timeout_seconds", "1e6", "1 to 86400, or null"),
            ("on_stale", '"explode"', '"retry" or "fail"'),
            ("on_stale", "null", '"retry" or "fail"'),
            ("enabled", "null", "true or false"),
            ("enabled", "7", "true or false"),
            ("rate_per_second", "0", "0.000001 to 1e12, or null"),
            ("rate_per_second", "-2", "0.000001 to 1e12, or null"),
            ("rate_per_second", "1e-300", "0.000001 to 1e12, or null"),
            ("rate_per_second", "1e300", "0.000001 to 1e12, or null"),
            ("burst", "0", "1 or more, or null"),
            ("fair", "null", "true or false"),
            ("ageing_seconds", "0", "1 to 32767"),
            ("ageing_seconds", "40000", "1 to 32767"),
            ("default_priority", "40000", "-32768 to 32767"),
            ("kinds", '"work"', "kinds"),
            ("kinds", '{{"work": 1}}', "kinds"),
        ]
    ],
    refused("FL019", "select fenceline.delete_lane('default')", "'default' cannot be deleted"),
    refused("FL019", "select fenceline.delete_lane('busy')", "'busy' has unfinished jobs"),
]

NAMES = [
    *[
        refused("FL002", f"select fenceline.enqueue({kind})", "kind ", "is not a valid name", "1 to 64 of a-z")
        for kind in ("'Work'", "''", "null", "'wo rk'", "'ä'", "'a/b'", "repeat('a', 65)", "E'work\\n'")
    ],
    option("FL002", '"tenant": "ACME"', "tenant 'ACME' is not a valid name"),
    option("FL002", '"tenant": 5.5e5, "priority": 1, "lane": "UP"', "lane 'UP' is not a valid name"),
    option("FL002", '"lane": ""', "lane '' is not a valid name"),
    refused("FL002", "select fenceline.set_lane('No')", "lane 'No' is not a valid name"),
    refused("FL002", "select fenceline.set_lane(null)", "lane null is not a valid name"),
    refused(
        "FL002", """select fenceline.set_lane('system', '{{"kinds": ["A b"]}}')""", "kind 'A b' is not a valid name"
    ),
    refused("FL002", """select fenceline.declare_kinds('{{"A": {{}}}}')""", "kind 'A' is not a valid name"),
    refused("FL002", """select fenceline.declare_kinds('{{"a": {{"lane": "L"}}}}')""", "lane 'L' is not a valid name"),
    refused("FL002", """select fenceline.enqueue('work', '{{}}', '{{}}', null, '{{"lane": "L"}}')""", "lane 'L'"),
]

NUMBERS = [
    *[
        option("FL003", f'"priority": {value}', f"priority {value}", "from -32768 to 32767")
        for value in ("32768", "-32769", "1.5", '"high"', "true", "[1]")
    ],
    option("FL003", '"priority": 1e400', "priority 1000", "from -32768 to 32767"),
    refused("FL003", "select fenceline.reprioritise_job({queued}, 40000)", "priority 40000 is out of range"),
    refused("FL003", "select fenceline.reprioritise_job({queued}, null)", "out of range"),
    refused("FL003", """select fenceline.declare_kinds('{{"a": {{"priority": 99999}}}}')""", "priority 99999"),
    refused(
        "FL003", """select fenceline.enqueue('work', '{{}}', '{{}}', null, '{{"priority": "x"}}')""", 'priority "x"'
    ),
    *[
        option("FL004", f'"max_attempts": {value}', f"max_attempts {value}", "from 1 to 1000")
        for value in ("0", "-1", "1001", "2.5", '"3"', "{{}}")
    ],
    refused("FL004", """select fenceline.declare_kinds('{{"a": {{"max_attempts": 0}}}}')""", "max_attempts 0"),
    refused(
        "FL004", """select fenceline.enqueue('work', '{{}}', '{{}}', null, '{{"max_attempts": 0}}')""", "max_attempts 0"
    ),
    *[
        option("FL007", f'"timeout": {value}', "timeout ", "a number of seconds above 0")
        for value in ("0", "-1", '"soon"', "1e400", "true")
    ],
    *[
        option("FL007", f'"key": "k", "key_limit": {value}', f"key_limit {value}", "from 1 to 10000")
        for value in ("0", "-1", "10001", '"2"')
    ],
    option("FL007", '"runner": 7', "runner 7 is not valid: use a name of 1 to 200 characters, or an object of labels"),
    option("FL007", '"runner": ""', 'runner "" is not valid'),
    option("FL007", '"runner": {{"zone": 1}}', "label 'zone' is not valid"),
    option("FL007", '"key_limit": 2', "key_limit is given without a key"),
    refused("FL007", "select fenceline.register_worker('w', 0)", "lease of 0 seconds", "0.1 to 86400"),
    refused("FL007", "select fenceline.register_worker('w', -1)", "lease of -1 seconds"),
    refused("FL007", "select fenceline.register_worker('w', 'NaN')", "lease of NaN seconds"),
    refused("FL007", "select fenceline.register_worker('w', null)", "0.1 to 86400"),
    refused("FL007", "select fenceline.cancel_job({running}, null, null, false, 'NaN')", "grace of NaN seconds"),
    refused("FL007", "select fenceline.cancel_job({running}, null, null, false, -1)", "grace of -1 seconds"),
    *[
        refused(
            "FL007",
            f"select fenceline.finish_attempt({{running}}, '{{attempt}}', 'failed', p_delay => '{value}')",
            "seconds is out of range",
        )
        for value in ("NaN", "-1", "1e300", "Infinity")
    ],
    refused("FL007", "select * from fenceline.list_jobs(p_limit => 0)", "limit 0 is out of range: use 1 to 1000"),
    refused("FL007", "select * from fenceline.list_jobs(p_limit => 1001)", "limit 1001"),
    refused("FL007", "select * from fenceline.list_jobs(p_limit => null)", "use 1 to 1000"),
]

SIZES_AND_JSON = [
    refused(
        "FL005",
        "select fenceline.enqueue('work', json_build_object('a', repeat('x', 1048576)))",
        "args of kind 'work' have 10485",
        "at most 1048576",
    ),
    refused(
        "FL005",
        "select fenceline.enqueue('work', ('{{' || repeat(' ', 1048576) || '}}')::json, '{{\"priority\": 1}}')",
        "args of kind 'work' have 1048578 bytes",
    ),
    refused(
        "FL005",
        "select fenceline.enqueue_many('work', array['{{}}', json_build_object('a', repeat('x', 1048576))])",
        "args of kind 'work' have",
    ),
    refused(
        "FL005",
        "select fenceline.finish_attempt({running}, '{attempt}', 'succeeded', to_jsonb(repeat('x', 1048577)))",
        "a result has",
        "at most 1048576",
    ),
    refused("FL006", r"""select fenceline.enqueue('work', '{{"a": "\u0000"}}')""", "kind 'work'", "JSON", r"\u0000"),
    refused("FL006", r"""select fenceline.enqueue('work', '{{"a": "\ud800"}}')""", "kind 'work'", "surrogate"),
    refused("FL006", r"""select fenceline.enqueue('work', '{{"a": "\udc00\ud800"}}')""", "kind 'work'", "surrogate"),
    refused("FL006", r"""select fenceline.enqueue('work', '{{"\u0000": 1}}')""", "kind 'work'", r"\u0000"),
    refused("FL006", r"""select fenceline.enqueue('work', '{{}}', '{{"key": "\u0000"}}')""", "kind 'work'", r"\u0000"),
    *[
        refused(
            "FL006",
            f"select fenceline.enqueue('work', '{{{{\"a\": [{number}]}}}}'{options})",
            "kind 'work'",
            "JSON",
            rule,
        )
        for number, rule in [("1e999999", "overflows"), ("-1E5000", "exponent"), ("1e-5000", "exponent")]
        for options in ("", ', \'{{"tenant": "acme"}}\'')
    ],
    refused(
        "FL006", "select fenceline.enqueue('work', ('{{\"a\": 9' || repeat('9', 131072) || '}}')::json)", "overflows"
    ),
    refused("FL006", r"""select fenceline.enqueue_jobs('[{{"kind": "\u0000"}}]')""", "jobs cannot", r"\u0000"),
    refused(
        "FL006",
        "select fenceline.enqueue('work', '{{}}', ('{{\"snapshot\": ' || repeat('[', 5000) || repeat(']', 5000)"
        " || '}}')::json)",
        "snapshot of kind 'work'",
        "nested too deeply",
    ),
    *[
        refused("FL007", f"select fenceline.enqueue('work', {args})", "args of kind 'work' must be a JSON object", rule)
        for args, rule in [("'[]'", "array"), ("'5'", "number"), ("'null'", "null"), ("null", "nothing")]
    ],
    refused("FL007", "select fenceline.enqueue_many('work', array['{{}}', null]::json[])", "must be a JSON object"),
    refused("FL007", "select fenceline.enqueue('work', '{{}}', '[]')", "options must be a JSON object"),
    refused("FL007", "select fenceline.enqueue('work', '{{}}', 'null')", "options must be a JSON object"),
    refused("FL007", "select fenceline.enqueue('work', '{{}}', '{{}}', null, '[]')", "defaults of kind 'work'"),
]

OPTIONS = [
    option("FL007", '"colour": "red"', "unknown option colour for kind 'work'"),
    *[
        option("FL007", f'"{name}": {value}', f"{name} {value}", "1 to 512 characters")
        for name in ("dedupe_key", "idempotency_key", "resource_lock", "key", "identity", "group", "requires_hash")
        for value in ('""', "5", "[]", "true")
    ],
    *[
        option("FL007", f'"run_in": {value}', f"run_in {value} is out of range: use a number of seconds")
        for value in ("-1", '"60"', "[]", "2000000000", "true")
    ],
    option("FL007", '"run_in": 5, "run_at": "2040-01-01T00:00:00Z"', "run_at and run_in are both given"),
    option("FL007", f'"key": "{"x" * 513}"', "key ", "1 to 512 characters"),
    *[
        option("FL007", f'"{name}": {value}', f"{name} ", "is not a moment")
        for name in ("run_at", "expires_at")
        for value in (
            '"tomorrow"',
            "5",
            '"2026-01-01"',
            '"2026-01-01T10:00:00"',
            '"2026-13-01T10:00:00Z"',
            "[]",
            '"infinity"',
            '"0000-01-01T00:00:00Z"',
            '"2026-01-01T10:00:00+99"',
        )
    ],
    *[
        option("FL007", f'"needs_approval": {value}', f"needs_approval {value} is not a boolean")
        for value in ('"yes"', "1", "[]")
    ],
    *[
        option("FL007", f'"labels": {value}', "label")
        for value in ('"x"', "[]", '{{"a": 1}}', '{{"a": null}}', '{{"": "x"}}', '{{"a": ""}}', '{{"a": {{}}}}')
    ],
    refused(
        "FL007",
        "select fenceline.enqueue('work', '{{}}', json_build_object('labels', (select json_object_agg(n::text, 'x')"
        " from generate_series(1, 33) n)))",
        "at most 32 labels",
    ),
    option("FL007", '"retry": "often"', 'retry policy "often" is not valid'),
    option("FL007", '"retry": {{"backoff": [1, "x"]}}', "retry policy ", "a list of seconds"),
    *[
        option("FL007", f'"after": {value}', "after ", "a list of job ids")
        for value in (
            "true",
            "{{}}",
            '{{"jobs": 5}}',
            '{{"group": 5}}',
            '{{"jobs": [], "when": 1}}',
            '{{"policy": "always"}}',
        )
    ],
    option("FL007", '"after": {{"jobs": [], "policy": "never"}}', "policy 'never' of after is unknown"),
    refused("FL002", "select fenceline.enqueue('fenceline.webhook')", "kind 'fenceline.webhook' is Fenceline's own"),
    refused(
        "FL002",
        "select fenceline.enqueue_many('fenceline.x', array['{{}}']::json[], p_origin => 'child')",
        "'fenceline.x'",
    ),
    refused(
        "FL007",
        "select fenceline.enqueue('work', p_defaults => '{{\"needs_approval\": 1}}')",
        "1 of kind 'work' is not a boolean",
    ),
    refused(
        "FL007",
        'select fenceline.declare_kinds(\'{{"a": {{"identities": {{"boss": []}}}}}}\')',
        "identities of kind 'a'",
    ),
    refused("FL007", "select fenceline.set_approval(null)", "by_other must be true or false"),
    refused("FL007", "select fenceline.enqueue('work', p_origin => 'moon')", "origin 'moon' is unknown"),
    refused("FL007", "select fenceline.enqueue('work', p_origin => null)", "origin NULL is unknown"),
    refused(
        "FL007", "select fenceline.enqueue_many('work', array['{{}}']::json[], p_origin => 'moon')", "origin 'moon'"
    ),
]

IDS = [
    *[
        option("FL017", f'"{name}": {value}', says, "is not a job id")
        for name in ("parent", "retry_of")
        for value, says in [
            ('"nonsense"', "'nonsense'"),
            ("1.5", "1.5"),
            ("-1", "-1"),
            ("1e30", "1000"),
            ("true", "true"),
        ]
    ],
    option("FL017", '"after": ["nonsense"]', "'nonsense' is not a job id"),
    option("FL017", '"after": [null]', "null is not a job id"),
    option("FL017", '"after": [true]', "true is not a job id"),
    option("FL017", '"after": "@ref"', "'@ref' is not a job id"),
    refused(
        "FL017", "select fenceline.parse_public_id('{wrong_check}')", "'{wrong_check}'", "check symbols do not fit"
    ),
    refused("FL017", "select fenceline.parse_public_id('01HQ')", "'01HQ'", "an id has 15 symbols", "this has 4"),
    refused("FL017", "select fenceline.parse_public_id('01HQ-3KBR-T5GN-!W')", "'!' is not a symbol"),
    refused("FL017", "select fenceline.parse_public_id('ZZZZ-ZZZZ-ZZZZ-ZZZ')", "larger than any id"),
    refused("FL017", "select fenceline.public_id(-1)", "-1 is not an id"),
]

DEPENDENCIES = [
    option("FL008", '"after": [12345]', "job 0000-0000-00C1-S", "does not exist"),
    option("FL008", '"after": [{foreign}]', "job {foreign_id}, which this one should wait for, does not exist"),
    refused(
        "FL008",
        """select fenceline.enqueue_jobs('[{{"kind": "a"}}, {{"kind": "b", "after": [12345]}}]')""",
        "does not exist",
    ),
    refused(
        "FL009",
        """select fenceline.enqueue_jobs('[{{"kind": "a", "ref": "a", "after": ["@b"]}},
                                            {{"kind": "b", "ref": "b", "after": ["@a"]}}, {{"kind": "c"}}]')""",
        "positions 1, 2 wait for each other",
    ),
    refused(
        "FL009",
        """select fenceline.enqueue_jobs('[{{"kind": "a", "ref": "a", "after": ["@a"]}}]')""",
        "positions 1 wait",
    ),
    refused(
        "FL009",
        """select fenceline.enqueue_jobs('[{{"kind": "c"}}, {{"kind": "a", "after": ["@nobody"]}}]')""",
        "positions 2",
        "a reference that is not there",
    ),
    refused("FL007", """select fenceline.enqueue_jobs('{{"kind": "a"}}')""", "jobs must be a JSON array of objects"),
    refused("FL007", """select fenceline.enqueue_jobs('["a"]')""", "jobs must be a JSON array of objects"),
    refused("FL007", "select fenceline.enqueue_jobs(null)", "jobs must be a JSON array of objects"),
    refused("FL007", """select fenceline.enqueue_jobs('[{{"kind": "a", "after": {{"jobs": 5}}}}]')""", "after "),
    refused(
        "FL007",
        """select fenceline.enqueue_jobs('[{{"kind": "a", "ref": "x"}}, {{"kind": "b", "ref": "x"}}]')""",
        "ref 'x' names more than one job",
    ),
    refused("FL002", """select fenceline.enqueue_jobs('[{{"kind": "fine"}}, {{"ref": "x"}}]')""", "kind null"),
    option("FL020", '"after": {{"group": "nobody"}}', "group 'nobody' has no jobs"),
    option("FL020", '"after": {{"group": "nobody", "jobs": [{queued}]}}', "group 'nobody' has no jobs"),
    option("FL020", '"after": {{"group": "theirs"}}', "group 'theirs' has no jobs"),
]

VERBS = (
    "cancel_job({0})",
    "approve_job({0})",
    "reject_job({0})",
    "retry_job({0})",
    "reprioritise_job({0}, 1)",
    "delete_job({0})",
)

JOBS = [
    *[
        refused("FL010", f"select fenceline.{verb.format('12345')}", "job 0000-0000-00C1-S", "does not exist")
        for verb in VERBS
    ],
    *[refused("FL010", f"select fenceline.{verb.format('null')}", "job null does not exist") for verb in VERBS],
    *[
        refused(
            "FL010",
            f"select fenceline.{verb.format('{foreign}')[:-1]}, p_tenant => 'default')",
            "job {foreign_id} does not exist",
        )
        for verb in VERBS
    ],
    *[
        refused(
            "FL011",
            f"select fenceline.{verb.format('{' + job + '}')}",
            "job {" + job + "_id} cannot be",
            f"it is {status}",
            rule,
        )
        for verb, job, status, rule in [
            ("approve_job({0})", "finished", "succeeded", "must be awaiting_approval"),
            ("approve_job({0})", "queued", "queued", "must be awaiting_approval"),
            ("reject_job({0})", "running", "claimed", "must be awaiting_approval"),
            ("reject_job({0})", "finished", "succeeded", "must be awaiting_approval"),
            ("retry_job({0})", "running", "claimed", "must be finished"),
            ("retry_job({0})", "queued", "queued", "must be finished"),
            ("cancel_job({0})", "finished", "succeeded", "must be unfinished"),
            ("cancel_job({0}, p_force => true)", "finished", "succeeded", "must be unfinished"),
            ("reprioritise_job({0}, 5)", "running", "claimed", "must be unclaimed"),
            ("reprioritise_job({0}, 5)", "finished", "succeeded", "must be unclaimed"),
            ("delete_job({0})", "running", "claimed", "must be finished"),
            ("delete_job({0})", "queued", "queued", "must be finished"),
        ]
    ],
    option("FL013", '"resource_lock": "table"', "resource 'table' is locked by job {queued_id} until that job ends"),
    option(
        "FL013",
        '"resource_lock": "table", "dedupe_key": "d", "idempotency_key": "i", "key": "k"',
        "resource 'table' is locked",
    ),
]

WORKERS = [
    refused("FL015", "select * from fenceline.claim_jobs(999)", "worker 999 is not registered or its lease is over"),
    refused("FL015", "select * from fenceline.claim_jobs(null)", "is not registered"),
    refused("FL007", "select * from fenceline.heartbeat(array[1, 2], '{{}}')", "for one worker at a time"),
    refused(
        "FL007", "select fenceline.finish_attempt({running}, '{attempt}', 'exploded')", "outcome 'exploded' is unknown"
    ),
    refused(
        "FL007",
        "select fenceline.finish_attempts(array[{running}], array['{attempt}']::uuid[], array['failed', 'failed'])",
        "1 jobs, 1 attempts and 2 outcomes",
    ),
    refused("FL007", "select fenceline.finish_attempts(array[{running}], array[]::uuid[])", "1 jobs, 0 attempts"),
    refused("FL007", "select fenceline.finish_attempts(array[{running}], null)", "1 jobs, "),
    *[
        refused("FL007", f"select fenceline.write_log({{running}}, '{{attempt}}', {lines})", "lines ", "are not valid")
        for lines in (
            "'{{}}'",
            "null",
            "'[5]'",
            """'[{{"ago_seconds": "x"}}]'""",
            """'[{{"ago_seconds": -1}}]'""",
            """'[{{"ago_seconds": 1e300}}]'""",
        )
    ],
    refused("FL007", "select * from fenceline.list_jobs(array['exploded'])", "status 'exploded' is unknown"),
    refused("FL007", "select fenceline.drain_system(null)", "draining must be true (drain) or false (resume)"),
    *[
        refused("FL007", f"select fenceline.declare_kinds({kinds})", *says)
        for kinds, says in [
            ("null", ("kinds must be a JSON object",)),
            ("'[]'", ("kinds must be a JSON object",)),
            ("""'{{"a": 5}}'""", ("kinds must be a JSON object",)),
            ("""'{{"a": {{"timeout": "x"}}}}'""", ('timeout "x"',)),
            ("""'{{"a": {{"retry": []}}}}'""", ("retry policy []",)),
            ("""'{{"a": {{"retention": 5}}}}'""", ("retention 5 of kind 'a'",)),
            ("""'{{"a": {{"retention": {{"failed": "x"}}}}}}'""", ("retention ", "of kind 'a'")),
            ("""'{{"a": {{"retention": {{"failed": -1}}}}}}'""", ("retention ", "of kind 'a'")),
            ("""'{{"a": {{"retention": {{"queued": 1}}}}}}'""", ("retention ", "of kind 'a'")),
            ("""'{{"fine": {{"lane": "fresh"}}, "worse": {{"timeout": 0}}}}'""", ("timeout 0",)),
        ]
    ],
]

SCHEDULES = [refused(sqlstate, sql, *says) for sqlstate, sql, says in SCHEDULE_REFUSALS]
CONTEXT = [refused(sqlstate, sql, *says) for sqlstate, sql, says in CONTEXT_REFUSALS]

WEBHOOKS = [
    refused("FL047", "select fenceline.delete_trigger('nobody', 'default')", "trigger 'nobody' does not exist"),
    refused(
        "FL048",
        """select fenceline.create_trigger('t', '{{"kind": "a", "window_seconds": 0}}', repeat('s', 16), 'default')""",
        "window_seconds 0 is out of range",
    ),
    refused("FL060", "select fenceline.delete_hook(0)", "hook 0 does not exist"),
    refused("FL061", "select fenceline.create_hook('https://example.org', 'short', 'default')", "16 to 200 characters"),
]
RUNNERS = [
    refused("FL065", "select fenceline.runner_heartbeat(0, 'nobody')", "runner 0 does not exist: register one"),
    refused(
        "FL066",
        "select fenceline.runner_attempt({running}, '{attempt}', 'nobody', null)",
        "belongs to a runner of another token",
    ),
]

CASES = [
    *ACCESS,
    *LANES,
    *NAMES,
    *NUMBERS,
    *SIZES_AND_JSON,
    *OPTIONS,
    *IDS,
    *DEPENDENCIES,
    *JOBS,
    *WORKERS,
    *SCHEDULES,
    *CONTEXT,
    *WEBHOOKS,
    *RUNNERS,
]


async def scene(queue: Queue) -> dict[str, object]:
    """Jobs in several statuses, and the names that the cases use for them."""
    finished = await queue.finished()
    running = await queue.enqueue()
    attempt = await queue.claim_one()
    await queue.call("record_step", running, attempt.attempt_id, "paid", "hash")
    queued = await queue.enqueue(resource_lock="table")
    foreign = await queue.enqueue(tenant="other", group="theirs")
    await queue.set_lane("busy")
    await queue.enqueue(lane="busy")
    await queue.call("set_schedule", "there", {"kind": "work", "every": 60})
    names: dict[str, object] = {"worker": queue.worker, "attempt": attempt.attempt_id}
    for name, job in (("finished", finished), ("running", running), ("queued", queued), ("foreign", foreign)):
        names |= {name: job, f"{name}_id": await queue.public_id(job)}
    right = str(names["queued_id"])
    names["wrong_check"] = right[:-1] + ("0" if right[-1] != "0" else "1")
    return names


def fill(text: str, names: dict[str, object]) -> str:
    return text.format(**names)


async def refusal_of(queue: Queue, sql: str) -> asyncpg.PostgresError:
    with pytest.raises(asyncpg.PostgresError) as error:
        await queue.connection.execute(sql)
    return error.value


@pytest.mark.parametrize(
    "cases",
    [
        pytest.param(cases, id=name)
        for name, cases in {
            "access": ACCESS,
            "lanes": LANES,
            "names": NAMES,
            "numbers": NUMBERS,
            "sizes_and_json": SIZES_AND_JSON,
            "options": OPTIONS,
            "ids": IDS,
            "dependencies": DEPENDENCIES,
            "jobs": JOBS,
            "workers": WORKERS,
            "schedules": SCHEDULES,
            "context": CONTEXT,
            "webhooks": WEBHOOKS,
            "runners": RUNNERS,
        }.items()
    ],
)
async def test_refusals(queue: Queue, cases: list[Case]) -> None:
    names = await scene(queue)
    before = await queue.contents()
    wrong = []
    for case in cases:
        sql = fill(case.sql, names)
        error = await refusal_of(queue, sql)
        if error.sqlstate != case.sqlstate:
            wrong.append(f"{sql}\n    {error.sqlstate} instead of {case.sqlstate}: {error}")
        wrong += [
            f"{sql}\n    does not say {fill(said, names)!r}: {error}"
            for said in case.says
            if fill(said, names) not in str(error)
        ]
        mapped = refusal(error)
        if mapped is None or type(mapped) is not SQLSTATES[case.sqlstate]:
            wrong.append(f"{sql}\n    becomes {mapped!r}")
        if await queue.contents() != before:
            wrong.append(f"{sql}\n    changed the database")
            before = await queue.contents()
    assert not wrong, "\n".join(wrong)


async def test_while_draining_enqueues_are_refused(queue: Queue) -> None:
    await queue.call("drain_system", True)
    before = await queue.contents()
    for options in ("{}", '{"priority": 1}', '{"key": "k"}'):
        error = await refusal_of(queue, f"select fenceline.enqueue('work', '{{}}', '{options}')")
        assert (error.sqlstate, "the system is draining" in str(error)) == ("FL014", True)
    assert await queue.contents() == before


@pytest.mark.parametrize("isolation", ["repeatable_read", "serializable"])
async def test_a_claim_needs_read_committed(
    queue: Queue, isolation: Literal["repeatable_read", "serializable"]
) -> None:
    await queue.enqueue()
    before = await queue.contents()
    async with queue.connection.transaction(isolation=isolation):
        error = await refusal_of(queue, f"savepoint s; select * from fenceline.claim_jobs({queue.worker})")
        await queue.connection.execute("rollback to s")
    assert error.sqlstate == "FL016"
    assert f"READ COMMITTED only, not in {isolation.upper().replace('_', ' ')}" in str(error)
    assert await queue.contents() == before


async def test_a_stale_attempt_is_a_verdict_and_changes_nothing(queue: Queue) -> None:
    job = await queue.enqueue()
    old = await queue.run(job, "released")
    await queue.claim_one()
    before = await queue.contents()
    assert await queue.finish(old) == "stale"
    assert await queue.call("write_log", job, old.attempt_id, [{"message": "late"}]) is False
    assert await queue.call("set_progress", job, old.attempt_id, "late") is False
    assert len(await queue.rows("start_attempts", [job], [old.attempt_id])) == 1
    assert await queue.contents() == before


def test_every_sqlstate_is_known_raised_and_tested() -> None:
    raised = {state for file in read_schema_files().code for state in re.findall(r"'(FL\d{3})'", file.text)}
    assert raised == set(SQLSTATES)
    # These need more than one statement: see below, lock_scenarios, test_set_tenant_limit, test_erase_args,
    # tests/server/test_incoming_webhooks.py and tests/server/attacks/.
    assert {case.sqlstate for case in CASES} | {
        "FL014",
        "FL016",
        "FL022",
        "FL023",
        "FL049",
        "FL055",
        "FL070",
        "FL071",
        "FL072",
        "FL073",
    } == raised
