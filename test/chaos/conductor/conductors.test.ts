/**
 * Conductors whose processes are killed and stopped, whose connections are cut, whose server is killed and comes back, while
 * they run jobs that share and exclude each other. A ledger outside, which knows nothing of boards, notes what happened.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createDeferred } from '../../../src/core/async/abort.ts'
import { type Job, openBoard } from '../../../src/index.ts'
import { ZooKeeper } from '../../../src/zookeeper/index.ts'
import { count } from '../../support/counts.ts'
import { type NodeProcess, startNode } from '../../support/node-process.ts'
import { startProxy, type TcpProxy } from '../../support/proxy.ts'
import { type Random, randomly } from '../../support/random.ts'
import { startZooKeeper, type ZooKeeperServer } from '../../support/zookeeper.ts'
import { Ledger } from './ledger.ts'

const JOBS = count({ test: 200, long: 20_000 })
const CONDUCTORS = count({ test: 3, long: 4 })
const ACCOUNTS = 40
const PATH = '/chaos'
/** Milliseconds: twenty seconds on a machine that does nothing else. */
const TIMEOUT = count({ test: 180_000, long: 1_800_000 })
const CHILD = new URL('./conductor-child.ts', import.meta.url)

type Fault = 'kill' | 'stop' | 'partition' | 'restart the server'
/** Each once, and then at random. */
const FAULTS: readonly Fault[] = ['kill', 'stop', 'partition', 'restart the server']

interface Member {
  readonly name: string
  readonly proxy: TcpProxy
  readonly process: NodeProcess
}

test('every job is done exactly once, no run overlaps with one that it excludes, the board is empty', {
  timeout: TIMEOUT,
}, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'jobboard-chaos-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await using server = await startZooKeeper({ tickTime: 500 })
  await using ledger = await Ledger.start()
  await using board = await openBoard(`zookeeper://${server.hosts}${PATH}?tick=500ms`)
  await using setup = new Setup({ server, persistence: `directory:${join(folder, 'logbooks')}`, ledger: ledger.url })
  await setup.open()
  const posting: Promise<Job>[] = []
  for (let n = 0; n < JOBS; n += 1) posting.push(board.post('visit', { n, ...wants(n) }, { resources: wants(n) }))
  const posted = await Promise.all(posting)
  const done = ledger.reached(JOBS)
  const random = randomly()
  await setup.suffer({ until: done, random })
  console.log(`conductors: seed ${random.seed}, ${JSON.stringify(setup.faults)}, ${JSON.stringify(ledger.counts)}`)
  // The last fault can hit the owner of a job that the ledger has as done, before it settles: another one takes it over.
  await Promise.all(posted.map((job) => job.wait()))
  await setup.drain()
  for await (const job of board.jobs({ ensureFresh: true })) throw new Error(`${job} is on the board still`)
  for await (const trashed of board.trashed()) throw new Error(`${trashed.uuid} is in the trash: ${trashed.reason}`)
  expect(ledger.wrong).toEqual([])
  expect(ledger.outOfOrder).toEqual([])
  expect(ledger.done).toBe(JOBS)
})

/** One account alone, as do all of it; every tenth all accounts' ledger alone, which the others share. */
function wants(n: number): { exclusive: string[]; shared: string[] } {
  if (n % 50 === 49) return { exclusive: ['book'], shared: [] }
  return { exclusive: [`account ${n % ACCOUNTS}`], shared: ['book'] }
}

class Setup implements AsyncDisposable {
  readonly faults: Record<Fault, number> = { kill: 0, stop: 0, partition: 0, 'restart the server': 0 }
  readonly #at: { server: ZooKeeperServer; persistence: string; ledger: string }
  readonly #observer: ZooKeeper
  readonly #gone = new Map<string, () => void>()
  #members: Member[] = []
  #started = 0

  constructor(at: { server: ZooKeeperServer; persistence: string; ledger: string }) {
    this.#at = at
    this.#observer = new ZooKeeper({ hosts: at.server.hosts, tick: '500ms' })
  }

  async open(): Promise<void> {
    await this.#observer.connect()
    const look = () => void this.#look()
    await this.#observer.watch(PATH, { mode: 'recursive' }, { events: look, gap: look })
    this.#members = await Promise.all(Array.from({ length: CONDUCTORS }, () => this.#start()))
  }

  /** One fault after the other, each until it has been noticed by the others, until what is waited for is there. */
  async suffer({ until, random }: { until: Promise<void>; random: Random }): Promise<void> {
    let over = false
    const end = until.then(() => {
      over = true
    })
    for (let number = 0; !over || number < FAULTS.length; number += 1) {
      const fault = FAULTS[number] ?? random.pick(FAULTS)
      await this.#commit(fault, random.pick(this.#members))
      this.faults[fault] += 1
    }
    await end
  }

  /** As an operator would stop them. */
  async drain(): Promise<void> {
    for (const { process } of this.#members) process.signal('SIGTERM')
    const codes = await Promise.all(this.#members.map(({ process }) => process.ended))
    expect(codes).toEqual(codes.map(() => 0))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { process } of this.#members) process.signal('SIGCONT')
    await Promise.all(this.#members.map(({ process }) => process[Symbol.asyncDispose]()))
    await Promise.all(this.#members.map(({ proxy }) => proxy.close()))
    await this.#observer.close()
  }

  async #start(): Promise<Member> {
    const { server, persistence, ledger } = this.#at
    this.#started += 1
    const name = `conductor ${this.#started}`
    const proxy = await startProxy({ port: server.port })
    const uri = `zookeeper://${proxy.hosts}${PATH}?sessionTimeout=2s&tick=500ms`
    const process = await startNode(CHILD, [uri, persistence, ledger, name])
    await process.says('ready')
    return { name, proxy, process }
  }

  async #commit(fault: Fault, victim: Member): Promise<void> {
    switch (fault) {
      case 'kill':
        victim.process.signal('SIGKILL')
        await victim.process.ended
        await victim.proxy.close()
        this.#members = [...this.#members.filter((member) => member !== victim), await this.#start()]
        return
      case 'stop':
        victim.process.signal('SIGSTOP')
        await this.#sessionOver(victim)
        victim.process.signal('SIGCONT')
        return
      case 'partition':
        victim.proxy.mode = 'blackhole'
        await this.#sessionOver(victim)
        victim.proxy.mode = 'pass'
        victim.proxy.resetAll()
        return
      case 'restart the server':
        await this.#at.server.restart()
    }
  }

  /** What shows the victim on the board goes with its session. */
  async #sessionOver({ name }: Member): Promise<void> {
    const gone = createDeferred()
    this.#gone.set(name, gone.resolve)
    await this.#look()
    await gone.promise
    this.#gone.delete(name)
  }

  async #look(): Promise<void> {
    for (const [name, tell] of this.#gone) {
      const path = `${PATH}/.entities/conductor/${encodeURIComponent(name)}`
      const there = await this.#observer.exists(path).catch(() => 'nobody knows')
      if (there === undefined || there === null) tell()
    }
  }
}
