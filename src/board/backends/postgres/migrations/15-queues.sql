-- Queues of jobs. Null for the default queue: jobs without a queue are in none of the indexes of queues.
ALTER TABLE :SCHEMA.jobs ADD COLUMN queue text COLLATE "C";
