/** A board as its roles see it: the client, and the components once it is open. */
import { InvalidState } from '../../../../core/errors.ts'
import type { ZooKeeper } from '../../../../zookeeper/index.ts'
import type { Settlement } from '../../../contract/index.ts'
import { refusalError } from '../../../contract/refusals.ts'
import type { ServerClock } from '../../server-clock.ts'
import type { TransactionCommitter } from '../commit/committer.ts'
import type { ZooKeeperLayout } from '../store/layout.ts'
import type { ZooKeeperComponents } from './components.ts'

export interface BoardHandleOptions {
  readonly uri: string
  readonly zookeeper: ZooKeeper
  readonly layout: ZooKeeperLayout
  readonly committer: TransactionCommitter
  readonly clock: ServerClock
}

export class BoardHandle {
  readonly uri: string
  readonly zookeeper: ZooKeeper
  readonly layout: ZooKeeperLayout
  readonly committer: TransactionCommitter
  readonly clock: ServerClock
  readonly labels = new SessionLabels()
  #components: ZooKeeperComponents | undefined

  constructor({ uri, zookeeper, layout, committer, clock }: BoardHandleOptions) {
    this.uri = uri
    this.zookeeper = zookeeper
    this.layout = layout
    this.committer = committer
    this.clock = clock
  }

  /** Notes that the board is open. */
  opened(components: ZooKeeperComponents): void {
    this.#components = components
  }

  get componentsIfOpen(): ZooKeeperComponents | undefined {
    return this.#components
  }

  /** The components of the open board. @throws InvalidState before it is open */
  get components(): ZooKeeperComponents {
    if (this.#components) return this.#components
    throw new InvalidState(`board ${this.uri} is not open`)
  }
}

/** Gives sessions short names, which can be logged. */
class SessionLabels {
  readonly #labels = new Map<bigint, string>()
  /** The session that was asked for last: usually all claims are of one session. */
  #last: { readonly session: bigint; readonly label: string } | undefined

  /** Returns the label of a session. A session gets its label at the first call. */
  labelFor(session: bigint): string {
    if (this.#last?.session === session) return this.#last.label
    const label = this.#labels.get(session) ?? `session ${this.#labels.size + 1}`
    this.#labels.set(session, label)
    this.#last = { session, label }
    return label
  }

  /** The label that was assigned last; empty if there is none yet. */
  get newest(): string {
    return [...this.#labels.values()].at(-1) ?? ''
  }

  /**
   * Returns the session that granted the claim, if it is the current session.
   *
   * @throws ClaimLost if another session granted it
   */
  requireGranting({ session, kind, posting }: Settlement, { now }: { readonly now: bigint | undefined }): bigint {
    if (now !== undefined && this.labelFor(now) === session) return now
    throw refusalError(`${kind} of job ${posting.uuid}`, { why: 'over' })
  }
}
