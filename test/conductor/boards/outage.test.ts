/** A conductor on three boards of three kinds, with real servers: one of them is killed, and comes back. */
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished } from 'vitest'
import { createDeferred } from '../../../src/core/async/abort.ts'
import { type JobBoard, openBoard } from '../../../src/index.ts'
import { namespace } from '../../support/namespace.ts'
import { type PostgresServer, startPostgres } from '../../support/postgres.ts'
import { type RedisServer, startRedis } from '../../support/redis.ts'
import { startZooKeeper, type ZooKeeperServer } from '../../support/zookeeper.ts'
import { rowsOf, usual as test, variant } from '../../variant.ts'
import { singleTaskFlow, startTestConductor } from '../conducting.ts'

const KINDS = ['ZooKeeper', 'Postgres', 'Redis'] as const
type Kind = (typeof KINDS)[number]

const LIMIT = { timeout: 90_000 }

let servers: { readonly ZooKeeper: ZooKeeperServer; readonly Postgres: PostgresServer; readonly Redis: RedisServer }

beforeAll(async () => {
  // Redis would lose its jobs with its process.
  const durable = { appendonly: 'yes', appendfsync: 'always' }
  const [ZooKeeper, Postgres, Redis] = await Promise.all([
    startZooKeeper(),
    startPostgres({ config: { fsync: 'off' } }),
    startRedis({ config: durable }),
  ])
  servers = { ZooKeeper, Postgres, Redis }
}, 120_000)
afterAll(async () => {
  await Promise.all(Object.values(servers).map((server) => server.stop()))
})

let killed: Kind | undefined

async function kill(kind: Kind): Promise<void> {
  killed = kind
  await servers[kind].kill()
}

async function restart(kind: Kind): Promise<void> {
  await servers[kind].restart()
  killed = undefined
}

// A test that fails leaves its server to the next.
afterEach(async () => {
  if (killed) await restart(killed)
}, 60_000)

/** The URIs of three new boards. */
function uris(): Readonly<Record<Kind, string>> {
  const name = namespace('three').slice(1)
  return {
    ZooKeeper: `zookeeper://${servers.ZooKeeper.hosts}/${name}?sessionTimeout=4s`,
    Postgres: `${servers.Postgres.uri}?board=${name}&sessionTimeout=5s`,
    Redis: `${servers.Redis.uri}/0?prefix=${name}&ttl=5s`,
  }
}

/** A process that posts; it may have to wait until its board is connected again. */
async function poster(uri: string): Promise<JobBoard> {
  const board = await openBoard(uri, { who: 'poster' })
  onTestFinished(() => board.close())
  return board
}

async function whenConnected(board: JobBoard): Promise<void> {
  const connected = createDeferred()
  const off = board.on('state', ({ state }) => state === 'connected' && connected.resolve())
  if (!board.connected) await connected.promise
  off()
}

async function setup() {
  const lines: { msg: string; board?: string }[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const gates = new Map<number, { begun: PromiseWithResolvers; go: PromiseWithResolvers }>()
  const gate = (n: number) => {
    const made = { begun: createDeferred(), go: createDeferred() }
    gates.set(n, made)
    return made
  }
  const flow = singleTaskFlow('work', async ({ n }) => {
    const held = gates.get(n)
    held?.begun.resolve()
    await held?.go.promise
  })
  const start = (places: readonly string[]) =>
    startTestConductor({
      ...{ boards: places, persistence: 'memory:', flows: [flow], concurrency: 2, log, health: { port: 0 } },
      ...{ drainTimeout: '1s', abortTimeout: '1s' },
    })
  const said = (part: string) => lines.filter(({ msg, board }) => msg.startsWith(part) && board !== undefined)
  return { flow, gate, start, said }
}

type PromiseWithResolvers = ReturnType<typeof createDeferred<void>>

variant('a server that does not answer holds up no job of the other boards', LIMIT, async () => {
  const places = uris()
  const { flow, start } = await setup()
  const boards = {
    ZooKeeper: await poster(places.ZooKeeper),
    Postgres: await poster(places.Postgres),
    Redis: await poster(places.Redis),
  }
  await start([places.Redis, places.ZooKeeper, places.Postgres])
  expect(await (await boards.Redis.post(flow, { n: 0 })).wait()).toBe('COMPLETE')
  await servers.Redis.pause()
  try {
    for (const kind of ['ZooKeeper', 'Postgres'] as const)
      for (let n = 1; n < 5; n += 1) expect(await (await boards[kind].post(flow, { n })).wait()).toBe('COMPLETE')
  } finally {
    await servers.Redis.resume()
  }
  await whenConnected(boards.Redis)
  expect(await (await boards.Redis.post(flow, { n: 5 })).wait()).toBe('COMPLETE')
})

/** Each kind of server by itself: `npm test` kills one of them. */
const VICTIMS = rowsOf({ usual: KINDS.slice(0, 1), variants: KINDS.slice(1) })

describe.each(VICTIMS)('%s is killed', (victim) => {
  const others = KINDS.filter((kind) => kind !== victim)

  test('jobs of the other boards go on, those of its board follow when it is back', LIMIT, async () => {
    const places = uris()
    const { flow, gate, start, said } = await setup()
    const boards = {
      ZooKeeper: await poster(places.ZooKeeper),
      Postgres: await poster(places.Postgres),
      Redis: await poster(places.Redis),
    }
    // The board that is killed comes first, so that the others would wait for it.
    const conductor = await start([places[victim], ...others.map((kind) => places[kind])])
    for (const kind of KINDS) expect(await (await boards[kind].post(flow, { n: 0 })).wait()).toBe('COMPLETE')

    const { begun, go } = gate(1)
    const running = await boards[victim].post(flow, { n: 1 })
    await begun.promise
    await kill(victim)
    for (const kind of others)
      for (let n = 2; n < 6; n += 1) expect(await (await boards[kind].post(flow, { n })).wait()).toBe('COMPLETE')
    await expect.poll(() => said('a board is away').length, { timeout: 30_000 }).toBe(1)
    const { status } = await fetch(`${conductor.healthUrl}/readyz`)
    expect(status).toBe(200)
    expect(conductor.healthy).toBe(true)

    await restart(victim)
    await whenConnected(boards[victim])
    const after = await boards[victim].post(flow, { n: 6 })
    go.resolve()
    expect(await after.wait()).toBe('COMPLETE')
    // It was finished by its owner, or is run again.
    expect(await running.wait()).toBe('COMPLETE')
    for (const kind of others) expect(await (await boards[kind].post(flow, { n: 7 })).wait()).toBe('COMPLETE')
    await expect.poll(() => said('a board is back').length).toBe(said('a board is away').length)
  })

  test('before the start: its board is served from when it is there', LIMIT, async () => {
    const places = uris()
    const { flow, start, said } = await setup()
    await kill(victim)
    const conductor = await start([places[victim], ...others.map((kind) => places[kind])])
    for (const kind of others) {
      const board = await poster(places[kind])
      expect(await (await board.post(flow, { n: 0 })).wait()).toBe('COMPLETE')
    }
    expect(said('a board cannot be reached')).toHaveLength(1)
    const health = async () =>
      ((await (await fetch(`${conductor.healthUrl}/healthz`)).json()) as { boards: { state: string }[] }).boards
    expect(await health()).toMatchObject([{ state: 'not opened' }, { state: 'connected' }, { state: 'connected' }])

    await restart(victim)
    const board = await poster(places[victim])
    expect(await (await board.post(flow, { n: 1 })).wait()).toBe('COMPLETE')
    expect(await health()).toMatchObject([{ state: 'connected' }, { state: 'connected' }, { state: 'connected' }])
    expect(said('a board is there')).toHaveLength(1)
    expect(await board.entities('conductor')).toHaveLength(1)
    await conductor.stop()
    expect(await board.entities('conductor')).toEqual([])
  })
})
