"""Functions that let a block outside handlers keep what it has lost, or lose what it has."""

from tests.sql import outside_lock_scenarios as scenarios
from tests.sql import test_take_outside_lock as tests
from tests.sql.mutation import mutant, on_queue

LOCK_MUTANTS = (
    mutant(
        "lease_of_a_lock_is_nothing",
        "is_holding",
        "or exists (select 1 from fenceline.lock_lease h where h.owner = p_attempt_id);",
        ";",
        on_queue(tests.test_one_at_a_time_with_handlers_and_in_the_order_of_asking),
    ),
    mutant(
        "lock_kept_without_a_lease",
        "line_up",
        "  perform fenceline.end_outside_locks(",
        "  perform fenceline.say_seconds(1); perform (",
        on_queue(tests.test_the_next_has_it_when_the_lease_is_over, by_maintenance=False),
    ),
    mutant(
        "locks_not_maintained",
        "maintain",
        "fenceline.end_outside_locks(v_step)",
        "0",
        on_queue(tests.test_the_next_has_it_when_the_lease_is_over, by_maintenance=True),
    ),
    mutant(
        "lease_ended_and_its_lock_kept",
        "end_outside_locks",
        "perform fenceline.release_lock(v_lease.id, v_lease.owner);",
        "",
        on_queue(tests.test_the_next_has_it_when_the_lease_is_over, by_maintenance=True),
    ),
    mutant(
        "lease_ended_while_it_is_renewed",
        "end_outside_locks",
        "where o.lease_until < v_now for update skip locked",
        "where o.lease_until < v_now",
        scenarios.lease_that_is_renewed_is_not_ended,
    ),
    mutant(
        "waits_for_a_renewal",
        "end_outside_locks",
        "where o.lease_until < v_now for update skip locked",
        "where o.lease_until < v_now for update",
        scenarios.lease_that_is_renewed_is_not_ended,
    ),
    mutant(
        "renewal_waits",
        "keep_outside_locks",
        "for no key update skip locked",
        "for no key update",
        scenarios.lease_that_is_ended_is_not_renewed,
    ),
    mutant(
        "ended_lease_called_kept",
        "keep_outside_locks",
        "where o not in (select n.owner from renewed n)",
        "where false",
        scenarios.lease_that_is_ended_is_not_renewed,
    ),
    mutant(
        "lease_not_renewed_by_asking",
        "take_outside_lock",
        "do update set renewed_at = excluded.renewed_at, lease_until = excluded.lease_until",
        "do update set actor = excluded.actor",
        on_queue(tests.test_who_is_heard_of_keeps_it),
    ),
    mutant(
        "token_by_the_clock",
        "take_outside_lock",
        "(fenceline.timeline() << 40) + nextval('fenceline.job_id')",
        "fenceline.id_at(fenceline.clock())",
        on_queue(tests.test_the_token_grows_and_a_lost_reply_is_answered_again),
    ),
    mutant(
        "token_anew_for_a_lost_reply",
        "take_outside_lock",
        "if v_lease.token is not null then",
        "if false then",
        on_queue(tests.test_the_token_grows_and_a_lost_reply_is_answered_again),
    ),
    mutant(
        "lock_lost_by_a_step_forward",
        "end_outside_locks",
        "or p_step > interval '0' and o.renewed_at < v_now - p_step / 2",
        "",
        on_queue(tests.test_a_lease_is_as_long_as_it_was_when_the_clock_is_set, step=3600, looks="maintain"),
    ),
    mutant(
        "lock_lost_by_a_step_forward_that_a_waiter_saw",
        "line_up",
        "    fenceline.clock_step_for((select m.ran_at from",
        "    null::interval + fenceline.clock_step_for((select m.ran_at from",
        on_queue(tests.test_a_lease_is_as_long_as_it_was_when_the_clock_is_set, step=3600, looks="take"),
    ),
    mutant(
        "dead_holder_kept_by_a_step_back",
        "end_outside_locks",
        "where o.renewed_at > v_now + interval '1 second'",
        "where false",
        on_queue(tests.test_a_lease_is_as_long_as_it_was_when_the_clock_is_set, step=-3600, looks="maintain"),
    ),
    mutant(
        "release_of_a_lost_lock_takes_the_heirs",
        "release_outside_lock",
        "fenceline.release_lock(v_id, p_owner)",
        "fenceline.release_lock(l.job_id, l.owner)) from fenceline.attempt_lock l limit 1; return jsonb_build_object("
        "'held', false, 'next', null",
        on_queue(tests.test_the_next_has_it_when_the_lease_is_over, by_maintenance=True),
        ("return jsonb_build_object('held', found, 'next', ", "perform jsonb_build_object('held', found, 'next', "),
    ),
)
