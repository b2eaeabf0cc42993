/**
 * Settings that make plans find rows by their keys. Postgres plans for the table as it was when its statistics were last
 * collected, and a board is often empty. A plan that reads a whole board looks cheap then, but must not be used for a board
 * that has grown. The first settings prevent sequential scans of the table. A scan of a whole index is prevented because no
 * query gains from the order of an index:
 *
 * - Joins compare with `id = ANY(ARRAY[a.id])`, which finds each row by its key without sorting, in the order of the other
 *   side. With `id = a.id` Postgres may read all ids of the table in order, and search for each in the batch.
 * - `coalesce(session, 0)` prevents use of the index on sessions, which contains the claimed jobs of all boards.
 *
 * A query that needs a disabled plan, such as a read of a sequence, seems so expensive that Postgres compiles it first. That
 * took a tenth of a second for the first claim of each session, so JIT compilation is disabled, too.
 */
export const INDEX_SCAN_SETTINGS =
  'SET enable_seqscan TO off SET enable_hashjoin TO off SET enable_mergejoin TO off SET enable_material TO off SET jit TO off'
