/**
 * Proxies between the servers of an ensemble, one for each pair of servers, direction and purpose: a follower connects to
 * its leader's quorum port, and for elections the server with the higher number connects to the other one.
 */
import type { ServerPorts } from './ensemble.ts'
import { type ProxyMode, startProxy, type TcpProxy } from './proxy.ts'
import type { Manner } from './proxy-lane.ts'

interface Path {
  readonly from: number
  readonly to: number
}

interface Link extends Path {
  readonly quorum: TcpProxy
  readonly election: TcpProxy
}

type Numbered = { readonly id: number }

export class Links {
  readonly #links: Link[] = []

  async open(ports: ReadonlyMap<number, ServerPorts>): Promise<void> {
    for (const [from, own] of ports) {
      for (const [to, others] of ports) {
        if (from === to) continue
        const quorum = await startProxy({ port: others.quorum })
        // A server says in its first words where it can be called back, and is: that must be a proxy as well.
        const callBack = (first: Buffer) => this.#rerouted(first, { at: own.election, from: to, to: from })
        const election = await startProxy({ port: others.election, rewrite: callBack })
        this.#links.push({ from, to, quorum, election })
      }
    }
  }

  /** The ports at which one server finds the other; undefined without proxies. */
  seen({ from, to }: Path): { quorum: number; election: number } | undefined {
    const link = this.#find({ from, to })
    return link && { quorum: link.quorum.port, election: link.election.port }
  }

  /** What gets through between two servers, whoever of them connected; `drop-requests` is what `from` says. */
  set(mode: ProxyMode, between: { readonly from: Numbered; readonly to: Numbered }): void {
    const [from, to] = [between.from.id, between.to.id]
    for (const link of this.#links) {
      if (link.from === from && link.to === to) setMode(link, mode)
      if (link.from === to && link.to === from) setMode(link, REVERSED[mode])
    }
  }

  /** How what one server sends to a leader that it follows, and the leader to it, arrives. */
  slow(manner: Manner, server: Numbered): void {
    for (const link of this.#links) if (link.from === server.id) link.quorum.manner = manner
  }

  /** Cuts a server off from all others. */
  isolate(server: Numbered): void {
    for (const link of this.#links) {
      if (link.from === server.id || link.to === server.id) setMode(link, 'blackhole')
    }
  }

  /** Cuts a leader off from all others, who notice it at once; it does not. */
  depose(leader: Numbered): void {
    this.isolate(leader)
    for (const link of this.#links) if (link.to === leader.id) link.quorum.resetClients()
  }

  /** Everything gets through again. What was connected while it did not is reset: parts of it are missing. */
  heal(): void {
    for (const link of this.#links) {
      for (const proxy of [link.quorum, link.election]) {
        if (proxy.mode !== 'pass') proxy.resetAll()
        proxy.mode = 'pass'
        proxy.manner = {}
      }
    }
  }

  async close(): Promise<void> {
    for (const { quorum, election } of this.#links) await Promise.all([quorum.close(), election.close()])
  }

  #find({ from, to }: Path): Link | undefined {
    return this.#links.find((link) => link.from === from && link.to === to)
  }

  #rerouted(first: Buffer, call: Path & { readonly at: number }): Buffer {
    const proxied = this.#find(call)?.election.port
    if (proxied === undefined) return first
    // The text has its length before it, and so has the message: both ports have five digits.
    return Buffer.from(first.toString('latin1').replace(`:${call.at}`, `:${proxied}`), 'latin1')
  }
}

const REVERSED: Readonly<Record<ProxyMode, ProxyMode>> = {
  pass: 'pass',
  refuse: 'refuse',
  blackhole: 'blackhole',
  'drop-requests': 'swallow-replies',
  'swallow-replies': 'drop-requests',
}

function setMode({ quorum, election }: Link, mode: ProxyMode): void {
  quorum.mode = mode
  election.mode = mode
}
