-- What the migrator itself stands on: made before the first migration, and completed where an earlier release made it.

do $$
begin
  -- Not "if not exists": that asks for the right to create schemas even where an administrator has made this one.
  if to_regnamespace('fenceline') is null then
    create schema fenceline;
  end if;
end $$;

-- One row per applied migration. compatible_from: the lowest number a program must know to work on this schema.
create table if not exists fenceline.migration (
  number integer primary key,
  name text not null,
  checksum text not null,
  compatible_from integer not null,
  applied_at timestamptz not null default clock_timestamp()
);

-- The functions and views in place: the checksum of all their files and grants.
create table if not exists fenceline.code (
  one boolean primary key default true check (one),
  checksum text not null,
  applied_at timestamptz not null default clock_timestamp()
);
-- number: of the migration that the code was made for. files: path → checksum; null: not known, apply all.
alter table fenceline.code add column if not exists number integer, add column if not exists files jsonb;
