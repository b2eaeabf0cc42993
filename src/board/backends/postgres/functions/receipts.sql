-- Functions that keep the answer to a request until the next request of the same lane, in case the answer is lost on the
-- way to the client.
--
-- A lane is a connection that sends one request after the other, with increasing numbers. A number is written only over a
-- smaller one. So either the request writes its answer first, or the recovery of the lost answer makes the request void.

-- Keeps the answer to request p_number, and returns it. It is the last step of a request: in the same transaction as its
-- changes. Without a lane nothing is kept.
--
-- Raises P0J01 if the recovery of this answer came first, which rolls the request back.
CREATE OR REPLACE FUNCTION :SCHEMA.answer(p_lane uuid, p_number bigint, p_answer json)
RETURNS json LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
BEGIN
  IF p_lane IS NULL THEN RETURN p_answer; END IF;
  INSERT INTO :SCHEMA.receipts AS r (lane, number, answer) VALUES (p_lane, p_number, p_answer)
  ON CONFLICT (lane) DO UPDATE SET number = excluded.number, answer = excluded.answer, at = clock_timestamp()
    WHERE r.number < excluded.number;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'request % was given up', p_number USING ERRCODE = 'P0J01';
  END IF;
  RETURN p_answer;
END $function$;

-- Returns the kept answer of request p_number. Returns null if the request was not executed; then it can never be executed later.
CREATE OR REPLACE FUNCTION :SCHEMA.find_out(p_lane uuid, p_number bigint)
RETURNS json LANGUAGE plpgsql
SET search_path TO pg_catalog, pg_temp
AS $function$
DECLARE v_answer json;
BEGIN
  INSERT INTO :SCHEMA.receipts AS r (lane, number) VALUES (p_lane, p_number)
  ON CONFLICT (lane) DO UPDATE SET number = excluded.number, answer = NULL, at = clock_timestamp()
    WHERE r.number < excluded.number;
  IF NOT FOUND THEN SELECT answer INTO v_answer FROM :SCHEMA.receipts WHERE lane = p_lane AND number = p_number; END IF;
  RETURN v_answer;
END $function$;
