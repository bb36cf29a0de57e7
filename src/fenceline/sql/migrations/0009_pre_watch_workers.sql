-- compatible_from: 1
--
-- What a worker's keeper sees from outside, and what the worker has promised.

alter table fenceline.worker
  add column blocked_at timestamptz,  -- its event loop has not turned since then
  add column blocked_by bigint,       -- the job whose handler was running on it, where that is known
  add column tells_starts boolean;    -- it tells the start of a last attempt before the handler runs (function end_attempt)
