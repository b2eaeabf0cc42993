/**
 * Keeps fences growing when the server's transaction numbers start again: when a board was deleted and created again, when
 * servers lost their data, or when servers were restored from a backup.
 *
 * A fence is the **base** in the gate plus the zxid of the claim. The base only grows, and it is raised so that a fence is
 * approximately the server's clock in nanoseconds. The fences of a lost board were at most its clock, so a board that begins
 * later continues with larger ones.
 *
 * - **No claim uses an older base than the gate has.** A claim's transaction checks the version of the gate from which its
 *   base was read. So of two claims the one with the later zxid has the same base or a larger one, and its fence is larger.
 * - **Nanoseconds**, because a new leader adds 2^32 to the zxid: 4.3 s in nanoseconds, 71 minutes in microseconds. A fence
 *   that is hours ahead of the clock could not be reached again after a restore.
 * - **The base is examined by each session before its first claim**, and whenever the gate shows another base than was
 *   examined: servers that lose their data end every session. It is raised only if fences are more than a second behind
 *   the clock: each raise makes every board read its gate again, and many conductors may start at once. The cost: a
 *   backup from the last second before a raise, restored within that second, repeats numbers.
 *
 * A signed 64-bit number is large enough until the year 2262. A base that is years ahead of the clock was not written by a
 * board: it is refused, and so is a base that cannot be read. Neither is replaced, because a lower base would repeat fences.
 */
import { InvalidState } from '../../../../core/errors.ts'
import type { GateSnapshot } from './gate.ts'

/** The maximum lag of fences behind the server's clock when a session begins to claim. */
const MAX_FENCE_LAG_MS = 1_000
/** The maximum lead of fences over the server's clock: a clock that was wrong may have been corrected since. */
const MAX_AHEAD_MS = 10 * 365 * 86_400_000
const NANOSECONDS_PER_MS = 1_000_000n

export interface FenceBaseOptions {
  /** The gate's path, for errors. */
  readonly path: string
  /** Returns the time of the servers' clock, in milliseconds since 1970. */
  readonly now: () => number
  /**
   * Writes the gate with this base if it has not changed since it was read. Resolves to the current gate, whichever
   * client wrote it.
   */
  readonly raise: (seen: GateSnapshot, base: bigint) => Promise<GateSnapshot>
}

export class FenceBase {
  readonly #options: FenceBaseOptions
  #validated: { readonly session: bigint; readonly base: bigint } | undefined
  #raising: Promise<GateSnapshot> | undefined

  constructor(options: FenceBaseOptions) {
    this.#options = options
  }

  /**
   * Returns the gate once its base is valid for claims of this session. Sends no request if the base was examined
   * before.
   *
   * @param at.zxid the newest known transaction that the server has applied
   * @throws InvalidState for a base that cannot be read, or that no server's clock can have produced
   */
  async ensureValid(
    seen: GateSnapshot,
    at: { readonly session: bigint; readonly zxid: bigint },
  ): Promise<GateSnapshot> {
    const { path } = this.#options
    let gate = seen
    assertIntact(gate, path)
    while (!this.isExamined(gate, at.session)) {
      const clock = BigInt(Math.floor(this.#options.now())) * NANOSECONDS_PER_MS
      const behind = clock - (gate.fenceBase + at.zxid)
      if (-behind > BigInt(MAX_AHEAD_MS) * NANOSECONDS_PER_MS)
        throw damagedGate(path, `its fenceBase ${gate.fenceBase} is years ahead of the server's clock`)
      if (behind <= BigInt(MAX_FENCE_LAG_MS) * NANOSECONDS_PER_MS) {
        this.#validated = { session: at.session, base: gate.fenceBase }
        break
      }
      gate = await this.#raise(gate, clock - at.zxid)
      assertIntact(gate, path)
    }
    return gate
  }

  /** Returns whether the base was examined for claims of this session, and is still the gate's. */
  isExamined({ fenceBase }: GateSnapshot, session: bigint): boolean {
    return this.#validated?.session === session && this.#validated.base === fenceBase
  }

  /** Raises the base. Claims that begin together share one raise. */
  #raise(seen: GateSnapshot, base: bigint): Promise<GateSnapshot> {
    this.#raising ??= this.#options.raise(seen, base).finally(() => {
      this.#raising = undefined
    })
    return this.#raising
  }
}

/** Checks that the gate is readable. @throws InvalidState for a gate whose base cannot be read */
export function assertIntact({ damage }: GateSnapshot, path: string): void {
  if (damage !== undefined) throw damagedGate(path, damage)
}

function damagedGate(path: string, why: string): InvalidState {
  const how = 'write {"paused":false,"fenceBase":"N"} into it, where N is the highest fence that was granted'
  return new InvalidState(`${path} is damaged: ${why}. The board grants no claims until it is repaired: ${how}`)
}
