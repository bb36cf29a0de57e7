"""`fenceline prune`, `sweep`, `retention` and `limits`, the real programs."""

from typing import Any

from tests.cli.program import Hands, Program


def answer(fenceline: Program, *words: str) -> Any:
    return fenceline(*words, "--json").json


def test_prune_forgets_what_is_over_in_steps(fenceline: Program, hands: Hands) -> None:
    sql = hands.connection
    for _ in range(5):
        sql.execute("select fenceline.cancel_job(job_id) from fenceline.enqueue('work')")
    assert answer(fenceline, "prune") == {"pruned": 0}
    sql.execute("update fenceline.history set ended_at = now() - interval '8 days'")
    sql.execute("select fenceline.cancel_job(job_id) from fenceline.enqueue('work')")
    assert answer(fenceline, "prune", "--limit", "2") == {"pruned": 5}
    assert sql.execute("select count(*) from fenceline.jobs").fetchone() == (1,)
    assert fenceline("prune").out == "0 jobs forgotten\n"


def test_sweep_takes_back_what_lost_workers_held(fenceline: Program, hands: Hands) -> None:
    sql = hands.connection
    sql.execute("select fenceline.enqueue('work')")
    sql.execute("select fenceline.claim_jobs(fenceline.register_worker('w', 60), 'default', 1)")
    assert answer(fenceline, "sweep") == {"swept": 0}
    sql.execute("update fenceline.worker set lease_until = now() - interval '1 second'")
    assert fenceline("sweep").out == "1 attempt taken back\n"
    assert sql.execute("select status from fenceline.jobs").fetchone() == ("queued",)


def test_retention_is_shown_and_set(fenceline: Program, hands: Hands) -> None:
    week = {"kind": None, "status": None, "seconds": 604800.0, "said_by": "default"}
    assert answer(fenceline, "retention") == {"items": [week]}
    assert fenceline("retention", "--days", "30", "--kind", "ingest", "--status", "failed").code == 0
    items = answer(fenceline, "retention")["items"]
    assert {"kind": "ingest", "status": "failed", "seconds": 2592000.0, "said_by": "operator"} in items
    assert fenceline("retention", "--kind", "ingest", "--reset").code == 0
    assert answer(fenceline, "retention", "--days", "1") == {"items": [week | {"seconds": 86400.0}]}


def test_limits_of_tenants_are_shown_and_set(fenceline: Program, hands: Hands) -> None:
    everybody = {"tenant": None, "max_jobs": None, "jobs": None}
    assert answer(fenceline, "limits") == {"items": [everybody]}
    hands.connection.execute("""select fenceline.enqueue('work', '{}', '{"tenant": "acme"}')""")
    acme = {"tenant": "acme", "max_jobs": 9, "jobs": 1}
    assert answer(fenceline, "limits", "--jobs", "9", "--tenant", "acme") == {"items": [everybody, acme]}
    assert "acme" in fenceline("limits").out
    assert answer(fenceline, "limits", "--tenant", "acme", "--reset") == {"items": [everybody]}
    assert answer(fenceline, "limits", "--jobs", "5") == {"items": [everybody | {"max_jobs": 5}]}


def test_half_a_command_is_a_usage_error(fenceline: Program, hands: Hands) -> None:
    for words in (["--kind", "ingest"], ["--days", "1", "--reset"], ["--days", "-1"]):
        assert fenceline("retention", *words).code == 2, words
    for words in (["--tenant", "acme"], ["--jobs", "1", "--reset"], ["--jobs", "-1"]):
        assert fenceline("limits", *words).code == 2, words
    refused = fenceline("retention", "--days", "1", "--status", "failed").error
    assert refused.startswith("the default retention is one number of seconds")


def test_args_of_finished_jobs_are_erased_unless_there_is_nobody_to_ask(fenceline: Program, hands: Hands) -> None:
    def jobs() -> list[tuple[str, str]]:
        return [(str(row[0]), str(row[1])) for row in hands.connection.execute("select id, args from fenceline.jobs")]

    for _ in range(2):
        hands.connection.execute("""select fenceline.enqueue('work', '{"card": "4111"}')""")
    (first, _), (second, _) = jobs()
    assert "cannot be erased: it is queued" in fenceline("jobs", "erase", first, "--yes").error
    fenceline("jobs", "cancel", first, second, "--yes")
    asked = fenceline("jobs", "erase", first, second, given="y\n").error
    assert asked == "this would erase the args of 2 jobs for good: add --yes to do it without a question"
    assert all("4111" in args for _, args in jobs())
    assert fenceline("jobs", "erase", first, "not-an-id", "--yes").code == 1
    assert all("4111" in args for _, args in jobs()), "a mistyped id stops it before anything is done"
    assert fenceline("jobs", "erase", first, second, "--yes").out == f"{first} erased\n{second} erased\n"
    assert not any("4111" in args for _, args in jobs())
    assert "its args were erased" in fenceline("jobs", "retry", first, "--yes").err
