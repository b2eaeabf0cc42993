/** Columns that somebody has written into the rows of a board by hand: none keeps another job from being done. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { encode } from '../../../../src/core/codec.ts'
import { postingRecord } from '../../../support/poison.ts'
import type { PostgresServer } from '../../../support/postgres.ts'
import { startPooledPostgres } from '../../../support/session-pooler.ts'
import { rejectionOf } from '../../events.ts'
import { claimed, refresh } from '../../jobs.ts'
import { postgresPlaceOn, sharedPlaceOn } from './boards.ts'

let server: PostgresServer
const schema = 'test_odd_rows'
beforeAll(async () => {
  server = await startPooledPostgres({ config: { fsync: 'off' } })
})
afterAll(() => server.stop())

/** `#` is the board's number, `$1` a posting, which each uses. */
const INSERT = `INSERT INTO @.jobs (board, uuid, name, priority, body`
const TRASH = `INSERT INTO @.trash (board, uuid, name, who, reason, body, id`
const DEPENDENCY = 'INSERT INTO @.dependencies (board, job, waits_for, settled) SELECT #,'
const END = 'INSERT INTO @.history (board, uuid'
const CHANGE = `INSERT INTO @.changes (board, kind, jobs, ranks, dues) SELECT #,`
const WRITES: readonly (readonly [what: string, statement: string])[] = [
  ['a revision that cannot grow', `${INSERT}, revision) VALUES (#, 'u', 'n', 'NORMAL', $1, 2147483647)`],
  ['a revision below zero', `${INSERT}, revision) VALUES (#, 'u', 'n', 'NORMAL', $1, -2147483648)`],
  ['a number of a job that is no exact number', `${INSERT}, id) VALUES (#, 'u', 'n', 'NORMAL', $1, 9007199254740993)`],
  ['the last number of a job', `${INSERT}, id) VALUES (#, 'u', 'n', 'NORMAL', $1, 9223372036854775807)`],
  ['a number of a job below zero', `${INSERT}, id) VALUES (#, 'u', 'n', 'NORMAL', $1, -7)`],
  ['a delay that never ends', `${INSERT}, due_at) VALUES (#, 'u', 'n', 'NORMAL', $1, 'infinity')`],
  ['a delay that ends in the year 294276', `${INSERT}, due_at) VALUES (#, 'u', 'n', 'NORMAL', $1, '294276-12-31')`],
  ['a delay before all', `${INSERT}, due_at) VALUES (#, 'u', 'n', 'NORMAL', $1, '4714-11-24 BC')`],
  ['a post in infinity', `${INSERT}, posted_at) VALUES (#, 'u', 'n', 'NORMAL', $1, 'infinity')`],
  ['a write before all', `${INSERT}, written_at) VALUES (#, 'u', 'n', 'NORMAL', $1, '-infinity')`],
  ['a session that is not there', `${INSERT}, session) VALUES (#, 'u', 'n', 'NORMAL', $1, 2147483647)`],
  ['a cancellation without a reason', `${INSERT}, cancelled_by) VALUES (#, 'u', 'n', 'NORMAL', $1, 'w')`],
  ['a life that is no record', `${INSERT}, life) VALUES (#, 'u', 'n', 'NORMAL', $1, '\\x00')`],
  ['what is done at an end of its owner', `${INSERT}, on_owner_lost) VALUES (#, 'u', 'n', 'NORMAL', $1, 'x')`],
  ['a wait for no job', `${INSERT}, due_when_ready) VALUES (#, 'u', 'n', 'NORMAL', $1, 'infinity')`],
  ['a dependency of no job', `${DEPENDENCY} -1, -2, true WHERE $1::bytea IS NOT NULL`],
  [
    'a job that waits for itself',
    `WITH made AS (${INSERT}, due_when_ready) VALUES (#, 'u', 'n', 'NORMAL', $1, '-infinity') RETURNING id) ${DEPENDENCY} id, id, false FROM made`,
  ],
  ['a batch that is not there', `${INSERT}, batch) VALUES (#, 'u', 'n', 'NORMAL', $1, 9223372036854775807)`],
  [
    'a batch without a definition that ended in infinity',
    `INSERT INTO @.batches (board, uuid, definition, generation, sealed, ended_at) SELECT #, 'u', '', -1, true, 'infinity' WHERE $1::bytea IS NOT NULL`,
  ],
  [
    'a batch that is to end, whose callback is none',
    `WITH made AS (INSERT INTO @.batches (board, uuid, definition, sealed, generation) SELECT #, 'w', '', true, -7 RETURNING number),
    job AS (${INSERT}, batch) SELECT #, 'u', 'n', 'NORMAL', $1::bytea, number FROM made)
    INSERT INTO @.batch_callbacks (batch, failed, name, priority, body, gaps, delay)
    SELECT number, failed, '', '', '', 'u9', 'NaN' FROM made, unnest(ARRAY[true, false]) AS failed`,
  ],
  ['a failed job of no batch', `INSERT INTO @.batch_failures SELECT -1, -1 WHERE $1::bytea IS NOT NULL`],
  ['an end of no job', `${END}) SELECT #, '' WHERE $1::bytea IS NOT NULL`],
  ['an end that is no record', `${END}, record) SELECT #, 'u', '\\x00' WHERE $1::bytea IS NOT NULL`],
  ['an end in infinity', `${END}, body, posted_at, ended_at) VALUES (#, 'u', $1, 'infinity', '-infinity')`],
  ['a trash entry in infinity', `${TRASH}, trashed_at) VALUES (#, 'u', 'n', 'w', 'r', $1, 1, 'infinity')`],
  ['a trash entry before all', `${TRASH}, trashed_at) VALUES (#, 'u', 'n', 'w', 'r', $1, 1, '-infinity')`],
  ['a trash entry with a failure that is none', `${TRASH}, failure) VALUES (#, 'u', 'n', 'w', 'r', $1, 1, '\\x00')`],
  ['the last number of a trash entry', `${TRASH}) VALUES (#, 'u', 'n', 'w', 'r', $1, 9223372036854775807)`],
  ['a change of no job', `${CHANGE} 'posted', ARRAY[NULL]::bigint[], NULL, NULL WHERE $1::bytea IS NOT NULL`],
  ['a change of an odd kind', `${CHANGE} 'x', ARRAY[NULL, 1]::bigint[], NULL, NULL WHERE $1::bytea IS NOT NULL`],
  [
    'a change of a nested list',
    `${CHANGE} 'posted', ARRAY[[1, 2], [3, 4]]::bigint[], NULL, NULL WHERE $1::bytea IS NOT NULL`,
  ],
  [
    'a change of the last number',
    `${CHANGE} 'posted', ARRAY[9223372036854775807, -1], NULL, NULL WHERE $1::bytea IS NOT NULL`,
  ],
  ['a rank that is none', `${CHANGE} 'posted', ARRAY[7], ARRAY[-1]::smallint[], NULL WHERE $1::bytea IS NOT NULL`],
  [
    'a post that is never due',
    `${CHANGE} 'posted', ARRAY[7], NULL, ARRAY['NaN']::float8[] WHERE $1::bytea IS NOT NULL`,
  ],
  [
    'a post that is due in infinity',
    `${CHANGE} 'posted', ARRAY[7], NULL, ARRAY['Infinity']::float8[] WHERE $1::bytea IS NOT NULL`,
  ],
  ['a release of no job', `${CHANGE} 'freed', ARRAY[NULL]::bigint[], NULL, NULL WHERE $1::bytea IS NOT NULL`],
  [
    'a session that lasts for ever',
    `INSERT INTO @.sessions (board, who, backend, backend_start, server_start, ttl, heartbeat_at) SELECT #, 'w', 0, 'infinity', '-infinity', '178000000 years', 'infinity' WHERE $1::bytea IS NOT NULL`,
  ],
  [
    'a session that ended before all',
    `INSERT INTO @.sessions (board, who, backend, backend_start, server_start, ttl, heartbeat_at, lock, fences) SELECT #, 'w', -1, '-infinity', 'infinity', '-178000000 years', '-infinity', -1, 0 WHERE $1::bytea IS NOT NULL`,
  ],
  [
    'an entity whose metadata are no record',
    `INSERT INTO @.entities (board, key, kind, name, instance, metadata, session) SELECT #, $1, 'conductor', '', '', '\\x00', min(id) FROM @.sessions`,
  ],
]

test.each([
  [
    'the sequence',
    `SELECT setval('@.fences', 9223372036854775807), $1::text`,
    `SELECT setval('@.fences', 1), $1::text`,
  ],
  [
    'numbers that are exact',
    `SELECT setval('@.fences', 9007199254740992), $1::text`,
    `SELECT setval('@.fences', 1), $1::text`,
  ],
  [
    'the base of the board',
    'UPDATE @.boards SET fence_base = 9223372036854775807 WHERE name = $1',
    'UPDATE @.boards SET fence_base = 1 WHERE name = $1',
  ],
])('fences at the end of %s are reported once, and claims go on when they are set', async (_, damage, repair) => {
  await using place = await sharedPlaceOn(server.uri)
  await using board = await place.open()
  const errors: string[] = []
  board.on('error', ({ error }) => errors.push(String(error)))
  await (await board.claim(await board.post('flow', {}))).consume()
  const name = new URL(place.uri).searchParams.get('board')
  await place.query(damage, [name])
  const jobs = [await board.post('flow', {}, { name: 'a' }), await board.post('flow', {}, { name: 'b' })]
  for (const job of jobs)
    expect(await rejectionOf(board.claim(job))).toMatchObject({ code: 'JOBBOARD_WRITES_REFUSED', retryable: true })
  expect(errors).toMatchObject([expect.stringContaining(`${place.schema}.fences`)])
  await place.query(repair, [name])
  for (const job of ['a', 'b']) await (await claimed(board, job)).consume()
  expect(errors).toHaveLength(1)
})

describe('an innocent job is done beside', () => {
  test.each(WRITES)('%s', { timeout: 60_000 }, async (_, statement) => {
    await using place = await postgresPlaceOn(server.uri, { schema })
    await using board = await place.open()
    await refresh(board)
    const name = new URL(place.uri).searchParams.get('board')
    const [row] = await place.query('SELECT id FROM @.boards WHERE name = $1', [name])
    const posting = Buffer.from(encode(postingRecord({ priority: 'NORMAL' }), 'msgpack'))
    await place.query(statement.replaceAll('#', String(row?.['id'])), [posting])
    await place.query('SELECT @.log_change($1, $2, ARRAY[]::bigint[])', [row?.['id'], 'posted'])
    await refresh(board)
    await using late = await place.open()
    for (const each of [board, late]) {
      const job = await each.post('flow', {}, { name: 'innocent', priority: 'LOW' })
      await refresh(each)
      for await (const _ of each.jobs());
      await (await claimed(each, 'innocent')).consume()
      expect(await job.wait()).toBe('COMPLETE')
      for await (const _ of each.trashed());
      await each.history()
      await each.entities('conductor')
    }
    // A job that can be claimed is; what comes of it keeps no other from being claimed beside it.
    const before = await late.post('flow', {}, { name: 'before' })
    const both = await late.post('flow', {}, { name: 'beside', after: [before] })
    for (const name of ['before', 'beside']) await (await claimed(late, name)).consume()
    expect(await both.wait()).toBe('COMPLETE')
  })
})
