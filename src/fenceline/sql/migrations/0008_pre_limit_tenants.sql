-- compatible_from: 1
--
-- How many unfinished jobs a tenant may have. Without a limit an enqueue sees one false more in a row that it reads anyway.

alter table fenceline.setting
  add column limits_tenants boolean not null default false,  -- there is a limit, of one tenant or of all
  add column max_tenant_jobs integer check (max_tenant_jobs >= 0);

create table fenceline.tenant_limit (
  tenant text primary key,
  max_jobs integer not null check (max_jobs >= 0)
);

-- What the last count found; written by count_tenants alone, so that an enqueue writes and locks nothing.
create table fenceline.tenant_count (
  tenant text primary key,
  jobs bigint not null
) with (fillfactor = 50);

alter table fenceline.maintenance add column took_seconds double precision;
