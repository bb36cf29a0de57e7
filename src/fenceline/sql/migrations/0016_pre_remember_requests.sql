-- compatible_from: 1
--
-- What was asked for under an idempotency key, so that the same key with another request is told apart from a repeat.

alter table fenceline.idempotency add column request bytea;   -- request_hash; null: from before, and fits anything
