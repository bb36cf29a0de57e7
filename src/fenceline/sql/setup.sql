-- Run by the migrator when the functions are in place. From the first day on, so that the default partitions stay empty:
-- attaching a partition reads through the default one while it holds a lock.
select fenceline.create_partitions();
