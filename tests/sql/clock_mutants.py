"""Functions that trust the clock too much."""

from tests.sql import test_clock_step
from tests.sql.mutation import mutant, on_queue

CLOCK_MUTANTS = (
    mutant(
        "maintenance_stands_still_after_a_step_back",
        "is_due",
        " and v_ran <= v_now then",
        " then",
        on_queue(test_clock_step.test_maintenance_goes_on_within_a_second, step=-30),
    ),
    mutant(
        "late_commits_not_looked_for_after_a_step_back",
        "is_scan_due",
        " and v_scanned <= v_now then",
        " then",
        on_queue(test_clock_step.test_late_commits_are_looked_for_when_the_clock_was_set_back),
    ),
    mutant(
        "rate_stands_still_after_a_step_back",
        "await_token",
        "where s.lane = p_lane.name and s.refilled_at > fenceline.clock();",
        "where false;",
        on_queue(test_clock_step.test_a_rated_lane_keeps_its_rate, step=-30, looks=False),
    ),
    mutant(
        "bucket_filled_by_a_step_forward",
        "rate_tokens",
        "  if found then\n",
        "  if false then\n",
        on_queue(test_clock_step.test_a_rated_lane_keeps_its_rate, step=3600, looks=False),
    ),
    mutant(
        "bucket_filled_when_a_step_forward_is_known",
        "absorb_step",
        "set refilled_at = s.refilled_at + p_step",
        "set refilled_at = s.refilled_at",
        on_queue(test_clock_step.test_a_rated_lane_keeps_its_rate, step=3600, looks=True),
    ),
    mutant(
        "fleet_lost_by_a_step_forward",
        "absorb_step",
        "else w.lease_until + p_step end",
        "else w.lease_until end",
        on_queue(test_clock_step.test_the_fleet_lives_on, step=30),
    ),
    mutant(
        "workers_sent_away_by_a_step_forward",
        "claim_jobs",
        "m.ran_at < v_now - interval '5 seconds')",
        "false)",
        on_queue(test_clock_step.test_the_fleet_lives_on, step=30),
    ),
    mutant(
        "dead_worker_kept_by_a_step_back",
        "absorb_step",
        "case when v_back then least(w.lease_until, v_now + make_interval(secs => w.lease_seconds))",
        "case when v_back then w.lease_until",
        on_queue(test_clock_step.test_the_fleet_lives_on, step=-30),
    ),
    mutant(
        "grace_shortened_by_a_step",
        "absorb_step",
        "set cancel_deadline = r.cancel_deadline + p_step",
        "set cancel_deadline = r.cancel_deadline",
        on_queue(test_clock_step.test_grace_and_signs_of_life_count_time_that_has_passed, step=30),
    ),
    mutant(
        "silence_made_longer_by_a_step",
        "absorb_step",
        "set active_at = coalesce(r.active_at, r.started_at, r.claimed_at) + p_step",
        "set active_at = r.active_at",
        on_queue(test_clock_step.test_grace_and_signs_of_life_count_time_that_has_passed, step=30),
    ),
    mutant(
        "backoff_shortened_by_a_step",
        "absorb_step",
        "set run_at = t.run_at + p_step",
        "set run_at = t.run_at",
        on_queue(test_clock_step.test_a_backoff_is_as_long_as_it_was_and_run_at_is_a_moment, step=30),
    ),
    mutant(
        "run_at_moved_by_a_step",
        "absorb_step",
        "where o.token is not null and fenceline",
        "where fenceline",
        on_queue(test_clock_step.test_a_backoff_is_as_long_as_it_was_and_run_at_is_a_moment, step=-3600),
    ),
    mutant(
        "held_up_maintenance_taken_for_a_step",
        "clock_step_for",
        "or exists (select 1 from fenceline.worker w where w.stopped_at is null",
        "or exists (select 1 from fenceline.worker w where false",
        on_queue(test_clock_step.test_time_in_which_workers_were_heard_of_has_passed),
    ),
    mutant(
        "rare_maintenance_taken_for_a_step",
        "clock_step_for",
        "greatest(interval '5 seconds', 5 * v_usual)",
        "interval '5 seconds'",
        on_queue(test_clock_step.test_whoever_looks_rarely_takes_a_gap_for_what_it_is),
    ),
    mutant(
        "fresh_attempts_released_after_a_step_back",
        "heartbeat",
        " and w.listed_at <= v_now;",
        ";",
        on_queue(test_clock_step.test_what_was_claimed_after_a_step_back_is_not_taken_for_forgotten),
    ),
)
