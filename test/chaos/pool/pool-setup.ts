/** Conductors with pools, each behind a proxy of its own, and the faults that hit them. */
import { readFileSync } from 'node:fs'
import { expect } from 'vitest'
import { createDeferred } from '../../../src/core/async/abort.ts'
import { ZooKeeper } from '../../../src/zookeeper/index.ts'
import { sendSignal, whenDead } from '../../pool/pools.ts'
import { type NodeProcess, startNode } from '../../support/node-process.ts'
import { startProxy, type TcpProxy } from '../../support/proxy.ts'
import type { Random } from '../../support/random.ts'
import type { ZooKeeperServer } from '../../support/zookeeper.ts'
import { startOf } from './attempts.ts'

export const PATH = '/chaos-pool'
const PROCESS = new URL('./conductor-process.mjs', import.meta.url)
const MODULE = new URL('./flows.mjs', import.meta.url).href

export const FAULTS = [
  'kill a child',
  'stop a child',
  'stop a conductor',
  'kill a conductor',
  'partition',
  'end by a service manager',
] as const
export type Fault = (typeof FAULTS)[number]

interface Member {
  readonly name: string
  readonly proxy: TcpProxy
  readonly process: NodeProcess
}

export class PoolSetup implements AsyncDisposable {
  readonly faults: Partial<Record<Fault, number>> = {}
  /** The children that were killed by a fault, each with its process id and its start. */
  readonly killed = new Set<string>()
  /** The number of children that lived when the session of their stopped conductor was over. */
  aliveAtExpiry = 0
  readonly #at: { readonly server: ZooKeeperServer; readonly folder: string }
  readonly #observer: ZooKeeper
  /** What is waited for on the board: whether a conductor is shown there. */
  readonly #awaited = new Map<string, { readonly isShown: boolean; readonly resolve: () => void }>()
  #members: Member[] = []
  #started = 0

  constructor(at: { readonly server: ZooKeeperServer; readonly folder: string }) {
    this.#at = at
    this.#observer = new ZooKeeper({ hosts: at.server.hosts, tick: '500ms' })
  }

  async open(conductors: number): Promise<void> {
    await this.#observer.connect()
    const look = () => void this.#look()
    await this.#observer.watch(PATH, { mode: 'recursive' }, { events: look, gap: look })
    this.#members = await Promise.all(Array.from({ length: conductors }, () => this.#start()))
  }

  /** Lets each fault happen once, and then, up to `most` in all, others at random until what is waited for has happened. */
  async suffer(options: {
    until: Promise<unknown>
    random: Random
    faults: readonly Fault[]
    most: number
  }): Promise<void> {
    const { until, random, faults, most } = options
    let isOver = false
    const end = until.finally(() => {
      isOver = true
    })
    for (let number = 0; number < faults.length || (!isOver && number < most); number += 1) {
      const fault = faults[number] ?? random.pick(faults)
      await this.#commit(fault, random)
      this.faults[fault] = (this.faults[fault] ?? 0) + 1
    }
    await end
  }

  /** Ends all conductors as an operator would. */
  async drain(): Promise<void> {
    const children = this.#members.flatMap(({ process }) => childrenOf(process.pid))
    for (const { process } of this.#members) process.signal('SIGTERM')
    const codes = await Promise.all(this.#members.map(({ process }) => process.ended))
    expect(codes).toEqual(codes.map(() => 0))
    await whenDead(children)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { process } of this.#members) process.signal('SIGCONT')
    await Promise.all(this.#members.map(({ process }) => process[Symbol.asyncDispose]()))
    await Promise.all(this.#members.map(({ proxy }) => proxy.close()))
    await this.#observer.close()
  }

  async #start(): Promise<Member> {
    const { server, folder } = this.#at
    this.#started += 1
    const name = `conductor-${this.#started}`
    const proxy = await startProxy({ port: server.port })
    const uri = `zookeeper://${proxy.hosts}${PATH}?sessionTimeout=2s&tick=500ms`
    const process = await startNode(PROCESS, [uri, folder, name, MODULE])
    await process.says('ready')
    return { name, proxy, process }
  }

  async #replace(ended: Member): Promise<void> {
    await ended.proxy.close()
    this.#members = [...this.#members.filter((member) => member !== ended), await this.#start()]
  }

  async #commit(fault: Fault, random: Random): Promise<void> {
    const victim = random.pick(this.#members)
    const { process: conductor, proxy } = victim
    const children = childrenOf(conductor.pid)
    switch (fault) {
      case 'kill a child': {
        if (children.length === 0) return
        const child = random.pick(children)
        this.killed.add(`${child} ${startOf(child)}`)
        send(child, 'SIGKILL')
        return whenDead([child])
      }
      case 'stop a child': {
        if (children.length === 0) return
        const child = random.pick(children)
        send(child, 'SIGSTOP')
        // Requests show that time passes for its conductor, which has at least its heartbeats to send.
        for (let request = 0; request < 3; request += 1) await proxy.nextRequest()
        return send(child, 'SIGCONT')
      }
      case 'stop a conductor':
        await this.#hasSession(victim)
        conductor.signal('SIGSTOP')
        await this.#sessionOver(victim)
        // Idle children may live still; a working one would be found by the next attempt of its job.
        this.aliveAtExpiry += children.filter((child) => startOf(child) !== 'dead').length
        conductor.signal('SIGCONT')
        return
      case 'kill a conductor':
        conductor.signal('SIGKILL')
        await conductor.ended
        await whenDead(children)
        return this.#replace(victim)
      case 'partition':
        await this.#hasSession(victim)
        proxy.mode = 'blackhole'
        await this.#sessionOver(victim)
        proxy.mode = 'pass'
        proxy.resetAll()
        return
      case 'end by a service manager':
        for (const pid of children) send(pid, 'SIGTERM')
        conductor.signal('SIGTERM')
        expect(await conductor.ended).toBe(0)
        await whenDead(children)
        return this.#replace(victim)
    }
  }

  /** Resolves when the session of a conductor is over: what shows it on the board goes with it. */
  #sessionOver(member: Member): Promise<void> {
    return this.#whenShown(member, { isShown: false })
  }

  /** Resolves when a conductor is shown on the board: a busy server may have ended its session, too. */
  #hasSession(member: Member): Promise<void> {
    return this.#whenShown(member, { isShown: true })
  }

  async #whenShown({ name }: Member, { isShown }: { readonly isShown: boolean }): Promise<void> {
    const { promise, resolve } = createDeferred()
    this.#awaited.set(name, { isShown, resolve })
    await this.#look()
    await promise
    this.#awaited.delete(name)
  }

  async #look(): Promise<void> {
    for (const [name, { isShown, resolve }] of this.#awaited) {
      const path = `${PATH}/.entities/conductor/${encodeURIComponent(name)}`
      const found = await this.#observer.exists(path).catch(() => 'unknown' as const)
      if (found !== 'unknown' && (found !== undefined && found !== null) === isShown) resolve()
    }
  }
}

/** Returns the process ids of the children that a process has now. */
function childrenOf(pid: number): number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
    return text === '' ? [] : text.split(' ').map(Number)
  } catch {
    return []
  }
}

/** Sends a signal to a process that may have ended. */
function send(pid: number, signal: NodeJS.Signals): void {
  try {
    sendSignal(pid, signal)
  } catch {
    // It has ended meanwhile.
  }
}
