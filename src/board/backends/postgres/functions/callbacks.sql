-- Functions that post the callback of a batch that has ended. The body of a callback is a posting without what is different each time: its
-- creator has cut that out, because a function of the database cannot decode a posting.

-- Returns the uuid of a name: version 5, in the namespace of model/job-batch.ts. It computes SHA-1 itself: Postgres has none without an
-- extension.
CREATE OR REPLACE FUNCTION :SCHEMA.callback_uuid(p_name text)
RETURNS text LANGUAGE plpgsql IMMUTABLE
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE
  c_mask CONSTANT bigint := 4294967295;
  v_bytes bytea := decode('6f3c7a5252a84ee18d040c9b6ad3f7c5', 'hex') || convert_to(p_name, 'UTF8');
  v_length integer := length(v_bytes);
  v_hash bigint[] := ARRAY[1732584193, 4023233417, 2562383102, 271733878, 3285377520];
  v_words bigint[];
  v_word bigint;
  v_mixed bigint;
  a bigint; b bigint; c bigint; d bigint; e bigint;
  v_digits text;
BEGIN
  v_bytes := v_bytes || decode('80' || repeat('00', (119 - v_length % 64) % 64), 'hex') || int8send(8::bigint * v_length);
  FOR v_from IN 0 .. length(v_bytes) - 64 BY 64 LOOP
    a := v_hash[1]; b := v_hash[2]; c := v_hash[3]; d := v_hash[4]; e := v_hash[5];
    v_words := '{}';
    FOR i IN 0 .. 79 LOOP
      IF i < 16 THEN
        v_word := ('x' || encode(substring(v_bytes FROM v_from + 4 * i + 1 FOR 4), 'hex'))::bit(32)::bigint & c_mask;
      ELSE
        v_word := v_words[i - 2] # v_words[i - 7] # v_words[i - 13] # v_words[i - 15];
        v_word := ((v_word << 1) | (v_word >> 31)) & c_mask;
      END IF;
      v_words[i + 1] := v_word;
      v_mixed := CASE WHEN i < 20 THEN ((b & c) | ((b # c_mask) & d)) + 1518500249
        WHEN i < 40 THEN (b # c # d) + 1859775393
        WHEN i < 60 THEN ((b & c) | (b & d) | (c & d)) + 2400959708
        ELSE (b # c # d) + 3395469782 END;
      v_mixed := ((((a << 5) | (a >> 27)) & c_mask) + v_mixed + e + v_word) & c_mask;
      e := d; d := c; c := ((b << 30) | (b >> 2)) & c_mask; b := a; a := v_mixed;
    END LOOP;
    v_hash := ARRAY[(v_hash[1] + a) & c_mask, (v_hash[2] + b) & c_mask, (v_hash[3] + c) & c_mask, (v_hash[4] + d) & c_mask, (v_hash[5] + e) & c_mask];
  END LOOP;
  SELECT string_agg(lpad(to_hex(part), 8, '0'), '' ORDER BY at) INTO v_digits FROM unnest(v_hash) WITH ORDINALITY AS h(part, at);
  RETURN left(v_digits, 8) || '-' || substr(v_digits, 9, 4) || '-5' || substr(v_digits, 14, 3) || '-'
    || to_hex((('x' || substr(v_digits, 17, 1))::bit(4)::integer & 3) | 8) || substr(v_digits, 18, 3) || '-' || substr(v_digits, 21, 12);
END $function$;

-- Returns a number from 0 as msgpack.
CREATE OR REPLACE FUNCTION :SCHEMA.pack_number(p_number bigint)
RETURNS bytea LANGUAGE plpgsql IMMUTABLE
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE v_digits text := to_hex(p_number);
BEGIN
  RETURN decode(CASE
    WHEN p_number < 128 THEN lpad(v_digits, 2, '0')
    WHEN p_number < 256 THEN 'cc' || v_digits
    WHEN p_number < 65536 THEN 'cd' || lpad(v_digits, 4, '0')
    WHEN p_number < 4294967296 THEN 'ce' || lpad(v_digits, 8, '0')
    -- As a double: clients read larger integers as another type.
    ELSE 'cb' || encode(float8send(p_number), 'hex') END, 'hex');
END $function$;

-- Posts the callback of a batch that has ended, with these numbers of jobs; nothing if there is none. Returns nothing.
--
-- A gap is a letter and the number of bytes of the body before it: u for the uuid, g for the generation, and t, d and f for the numbers of
-- jobs.
CREATE OR REPLACE FUNCTION :SCHEMA.post_callback(
  p_board integer, p_batch bigint, p_uuid text, p_generation integer, p_total bigint, p_failed bigint)
RETURNS void LANGUAGE plpgsql
SET enable_seqscan TO off
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE
  v_callback record;
  v_uuid text;
  v_body bytea := '';
  v_from integer := 0;
  v_gap text[];
  v_id bigint;
  v_rank smallint;
  v_due timestamptz;
BEGIN
  SELECT * INTO v_callback FROM :SCHEMA.batch_callbacks WHERE batch = p_batch AND failed = (p_failed > 0);
  IF NOT FOUND THEN RETURN; END IF;
  v_uuid := :SCHEMA.callback_uuid(p_uuid || chr(10) || p_generation);
  FOR v_gap IN SELECT regexp_matches(v_callback.gaps, '([a-z])(\d+)', 'g') LOOP
    v_body := v_body || substring(v_callback.body FROM v_from + 1 FOR v_gap[2]::integer - v_from) || CASE v_gap[1]
      WHEN 'u' THEN convert_to(v_uuid, 'UTF8')
      WHEN 'g' THEN :SCHEMA.pack_number(p_generation)
      WHEN 't' THEN :SCHEMA.pack_number(p_total)
      WHEN 'd' THEN :SCHEMA.pack_number(p_total - p_failed)
      ELSE :SCHEMA.pack_number(p_failed) END;
    v_from := v_gap[2]::integer;
  END LOOP;
  v_due := coalesce(clock_timestamp() + v_callback.delay * interval '1 ms', '-infinity');
  INSERT INTO :SCHEMA.jobs (board, uuid, name, priority, on_owner_lost, body, due_at, queue)
  VALUES (p_board, v_uuid, v_callback.name, :SCHEMA.priority_in(v_callback.priority), v_callback.on_owner_lost,
    v_body || substring(v_callback.body FROM v_from + 1), v_due, :SCHEMA.queue_in(v_callback.priority))
  RETURNING id, rank INTO v_id, v_rank;
  PERFORM :SCHEMA.log_placed(p_board, 'posted', ARRAY[v_id], ARRAY[v_rank], ARRAY[:SCHEMA.milliseconds(v_due)]);
END $function$;
