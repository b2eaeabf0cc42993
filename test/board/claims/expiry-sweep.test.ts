/** Jobs outside of a view's window expire, too: all processes together read the board page by page. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { JobBoard } from '../../../src/board/api/job-board.ts'
import { postgresBackend } from '../../../src/board/backends/postgres/index.ts'
import { redisBackend } from '../../../src/board/backends/redis/index.ts'
import { Expirer, type ExpirerOptions } from '../../../src/board/claims/expirer.ts'
import type { Backend } from '../../../src/board/contract/index.ts'
import { boardInternals } from '../../../src/board/internal.ts'
import { LiveView } from '../../../src/board/view/live-view.ts'
import { parseUri } from '../../../src/core/uri.ts'
import { namespace } from '../../support/namespace.ts'
import { createDatabase, type PostgresDatabase } from '../../support/postgres-database.ts'
import { type RedisServer, startRedis } from '../../support/redis.ts'
import { all } from '../jobs.ts'
import { withRole } from '../override-role.ts'

const NOBODY = {
  jobChanged() {},
  statusRead() {},
  cancelRequested() {},
  jobsExpired() {},
  flowUnaccepted() {},
  limited() {},
  onError() {},
}
const PAGE = 500

/** A board, and what sweeps it in several processes, on a clock that the test turns. */
async function setupOn(makeBackend: () => Promise<Backend>) {
  const backend = await makeBackend()
  const board = new JobBoard(backend)
  await boardInternals(board).open()
  const errors: Error[] = []
  let [aheadMs, reads] = [0, 0]
  const ahead = withRole(backend, 'clock', (clock) => ({ now: () => clock.now() + aheadMs }))
  const turned = withRole(ahead, 'jobs', (jobs) => ({
    read: (ids) => {
      reads += ids.length
      return jobs.read(ids)
    },
  }))
  const stop = new AbortController()
  const trash: ExpirerOptions['discard'] = ({ id, revision, posting }, request) =>
    backend.trash.discard({ id, revision, posting, ...request, who: 'sweeper' })
  const sweeper = () => {
    const view = new LiveView({ backend, listener: NOBODY, unacceptedAfter: 1, signal: stop.signal })
    const incarnation = {
      listLiving: async (ids: ReadonlySet<string>) => new Set([...ids].filter((id) => id === 'living')),
    }
    const options = { backend: turned, view, records: boardInternals(board).records, incarnation, discard: trash }
    return new Expirer({ ...options, signal: stop.signal, onError: (error) => errors.push(error) }).sweep
  }
  return {
    ...{ backend, board, errors, sweepers: [sweeper(), sweeper()] as const },
    turn: (ms: number) => {
      aheadMs += ms
    },
    /** The number of postings that were read since the last call. */
    takeReads: () => {
      const taken = reads
      reads = 0
      return taken
    },
    [Symbol.asyncDispose]: async () => {
      stop.abort()
      await board.close()
    },
  }
}

function sweepContract(makeBackend: () => Promise<Backend>): void {
  test('pages are read one after the other, by whichever process comes first, and what has expired is trashed', async () => {
    await using setup = await setupOn(makeBackend)
    const { board, sweepers, turn, errors } = setup
    const [one, other] = sweepers
    const names = Array.from({ length: PAGE + 20 }, (_, number) => `${number}`)
    const expiring = new Map([
      ['3', '1m'],
      ['499', '30m'],
      ['510', '1m'],
      ['519', '1h'],
    ] as const)
    const items = names.map((name) => {
      const expiresAfter = expiring.get(name as '3')
      return { flow: 'flow', store: {}, name, ...(expiresAfter ? { expiresAfter } : {}) }
    })
    await board.postMany(items)
    turn(40 * 60_000)
    expect(await one.readPage()).toBe(true)
    const trashed = async () => (await all(board.trashed())).map(({ name }) => name).sort()
    expect(await trashed()).toEqual(['3', '499'])
    expect(setup.takeReads()).toBe(PAGE)
    expect(await one.readPage()).toBe(false)
    expect(await other.readPage()).toBe(false)
    turn(10_000)
    expect(await other.readPage()).toBe(true)
    expect(await trashed()).toEqual(['3', '499', '510'])
    // The second page was the last: the next one is at the head again, soon, because a job can expire.
    turn(10_000)
    expect(await one.readPage()).toBe(true)
    turn(60 * 60_000)
    expect(await one.readPage()).toBe(true)
    expect(await trashed()).toEqual(['3', '499', '510', '519'])
    expect(await board.countJobs()).toBe(PAGE + 16)
    expect((await all(board.trashed())).every(({ expired, who }) => expired && who === 'sweeper')).toBe(true)
    expect(errors).toEqual([])
  })

  test('a board on which no job can expire is read every ten minutes', async () => {
    await using setup = await setupOn(makeBackend)
    const { board, sweepers, turn } = setup
    await board.post('flow', {})
    expect(await sweepers[0].readPage()).toBe(true)
    turn(9 * 60_000)
    expect(await sweepers[1].readPage()).toBe(false)
    turn(60_000)
    expect(await sweepers[1].readPage()).toBe(true)
  })

  test('claimed jobs stay, and so do the reserved jobs of an owner that lives', async () => {
    await using setup = await setupOn(makeBackend)
    const { backend, board, sweepers, turn } = setup
    const claimed = await board.post('flow', {}, { name: 'claimed', expiresAfter: '1m' })
    await board.claim(claimed)
    const { posting } = (await readAll(backend)).find((job) => job.posting.name === 'claimed') ?? {}
    if (!posting) throw new Error('it is on the board')
    for (const reservedFor of ['living', 'dead'])
      await backend.jobs.post({ posting: { ...posting, name: reservedFor, runs: 0, attempts: [], reservedFor } })
    turn(5 * 60_000)
    expect(await sweepers[0].readPage()).toBe(true)
    expect((await all(board.trashed())).map(({ name }) => name)).toEqual(['dead'])
    expect(await board.countJobs()).toBe(2)
  })

  test('a record that somebody has damaged begins the sweep again', async () => {
    await using setup = await setupOn(makeBackend)
    const { board, backend, sweepers } = setup
    const job = await board.post('flow', {}, { expiresAfter: 1 })
    await backend.records.write({
      changes: [{ kind: 'sweep', id: 'expiry', revision: undefined, bytes: Buffer.from('x') }],
      posts: [],
    })
    setup.turn(1_000)
    expect(await sweepers[0].readPage()).toBe(true)
    expect((await all(board.trashed())).map(({ uuid }) => uuid)).toEqual([job.uuid])
    expect(await sweepers[0].readPage()).toBe(false)
  })
}

async function readAll(backend: Backend) {
  const page = await backend.sections?.range({ limit: 10, due: false })
  const read = await backend.jobs.read((page?.jobs ?? []).map(({ id }) => id))
  return read.flatMap((job) => (job && 'posting' in job ? [job] : []))
}

describe('on Postgres', () => {
  let server: PostgresDatabase
  beforeAll(async () => {
    server = await createDatabase()
  })
  afterAll(() => server?.stop())

  let boards = 0
  sweepContract(async () => {
    boards += 1
    return postgresBackend(parseUri(`${server.uri}?board=sweep${boards}&window=3`, 'board'), { who: 'sweep' })
  })
})

describe('on Redis', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis()
  })
  afterAll(() => server?.stop())

  sweepContract(async () => {
    const prefix = namespace('sweep').replaceAll('/', '-')
    return redisBackend(parseUri(`${server.uri}?prefix=${prefix}&window=3`, 'board'), {})
  })
})
