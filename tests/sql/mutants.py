"""Broken variants of the functions, each with the scenario that must notice.

A mutant is a replacement in the text of the real file. The text must occur exactly once: when a function changes, its
mutants break loudly instead of testing nothing.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.sql import (
    claim_scenarios,
    context_scenarios,
    end_scenarios,
    gate_scenarios,
    lock_scenarios,
    schedule_scenarios,
)
from tests.sql.sessions import Connect

from fenceline.database.schema_files import read_schema_files

Scenario = Callable[[Connect], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Mutant:
    name: str
    function: str
    replacements: tuple[tuple[str, str], ...]
    caught_by: Scenario | None  # None: a short run of the state machine
    prepare: str = ""  # SQL that has to run first

    def sql(self) -> str:
        """The broken function. Raises ValueError when the real one no longer reads as expected."""
        [text] = [file.text for file in read_schema_files().code if file.name == self.function]
        for old, new in self.replacements:
            if text.count(old) != 1:
                raise ValueError(
                    f"mutant {self.name}: {self.function}.sql has {text.count(old)} times, not once: {old}"
                )
            text = text.replace(old, new)
        return self.prepare + text


def mutant(
    name: str, function: str, old: str, new: str, caught_by: Scenario | None, *more: tuple[str, str], prepare: str = ""
) -> Mutant:
    return Mutant(name, function, ((old, new), *more), caught_by, prepare)


MUTANTS = (
    mutant(
        "finish_without_fence",
        "finish_attempts",
        "where r.job_id = g.job_id and r.attempt_id = g.attempt_id",
        "where r.job_id = g.job_id",
        end_scenarios.late_writes_change_nothing,
    ),
    mutant(
        "failure_without_fence",
        "finish_attempts",
        "where r.job_id = v_given.job_id and r.attempt_id = v_given.attempt_id",
        "where r.job_id = v_given.job_id",
        end_scenarios.sweep_and_finish_have_one_winner,
    ),
    mutant(
        "replay_answered_as_accepted",
        "finish_attempts",
        "then 'already' else 'stale' end",
        "then 'accepted' else 'stale' end",
        end_scenarios.two_finishes_of_one_attempt_count_once,
    ),
    mutant(
        "any_late_finish_answered_as_already",
        "finish_attempts",
        "where coalesce(h.asked, h.outcome) = coalesce(v_given.outcome, 'succeeded')",
        "",
        end_scenarios.cancel_and_finish_have_one_winner,
    ),
    mutant(
        "sweep_without_rotation",
        "sweep",
        "for v_run in delete from fenceline.running r where r.worker_id = any(v_lost) returning r.* loop",
        "for v_run in select r.* from fenceline.running r where r.worker_id = any(v_lost) loop",
        end_scenarios.sweep_and_finish_have_one_winner,
    ),
    mutant(
        "forced_cancel_without_rotation",
        "cancel_job",
        "delete from fenceline.running r where r.job_id = p_job_id returning * into v_run;",
        "select * into v_run from fenceline.running r where r.job_id = p_job_id;",
        end_scenarios.cancel_and_finish_have_one_winner,
    ),
    mutant(
        "start_without_fence",
        "start_attempts",
        "where r.job_id = g.job_id and r.attempt_id = g.attempt_id",
        "where r.job_id = g.job_id",
        end_scenarios.late_writes_change_nothing,
    ),
    mutant(
        "log_without_fence",
        "write_log",
        "where r.job_id = p_job_id and r.attempt_id = p_attempt_id",
        "where r.job_id = p_job_id",
        end_scenarios.late_writes_change_nothing,
    ),
    mutant(
        "release_not_refunded",
        "end_attempt",
        "v_number := p_run.number - 1;",
        "v_number := p_run.number;",
        end_scenarios.late_writes_change_nothing,
    ),
    mutant(
        "token_does_not_grow",
        "claim_jobs",
        "greatest(coalesce(r.token, 0), v_timeline) + 1 as token",
        "v_timeline + 1 as token",
        end_scenarios.late_writes_change_nothing,
    ),
    mutant(
        "claim_as_of_before_it_waited",
        "claim_jobs",
        "  v_now := fenceline.clock();\n",
        "",
        claim_scenarios.rate_is_not_refilled_twice_while_claims_wait,
    ),
    mutant(
        "quarantine_forgotten",
        "end_crashed",
        "case when p_deaths >= 3",
        "case when p_deaths >= 99",
        end_scenarios.third_death_alone_is_quarantine,
    ),
    mutant(
        "heartbeat_releases_fresh_attempts",
        "heartbeat",
        " and r.claimed_at < v_before",
        "",
        end_scenarios.heartbeat_releases_only_what_its_worker_forgot,
    ),
    mutant(
        "expiry_not_checked_at_claim",
        "claim_jobs",
        "if v_pick.uses & 48 <> 0 then",
        "if false then",
        end_scenarios.expired_job_is_not_started,
    ),
    mutant(
        "slots_counted_without_lock",
        "claim_jobs",
        "perform pg_advisory_xact_lock(1179926085, hashtext(p_lane));",
        "perform pg_advisory_xact_lock_shared(1179926085, hashtext(p_lane));",
        claim_scenarios.slots_hold_while_claims_overlap,
    ),
    mutant(
        "lane_changed_without_lock",
        "set_lane",
        "perform pg_advisory_xact_lock(1179926085, hashtext(p_name));",
        "",
        claim_scenarios.lowered_slots_start_nothing_above,
    ),
    mutant(
        "lane_not_read_again_under_its_lock",
        "claim_jobs",
        "-- Again, now that the lane cannot change: set_lane takes the same lock.\n"
        "  select * into v_lane from fenceline.lane l where l.name = p_lane;",
        "",
        claim_scenarios.drained_lane_claims_nothing,
    ),
    mutant(
        "claim_without_worker_lock",
        "claim_jobs",
        "and w.lease_until > v_now for key share;",
        "and w.lease_until > v_now;",
        claim_scenarios.stopped_worker_leaves_no_attempt,
    ),
    mutant(
        "claim_without_worker_check",
        "claim_jobs",
        "where w.id = p_worker_id and w.stopped_at is null and w.lease_until > v_now for key share;",
        "where w.id = p_worker_id for key share;",
        claim_scenarios.swept_worker_leaves_no_attempt,
    ),
    mutant(
        "dedupe_without_unique_index",
        "take_dedupe_key",
        "values (p_tenant, p_key, p_job_id)\n    on conflict (tenant, key) do nothing returning",
        "select p_tenant, p_key, p_job_id\n"
        "    where not exists (select 1 from fenceline.dedupe where tenant = p_tenant and key = p_key) returning",
        gate_scenarios.dedupe_key_makes_one_job,
        prepare="alter table fenceline.dedupe drop constraint dedupe_pkey;\n",
    ),
    mutant(
        "dedupe_key_kept_after_claim",
        "claim_jobs",
        "if v_pick.uses & 1 <> 0 then",
        "if false then",
        gate_scenarios.dedupe_key_is_free_after_a_claim,
    ),
    mutant(
        "resource_lock_kept_after_end",
        "settle",
        "delete from fenceline.resource_lock where job_id = any(v_round);",
        "null;",
        gate_scenarios.resource_lock_is_free_when_its_job_ends,
    ),
    mutant(
        "key_admission_without_lock",
        "admit_keys",
        "perform pg_advisory_xact_lock(1179926086, fenceline.key_lock(v_keys.tenant, v_keys.key));",
        "",
        gate_scenarios.key_admits_one_while_claims_overlap,
    ),
    mutant(
        "key_admission_without_count",
        "admit_keys",
        "exit when v_used >= v_head.key_limit;",
        "",
        gate_scenarios.freed_key_admits_the_next,
    ),
    mutant(
        "fan_in_without_row_lock",
        "advance_waiters",
        "for update of h",
        "",
        gate_scenarios.last_two_children_release_the_fan_in_once,
    ),
    mutant(
        "dependencies_verified_once",
        "verify_dependencies",
        "where waiter_id = any(v_waiters) and seen_xid <= v_oldest;",
        "where waiter_id = any(v_waiters);",
        gate_scenarios.early_waiter_is_released,
    ),
    mutant(
        "dependencies_never_verified",
        "verify_dependencies",
        "v_ended := fenceline.advance_waiters(v_ended);",
        "v_ended := null;",
        gate_scenarios.late_waiter_is_released,
    ),
    mutant(
        "old_snapshot_not_looked_at_again",
        "settle",
        "if current_setting('transaction_isolation') <> 'read committed' then",
        "if false then",
        gate_scenarios.waiter_unseen_by_an_old_snapshot_is_released,
    ),
    mutant(
        "deleted_dependency_waited_for",
        "verify_dependencies",
        "or not exists (select 1 from fenceline.job j where j.id = d.after_id)",
        "",
        gate_scenarios.late_waiter_of_a_deleted_job_is_released,
    ),
    mutant(
        "cancel_request_forgotten",
        "end_attempt",
        "if not v_final and p_run.cancel_requested_at is not null then",
        "if false then",
        end_scenarios.cancel_and_claim_have_one_winner,
    ),
    mutant(
        "release_loses_its_place",
        "end_attempt",
        "v_seq := coalesce(p_run.seq, p_run.job_id);",
        "v_seq := fenceline.next_id();",
        None,
    ),
    mutant(
        "failed_dependency_ignored",
        "advance_waiters",
        "v_waiter.failed is not null and v_waiter.after_policy = 'success'",
        "false",
        None,
    ),
    mutant(
        "approval_skips_dependencies",
        "approve_job",
        "if v_held.pending > 0 then",
        "if false then",
        gate_scenarios.approval_and_dependencies_are_both_gates,
    ),
    mutant(
        "tick_without_lock_and_unique_row",
        "fire_schedule",
        "  for update skip locked;",
        "  ;",
        schedule_scenarios.a_tick_fires_once_while_schedulers_overlap,
        prepare="alter table fenceline.schedule_tick drop constraint schedule_tick_pkey;\n",
    ),
    mutant(
        "tick_without_comparison",
        "fire_schedule",
        " and s.next_at is not distinct from p_expected\n    and s.due_at <= v_now and",
        " and",
        schedule_scenarios.a_late_scheduler_does_not_turn_back_the_next_tick,
    ),
    mutant(
        "tick_without_unique_row",
        "fire_schedule",
        "on conflict do nothing;",
        ";",
        schedule_scenarios.a_tick_fires_once_when_the_clock_is_set_back,
        prepare="alter table fenceline.schedule_tick drop constraint schedule_tick_pkey;\n",
    ),
    mutant(
        "fire_without_revision",
        "fire_schedule",
        " and s.revision = p_revision",
        "",
        schedule_scenarios.a_change_meets_a_fire,
    ),
    mutant(
        "context_without_fence",
        "live_attempt",
        "where r.job_id = p_job_id and r.attempt_id = p_attempt_id",
        "where r.job_id = p_job_id",
        context_scenarios.late_calls_change_nothing,
    ),
    mutant(
        "context_without_lock",
        "live_attempt",
        "update fenceline.running r set active_at = fenceline.clock()\n"
        "  where r.job_id = p_job_id and r.attempt_id = p_attempt_id returning r.* into v_run;",
        "select r.* into v_run from fenceline.running r\n  where r.job_id = p_job_id and r.attempt_id = p_attempt_id;",
        context_scenarios.a_reclaim_waits_for_a_write_under_way,
    ),
    *[
        mutant(
            f"{function}_without_fence",
            function,
            "v_run := fenceline.live_attempt(p_job_id, p_attempt_id);",
            "select * into v_run from fenceline.running r where r.job_id = p_job_id;",
            context_scenarios.late_calls_change_nothing,
        )
        for function in ("record_step", "save_checkpoint")
    ],
    *[
        mutant(
            f"{function}_without_fence",
            function,
            "perform fenceline.live_attempt(p_job_id, p_attempt_id);",
            "",
            context_scenarios.late_calls_change_nothing,
        )
        for function in ("list_steps_ahead", "move_items", "add_children")
    ],
    mutant(
        "progress_without_fence",
        "set_progress",
        "where r.job_id = p_job_id and r.attempt_id = p_attempt_id",
        "where r.job_id = p_job_id",
        context_scenarios.late_calls_change_nothing,
    ),
    mutant(
        "stale_reports_not_told",
        "report_attempts",
        "attempt_id := v_given.attempt_id;\n      return next;",
        "null;",
        context_scenarios.late_calls_change_nothing,
    ),
    mutant(
        "done_step_written_again",
        "record_step",
        "if v_step.status = 'done' then",
        "if false then",
        context_scenarios.a_done_step_stays,
    ),
    mutant(
        "step_with_other_arguments_answered",
        "record_step",
        "if v_step.args_hash <> p_args_hash then",
        "if false then",
        context_scenarios.a_done_step_stays,
    ),
    mutant(
        "failed_step_taken_for_done",
        "attempt_start",
        " and s.status = 'done'",
        "",
        context_scenarios.work_is_handed_on,
    ),
    mutant(
        "retry_starts_from_nothing",
        "retry_job",
        "perform fenceline.inherit_work(p_job_id, job_id);",
        "",
        context_scenarios.work_is_handed_on,
    ),
    mutant(
        "moved_item_stays_where_it_was",
        "move_items",
        "<> all(p_items)",
        "is not null",
        context_scenarios.items_are_in_one_set,
    ),
    mutant(
        "children_never_made",
        "finish_attempts",
        "perform fenceline.make_children(v_ended, v_attempts);",
        "null;",
        context_scenarios.children_come_with_a_good_end_only,
    ),
    mutant(
        "children_of_a_failure_kept",
        "end_attempt",
        "delete from fenceline.child c where c.job_id = p_run.job_id;",
        "null;",
        context_scenarios.children_come_with_a_good_end_only,
    ),
    mutant(
        "children_asked_for_twice_made_twice",
        "add_children",
        " and c.request_id = p_request_id",
        " and false",
        context_scenarios.children_come_with_a_good_end_only,
    ),
    mutant(
        "children_without_parent",
        "add_children",
        ", 'parent', fenceline.public_id(p_job_id)",
        "",
        context_scenarios.children_come_with_a_good_end_only,
    ),
    mutant(
        "log_without_end",
        "write_log",
        "where v_before + l.bytes <= v_attempt_most",
        "where true",
        context_scenarios.a_log_has_an_end,
        ("if v_before > v_attempt_most then", "if false then"),
    ),
    mutant(
        "lock_answered_without_being_taken",
        "take_lock",
        "if found then\n      return true;",
        "if true then\n      return true;",
        lock_scenarios.lock_has_one_holder,
    ),
    mutant(
        "lock_without_fence",
        "take_lock",
        "perform fenceline.live_attempt(p_job_id, p_attempt_id);",
        "",
        lock_scenarios.stale_attempt_takes_no_lock,
    ),
    mutant(
        "lock_outlives_its_attempt",
        "take_lock",
        "where l.tenant = v_tenant and l.namespace = p_namespace and l.name = p_name and not exists (",
        "where false and not exists (",
        lock_scenarios.lock_of_a_dead_attempt_is_free,
    ),
    mutant(
        "dead_attempt_stays_in_line",
        "take_lock",
        "where w.tenant = v_tenant and w.namespace = p_namespace and w.name = p_name and not exists (",
        "where false and not exists (",
        lock_scenarios.lock_of_a_dead_attempt_is_free,
    ),
    mutant(
        "lock_taken_past_the_line",
        "take_lock",
        "if not exists (select 1 from fenceline.lock_wait w",
        "if true or not exists (select 1 from fenceline.lock_wait w",
        lock_scenarios.waiters_come_in_their_order,
    ),
    mutant(
        "lock_line_backwards",
        "take_lock",
        "order by w.seq limit 1) then",
        "order by w.seq desc limit 1) then",
        lock_scenarios.waiters_come_in_their_order,
    ),
    mutant(
        "lock_place_lost",
        "take_lock",
        "if not found then\n    return false;",
        "if not found then\n    delete from fenceline.lock_wait w where w.owner = p_owner;\n    return false;",
        lock_scenarios.place_in_line_is_kept_when_another_was_quicker,
    ),
    mutant(
        "lock_cycle_unseen",
        "leads_back",
        "on b.owner = any(w.holding)",
        "on false",
        lock_scenarios.lock_cycle_is_refused,
    ),
    mutant(
        "lock_cycle_of_siblings",
        "leads_back",
        "on b.owner = any(w.holding)",
        "on w.job_id = (select k.job_id from fenceline.attempt_lock k where k.owner = b.owner)",
        lock_scenarios.siblings_do_not_wait_for_each_other,
    ),
    mutant(
        "lock_cycle_of_the_dead",
        "leads_back",
        "join fenceline.running r on r.job_id = w.job_id and r.attempt_id = w.attempt_id",
        "",
        lock_scenarios.dead_attempts_close_no_cycle,
    ),
    mutant(
        "guard_lets_an_older_one_pass",
        "guard_newer",
        "where g.version <= excluded.version",
        "where true",
        lock_scenarios.older_version_does_not_pass_the_guard,
    ),
    mutant(
        "guard_refuses_a_retry",
        "guard_newer",
        "where g.version <= excluded.version",
        "where g.version < excluded.version",
        lock_scenarios.older_version_does_not_pass_the_guard,
    ),
    mutant(
        "guard_without_fence",
        "guard_newer",
        "perform fenceline.live_attempt(p_job_id, p_attempt_id);",
        "",
        lock_scenarios.stale_attempt_takes_no_lock,
    ),
    mutant(
        "group_read_before_its_last_member",
        "enqueue_jobs",
        "v_job #> '{after,group}' is not null",
        "false",
        gate_scenarios.group_is_complete_before_it_is_waited_for,
    ),
)
