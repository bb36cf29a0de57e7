-- compatible_from: 1
--
-- Jobs by the job whose handler made them. Jobs without a parent pay nothing; children from before are not in it.

-- Lives as long as the parent is kept: a row whose child is gone means nothing.
create table fenceline.offspring (
  parent bigint not null,
  child bigint not null,
  primary key (parent, child)
);
