/**
 * Takes tokens of limits outside of claims: a transaction that checks the gate, for the revision of the limits, and sets the arrival time of
 * the key at the version that was read. Transactions of one process that take tokens of the same key set it once, as claims do.
 */
import { LimitReached } from '../../../core/errors.ts'
import { BadVersion, NoNode, type ZooKeeperError } from '../../../zookeeper/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import type { TokenRate, TokenRequest, TokensTaken } from '../../model/limits.ts'
import type { TransactionCommitter } from './commit/committer.ts'
import { gateCheckOp, type TransactionStep } from './commit/transactions.ts'
import type { LimitNodes, LimitReservation } from './limit-nodes.ts'
import type { BoardGate, GateSnapshot } from './store/gate.ts'
import type { Layout } from './store/layout.ts'
import { translateErrors } from './store/reader.ts'

export interface TokenWriterOptions {
  readonly layout: Layout
  readonly committer: TransactionCommitter
  readonly gate: BoardGate
  readonly limits: LimitNodes
}

export class TokenWriter {
  readonly #options: TokenWriterOptions

  constructor(options: TokenWriterOptions) {
    this.#options = options
  }

  /** Takes tokens for the first calls whose tokens are free. A paused board changes nothing. @throws LimitsChanged */
  async take({ key, revision, rate, costs }: TokenRequest): Promise<TokensTaken> {
    const { gate, limits } = this.#options
    const what = `taking tokens of limit ${key}`
    let seen = gate.seen ?? (await translateErrors(what, () => gate.read()))
    while (true) {
      // The limits may have been read after the gate.
      if (seen.limits !== revision) seen = await translateErrors(what, () => gate.read())
      if (seen.limits !== revision) throw refusalError(what, { why: 'limits' })
      const at = { gate: seen.version, costs }
      const free = rate ? await translateErrors(what, () => limits.countFree(key, { ...at, rate })) : { taken: 0 }
      if (costs.length > 0 && free.taken === 0) return free
      const outcome = await this.#take(what, { key, seen, rate, costs: costs.slice(0, free.taken) })
      if (outcome === 'taken') return free
      if (outcome === 'gate') seen = await translateErrors(what, () => gate.read())
    }
  }

  /** Takes the tokens of all of these calls, or none: then the key or the gate was changed meanwhile. */
  async #take(
    what: string,
    {
      key,
      seen,
      rate,
      costs,
    }: Pick<TokenRequest, 'key' | 'costs'> & {
      readonly seen: GateSnapshot
      readonly rate: TokenRate | undefined
    },
  ): Promise<'taken' | 'key' | 'gate'> {
    const { limits } = this.#options
    const cost = costs.reduce((sum, each) => sum + each, 0)
    let reserved: LimitReservation | undefined
    try {
      if (rate && cost > 0)
        reserved = await translateErrors(what, () =>
          limits.reserve(what, what, {
            gate: seen.version,
            wants: [{ key, rate: { ...rate, cost } }],
          }),
        )
      await this.#commit(what, seen, reserved)
      reserved?.granted()
      return 'taken'
    } catch (error) {
      // Claims of this process have reserved the tokens since they were counted.
      if (error instanceof LimitReached) return 'key'
      const isKeyTaken = error instanceof ChangedSignal && error.what === 'key'
      reserved?.refused({ stale: isKeyTaken })
      if (error instanceof ChangedSignal) return error.what
      throw error
    }
  }

  #commit(what: string, seen: GateSnapshot, reserved: LimitReservation | undefined): Promise<void> {
    return this.#options.committer.commit<void>({
      ...{ what, steps: [], touches: [] },
      guard: gateCheckOp(this.#options.layout, seen.version),
      ...(reserved ? { additions: reserved.additions } : {}),
      onCommitted: () => undefined,
      onRecovered: () => undefined,
      toRejection: (error, step) => (isChanged(error) ? toChanged(error, step) : error),
    })
  }
}

/** Internal signal: the key or the gate was changed meanwhile, and nothing was done. */
class ChangedSignal extends Error {
  readonly what: 'key' | 'gate'

  constructor(what: 'key' | 'gate') {
    super(`the ${what} was changed`)
    this.what = what
  }
}

function isChanged(error: ZooKeeperError): boolean {
  return error instanceof BadVersion || error instanceof NoNode
}

function toChanged(error: ZooKeeperError, step: TransactionStep | 'guard' | undefined): Error {
  if (step === 'guard') return new ChangedSignal('gate')
  return step?.subject === 'limit' ? new ChangedSignal('key') : error
}
