/**
 * The lease of a session of the C client (`session/lease.ts`), which reports neither when it asked for a session nor what became
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
import type { Clock, Instant } from '../../core/time.ts'
import { startInterval } from '../../core/time.ts'
import { isQuorumAck } from '../connection/quorum-ack.ts'
import { OPCODE } from '../protocol/opcodes.ts'
import { LeaseKeeper } from '../session/lease-keeper.ts'
import { NATIVE_CODE, type NativeRequest } from './package.ts'

const OPCODES_BY_OPERATION: Readonly<Record<string, number>> = {
  create: OPCODE.create,
  delete: OPCODE.delete,
  setData: OPCODE.setData,
  setACL: OPCODE.setAcl,
  sync: OPCODE.sync,
}
const TOUCHES_PER_TIMEOUT = 4
const ANY_VERSION = -1

const TOUCH_REQUEST: NativeRequest<void> = {
  operation: 'exists',
  path: '/',
  send: (handle, answer) =>
    handle.a_exists('/', false, (code) => answer(code === NATIVE_CODE.noNode ? NATIVE_CODE.ok : code, () => undefined)),
}
export const ECHO_REQUEST: NativeRequest<void> = {
  operation: 'sync',
  path: '/',
  send: (handle, answer) => handle.a_sync('/', (code) => answer(code, () => undefined)),
}
const PROOF_PATH = `/jobboard-proof-${randomUUID()}`
/**
 * Its answer is also the first thing to wait for on a connection that attaches again: this handle has not seen what an earlier
 * one has seen, so any server accepts it, also one that is behind. Whatever a server answers after it is no older than that.
 */
export const PROOF_REQUEST: NativeRequest<void> = {
  operation: 'delete',
  path: PROOF_PATH,
  send: (handle, answer) =>
    handle.a_delete_(PROOF_PATH, ANY_VERSION, (code) => {
      answer(isQuorumAck(OPCODE.delete, code) ? NATIVE_CODE.ok : code, () => undefined)
    }),
}

export interface NativeLeaseOptions {
  readonly clock: Clock
  readonly tick: number | undefined
  /** Sends a request on the current connection. */
  readonly send: (question: NativeRequest<void>) => Promise<void>
  /** Reports that holders cannot rely on the session any longer. */
  readonly onOver: (verdict: string) => void
}

export class NativeLease {
  readonly #options: NativeLeaseOptions
  readonly keeper: LeaseKeeper
  #touching: NodeJS.Timeout | undefined

  constructor(options: NativeLeaseOptions) {
    this.#options = options
    this.keeper = new LeaseKeeper(options, {
      // The C client itself reports the end of a session without a hold.
      onOver: (verdict) => this.keeper.isHeld && options.onOver(verdict),
      prove: () => void this.#prove(),
    })
  }

  /** @param openedAt the time at which the handle was made that has opened the session, or attached to it again */
  attached(session: { readonly id: bigint; readonly timeout: number }, openedAt: Instant): void {
    this.keeper.attached(session, { at: openedAt, through: 'leader' })
  }

  connected(timeout: number): void {
    clearInterval(this.#touching)
    this.#touching = startInterval(() => void this.#send(TOUCH_REQUEST), timeout / TOUCHES_PER_TIMEOUT)
    this.keeper.connected()
  }

  disconnected(): void {
    clearInterval(this.#touching)
  }

  /** Records an answer of the server or of the C client itself. */
  replyReceived(operation: string, code: number, sentAt: Instant): void {
    const said = isQuorumAck(OPCODES_BY_OPERATION[operation] ?? 0, code)
    if (said) this.keeper.quorumAcknowledged(said, sentAt)
    else if (code === NATIVE_CODE.ok) this.keeper.replyReceived(sentAt)
  }

  async #prove(): Promise<void> {
    if (await this.#send(ECHO_REQUEST)) await this.#send(PROOF_REQUEST)
  }

  #send(question: NativeRequest<void>): Promise<boolean> {
    return this.#options.send(question).then(
      () => true,
      () => false,
    )
  }
}
