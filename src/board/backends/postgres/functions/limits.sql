-- Functions that take slots and tokens of limits: for claims, and tokens alone outside of claims.
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

-- Takes tokens of a key for calls outside of claims, in their order, up to the first one whose tokens are not free.
--
-- p_limits is the revision of the limits by which the rate was found. Arrays with one element for each call: p_costs and p_bursts, in
-- milliseconds; none to check only the revision. Returns {limits} at another revision; else {taken, until}: the number of calls whose tokens were taken, and the time from
-- which those of the next call are free, null if there is none.
CREATE OR REPLACE FUNCTION :SCHEMA.take_tokens(
  p_lane uuid, p_number bigint, p_board integer, p_limits integer, p_key text, p_costs float8[], p_bursts float8[])
RETURNS json LANGUAGE plpgsql
SET enable_seqscan TO off SET enable_hashjoin TO off SET enable_mergejoin TO off SET enable_material TO off SET jit TO off
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE
  v_limits integer;
  v_now float8;
  v_arrival float8;
  v_next float8;
  v_taken integer := 0;
  v_until float8;
BEGIN
  -- As for claims: a change of a limit waits for those that are under way.
  LOCK TABLE :SCHEMA.boards IN ROW SHARE MODE;
  SELECT limits INTO v_limits FROM :SCHEMA.boards WHERE id = p_board;
  IF v_limits <> p_limits THEN RETURN :SCHEMA.answer(p_lane, p_number, '{"limits": true}'); END IF;
  IF p_costs = '{}' THEN RETURN :SCHEMA.answer(p_lane, p_number, '{"taken": 0}'); END IF;
  PERFORM :SCHEMA.lock_limits(p_board, ARRAY[p_key]);
  SELECT arrival INTO v_arrival FROM :SCHEMA.limit_keys WHERE key = ANY(ARRAY[p_key]) AND board = p_board;
  v_now := extract(epoch FROM clock_timestamp())::float8 * 1000;
  FOR v_at IN 1 .. cardinality(p_costs) LOOP
    v_next := greatest(v_arrival, v_now) + p_costs[v_at];
    -- Smaller differences are rounding errors of a number of this size.
    IF v_next - v_now > p_bursts[v_at] + 0.0005 THEN
      v_until := v_next - p_bursts[v_at];
      EXIT;
    END IF;
    v_arrival := v_next;
    v_taken := v_at;
  END LOOP;
  IF v_taken > 0 THEN
    UPDATE :SCHEMA.limit_keys SET arrival = v_arrival WHERE key = ANY(ARRAY[p_key]) AND board = p_board;
  END IF;
  RETURN :SCHEMA.answer(p_lane, p_number, json_build_object('taken', v_taken, 'until', v_until));
END $function$;
