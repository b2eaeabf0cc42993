/**
 * The lease of a session of the C client (`lease.ts`), which reports neither when it asked for a session nor what became
 * of its pings. So what a lease is made of is asked for here:
 *
 *     a new session      was asked for no earlier than its handle was made. Before it is used, a sync is answered
 *     attached again     was asked for no earlier than its handle was made, which is made for this one connection. Before
 *                        it is used, a proof is answered
 *     a touch            a small read, every quarter of the timeout, so that the C client has no reason to ping
 *     an echo, a proof   a sync, and behind its answer the deletion of a znode that never was: the leader refuses it when
 *                        most servers have agreed, which is all that a proof takes
 */
import { randomUUID } from 'node:crypto'
import type { Clock, Instant } from '../core/clock.ts'
import { answerProves } from './leader-proof.ts'
import { LeaseKeeper } from './lease-keeper.ts'
import { NATIVE_CODE } from './native-package.ts'
import type { Question } from './native-question.ts'
import { OPCODE } from './opcodes.ts'

const OPCODES: Readonly<Record<string, number>> = {
  create: OPCODE.create,
  delete: OPCODE.delete,
  setData: OPCODE.setData,
  setACL: OPCODE.setAcl,
  sync: OPCODE.sync,
}
const TOUCHES_PER_TIMEOUT = 4
const ANY_VERSION = -1

const TOUCH: Question<void> = {
  operation: 'exists',
  path: '/',
  ask: (handle, answer) =>
    handle.a_exists('/', false, (code) => answer(code === NATIVE_CODE.noNode ? NATIVE_CODE.ok : code, () => undefined)),
}
export const ECHO: Question<void> = {
  operation: 'sync',
  path: '/',
  ask: (handle, answer) => handle.a_sync('/', (code) => answer(code, () => undefined)),
}
const NOWHERE = `/jobboard-proof-${randomUUID()}`
/**
 * Its answer is also the first thing to wait for on a connection that attaches again: this handle has not seen what an earlier
 * one has seen, so any server accepts it, also one that is behind. Whatever a server answers after it is no older than that.
 */
export const PROOF: Question<void> = {
  operation: 'delete',
  path: NOWHERE,
  ask: (handle, answer) =>
    handle.a_delete_(NOWHERE, ANY_VERSION, (code) => {
      answer(answerProves(OPCODE.delete, code) ? NATIVE_CODE.ok : code, () => undefined)
    }),
}

export interface NativeLeaseOptions {
  readonly clock: Clock
  readonly tick: number | undefined
  /** On the connection there is. */
  readonly ask: (question: Question<void>) => Promise<void>
  /** Whoever relies on the session cannot any more. */
  readonly over: (verdict: string) => void
}

export class NativeLease {
  readonly #options: NativeLeaseOptions
  readonly keeper: LeaseKeeper
  #touching: NodeJS.Timeout | undefined

  constructor(options: NativeLeaseOptions) {
    this.#options = options
    this.keeper = new LeaseKeeper(options, {
      // Of a session that nobody relies on the C client says when it is over.
      over: (verdict) => this.keeper.held && options.over(verdict),
      prove: () => void this.#prove(),
    })
  }

  /** @param openedAt when the handle was made that has opened the session, or attached to it again */
  attached(session: { readonly id: bigint; readonly timeout: number }, openedAt: Instant): void {
    this.keeper.attached(session, { at: openedAt, through: 'leader' })
  }

  connected(timeout: number): void {
    clearInterval(this.#touching)
    this.#touching = setInterval(() => void this.#asked(TOUCH), timeout / TOUCHES_PER_TIMEOUT)
    this.keeper.connected()
  }

  disconnected(): void {
    clearInterval(this.#touching)
  }

  /** An answer came, by the server or by the C client itself. */
  heard(operation: string, code: number, sentAt: Instant): void {
    const said = answerProves(OPCODES[operation] ?? 0, code)
    if (said) this.keeper.leaderSaid(said, sentAt)
    else if (code === NATIVE_CODE.ok) this.keeper.answered(sentAt)
  }

  async #prove(): Promise<void> {
    if (await this.#asked(ECHO)) await this.#asked(PROOF)
  }

  #asked(question: Question<void>): Promise<boolean> {
    return this.#options.ask(question).then(
      () => true,
      () => false,
    )
  }
}
