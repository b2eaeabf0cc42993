/** A driver whose writes go wrong where a test wants them to. */
import { createDeferred } from '../../../../src/core/async/abort.ts'
import { ConnectionLoss, type ZooKeeperDriver } from '../../../../src/zookeeper/index.ts'

const WRITES = ['create', 'delete', 'setData'] as const
type Write = (typeof WRITES)[number]

/**
 * `dies`: it is not sent, and nothing is from then on. `request-lost`: it is not sent, and nobody can tell. `answer-lost`: it
 * is done, and nobody can tell. `session-lost`: the same, and the session ends, for good. `held`: it waits until it is let go.
 */
export type Fault = 'dies' | 'request-lost' | 'answer-lost' | 'session-lost' | 'held'

export interface FaultyDriver {
  readonly wrap: (driver: ZooKeeperDriver) => ZooKeeperDriver
  /** From now on the write of this number goes wrong, counted from 1. */
  arm(fault: Fault, at: number): void
  /** How many writes were asked for since it was armed. */
  readonly writes: number
  /** Resolves when it has gone wrong. */
  readonly struck: Promise<void>
  /** What was held goes on. */
  letGo(): void
  close(): Promise<void>
}

export function faultyDriver(): FaultyDriver {
  let driver: ZooKeeperDriver | undefined
  let fault: Fault | undefined
  let at = 0
  let writes = 0
  let dead = false
  const struck = createDeferred()
  const held = createDeferred()
  const never = new Promise<never>(() => undefined)

  const there = (): ZooKeeperDriver => {
    if (!driver) throw new Error('there is no driver yet')
    return driver
  }
  const lost = (path: string) => new ConnectionLoss(`${path}: the answer was lost, as the test wanted it`, { path })

  const through = async (write: Write, args: readonly unknown[]): Promise<unknown> => {
    const real: (...given: unknown[]) => Promise<unknown> = there()[write].bind(there()) as never
    if (dead) return never
    // That an owner shows itself goes on beside its claims, whenever there is time: it is a step of no operation.
    if (fault === undefined || String(args[0]).includes('/.entities')) return real(...args)
    writes += 1
    if (writes !== at) return real(...args)
    const path = String(args[0])
    switch (fault) {
      case 'dies':
        dead = true
        struck.resolve()
        return never
      case 'held':
        struck.resolve()
        await held.promise
        return real(...args)
      case 'request-lost':
        struck.resolve()
        throw lost(path)
      case 'answer-lost':
        await real(...args).catch(() => undefined)
        struck.resolve()
        throw lost(path)
      case 'session-lost':
        await real(...args).catch(() => undefined)
        await there().close()
        struck.resolve()
        throw lost(path)
    }
  }

  return {
    wrap: (wrapped) => {
      driver = wrapped
      return new Proxy(wrapped, {
        get: (target, name) => {
          const write = WRITES.find((each) => each === name)
          if (write) return (...args: unknown[]) => through(write, args)
          const value: unknown = Reflect.get(target, name, target)
          return typeof value === 'function' ? value.bind(target) : value
        },
      })
    },
    arm: (wanted, number) => {
      fault = wanted
      at = number
      writes = 0
    },
    get writes() {
      return writes
    },
    struck: struck.promise,
    letGo: held.resolve,
    close: () => there().close(),
  }
}
