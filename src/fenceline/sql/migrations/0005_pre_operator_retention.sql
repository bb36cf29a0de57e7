-- compatible_from: 1
--
-- How long finished jobs are kept, as an operator says; stronger than what the kind's decorator says (`retention`), and
-- left alone when a worker declares its kinds.
alter table fenceline.kind add column operator_retention jsonb;
