-- Functions of the history: the jobs of a board that ended last. Each end of a job adds one, in its transaction.

-- Deletes the oldest jobs of the history of a board but p_keep. Leaves jobs that another transaction deletes now. Returns nothing.
--
-- It deletes backwards from the newest job that is not kept, in stretches of 2,048 numbers, and ends with a stretch in which it has deleted nothing: the jobs
-- before it were deleted earlier. A search for the oldest job would read the rows of all jobs that were ever deleted, as long as any transaction is open
-- that began before their deletion. One call of 64 deletes all: other boards may have used all numbers of a stretch.
CREATE OR REPLACE FUNCTION :SCHEMA.trim_history(p_board integer, p_keep integer)
RETURNS void LANGUAGE plpgsql
SET enable_seqscan TO off SET enable_sort TO off SET enable_bitmapscan TO off SET jit TO off
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE
  v_last bigint;
  v_before bigint;
  v_deletes_all boolean := random() * 64 < 1;
BEGIN
  SELECT number INTO v_last FROM :SCHEMA.history WHERE board = p_board ORDER BY number DESC OFFSET p_keep LIMIT 1;
  LOOP
    EXIT WHEN v_last IS NULL OR v_last <= 0;
    v_before := CASE WHEN v_deletes_all THEN 0 ELSE greatest(v_last - 2048, 0) END;
    DELETE FROM :SCHEMA.history WHERE ctid = ANY(ARRAY(
      SELECT ctid FROM :SCHEMA.history WHERE board = p_board AND number > v_before AND number <= v_last ORDER BY number FOR UPDATE SKIP LOCKED));
    EXIT WHEN NOT FOUND;
    v_last := v_before;
  END LOOP;
END $function$;

-- Adds jobs that have ended.
--
-- Arrays with one element for each job that was to end: p_ids (number), p_uuids and p_lengths (length of its part of p_records, where the
-- records are joined; null for a job that is not added). p_ended: the numbers of the ended jobs. p_keep: how many jobs the history
-- keeps. Returns nothing.
--
-- Finding the oldest jobs costs a read of all that are kept. So only some calls trim the history, chosen at random: after an eighth of the kept jobs on
-- average. A counter in the process would never trim it where each process ends one job.
CREATE OR REPLACE FUNCTION :SCHEMA.add_history(
  p_board integer, p_ids bigint[], p_ended bigint[], p_uuids text[], p_records bytea, p_lengths integer[], p_keep integer)
RETURNS void LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE v_is_all boolean := cardinality(p_ended) = cardinality(p_ids);
BEGIN
  INSERT INTO :SCHEMA.history (board, uuid, record)
  SELECT p_board, uuid, substring(p_records FROM start::integer FOR length) FROM (
    SELECT *, sum(length) OVER (ORDER BY at) - length + 1 AS start
    FROM unnest(p_ids, p_uuids, p_lengths) WITH ORDINALITY AS a(id, uuid, length, at)) AS requested
  WHERE length IS NOT NULL AND (v_is_all OR id = ANY(p_ended)) ORDER BY at;
  IF random() * (1 + p_keep / 8) < cardinality(p_ended) THEN PERFORM :SCHEMA.trim_history(p_board, p_keep); END IF;
END $function$;
