-- What follows when jobs have ended: locks and keys are freed, who waits for them is told or advanced.
-- Every terminal write calls it, in its own transaction. p_uses: or of the jobs' `uses` (63: unknown).
-- A waiter that can no longer run ends here too, and so do its waiters: round by round, not by recursion, because
-- chains are long.
-- Lock order: held rows by job id.
-- roles: none
create or replace function fenceline.settle(p_job_ids bigint[], p_uses integer) returns void
language plpgsql as $$
declare
  v_round bigint[] := p_job_ids;
  v_uses integer := coalesce(p_uses, 0);
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    -- This snapshot may be older than a waiter: verify_dependencies looks again when this has been committed.
    insert into fenceline.dependency_check (waiter_id) select i from unnest(p_job_ids) i on conflict do nothing;
  end if;
  while v_round is not null loop
    if v_uses & 1 /* dedupe */ <> 0 then
      perform fenceline.free_dedupe_keys(v_round);
    end if;
    if v_uses & 2 /* resource lock */ <> 0 then
      delete from fenceline.resource_lock where job_id = any(v_round);
    end if;
    if v_uses & 8 /* key held */ <> 0 then
      perform fenceline.free_keys(v_round);
    end if;
    if v_uses & 16 /* expires */ <> 0 then
      delete from fenceline.deadline where job_id = any(v_round);
    end if;
    perform fenceline.tell_watchers(v_round);
    if exists (select 1 from fenceline.follow) then
      perform fenceline.tell_followers(v_round);
    end if;
    if exists (select 1 from fenceline.hook) then
      perform fenceline.enqueue_hooks(v_round);
    end if;
    v_round := fenceline.advance_waiters(v_round);
    v_uses := 63;
  end loop;
end;
$$;
