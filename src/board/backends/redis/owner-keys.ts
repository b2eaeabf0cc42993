/** The keys of owners: made, renewed, and cleared away with all that a dead owner held. */
import { randomBytes } from 'node:crypto'
import { IncompatibleVersion, NotConnected, NotFound } from '../../../core/errors.ts'
import { shortenText } from '../../../core/texts.ts'
import { type RedisConnection, script } from './connection.ts'
import type { Layout } from './layout.ts'
import type { RedisLocation } from './place.ts'
import { decodeText } from './records.ts'
import { decodeReply, toList } from './replies.ts'
import { JOIN_SOURCE, RELEASE_OWNER_SOURCE, RENEW_SOURCE } from './scripts/session.ts'

const SCRIPTS = { join: script(JOIN_SOURCE), look: script(RENEW_SOURCE), bury: script(RELEASE_OWNER_SOURCE) }
/** Of the board; a larger one is a newer release's. */
const BOARD_FORMAT = 1
/** As long as nobody guesses. */
const SECRET_BYTES = 16

/** An owner on a connection. */
export interface OwnerConnection {
  readonly id: string
  readonly connection: RedisConnection
  /** Of batches: the newest that was answered, and the newest that was sent. */
  acked: number
  sent: number
}

/** What is told to whoever looks; numbers that may be large are texts. */
export type OwnerStatus = readonly [
  now: string,
  version: string,
  changes: readonly string[] | false,
  paused: boolean,
  late: readonly string[],
  earliest: string,
  uneven: boolean,
  jobs: number,
  secret: string,
  faults: readonly string[],
]

export class OwnerKeys {
  readonly #location: RedisLocation
  readonly #layout: Layout

  constructor(options: { readonly location: RedisLocation; readonly layout: Layout }) {
    this.#location = options.location
    this.#layout = options.layout
  }

  /**
   * @returns whether the board was made, and how things stand
   * @throws NotFound, IncompatibleVersion
   */
  async join(
    { id, connection }: OwnerConnection,
    { mayMake }: { readonly mayMake: boolean },
  ): Promise<{ readonly made: boolean; readonly outlook: OwnerStatus }> {
    const { uri, ttl, prefix } = this.#location
    const args = [id, this.#layout.channel, String(ttl), mayMake ? '1' : '0', String(BOARD_FORMAT), newSecret()]
    const [answer, outlook] = toList(await connection.run(SCRIPTS.join, this.#layout.keys(id), args))
    const [joined, status] = decodeReply<[boolean, unknown]>(answer)
    if (joined) return { made: status === true, outlook: decodeReply<OwnerStatus>(outlook) }
    if (status === 0)
      throw new NotFound(
        `${uri}: there is no board with the prefix ${prefix}; check the URI, or post a job to make one`,
      )
    throw new IncompatibleVersion(
      `${uri}: its format is ${shortenText(String(status))}, this release knows ${BOARD_FORMAT}; upgrade it`,
    )
  }

  /** Renews the key, if it is there and knows all that its owner was told was done. */
  async renew(
    there: OwnerConnection,
    seen: number | undefined,
  ): Promise<
    { readonly alive: true; readonly outlook: OwnerStatus } | { readonly alive: false; readonly reason: Error }
  > {
    const { id, connection } = there
    // A batch that was sent before the look is counted, or its owner would be taken for one that Redis does not know.
    const args = () => [id, this.#location.ttl, seen ?? '', there.acked, there.sent].map(String)
    const [answer, outlook] = toList(await connection.run(SCRIPTS.look, this.#layout.keys(id), args))
    const [alive, last] = decodeReply<[boolean, number]>(answer)
    if (alive) return { alive, outlook: decodeReply<OwnerStatus>(outlook) }
    return { alive, reason: sessionExpiredError(this.#location.uri, last) }
  }

  /**
   * What the owner held is free. Of one that lives nothing is taken, unless it is the owner itself that goes.
   *
   * @returns what was found damaged
   */
  async releaseOwner(
    connection: RedisConnection,
    id: string,
    { itself }: { readonly itself?: boolean } = {},
  ): Promise<readonly string[]> {
    const args = [id, this.#layout.channel, itself ? '1' : '0', String(this.#location.ttl)]
    return toList(await connection.run(SCRIPTS.bury, this.#layout.keys(id), args)).map((fault) =>
      fault instanceof Uint8Array ? decodeText(fault) : String(fault),
    )
  }
}

/** Signs what is published on the board, where it has no secret yet. */
function newSecret(): string {
  return randomBytes(SECRET_BYTES).toString('hex')
}

export function sessionExpiredError(uri: string, last: number): Error {
  const what = last < 0 ? 'the key of this owner is gone' : 'Redis has forgotten what it had said was done'
  return new NotConnected(`${uri}: ${what}; every claim is lost`)
}

export function boardEmptiedError(uri: string): Error {
  return new NotFound(
    `${uri}: the board was gone, and was begun anew: Redis came back without its data, or somebody emptied it; ` +
      'jobs that waited there are lost with it',
  )
}
