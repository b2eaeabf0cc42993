/** Limits: their revision, what is taken of them, and tokens for calls outside of claims. */

import { LimitReached } from '../../../core/errors.ts'
import type { BackendLimits } from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import type { LimitUse, TokenRate, TokenRequest, TokensTaken } from '../../model/limits.ts'
import { AGAIN, type Again, untilDone, withParts } from './commit/parts.ts'
import type { Transaction } from './commit/transaction.ts'
import type { BoardHandle } from './parts/board-handle.ts'
import type { LimitReservation } from './parts/limit-reservations.ts'
import type { GateSnapshot } from './store/gate.ts'
import { readLimitUse } from './store/limit-slots.ts'
import { translateErrors } from './store/reader.ts'

export class ZooKeeperLimits implements BackendLimits {
  readonly #board: BoardHandle

  constructor(board: BoardHandle) {
    this.#board = board
  }

  /** Returns the revision of the limits. The records are read after the gate, over the same connection: they are not older. */
  async revision(): Promise<number> {
    const { gate } = this.#board.components
    return (await translateErrors('reading the gate', () => gate.read())).limits
  }

  async use(keys?: readonly string[]): Promise<readonly LimitUse[]> {
    return translateErrors('reading the use of limits', () => readLimitUse(this.#board, keys))
  }

  /** Takes tokens for the first calls whose tokens are free. A paused board changes nothing. */
  async takeTokens({ key, revision, rate, costs }: TokenRequest): Promise<TokensTaken> {
    const { gate, limits } = this.#board.components
    const what = `taking tokens of limit ${key}`
    const readGate = () => translateErrors(what, () => gate.read())
    let seen = gate.seen ?? (await readGate())
    let isGateOld = false
    return untilDone<TokensTaken>(async () => {
      // The limits may have been read after the gate.
      if (isGateOld || seen.limits !== revision) seen = await readGate()
      isGateOld = false
      if (seen.limits !== revision) throw refusalError(what, { why: 'limits' })
      const at = { gate: seen.version, costs }
      const free = rate ? await translateErrors(what, () => limits.countFree(key, { ...at, rate })) : { taken: 0 }
      if (costs.length > 0 && free.taken === 0) return free
      const cost = costs.slice(0, free.taken).reduce((sum, each) => sum + each, 0)
      const onGateChanged = () => {
        isGateOld = true
        return AGAIN
      }
      const taken = await this.#take(what, { key, seen, rate: rate && { ...rate, cost }, onGateChanged })
      return taken === AGAIN ? AGAIN : free
    })
  }

  /** Takes so many tokens, or none: then the key or the gate was changed meanwhile. */
  async #take(
    what: string,
    wanted: {
      readonly key: string
      readonly seen: GateSnapshot
      readonly rate: (TokenRate & { readonly cost: number }) | undefined
      readonly onGateChanged: () => Again
    },
  ): Promise<Again | undefined> {
    const { gates, limits } = this.#board.components
    const { key, seen, rate, onGateChanged } = wanted
    let reserved: LimitReservation | undefined
    try {
      if (rate && rate.cost > 0)
        reserved = await translateErrors(what, () =>
          limits.reserve(what, what, { gate: seen.version, wants: [{ key, rate }] }),
        )
    } catch (error) {
      // Claims of this process have reserved the tokens since they were counted.
      if (error instanceof LimitReached) return AGAIN
      throw error
    }
    const transaction: Transaction<Again | undefined> = {
      ...{ what, steps: [], touches: [] },
      onCommitted: () => undefined,
      onRecovered: () => undefined,
      onRefused: (error) => error,
    }
    try {
      const guard = gates.guardPart<Again | undefined>(seen.version, { answer: onGateChanged })
      const answer = await this.#board.committer.commit(withParts(transaction, [guard, reserved?.part]))
      if (answer === AGAIN) reserved?.refused()
      else reserved?.granted()
      return answer
    } catch (error) {
      reserved?.refused()
      throw error
    }
  }
}
