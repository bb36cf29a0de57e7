-- compatible_from: 1
--
-- Tokens that end by themselves, that are replaced by their bearers, and that are bound to lanes and kinds.

alter table fenceline.setting
  add column approval_by_other boolean not null default true,  -- a job is not approved by the one who enqueued it
  add column token_seconds integer not null default 7776000 check (token_seconds > 0);   -- of tokens that say no expiry
alter table fenceline.token
  add column life_seconds double precision,   -- from its making to its expiry, for the one that replaces it; null: for ever
  add column family integer,                  -- the first of those that replaced each other; null: itself
  add column replaced_by integer,
  add column lanes text[],                    -- null: any
  add column kinds text[];                    -- null: any
