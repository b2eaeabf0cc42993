/** Writes what a board in a file keeps, as every user can that may write to the file. */
import type { SqliteValue } from '../../src/sqlite/driver.ts'
import type { SqlitePlace } from '../board/backends/sqlite/boards.ts'
import { postingRecord } from '../support/poison.ts'
import type { Random } from '../support/random.ts'
import { BATCH, ENDED, ENTITY, FAILURE, ODD_TEXTS } from './real.ts'
import type { RecordMaker } from './records.ts'

const INTEGERS = [0, -1, 1, 2 ** 31, -(2 ** 31), Number.MAX_SAFE_INTEGER]
const TIMES = [0, -1, 1e308, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 4_102_444_800_000]
const LIFE = { runs: 1, attempts: [{ who: 'w', at: new Date(0), ended: 'failed' }] }
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
  'batch',
  'record',
]

export async function plantFileRows(place: SqlitePlace, make: RecordMaker, random: Random): Promise<void> {
  const query = tolerant(place.query)
  const text = () => random.pick(ODD_TEXTS)
  const bytes = (record: Record<string, unknown>) => Uint8Array.from(make.record(record))
  const time = () => random.pick(TIMES)
  const integer = () => random.pick(INTEGERS)
  const put = async () => Number((await place.putRaw(Uint8Array.from(make.posting()))).slice('job'.length))
  const number = await put()
  const board = Number(place.query('SELECT id FROM boards')[0]?.['id'])
  const columns: Readonly<Record<string, () => SqliteValue>> = {
    ...{ uuid: text, who: text, key: text, cancelled_by: text, cancel_reason: text },
    ...{
      revision: integer,
      session: () => random.pick([...INTEGERS, null]),
      rank: integer,
      ran: integer,
      batch: integer,
      id: integer,
    },
    ...{ life: () => bytes(LIFE), body: () => Uint8Array.from(make.posting()) },
    ...{ posted_at: time, written_at: time, due_at: time, due_when_ready: () => random.pick([...TIMES, null]) },
  }
  const writes: readonly (() => unknown)[] = [
    async () => {
      const column = random.pick(Object.keys(columns))
      query(`UPDATE jobs SET ${column} = ? WHERE id = ? RETURNING 1`, columns[column]?.() ?? null, await put())
    },
    () =>
      query(
        `INSERT INTO trash (board, id, uuid, body, life, who, reason, failure, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING 1`,
        ...[board, random.next() < 0.8 ? number : integer(), text(), bytes(postingRecord())],
        ...[random.next() < 0.5 ? null : bytes(LIFE), text(), text(), bytes(FAILURE), time()],
      ),
    () =>
      query(
        `INSERT INTO entities (board, kind, name, instance, metadata, session) VALUES (?, ?, ?, ?, ?, ?) RETURNING 1`,
        ...[board, random.pick(['conductor', text()]), text(), text(), bytes(ENTITY), integer()],
      ),
    () =>
      query(
        'INSERT INTO permits (board, name, job, exclusive) VALUES (?, ?, ?, ?) RETURNING 1',
        board,
        text(),
        integer(),
        integer(),
      ),
    () => query('INSERT INTO slots (board, key, job) VALUES (?, ?, ?) RETURNING 1', board, text(), integer()),
    () =>
      query(
        'INSERT INTO tokens (board, key, arrival, interval, burst) VALUES (?, ?, ?, ?, ?) RETURNING 1',
        ...[board, random.pick(['flow/innocent', text()]), time(), time(), time()],
      ),
    () =>
      query(
        'INSERT INTO changes (board, kind, job, rank, due, name) VALUES (?, ?, ?, ?, ?, ?) RETURNING 1',
        ...[
          board,
          random.pick([...KINDS, text()]),
          random.pick([number, null, ...INTEGERS]),
          random.pick([null, 0, 5, -1]),
        ],
        ...[random.pick([null, ...TIMES]), random.pick([null, text(), '["limit"]', '[1,2]'])],
      ),
    () =>
      query(
        'INSERT INTO sessions (board, process, who, ttl, heartbeat_at) VALUES (?, ?, ?, ?, ?) RETURNING 1',
        ...[board, integer(), text(), time(), time()],
      ),
    () => query('INSERT INTO processes (pid) VALUES (?) RETURNING 1', integer()),
    () =>
      query(
        'INSERT INTO dependencies (job, waits_for, settled) VALUES (?, ?, ?) RETURNING 1',
        ...[random.pick([number, ...INTEGERS]), random.pick([number, ...INTEGERS]), integer()],
      ),
    () =>
      query(
        'INSERT INTO key_windows (board, key, job, uuid, until) VALUES (?, ?, ?, ?, ?) RETURNING 1',
        board,
        text(),
        integer(),
        text(),
        time(),
      ),
    () =>
      query(
        `INSERT INTO batches (board, uuid, definition, generation, sealed, cancelled_by, cancel_reason, ended_at, total)
          VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING 1`,
        ...[board, text(), bytes(BATCH), integer(), Number(random.next() < 0.5), random.pick([text(), null])],
        ...[random.pick([text(), null]), random.pick([...TIMES, null]), integer()],
      ),
    async () =>
      query('UPDATE jobs SET batch = (SELECT max(number) FROM batches) WHERE id = ? RETURNING 1', await put()),
    () =>
      query(
        'INSERT INTO batch_failures (job, batch) VALUES (?, (SELECT max(number) FROM batches)) RETURNING 1',
        integer(),
      ),
    () =>
      query(
        'INSERT INTO history (board, number, uuid, record) SELECT id, history + ?, ?, ? FROM boards RETURNING 1',
        ...[random.pick([1, integer()]), text(), bytes(ENDED)],
      ),
  ]
  for (let count = random.between(1, 3); count > 0; count -= 1) await random.pick(writes)()
}

/** The numbers of SQLite for a violated constraint, and for a value of the wrong type. */
const REFUSED = [19, 20]

/** Ignores what the tables do not take. */
function tolerant(query: SqlitePlace['query']): SqlitePlace['query'] {
  return (sql, ...values) => {
    try {
      return query(sql, ...values)
    } catch (error) {
      if (REFUSED.includes(Number(Object(error).errcode) & 0xff)) return []
      throw error
    }
  }
}
