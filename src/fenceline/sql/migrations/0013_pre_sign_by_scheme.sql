-- compatible_from: 1
--
-- Incoming webhooks that others sign in ways of their own.

alter table fenceline.trigger add column scheme text not null default 'fenceline'
  check (scheme in ('fenceline', 'github', 'slack', 'stripe', 'standard'));
