/**
 * A plan is made for the table as it was when it was last looked at, perhaps empty: a board is, again and again. Rows are
 * always found by their keys: a plan that reads all of a board, which looks cheap then, must not be there when it has grown.
 * The first settings keep away from the table. From reading a whole index keeps that nothing gains by its order:
 *
 * - What is joined is compared as `id = ANY(ARRAY[a.id])`, which finds a row by its key and sorts nothing, and is ordered by
 *   the other side. By `id = a.id` all ids of the table may be read, in order, and each be looked for in the batch.
 * - `coalesce(session, 0)` keeps the index on sessions out of it, which holds what is claimed on all boards.
 *
 * What cannot do without a plan that is switched off, as the look at a sequence, then seems to cost so much that Postgres compiles
 * it first: that took the first claim of each session a tenth of a second, and is switched off, too.
 */
export const INDEX_SCAN_SETTINGS =
  'SET enable_seqscan TO off SET enable_hashjoin TO off SET enable_mergejoin TO off SET enable_material TO off SET jit TO off'
