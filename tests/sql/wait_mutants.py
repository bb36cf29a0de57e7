"""Functions that lose a signal, give it twice, or count a wait as an attempt."""

from tests.sql import test_clock_step, test_signal_job, wait_scenarios
from tests.sql.mutation import mutant, on_queue

WAIT_MUTANTS = (
    mutant(
        "signal_taken_twice",
        "begin_wait",
        "s.name = p_signal and s.taken_at is null order by",
        "s.name = p_signal order by",
        on_queue(test_signal_job.test_a_signal_before_its_wait_is_kept_and_taken_once),
    ),
    mutant(
        "wait_begun_anew_by_each_attempt",
        "begin_wait",
        "until = case when w.step = p_step then w.until else excluded.until end",
        "until = excluded.until",
        on_queue(test_signal_job.test_a_wait_that_is_begun_again_keeps_its_time),
    ),
    mutant(
        "wait_of_another_attempt",
        "begin_wait",
        "perform fenceline.live_attempt(p_job_id, p_attempt_id);",
        "",
        on_queue(test_signal_job.test_a_wait_is_fenced_and_no_other_step),
    ),
    mutant(
        "wait_uses_an_attempt_up",
        "end_attempt",
        "      v_outcome := 'snoozed';\n      v_number := p_run.number - 1;",
        "      v_outcome := 'snoozed';",
        on_queue(test_signal_job.test_a_waiting_job_holds_no_slot_and_goes_on_with_its_signal),
    ),
    mutant(
        "signal_missed_by_a_wait_that_commits_before",
        "signal_job",
        "insert into fenceline.signal_check (id, job_id) values (fenceline.next_id(), p_job_id);",
        "",
        wait_scenarios.a_signal_that_commits_after_the_wait_is_heard,
    ),
    mutant(
        "signal_missed_by_a_wait_that_commits_after",
        "hold_waiting",
        "insert into fenceline.signal_check (id, job_id) values (fenceline.next_id(), v_job.job_id);",
        "",
        wait_scenarios.a_wait_that_commits_after_its_signal_hears_it,
    ),
    mutant(
        "held_job_forgotten",
        "resume_waits",
        "where h.job_id = c.job_id and h.waiting_for = 'signal' and fenceline.has_news(w)",
        "where false",
        wait_scenarios.a_job_that_somebody_holds_is_looked_at_again,
    ),
    mutant(
        "held_jobs_keep_others_from_their_time",
        "resume_waits",
        "update fenceline.wait w set due_at = fenceline.clock() where w.job_id = any(v_due) and w.due_at is not null;",
        "",
        wait_scenarios.held_jobs_do_not_keep_others_from_their_time,
    ),
    mutant(
        "held_jobs_keep_others_from_their_signals",
        "resume_waits",
        "update fenceline.signal_check c set id = fenceline.next_id() where c.id = any(v_checks);",
        "",
        wait_scenarios.held_jobs_do_not_keep_others_from_their_signals,
    ),
    mutant(
        "signal_to_an_ended_job",
        "signal_job",
        "perform fenceline.wrong_status(p_job_id, 'signalled', 'unfinished');",
        "null;",
        on_queue(test_signal_job.test_what_waits_can_be_cancelled_and_is_found),
    ),
    mutant(
        "sleep_goes_on_after_run_now",
        "run_job_now",
        "update fenceline.wait w set until = v_now where w.job_id = p_job_id;",
        "",
        on_queue(test_signal_job.test_run_now_ends_a_sleep),
    ),
    mutant(
        "callback_for_ever",
        "use_callback",
        "if not found or v_callback.expires_at <= fenceline.clock() then",
        "if not found then",
        on_queue(test_signal_job.test_a_callback_expires),
    ),
    mutant(
        "callback_used_twice",
        "use_callback",
        "delete from fenceline.callback c where c.hash = p_hash returning * into v_callback;",
        "select * into v_callback from fenceline.callback c where c.hash = p_hash;",
        on_queue(test_signal_job.test_a_callback_sends_one_signal_once),
    ),
    mutant(
        "untaken_signals_lost_by_a_retry",
        "inherit_work",
        "where s.job_id = p_from and s.taken_at is null",
        "where false",
        on_queue(test_signal_job.test_a_retry_keeps_what_was_taken_and_what_was_not),
    ),
    mutant(
        "wait_longer_by_a_step_of_the_clock",
        "absorb_step",
        "until = w.until + p_step, due_at = w.due_at + p_step",
        "until = w.until, due_at = w.due_at",
        on_queue(test_clock_step.test_a_wait_is_as_long_as_it_was, step=-30, signal="go"),
    ),
    mutant(
        "waiting_job_keeps_its_dedupe_key",
        "dedupe_holder",
        "union all select 1 from fenceline.wait w where w.job_id = j.id",
        "",
        on_queue(test_signal_job.test_a_job_that_waits_has_begun_and_gives_its_dedupe_key_away),
    ),
)
