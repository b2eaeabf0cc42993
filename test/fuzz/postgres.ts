/** Writes what a board on Postgres keeps, as every role can that may write to its tables. */
import { textDigest } from '../../src/board/backends/postgres/store/rows.ts'
import { channelName } from '../../src/board/backends/postgres/store/schema.ts'
import type { PostgresPlace } from '../board/backends/postgres/boards.ts'
import { postingRecord } from '../support/poison.ts'
import type { Random } from '../support/random.ts'
import { BATCH, ENDED, ENTITY, FAILURE, ODD_TEXTS } from './real.ts'
import type { RecordMaker } from './records.ts'

type Query = PostgresPlace['query']

const INTEGERS = ['0', '-1', '1', '2147483647', '-2147483648']
const BIG_INTEGERS = [...INTEGERS, '9007199254740993', '9223372036854775807', '-9223372036854775808']
const INSTANTS = ['infinity', '-infinity', '4714-11-24 BC', '294276-12-31', '1970-01-01', '2100-01-01']
const LIFE = { runs: 1, attempts: [{ who: 'w', at: new Date(0), ended: 'failed' }] }

export async function plantRows(place: PostgresPlace, make: RecordMaker, random: Random): Promise<void> {
  const query = tolerant(place.query)
  const text = () => random.pick(ODD_TEXTS)
  const bytes = (record: Record<string, unknown>) => Buffer.from(make.record(record))
  const number = Number((await place.putRaw(make.posting())).slice('job'.length))
  const [job] = await query('SELECT board FROM @.jobs WHERE id = $1', [number])
  // Claimed and done by now.
  const board = job?.['board'] ?? (await query('SELECT id FROM @.boards'))[0]?.['id']
  const session = random.pick(['(SELECT min(id) FROM @.sessions)', random.pick(INTEGERS)])
  const columns: Readonly<Record<string, () => unknown>> = {
    ...{
      uuid: text,
      name: text,
      who: text,
      cancelled_by: text,
      cancel_reason: text,
      on_owner_lost: text,
      priority: text,
    },
    ...{ revision: () => random.pick(INTEGERS), session: () => random.pick([...INTEGERS, null]) },
    ...{ life: () => bytes(LIFE), key: () => bytes({}), body: () => Buffer.from(make.posting()) },
    ...{
      posted_at: () => random.pick(INSTANTS),
      written_at: () => random.pick(INSTANTS),
      due_at: () => random.pick(INSTANTS),
      due_when_ready: () => random.pick([...INSTANTS, null]),
    },
    id: () => random.pick(BIG_INTEGERS),
  }
  const writes: readonly (() => Promise<unknown>)[] = [
    async () => {
      const id = Number((await place.putRaw(make.posting())).slice('job'.length))
      const column = random.pick(Object.keys(columns))
      await query(`UPDATE @.jobs SET ${column} = $1 WHERE id = $2`, [columns[column]?.(), id])
    },
    async () => {
      // Nobody is notified: it is found by those who read the board, and before it could be claimed.
      const column = random.pick(Object.keys(columns).filter((name) => name !== 'body'))
      await query(
        `INSERT INTO @.jobs (board, ${column}${column === 'uuid' ? '' : ', uuid'}${column === 'name' ? '' : ', name'}${column === 'priority' ? '' : ', priority'}, body)
         VALUES ($1, $2${column === 'uuid' ? '' : ", ''"}${column === 'name' ? '' : ", ''"}${column === 'priority' ? '' : ", 'NORMAL'"}, $3)`,
        [board, columns[column]?.(), bytes(postingRecord({ details: { flow: 'innocent', store: {} } }))],
      )
    },
    () =>
      query(
        'INSERT INTO @.trash (id, board, uuid, name, body, life, who, reason, failure, trashed_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)',
        [
          ...[random.next() < 0.8 ? number : random.pick(BIG_INTEGERS), board, text(), text(), bytes(postingRecord())],
          ...[random.next() < 0.5 ? null : bytes(LIFE), text(), text(), bytes(FAILURE), random.pick(INSTANTS)],
        ],
      ),
    () =>
      query(
        `INSERT INTO @.entities (board, key, kind, name, instance, metadata, session) VALUES ($1, $2, $3, $4, $5, $6, ${session})`,
        [...[board, bytes({}), random.pick(['conductor', text()]), text(), text(), bytes(ENTITY)]],
      ),
    () =>
      query(
        `INSERT INTO @.permits (board, resource, job, name, exclusive, session) VALUES ($1, $2, $3, $4, $5, ${session})`,
        [
          ...[board, random.pick(BIG_INTEGERS), random.pick([number, random.pick(BIG_INTEGERS)]), text()],
          random.next() < 0.5,
        ],
      ),
    () =>
      query('INSERT INTO @.changes (board, kind, jobs, ranks, dues) VALUES ($1, $2, $3, $4, $5)', [
        ...[board, random.pick([...KINDS, text()]), some(random, [number, null, ...BIG_INTEGERS])],
        ...[some(random, [null, 0, 1, -1, 32_767]), some(random, [null, 0, 'NaN', 'Infinity', 1e308])],
      ]),
    () =>
      query(
        `INSERT INTO @.sessions (board, who, backend, backend_start, server_start, ttl, heartbeat_at, fences, lock, attachment)
         VALUES ($1, $2, $3, $4, $4, $5, $6, $7, $8, $9)`,
        [
          ...[
            board,
            text(),
            random.pick(INTEGERS),
            random.pick(INSTANTS),
            random.pick(['0', '-1 day', '178000000 years']),
          ],
          ...[random.pick(INSTANTS), random.pick(['0', null]), random.pick([...INTEGERS, null]), random.pick(INTEGERS)],
        ],
      ),
    () =>
      query('INSERT INTO @.dependencies (board, job, waits_for, settled) VALUES ($1, $2, $3, $4)', [
        ...[board, random.pick([number, ...BIG_INTEGERS]), random.pick([number, ...BIG_INTEGERS]), random.next() < 0.5],
      ]),
    () =>
      query(
        'INSERT INTO @.key_windows (board, key, job, uuid, until) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (key, board) DO UPDATE SET until = $5',
        [board, textDigest('one'), random.pick([number, ...BIG_INTEGERS]), text(), random.pick(INSTANTS)],
      ),
    () =>
      query(
        `INSERT INTO @.batches (board, uuid, definition, generation, sealed, cancelled_by, cancel_reason, ended_at, total)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
        [
          ...[board, text(), bytes(BATCH), random.pick(INTEGERS)],
          ...[random.next() < 0.5, random.pick([text(), null]), random.pick([text(), null])],
          ...[random.pick([...INSTANTS, null]), random.pick(BIG_INTEGERS)],
        ],
      ),
    // A job of a batch, and what its end posts.
    async () => {
      const id = Number((await place.putRaw(make.posting())).slice('job'.length))
      await query('UPDATE @.jobs SET batch = (SELECT max(number) FROM @.batches) WHERE id = $1', [id])
      await query(
        `INSERT INTO @.batch_callbacks (batch, failed, name, priority, on_owner_lost, delay, body, gaps)
         SELECT max(number), $1, $2, $3, $4, $5, $6, $7 FROM @.batches`,
        [
          ...[random.next() < 0.5, text(), random.pick(['NORMAL', text()]), random.pick([text(), null])],
          ...[random.pick([null, 0, 'NaN', 'Infinity', -1e308]), Buffer.from(make.posting())],
          random.pick(['', 'u0', 'g1 t2 d3 f4', 'f9 u3', 'x7', 'u99999999999', text()]),
        ],
      )
    },
    () =>
      query('INSERT INTO @.batch_failures VALUES ($1, (SELECT max(number) FROM @.batches))', [
        random.pick(BIG_INTEGERS),
      ]),
    () => query('INSERT INTO @.batch_posts SELECT max(number), $1 FROM @.batches', [random.pick(INTEGERS)]),
    () =>
      query(
        'INSERT INTO @.history (board, uuid, record, body, life, who, reason, posted_at, ended_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)',
        [
          ...[board, text(), random.next() < 0.5 ? null : bytes(ENDED), bytes(postingRecord()), bytes(LIFE), text()],
          ...[random.pick([text(), null]), random.pick([...INSTANTS, null]), random.pick(INSTANTS)],
        ],
      ),
    () => query('SELECT pg_notify($1, $2)', [channelName(place.schema, Number(board)), text()]),
  ]
  for (let count = random.between(1, 3); count > 0; count -= 1) await random.pick(writes)()
}

/** The row that says what the board is. */
export async function damageBoardRow(
  place: PostgresPlace,
  random: Random,
): Promise<{
  plant(make: RecordMaker): Promise<unknown>
  mend(): Promise<unknown>
}> {
  const [real] = await place.query('SELECT format, paused, fence_base::text, horizon::text FROM @.boards')
  const query = tolerant(place.query)
  const columns: Readonly<Record<string, () => unknown>> = {
    format: () => random.pick(INTEGERS),
    paused: () => true,
    fence_base: () => random.pick(['0', '-1', '9007199254740993', '9223372036854775807']),
    horizon: () => random.pick(['1:1:', '9000000000000000000:9000000000000000000:', '1:10:5']),
    horizon_at: () => random.pick(INSTANTS),
  }
  return {
    plant: async () => {
      const column = random.pick(Object.keys(columns))
      await query(`UPDATE @.boards SET ${column} = $1`, [columns[column]?.()])
    },
    mend: () =>
      place.query(
        `UPDATE @.boards SET format = $1, paused = $2, fence_base = $3, horizon = pg_current_snapshot(), horizon_at = clock_timestamp()`,
        [real?.['format'], real?.['paused'], real?.['fence_base']],
      ),
  }
}

const KINDS = [
  'posted',
  'ready',
  'replaced',
  'claimed',
  'abandoned',
  'freed',
  'consumed',
  'trashed',
  'cancelled',
  'resumed',
]

function some(random: Random, items: readonly unknown[]): unknown[] | null {
  if (random.next() < 0.2) return null
  return Array.from({ length: random.between(0, 3) }, () => random.pick(items))
}

/** What Postgres does not take is not stored. */
function tolerant(query: Query): Query {
  return (text, values) =>
    query(text, values).catch((error: unknown) => {
      // Data exceptions, violated constraints.
      if (/^(22|23)/.test(String(Object(error).sqlState ?? Object(error).code))) return []
      throw error
    })
}
