-- From format 1 to 2: queues of jobs. Null for the default queue; jobs without a queue are in none of these indexes.
ALTER TABLE jobs ADD COLUMN queue TEXT;
CREATE INDEX jobs_in_queues ON jobs (board, queue, rank, id) WHERE queue IS NOT NULL;
CREATE INDEX jobs_that_rest_in_queues ON jobs (board, queue, due_at) WHERE queue IS NOT NULL AND due_at > 0;
