-- Functions that take slots and tokens of limits: for claims, and tokens alone outside of claims.
--
-- The rows of the keys are locked in their order until the claim commits, after the rows of jobs: two claims count the slots of a key one
-- after the other. Rates follow GCRA (see model/limits.ts) on the clock of the server.

-- Returns the arrival time of a key after a change of its rate: as many tokens are missing as before, but no more than the burst.
--
-- p_arrival and p_former are the arrival time and the spacing (the milliseconds in which a token comes back) of the tokens that were taken,
-- p_burst and p_spacing are the rate that is set now.
CREATE OR REPLACE FUNCTION :SCHEMA.arrival_at(p_arrival float8, p_former float8, p_burst float8, p_spacing float8)
RETURNS float8 LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE
  v_now float8 := extract(epoch FROM clock_timestamp())::float8 * 1000;
BEGIN
  IF p_former <= 0 OR p_arrival <= v_now THEN RETURN p_arrival; END IF;
  RETURN v_now + least(p_burst, (p_arrival - v_now) / p_former) * p_spacing;
END $function$;

-- Locks the rows of these keys, and creates missing rows. Where a rate has changed, converts the arrival time to the new rate.
-- Returns nothing.
--
-- Arrays with one element for each limit: p_keys, p_bursts and p_spacings, null where there is no rate. A key has the same rate wherever it
-- is named.
CREATE OR REPLACE FUNCTION :SCHEMA.lock_limits(p_board integer, p_keys text[], p_bursts float8[], p_spacings float8[])
RETURNS void LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
BEGIN
  -- An update locks a row that is there also against its deletion.
  INSERT INTO :SCHEMA.limit_keys AS k (board, key, burst, spacing)
  SELECT p_board, a.key, coalesce(max(a.burst), 0), coalesce(max(a.spacing), 0)
  FROM (SELECT key COLLATE "C" AS key, burst, spacing FROM unnest(p_keys, p_bursts, p_spacings) AS u(key, burst, spacing)) AS a
  GROUP BY a.key ORDER BY a.key
  ON CONFLICT (key, board) DO UPDATE SET
    arrival = CASE WHEN excluded.spacing = 0 OR (k.spacing = excluded.spacing AND k.burst = excluded.burst) THEN k.arrival
      ELSE :SCHEMA.arrival_at(k.arrival, k.spacing, excluded.burst, excluded.spacing) END,
    burst = CASE WHEN excluded.spacing = 0 THEN k.burst ELSE excluded.burst END,
    spacing = CASE WHEN excluded.spacing = 0 THEN k.spacing ELSE excluded.spacing END;
END $function$;

-- Takes the slots and tokens of jobs, one job after the other: all that a job wants, or nothing. The rows of its keys are locked.
--
-- What is taken of the keys is read once and written once, for all jobs: a query for each job would take several times as long as its
-- claim.
--
-- p_ids: the numbers of jobs. Only the jobs whose index (from 1) is in p_jobs are asked for. Arrays with one element for each limit:
-- p_wanting (the index of its job), p_keys, p_slots (the number of slots, or null), p_costs and p_bursts (tokens, or null) and p_spacings
-- (the milliseconds in which a token comes back, or null). Returns {limited, arrivals}. limited: for each job that gets nothing [index from
-- 0, {reached, until}], with the key that has no room and the time from which it has room; null for a key without a free slot. arrivals:
-- for each other job with a rate [index from 0, a list of [key, new arrival time]].
CREATE OR REPLACE FUNCTION :SCHEMA.take_limits(
  p_board integer, p_ids bigint[], p_jobs integer[], p_wanting integer[], p_keys text[], p_slots integer[], p_costs float8[], p_bursts float8[],
  p_spacings float8[])
RETURNS json LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE
  v_now float8 := extract(epoch FROM clock_timestamp())::float8 * 1000;
  -- One element for each key, ordered by name: its name, the number of slots that are taken, and its arrival time.
  v_names text[];
  v_used bigint[];
  v_arrivals float8[];
  v_job record;
  v_key integer;
  v_next float8;
  v_reached integer;
  v_until float8;
  v_times json[];
  v_granted integer[] := '{}';
  v_limited json[] := '{}';
  v_taken json[] := '{}';
BEGIN
  SELECT array_agg(key ORDER BY key), array_agg(used ORDER BY key), array_agg(arrival ORDER BY key) INTO v_names, v_used, v_arrivals FROM (
    SELECT a.key, k.arrival, CASE WHEN a.counts THEN
      (SELECT count(*) FROM :SCHEMA.slots s WHERE s.key = ANY(ARRAY[a.key]) AND s.board = p_board) ELSE 0 END AS used
    FROM (SELECT key COLLATE "C" AS key, bool_or(slots IS NOT NULL) AS counts FROM unnest(p_keys, p_slots) AS u(key, slots) GROUP BY 1) AS a
    JOIN :SCHEMA.limit_keys k ON k.key = ANY(ARRAY[a.key]) AND k.board = p_board) AS found;
  FOR v_job IN
    SELECT wanting, array_agg(place) AS keys, array_agg(slots) AS slots, array_agg(cost * spacing) AS costs,
      array_agg(greatest(burst, cost) * spacing) AS bursts
    FROM (SELECT *, dense_rank() OVER (ORDER BY key COLLATE "C")::integer AS place
      FROM unnest(p_wanting, p_keys, p_slots, p_costs, p_bursts, p_spacings) AS u(wanting, key, slots, cost, burst, spacing)) AS w
    WHERE wanting = ANY(p_jobs) GROUP BY wanting ORDER BY wanting
  LOOP
    v_reached := NULL;
    v_until := NULL;
    FOR v_at IN 1 .. cardinality(v_job.keys) LOOP
      v_key := v_job.keys[v_at];
      IF v_job.slots[v_at] <= v_used[v_key] THEN
        v_reached := v_key;
        v_until := NULL;
        EXIT;
      END IF;
      v_next := greatest(v_arrivals[v_key], v_now) + v_job.costs[v_at];
      -- Smaller differences are rounding errors of a number of this size.
      IF v_next - v_now > v_job.bursts[v_at] + 0.0005 AND (v_until IS NULL OR v_next - v_job.bursts[v_at] > v_until) THEN
        v_reached := v_key;
        v_until := v_next - v_job.bursts[v_at];
      END IF;
    END LOOP;
    IF v_reached IS NOT NULL THEN
      v_limited := v_limited ||
        json_build_array(v_job.wanting - 1, json_build_object('reached', v_names[v_reached], 'until', v_until));
      CONTINUE;
    END IF;
    v_times := '{}';
    FOR v_at IN 1 .. cardinality(v_job.keys) LOOP
      v_key := v_job.keys[v_at];
      IF v_job.slots[v_at] IS NOT NULL THEN v_used[v_key] := v_used[v_key] + 1; END IF;
      IF v_job.costs[v_at] IS NOT NULL THEN
        v_arrivals[v_key] := greatest(v_arrivals[v_key], v_now) + v_job.costs[v_at];
        v_times := v_times || json_build_array(v_names[v_key], v_arrivals[v_key]);
      END IF;
    END LOOP;
    v_granted := v_granted || v_job.wanting::integer;
    IF cardinality(v_times) > 0 THEN v_taken := v_taken || json_build_array(v_job.wanting - 1, array_to_json(v_times)); END IF;
  END LOOP;
  INSERT INTO :SCHEMA.slots (board, key, job) SELECT p_board, a.key, p_ids[a.wanting] FROM unnest(p_wanting, p_keys, p_slots) AS a(wanting, key, slots)
  WHERE a.slots IS NOT NULL AND a.wanting = ANY(v_granted) ON CONFLICT DO NOTHING;
  UPDATE :SCHEMA.limit_keys k SET arrival = a.arrival FROM unnest(v_names, v_arrivals) AS a(key, arrival)
  WHERE k.key = ANY(ARRAY[a.key]) AND k.board = p_board AND k.arrival <> a.arrival;
  RETURN json_build_object('limited', array_to_json(v_limited), 'arrivals', array_to_json(v_taken));
END $function$;

-- Takes tokens of a key for calls outside of claims, in their order, up to the first one whose tokens are not free.
--
-- p_limits is the revision of the limits by which the rate was found. p_costs has the tokens of each call. p_burst and p_spacing (the
-- milliseconds in which a token comes back) are null to check only the revision. Returns {limits} at another revision; else {taken, until}:
-- the number of calls whose tokens were taken, and the time from which the tokens of the next call are free, null if there is none.
CREATE OR REPLACE FUNCTION :SCHEMA.take_tokens(
  p_lane uuid, p_number bigint, p_board integer, p_limits integer, p_key text, p_costs float8[], p_burst float8, p_spacing float8)
RETURNS json LANGUAGE plpgsql
SET enable_seqscan TO off SET enable_hashjoin TO off SET enable_mergejoin TO off SET enable_material TO off SET jit TO off
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE
  v_limits integer;
  v_now float8;
  v_arrival float8;
  v_next float8;
  v_allowed float8;
  v_taken integer := 0;
  v_until float8;
BEGIN
  -- As for claims: a change of a limit waits for the transactions that hold this lock.
  LOCK TABLE :SCHEMA.boards IN ROW SHARE MODE;
  SELECT limits INTO v_limits FROM :SCHEMA.boards WHERE id = p_board;
  IF v_limits <> p_limits THEN RETURN :SCHEMA.answer(p_lane, p_number, '{"limits": true}'); END IF;
  IF p_spacing IS NULL THEN RETURN :SCHEMA.answer(p_lane, p_number, '{"taken": 0}'); END IF;
  PERFORM :SCHEMA.lock_limits(p_board, ARRAY[p_key], ARRAY[p_burst], ARRAY[p_spacing]);
  SELECT arrival INTO v_arrival FROM :SCHEMA.limit_keys WHERE key = ANY(ARRAY[p_key]) AND board = p_board;
  v_now := extract(epoch FROM clock_timestamp())::float8 * 1000;
  FOR v_at IN 1 .. cardinality(p_costs) LOOP
    v_next := greatest(v_arrival, v_now) + p_costs[v_at] * p_spacing;
    v_allowed := greatest(p_burst, p_costs[v_at]) * p_spacing;
    -- Smaller differences are rounding errors of a number of this size.
    IF v_next - v_now > v_allowed + 0.0005 THEN
      v_until := v_next - v_allowed;
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
