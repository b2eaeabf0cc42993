-- The queues of posted, ready and replaced jobs, where any of them is not in the default queue.
ALTER TABLE :SCHEMA.changes ADD COLUMN queues text[];
