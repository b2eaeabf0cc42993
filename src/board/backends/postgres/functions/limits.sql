-- Functions that take slots and tokens of limits for claims.
--
-- The rows of the keys are locked in their order until the claim commits, after the rows of jobs: two claims count the slots of a key one after
-- the other. Rates follow GCRA (see model/limits.ts) on the clock of the server.

-- Locks the rows of these keys, and creates those that are missing. Returns nothing.
CREATE OR REPLACE FUNCTION :SCHEMA.lock_limits(p_board integer, p_keys text[])
RETURNS void LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
BEGIN
  -- An update locks a row that is there also against its deletion.
  INSERT INTO :SCHEMA.limit_keys AS k (board, key)
  SELECT p_board, key FROM (SELECT DISTINCT key COLLATE "C" AS key FROM unnest(p_keys) AS key) AS keys ORDER BY key
  ON CONFLICT (key, board) DO UPDATE SET arrival = k.arrival;
END $function$;

-- Takes the slots and tokens of one job, or nothing. The rows of its keys are locked.
--
-- Arrays with one element for each limit: p_keys, p_slots (the number of slots, or null), p_costs and p_bursts (milliseconds, or null).
-- Returns {reached, until}: the key without room, and the time from which it has some, null for one without a free slot. Returns
-- {arrivals}, the new arrival time of each key with a rate, if everything was taken.
CREATE OR REPLACE FUNCTION :SCHEMA.take_limits(
  p_board integer, p_job bigint, p_keys text[], p_slots integer[], p_costs float8[], p_bursts float8[])
RETURNS json LANGUAGE plpgsql
SET enable_seqscan TO off SET enable_hashjoin TO off SET enable_mergejoin TO off SET enable_material TO off SET jit TO off
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE
  v_now float8 := extract(epoch FROM clock_timestamp())::float8 * 1000;
  v_key text;
  v_until float8;
  v_arrivals json;
BEGIN
  SELECT a.key INTO v_key FROM unnest(p_keys, p_slots) AS a(key, slots)
  WHERE a.slots <= (SELECT count(*) FROM :SCHEMA.slots s WHERE s.key = ANY(ARRAY[a.key]) AND s.board = p_board) LIMIT 1;
  IF FOUND THEN RETURN json_build_object('reached', v_key, 'until', NULL); END IF;
  -- Smaller differences are rounding errors of a number of this size.
  SELECT a.key, greatest(k.arrival, v_now) + a.cost - a.burst INTO v_key, v_until
  FROM unnest(p_keys, p_costs, p_bursts) AS a(key, cost, burst)
  JOIN :SCHEMA.limit_keys k ON k.key = ANY(ARRAY[a.key]) AND k.board = p_board
  WHERE greatest(k.arrival, v_now) + a.cost - v_now > a.burst + 0.0005 ORDER BY 2 DESC LIMIT 1;
  IF FOUND THEN RETURN json_build_object('reached', v_key, 'until', v_until); END IF;
  INSERT INTO :SCHEMA.slots (board, key, job) SELECT p_board, a.key, p_job FROM unnest(p_keys, p_slots) AS a(key, slots)
  WHERE a.slots IS NOT NULL ON CONFLICT DO NOTHING;
  WITH taken AS (
    UPDATE :SCHEMA.limit_keys k SET arrival = greatest(k.arrival, v_now) + a.cost FROM unnest(p_keys, p_costs) AS a(key, cost)
    WHERE k.key = ANY(ARRAY[a.key]) AND k.board = p_board AND a.cost IS NOT NULL
    RETURNING k.key, k.arrival
  )
  SELECT json_agg(json_build_array(key, arrival)) INTO v_arrivals FROM taken;
  RETURN json_build_object('arrivals', v_arrivals);
END $function$;
