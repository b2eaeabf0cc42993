/**
 * Keeps fences growing when the server's transaction numbers begin anew: a board that was removed and made again, servers
 * that lost their data, servers that were restored from a backup.
 *
 * A fence is the **base** in the gate plus the zxid of the claim. The base only grows, and it is raised so that a fence is
 * the server's clock in nanoseconds, about. What a lost board has handed out was at most its clock, so a board that begins
 * later continues above it.
 *
 * - **No claim uses an older base than the gate has.** A claim's transaction checks the version of the gate from which its
 *   base was read. So of two claims the one with the later zxid has the same base or a larger one, and its fence is larger.
 *   A claim by single writes (`native/`) reads the gate behind the write that decides and before it can end; so its
 *   base is at least that of every claim of the job before it, and at most that of every claim of the job after it.
 * - **Nanoseconds**, because a new leader adds 2^32 to the zxid: 4.3 s in nanoseconds, 71 minutes in microseconds. A fence
 *   that is hours ahead of the clock could not be reached again after a restore.
 * - **The base is examined by each session before its first claim**, and whenever the gate shows another base than was
 *   examined: servers that lose their data end every session. It is raised only where fences are more than a second behind
 *   the clock: each raise makes every board read its gate again, and many conductors start at once. What this costs: a
 *   backup of the last second before a raise, restored within that second, repeats numbers.
 *
 * In 64 bits with a sign there is room until the year 2262. A base that is years ahead of the clock was not written by a board:
 * it is refused, and so is one that cannot be read. Neither is replaced, because a lower base would repeat fences.
 */
import { InvalidState } from '../../../../core/errors.ts'
import type { GateSnapshot } from './gate.ts'

/** How far fences may be behind the server's clock when a session begins to claim. */
const MAX_FENCE_LAG_MS = 1_000
/** How far fences may be ahead of the server's clock: a clock that was wrong may have been put right since. */
const MAX_AHEAD_MS = 10 * 365 * 86_400_000
const NANOSECONDS_PER_MS = 1_000_000n

export interface FenceBaseOptions {
  /** The gate's path, for errors. */
  readonly path: string
  /** The servers' clock, in milliseconds since 1970. */
  readonly now: () => number
  /** Writes the gate with this base if it is still as it was seen. Resolves to the gate as it is then, whoever wrote it. */
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
   * Returns the gate once its base is good for claims of this session. Asks nobody where it was examined before.
   *
   * @param at.zxid a transaction that the server has applied; the newest that is known
   * @throws InvalidState for a base that cannot be read, or that no server's clock can have given
   */
  async ensureValid(
    seen: GateSnapshot,
    at: { readonly session: bigint; readonly zxid: bigint },
  ): Promise<GateSnapshot> {
    const { path } = this.#options
    let gate = seen
    assertIntact(gate, path)
    while (!this.#isExamined(gate, at.session)) {
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

  #isExamined({ fenceBase }: GateSnapshot, session: bigint): boolean {
    return this.#validated?.session === session && this.#validated.base === fenceBase
  }

  /** Claims that begin together wait for one raise. */
  #raise(seen: GateSnapshot, base: bigint): Promise<GateSnapshot> {
    this.#raising ??= this.#options.raise(seen, base).finally(() => {
      this.#raising = undefined
    })
    return this.#raising
  }
}

/** @throws InvalidState for a gate whose base cannot be read */
export function assertIntact({ damage }: GateSnapshot, path: string): void {
  if (damage !== undefined) throw damagedGate(path, damage)
}

function damagedGate(path: string, why: string): InvalidState {
  const how = 'write {"paused":false,"fenceBase":"N"} into it, with the highest fence that was handed out as N'
  return new InvalidState(`${path} is damaged: ${why}. The board grants no claims until it is repaired: ${how}`)
}
