-- compatible_from: 1
--
-- Runners: workers that claim over HTTP. Kinds whose result a server must turn into application state.

alter table fenceline.worker add column tenant text;   -- whose jobs a runner may claim; null: everybody's
alter table fenceline.worker add column owner text;    -- of a runner: who registered it, and alone may write for it
alter table fenceline.worker add column listed_at timestamptz;  -- when it last named the attempts that it holds
alter table fenceline.kind add column finalizer boolean not null default false;
