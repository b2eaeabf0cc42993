/** Connections that break in the middle of it, servers that die, owners that hang: what becomes of what was asked for. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Claim, Job, JobBoard, TrashedJob } from '../../../../src/board/index.ts'
import { ClaimLost, NotConnected, OutcomeUnknown } from '../../../../src/core/errors.ts'
import { parseUri } from '../../../../src/core/uri.ts'
import { PostgresConnection, parsePostgresLocation } from '../../../../src/postgres/index.ts'
import { createBatch, postTo } from '../../../contract/board/batches.ts'
import { startNode } from '../../../support/node-process.ts'
import { type PostgresServer, startPostgres } from '../../../support/postgres.ts'
import { startProxy, type TcpProxy } from '../../../support/proxy.ts'
import { rowsOf, usual, variant } from '../../../variant.ts'
import { nextConnection, nextEvent, nextSession, rejectionOf } from '../../events.ts'
import { all, namesOn, refresh } from '../../jobs.ts'
import { takeUnheard } from '../../lost-tokens.ts'
import { checkWritten, writeOn } from '../../records.ts'
import { checkDisconnectedOwner, checkStoppedOwner } from '../../takeovers.ts'
import { type PostgresPlace, postgresPlaceOn, sharedPlaceOn } from './boards.ts'

const CLAIMER = new URL('../../stopped-claimer.ts', import.meta.url)

let server: PostgresServer

beforeAll(async () => {
  server = await startPostgres()
})

afterAll(() => server.stop())

/** A board behind a proxy, and one that sees the server directly. */
interface Setup extends AsyncDisposable {
  readonly place: PostgresPlace
  readonly proxy: TcpProxy
  readonly board: JobBoard
  readonly other: JobBoard
}

async function openSetup(parameters = ''): Promise<Setup> {
  const place = await sharedPlaceOn(server.uri)
  const proxy = await startProxy({ port: server.port })
  const board = await place.openAt(proxy.port, { who: 'board', parameters })
  const other = await place.open({ who: 'other' })
  // The first request of a kind opens its connection: that is not what these tests are about.
  await (await board.claim(await board.post('flow', {}, { name: 'first' }))).consume()
  await refresh(other)
  return {
    ...{ place, proxy, board, other },
    [Symbol.asyncDispose]: async () => {
      await Promise.all([board.close(), other.close()])
      await proxy.close()
      await place[Symbol.asyncDispose]()
    },
  }
}

/** One operation, made ready, and how everybody sees that it was done: once. */
interface Case {
  readonly name: string
  ready(setup: Setup): Promise<() => Promise<unknown>>
  /** How many times it was done, as the tables tell. */
  done(setup: Setup): Promise<number>
}

const claimOn = async (board: JobBoard): Promise<Claim> => board.claim(await board.post('flow', {}, { name: 'job' }))

/** Claims the only job of a batch that is sealed. */
async function claimLastOf(board: JobBoard): Promise<Claim> {
  const batch = await createBatch(board)
  const job = await postTo(batch, 'job')
  await batch.seal()
  return board.claim(job)
}

async function trashOn({ board, other }: Setup): Promise<TrashedJob> {
  await (await claimOn(board)).trash({ reason: 'why' })
  await refresh(other)
  const [trashed] = await all(board.trashed())
  if (!trashed) throw new Error('it is in the trash')
  return trashed
}

const counted =
  (what: string) =>
  async ({ place }: Setup) => {
    const [row] = await place.query(`SELECT count(*) AS count FROM ${what}`)
    return Number(row?.['count'])
  }

const CASES: readonly Case[] = [
  {
    name: 'post',
    ready:
      async ({ board }) =>
      () =>
        board.post('flow', {}, { name: 'job' }),
    done: counted('@.jobs'),
  },
  {
    name: 'write of a record with a post',
    ready: ({ board }) => writeOn(board),
    done: counted("@.changes WHERE kind = 'posted'"),
  },
  {
    name: 'post with a key',
    ready:
      async ({ board }) =>
      () =>
        board.post('flow', {}, { key: 'one' }),
    done: counted('@.jobs'),
  },
  {
    name: 'claim',
    ready: async ({ board }) => {
      const job = await board.post('flow', {})
      return () => board.claim(job)
    },
    done: counted("@.changes WHERE kind = 'claimed'"),
  },
  {
    name: 'consume',
    ready: async ({ board }) => {
      const claim = await claimOn(board)
      return () => claim.consume()
    },
    done: counted("@.changes WHERE kind = 'consumed'"),
  },
  {
    name: 'post after another job',
    ready: async ({ board }) => {
      const first = await board.post('flow', {})
      return () => board.post('flow', {}, { after: [first] })
    },
    done: counted('@.dependencies'),
  },
  {
    name: 'consume of a job on which others depend',
    ready: async ({ board }) => {
      const claim = await claimOn(board)
      for (const name of ['one', 'two']) await board.post('flow', {}, { name, after: [claim.job] })
      return () => claim.consume()
    },
    done: counted("@.changes WHERE kind = 'ready' AND cardinality(jobs) = 2"),
  },
  {
    name: 'trash of a job on which another one depends',
    ready: async ({ board }) => {
      const claim = await claimOn(board)
      await board.post('flow', {}, { after: [claim.job] })
      return () => claim.trash({ reason: 'why' })
    },
    // The other one is cancelled, and has left the board before the call returns.
    done: counted("@.changes WHERE kind = 'cancelled'"),
  },
  {
    name: 'abandon',
    ready: async ({ board }) => {
      const claim = await claimOn(board)
      return () => claim.abandon({ reason: 'tried' })
    },
    done: counted("@.changes WHERE kind = 'abandoned'"),
  },
  {
    name: 'trash',
    ready: async ({ board }) => {
      const claim = await claimOn(board)
      return () => claim.trash({ reason: 'why' })
    },
    done: counted('@.trash'),
  },
  {
    name: 'cancel of a job that was never run',
    ready: async ({ board }) => {
      const job = await board.post('flow', {})
      return () => board.cancel(job)
    },
    done: counted('@.trash'),
  },
  {
    name: 'cancel of a job that runs',
    ready: async ({ board, other }) => {
      const { job } = await claimOn(other)
      await refresh(board)
      return () => board.cancel(job)
    },
    done: counted('@.jobs WHERE cancelled_by IS NOT NULL'),
  },
  {
    name: 'creation of a batch',
    ready: async ({ board }) => {
      await createBatch(board)
      return () => createBatch(board)
    },
    done: counted('@.batches'),
  },
  {
    name: 'post to a batch',
    ready: async ({ board }) => {
      const batch = await createBatch(board)
      return () => postTo(batch, 'job')
    },
    done: counted('@.jobs WHERE batch IS NOT NULL'),
  },
  {
    name: 'seal of an empty batch',
    ready: async ({ board }) => {
      const batch = await createBatch(board)
      return () => batch.seal()
    },
    done: counted("@.jobs WHERE name = 'all done'"),
  },
  {
    name: 'consume of the last job of a batch',
    ready: async ({ board }) => {
      const claim = await claimLastOf(board)
      return () => claim.consume()
    },
    done: counted("@.jobs WHERE name = 'all done'"),
  },
  {
    name: 'trash of the last job of a batch',
    ready: async ({ board }) => {
      const claim = await claimLastOf(board)
      return () => claim.trash({ reason: 'why' })
    },
    done: counted("@.jobs WHERE name = 'some failed'"),
  },
  {
    name: 'restoration of a job of a batch that has ended',
    ready: async ({ board, other }) => {
      await (await claimLastOf(board)).trash({ reason: 'why' })
      await refresh(other)
      const [trashed] = await all(board.trashed())
      if (!trashed) throw new Error('it is in the trash')
      return () => board.restore(trashed)
    },
    done: counted('@.batches WHERE generation = 2 AND ended_at IS NULL'),
  },
  {
    name: 'pause',
    ready:
      async ({ board }) =>
      () =>
        board.pause(),
    done: counted('@.boards WHERE paused'),
  },
  {
    name: 'restore',
    ready: async (setup) => {
      const trashed = await trashOn(setup)
      return () => setup.board.restore(trashed)
    },
    done: counted('@.jobs'),
  },
  {
    name: 'purge',
    ready: async (setup) => {
      const trashed = await trashOn(setup)
      const { place } = setup
      await place.query('CREATE TABLE IF NOT EXISTS @.purged (id bigint)')
      await place.query(`CREATE OR REPLACE FUNCTION @.purged() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN INSERT INTO @.purged VALUES (old.id); RETURN NULL; END $$`)
      await place.query(
        'CREATE OR REPLACE TRIGGER purged AFTER DELETE ON @.trash FOR EACH ROW EXECUTE FUNCTION @.purged()',
      )
      return () => setup.board.purge(trashed)
    },
    done: counted('@.purged'),
  },
]

/** Resolves when the tables show it. Each look is a round trip. */
async function untilDone(setup: Setup, { done }: Case, before: number): Promise<void> {
  while ((await done(setup)) === before);
}

/** The others go the same way from the request to the answer: `FunctionCaller`. */
const USUAL_CASES = ['post', 'claim', 'trash']
const isUsual = ({ name }: Case) => USUAL_CASES.includes(name)

describe.each(rowsOf({ usual: CASES.filter(isUsual), variants: CASES.filter((each) => !isUsual(each)) }))(
  '$name',
  (operation) => {
    test('whose answer is lost is found to be done, once', async () => {
      await using setup = await openSetup()
      const { proxy, board } = setup
      const act = await operation.ready(setup)
      const before = await operation.done(setup)
      const back = nextConnection(board)
      proxy.mode = 'swallow-replies'
      const acting = act().catch((error: unknown) => error)
      await untilDone(setup, operation, before)
      proxy.resetAll()
      proxy.mode = 'pass'
      await back
      const result = await acting
      expect(result).not.toBeInstanceOf(Error)
      // The session outlives its connection, and with it a claim that was granted in it.
      if (operation.name === 'claim') (result as Claim).assertHeld()
      if (operation.name.startsWith('write')) await checkWritten(board, result)
      if (operation.name === 'post') expect((await board.find((result as Job).uuid)).uuid).toBe((result as Job).uuid)
      expect(await operation.done(setup)).toBe(before + 1)
    })

    test('that never reaches the server is said to be not done', async () => {
      await using setup = await openSetup()
      const { proxy, board } = setup
      const act = await operation.ready(setup)
      const before = await operation.done(setup)
      const back = nextConnection(board)
      proxy.mode = 'drop-requests'
      const sent = proxy.nextRequest()
      const failure = rejectionOf(act())
      await sent
      proxy.resetAll()
      proxy.mode = 'pass'
      await back
      const error = await failure
      expect(error instanceof NotConnected || error instanceof ClaimLost ? 'not done' : error).toBe('not done')
      expect(await operation.done(setup)).toBe(before)
    })
  },
)

usual('tokens whose answer is lost are taken once', async () => {
  await using setup = await openSetup()
  const { board, other, proxy } = setup
  const loseAnswers = () => {
    proxy.mode = 'swallow-replies'
  }
  const { taking } = await takeUnheard({ board, other, loseAnswers })
  proxy.resetAll()
  proxy.mode = 'pass'
  await taking
})

describe('a request that is still on its way when its fate was asked for', () => {
  usual('is refused wherever it arrives', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using board = await place.open()
    const lane = randomUUID()
    const cancel = () => place.query('SELECT @.set_gate($1, 7, id, true) AS answer FROM @.boards', [lane])
    expect(await place.query('SELECT @.find_out($1, 7) AS answer', [lane])).toEqual([{ answer: null }])
    expect(await rejectionOf(cancel())).toMatchObject({ code: 'P0J01' })
    await refresh(board)
    expect(board.paused).toBe(false)
    expect(await place.query('SELECT @.find_out($1, 7) AS answer', [lane])).toEqual([{ answer: null }])
  })

  usual('is refused for a day: its receipt stays, and the receipts of other requests do not', async () => {
    await using setup = await openSetup()
    const { board, place, proxy } = setup
    const back = nextConnection(board)
    proxy.mode = 'drop-requests'
    const sent = proxy.nextRequest()
    const failure = rejectionOf(board.post('flow', {}))
    await sent
    proxy.resetAll()
    proxy.mode = 'pass'
    await back
    expect(await failure).toBeInstanceOf(NotConnected)
    const receipts = () => place.query('SELECT lane, answer IS NULL AS void FROM @.receipts')
    const before = await receipts()
    const voided = before.filter((receipt) => receipt['void'] === true)
    expect(voided).not.toEqual([])
    // A caller begins another lane after 64 requests.
    for (let n = 0; n < 200; n += 1) await board.post('flow', {})
    const lanes = (await receipts()).map(({ lane }) => lane)
    // A later request has written a larger number, which refuses the lost one as well.
    expect(lanes).toEqual(expect.arrayContaining(voided.map(({ lane }) => lane)))
    const known = new Set(before.map(({ lane }) => lane))
    expect(lanes.filter((lane) => !known.has(lane))).toHaveLength(1)
  })

  variant('is refused by the next request of its lane, although the lane has served its 64 requests', async () => {
    await using setup = await openSetup('&sessionTimeout=3s')
    const { board, place, proxy } = setup
    const laneOf = async (number: number) => {
      const [receipt] = await place.query('SELECT lane FROM @.receipts WHERE number = $1', [number])
      return receipt?.['lane']
    }
    // The post of the set-up was the first request of the lane.
    for (let n = 1; n < 63; n += 1) await board.post('flow', {})
    const lane = await laneOf(63)
    expect(lane).toEqual(expect.any(String))
    const back = nextSession(board)
    proxy.mode = 'drop-requests'
    const sent = proxy.nextRequest()
    const failure = rejectionOf(board.post('flow', {}))
    await sent
    proxy.mode = 'refuse'
    proxy.resetAll()
    expect(await failure).toBeInstanceOf(OutcomeUnknown)
    proxy.mode = 'pass'
    await back
    await board.post('flow', {})
    expect(await laneOf(65)).toBe(lane)
  })

  usual('is waited for while it is being done', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using board = await place.open()
    const lane = randomUUID()
    const slow = await PostgresConnection.open(parsePostgresLocation(parseUri(server.uri, 'board')))
    try {
      await slow.query('BEGIN', [])
      await slow.query(`SELECT ${place.schema}.set_gate($1, 7, id, true) FROM ${place.schema}.boards`, [lane])
      const asked = place.query('SELECT @.find_out($1, 7) AS answer', [lane])
      await slow.query('COMMIT', [])
      expect(await asked).toEqual([{ answer: 'done' }])
    } finally {
      await slow.close()
    }
    await refresh(board)
    expect(board.paused).toBe(true)
  })
})

describe('an owner', () => {
  variant(
    'whose process was stopped is ended by force, finds out before it does anything, and goes on by itself',
    async () => {
      await using place = await sharedPlaceOn(server.uri)
      await using nextOwner = await place.openAt(server.port, { who: 'next-owner', parameters: '&sessionTimeout=2s' })
      const observer = async () => {
        const [row] = await place.query("SELECT backend FROM @.sessions WHERE who = 'stopped'")
        return async () =>
          expect(await place.query('SELECT FROM pg_stat_activity WHERE pid = $1', [row?.['backend']])).toEqual([])
      }
      await checkStoppedOwner({ nextOwner, uri: `${place.uri}&sessionTimeout=2s`, observer })
    },
  )

  variant('that was killed is taken over when its time has passed, by everybody at once and once', async () => {
    await using place = await sharedPlaceOn(server.uri)
    // Longer than the owner's: on a busy machine theirs must not be interrupted meanwhile.
    await using one = await place.openAt(server.port, { who: 'one', parameters: '&sessionTimeout=5s' })
    await using two = await place.openAt(server.port, { who: 'two', parameters: '&sessionTimeout=5s' })
    await one.post('flow', {}, { name: 'first', resources: { exclusive: ['disk'] } })
    await using owner = await startNode(CLAIMER, [`${place.uri}&sessionTimeout=2s`])
    await owner.says('claimed')
    await Promise.all([refresh(one), refresh(two)])
    const heard: string[] = []
    for (const board of [one, two]) board.on('abandoned', () => heard.push(board.who))
    const waiting = Promise.race([one.claimNext(), two.claimNext()])
    owner.signal('SIGKILL')
    const [claim] = await waiting
    await Promise.all([refresh(one), refresh(two)])
    expect(heard.sort()).toEqual(['one', 'two'])
    expect(claim.run).toBe(2)
    await claim.consume()
  })

  usual('that nothing gets through to any more has lost its claim before another gets it', async () => {
    await using setup = await openSetup('&sessionTimeout=2s')
    const { proxy, board: owner, place } = setup
    await using nextOwner = await place.openAt(server.port, { who: 'next-owner', parameters: '&sessionTimeout=2s' })
    await checkDisconnectedOwner({ owner, nextOwner, proxy })
    expect(await owner.entities('conductor')).toHaveLength(1)
  })

  usual('whose backend is ended by the administrator keeps its claims', async () => {
    await using place = await sharedPlaceOn(server.uri)
    await using board = await place.open()
    const claim = await claimOn(board)
    const session = await place.sessionOf(board)
    const back = nextConnection(board)
    await place.query('SELECT pg_terminate_backend(backend) FROM @.sessions WHERE id = $1', [session])
    await back
    expect(await place.sessionOf(board)).toBe(session)
    expect(claim.lost.aborted).toBe(false)
    await claim.consume()
  })
})

describe('a server', () => {
  variant('that is killed and comes back is outlived, whatever was under way', async () => {
    await using own = await startPostgres()
    await using place = await sharedPlaceOn(own.uri)
    const open = () => place.openAt(own.port, { parameters: '&sessionTimeout=15s' })
    await using poster = await open()
    await using one = await open()
    await using two = await open()
    const JOBS = 300
    const done = new Map<string, number>()
    const restartAt = new Set([60, 180])
    let restarting = Promise.resolve()
    const finished = new AbortController()
    const posted = new Set<string>()
    const work = async (board: JobBoard) => {
      for await (const claim of board.claims({ signal: finished.signal })) {
        if ((await claim.perform(() => undefined)) !== 'consumed') continue
        done.set(claim.job.name, (done.get(claim.job.name) ?? 0) + 1)
        if (restartAt.delete(done.size)) restarting = restarting.then(() => own.restart())
        if (done.size === JOBS) finished.abort()
      }
    }
    const post = async () => {
      for (let number = 0; number < JOBS; number++) {
        const name = `job ${number}`
        while (!posted.has(name)) {
          const job = await poster.post('flow', {}, { name }).catch((error: unknown) => {
            if (!(error instanceof NotConnected)) throw error
          })
          if (job) posted.add(name)
        }
      }
    }
    await Promise.all([post(), work(one), work(two), work(one)])
    await restarting
    expect(restartAt.size).toBe(0)
    expect([...done].filter(([, times]) => times !== 1)).toEqual([])
    expect(done.size).toBe(JOBS)
    while (!two.connected) await nextEvent(two, 'state')
    expect(await namesOn(two)).toEqual([])
  })

  usual('is not there: nothing is done, and that is said', async () => {
    await using own = await startPostgres()
    await using place = await sharedPlaceOn(own.uri)
    await using board = await place.open()
    const away = nextEvent(board, 'state', ({ state }) => state === 'disconnected')
    await own.kill()
    await away
    expect(await rejectionOf(board.post('flow', {}))).toBeInstanceOf(NotConnected)
    const back = nextEvent(board, 'state', ({ state }) => state === 'connected')
    await own.restart()
    await back
    expect(await namesOn(board)).toEqual([])
  })

  variant(
    'has room for the session and none for those who list the board: they list it when there is room again',
    async () => {
      await using place = await sharedPlaceOn(server.uri)
      await using board = await place.open()
      await using other = await place.open()
      await place.query('ALTER FUNCTION @.claimed(integer) RENAME TO claimed_there')
      await place.query('CREATE SEQUENCE @.refused')
      await place.query(`
CREATE FUNCTION @.claimed(p_board integer) RETURNS json LANGUAGE plpgsql AS $function$
BEGIN
  PERFORM nextval('@.refused');
  RAISE EXCEPTION 'sorry, too many clients already' USING ERRCODE = '53300';
END $function$`)
      const back = nextSession(board)
      await place.expire(board)
      await back
      const refused = async () => (await place.query('SELECT is_called FROM @.refused'))[0]?.['is_called'] === true
      while (!(await refused())) await refresh(other)
      await place.query('DROP FUNCTION @.claimed(integer)')
      await place.query('ALTER FUNCTION @.claimed_there(integer) RENAME TO claimed')
      await other.post('flow', {}, { name: 'job' })
      const [claim] = await board.claimNext()
      expect(claim.job.name).toBe('job')
      await claim.consume()
    },
  )

  usual('has no room for who shows a participant anew: it is shown when there is', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using board = await place.open()
    await using other = await place.open()
    await board.registerEntity({ kind: 'conductor', name: 'one', metadata: {} })
    await place.query('CREATE SEQUENCE @.refused')
    await place.query(`
CREATE FUNCTION @.refuse() RETURNS trigger LANGUAGE plpgsql AS $function$
BEGIN
  IF new.kind = 'probe' THEN RETURN new; END IF;
  PERFORM nextval('@.refused');
  RAISE EXCEPTION 'sorry, too many clients already' USING ERRCODE = '53300';
END $function$`)
    await place.query('CREATE TRIGGER refuse BEFORE INSERT ON @.entities FOR EACH ROW EXECUTE FUNCTION @.refuse()')
    const back = nextSession(board)
    await place.expire(board)
    await back
    const refused = async () => (await place.query('SELECT is_called FROM @.refused'))[0]?.['is_called'] === true
    while (!(await refused())) await refresh(other)
    expect(await other.entities('conductor')).toEqual([])
    await place.query('DROP TRIGGER refuse ON @.entities')
    while ((await other.entities('conductor')).length === 0) await refresh(other)
    expect(await other.entities('conductor')).toMatchObject([{ name: 'one' }])
  })
})
