-- compatible_from: 1
--
-- Workers say what their handlers take, so that a deployment with old and new ones side by side loses no job.

-- By signature, which is "kind hash": {"takes": {parameter: whether it must be given}, "extra": whether it ignores others}.
-- Null: a worker of before, of which nothing is known.
alter table fenceline.worker add column signatures jsonb;

-- Jobs whose args the handlers of some workers refused (uses, bit 512): the signatures of those, who do not get them again.
create table fenceline.refusal (
  job_id bigint primary key,
  signatures text[] not null,
  refused_at timestamptz not null
);
