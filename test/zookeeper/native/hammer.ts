/**
 * A process of its own: clients over the `zookeeper` package under load, through proxies that break their connections. Ends
 * when every client has lost so many, and prints what became of everything as one line of JSON.
 *
 * Arguments: the folder that has the package; the server; the proxies, with commas between; losses per client; a path.
 */
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createDeferred, type Deferred } from '../../../src/core/async/abort.ts'
import { NativeZooKeeper, ZooKeeper, ZooKeeperError } from '../../../src/zookeeper/index.ts'
import { isAnswered } from '../../support/answered-socket.ts'

/** The event loop is held for so long in each period, as by work of its own: then requests meet broken connections. */
const HOLD_MS = 12
const HOLD_PERIOD_MS = 20
/** Between the requests of each loop of a client. */
const PAUSES_MS = [0, 2, 5]
const WRITES = 10

export interface LoadResult {
  readonly losses: number
  /** Sessions that followed the first one of a client, and changes of state to `lost`. */
  readonly furtherSessions: number
  readonly lostSessions: number
  /** Znodes whose creation was acknowledged, and how many of them are not there. */
  readonly acknowledged: number
  readonly missing: number
  /** Znodes whose creation was reported as not sent, and are there all the same. */
  readonly unexpected: number
  /** What each client saw last, by watches, of a znode that was written meanwhile; and its last value. */
  readonly seen: readonly string[]
  readonly written: string
  /** Sockets that this process opened right after a loss, and how many of them got an answer. */
  readonly opened: number
  readonly answered: number
}

const [folder = '', hosts = '', proxies = '', losses = '0', path = ''] = process.argv.slice(2)
const loaded: unknown = createRequire(join(folder, 'package.json'))('zookeeper')
const verifyTree = new ZooKeeper({ hosts })
const counts = { losses: 0, furtherSessions: 0, lostSessions: 0 }
const acknowledged: string[] = []
const notSent: string[] = []
const sockets: Promise<boolean>[] = []
const waiting: { readonly losses: number; readonly reached: Deferred<void> }[] = []

function lossesReach(least: number): Promise<void> {
  const reached = createDeferred()
  if (counts.losses >= least) reached.resolve()
  else waiting.push({ losses: least, reached })
  return reached.promise
}

function countLoss(): void {
  counts.losses++
  for (const { losses: least, reached } of waiting) if (counts.losses >= least) reached.resolve()
  sockets.push(isAnswered(Number(hosts.split(':')[1])))
}

/** Resolves with what its watches have seen, when it has lost its connection often enough. */
async function loadClient(proxy: string, name: string): Promise<string> {
  const client = new NativeZooKeeper({ hosts: proxy, package: loaded })
  const enough = new AbortController()
  let mine = 0
  client.on('session', ({ previous }) => previous !== undefined && counts.furtherSessions++)
  client.on('state', ({ state }) => {
    if (state === 'lost') counts.lostSessions++
    if (state !== 'suspended') return
    if (++mine === Number(losses)) enough.abort()
    countLoss()
  })
  await client.connect()
  const watching = lastSeen(client)
  const loops = PAUSES_MS.map(async (pause, loop) => {
    for (let number = 0; !enough.signal.aborted; number++) {
      await create(client, `${name}-${loop}-${number}`)
      await sleep(pause)
    }
  })
  await Promise.all(loops)
  const seen = await watching
  await client.close()
  return seen
}

async function create(client: NativeZooKeeper, name: string): Promise<void> {
  try {
    await client.create(`${path}/${name}`)
    acknowledged.push(name)
  } catch (error) {
    if (error instanceof ZooKeeperError && error.outcome === 'not-sent') notSent.push(name)
  }
}

/** Reads again whenever its watch reports a change, and only then. */
async function lastSeen(client: NativeZooKeeper): Promise<string> {
  for (;;) {
    const changed = createDeferred()
    const read = await client.getData(`${path}/watched`, { watch: () => changed.resolve() }).catch(() => undefined)
    if (!read) continue
    const value = String(read.data)
    if (value === String(WRITES)) return value
    await changed.promise
  }
}

await verifyTree.connect()
await verifyTree.create(path)
await verifyTree.create(`${path}/watched`, Buffer.from('0'))
const holding = setInterval(() => {
  const end = performance.now() + HOLD_MS
  while (performance.now() < end);
}, HOLD_PERIOD_MS)
const clients = proxies.split(',').map((proxy, number) => loadClient(proxy, `client${number}`))
for (let write = 1; write <= WRITES; write++) {
  await lossesReach((Number(losses) * clients.length * write) / (WRITES + 1))
  await verifyTree.setData(`${path}/watched`, Buffer.from(String(write)))
}
const seen = await Promise.all(clients)
clearInterval(holding)

const { names } = await verifyTree.getChildren(path)
const there = new Set(names)
const answers = await Promise.all(sockets)
const result: LoadResult = {
  ...counts,
  acknowledged: acknowledged.length,
  missing: acknowledged.filter((name) => !there.has(name)).length,
  unexpected: notSent.filter((name) => there.has(name)).length,
  seen,
  written: String(WRITES),
  opened: answers.length,
  answered: answers.filter((answered) => answered).length,
}
console.log(JSON.stringify(result))
await verifyTree.close()
process.exit(0)
