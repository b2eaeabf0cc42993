-- Functions of the history: the jobs of a board that ended last. Each end of a job adds one, in its transaction.

-- Deletes the oldest jobs of the history of a board but p_keep. Leaves jobs that another transaction deletes now. Returns nothing.
CREATE OR REPLACE FUNCTION :SCHEMA.trim_history(p_board integer, p_keep integer)
RETURNS void LANGUAGE plpgsql
SET enable_seqscan TO off SET enable_sort TO off SET enable_bitmapscan TO off SET jit TO off
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE v_last bigint;
BEGIN
  SELECT number INTO v_last FROM :SCHEMA.history WHERE board = p_board ORDER BY number DESC OFFSET p_keep LIMIT 1;
  IF NOT FOUND THEN RETURN; END IF;
  DELETE FROM :SCHEMA.history WHERE board = p_board AND number = ANY(ARRAY(
    SELECT number FROM :SCHEMA.history WHERE board = p_board AND number <= v_last ORDER BY number FOR UPDATE SKIP LOCKED));
END $function$;

-- Adds jobs that have ended.
--
-- Arrays with one element for each job that was to end: p_ids (number), p_uuids and p_lengths (length of its part of p_records, where the
-- records are joined; null for a job that is not added). p_ended: the numbers of the ended jobs. p_keep: how many jobs the history
-- keeps. Returns nothing.
--
-- Finding the oldest jobs costs a read of all that are kept. So only some calls trim the history, chosen at random: a counter in the
-- process would never trim it where each process ends one job.
CREATE OR REPLACE FUNCTION :SCHEMA.add_history(
  p_board integer, p_ids bigint[], p_ended bigint[], p_uuids text[], p_records bytea, p_lengths integer[], p_keep integer)
RETURNS void LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
BEGIN
  INSERT INTO :SCHEMA.history (board, uuid, record)
  SELECT p_board, uuid, substring(p_records FROM start::integer FOR length) FROM (
    SELECT *, sum(length) OVER (ORDER BY at) - length + 1 AS start
    FROM unnest(p_ids, p_uuids, p_lengths) WITH ORDINALITY AS a(id, uuid, length, at)) AS requested
  WHERE length IS NOT NULL AND id = ANY(p_ended) ORDER BY at;
  IF random() * least(500, 1 + p_keep / 4) < cardinality(p_ended) THEN PERFORM :SCHEMA.trim_history(p_board, p_keep); END IF;
END $function$;
