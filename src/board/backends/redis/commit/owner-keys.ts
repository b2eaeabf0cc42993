/** Creates and renews the keys of owners, and releases what dead owners held. */
import { randomBytes } from 'node:crypto'
import { IncompatibleVersion, NotConnected, NotFound } from '../../../../core/errors.ts'
import { shortenText } from '../../../../core/texts.ts'
import type { RedisConnection } from '../store/connection.ts'
import type { RedisLayout } from '../store/layout.ts'
import type { RedisLocation } from '../store/location.ts'
import { decodeReply, toList, toTexts } from '../store/replies.ts'
import { SCRIPTS } from '../store/scripts.ts'

/** The format of a board; a newer release may use a larger number. */
const BOARD_FORMAT = 1
/** The length of a board's secret, long enough not to be guessed. */
const SECRET_BYTES = 16

/** An owner on a connection. */
export interface OwnerConnection {
  readonly id: string
  readonly connection: RedisConnection
  /** The number of the newest answered group; `sent` is the number of the newest sent one. */
  acked: number
  sent: number
}

/** The status that a script returns to an owner; numbers that may be large are strings. */
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
  unfinished: boolean,
]

export class OwnerKeys {
  readonly #location: RedisLocation
  readonly #layout: RedisLayout

  constructor(options: { readonly location: RedisLocation; readonly layout: RedisLayout }) {
    this.#location = options.location
    this.#layout = options.layout
  }

  /**
   * Creates the key of a new owner, and the board if there is none.
   *
   * @returns whether the board was created, and its status
   * @throws NotFound, IncompatibleVersion
   */
  async join(
    { id, connection }: OwnerConnection,
    { mayCreate }: { readonly mayCreate: boolean },
  ): Promise<{ readonly isNew: boolean; readonly status: OwnerStatus }> {
    const { uri, ttl, prefix } = this.#location
    const args = [id, this.#layout.channel, String(ttl), mayCreate ? '1' : '0', String(BOARD_FORMAT), newSecret()]
    const [answer, encoded] = toList(await connection.run(SCRIPTS.join, this.#layout.keys(id), args))
    const [joined, detail] = decodeReply<[boolean, unknown]>(answer)
    if (joined) return { isNew: detail === true, status: decodeReply<OwnerStatus>(encoded) }
    if (detail === 0)
      throw new NotFound(
        `${uri}: there is no board with the prefix ${prefix}; check the URI, or post a job to make one`,
      )
    throw new IncompatibleVersion(
      `${uri}: the board has format ${shortenText(String(detail))}, this release supports ${BOARD_FORMAT}; upgrade jobboard`,
    )
  }

  /** Renews the key if it exists and includes every group whose answer the owner has received. */
  async renew(
    attached: OwnerConnection,
    seen: number | undefined,
  ): Promise<
    { readonly alive: true; readonly status: OwnerStatus } | { readonly alive: false; readonly reason: Error }
  > {
    const { id, connection } = attached
    // A group that was sent before this call is counted; otherwise Redis would reject its number as unknown.
    const args = () => [id, this.#location.ttl, seen ?? '', attached.acked, attached.sent].map(String)
    const [answer, encoded] = toList(await connection.run(SCRIPTS.renew, this.#layout.keys(id), args))
    const [alive, last] = decodeReply<[boolean, number]>(answer)
    if (alive) return { alive, status: decodeReply<OwnerStatus>(encoded) }
    return { alive, reason: sessionExpiredError(this.#location.uri, last) }
  }

  /**
   * Releases what a dead owner held. A living owner keeps its claims, unless `itself` says that it leaves.
   *
   * @returns the damage that was found
   */
  async endOwner(
    connection: RedisConnection,
    id: string,
    { itself }: { readonly itself?: boolean } = {},
  ): Promise<readonly string[]> {
    const args = [id, this.#layout.channel, itself ? '1' : '0', String(this.#location.ttl)]
    return toTexts(await connection.run(SCRIPTS.release, this.#layout.keys(id), args))
  }
}

/** Returns a secret for a board that has none; it signs the board's publications. */
function newSecret(): string {
  return randomBytes(SECRET_BYTES).toString('hex')
}

export function sessionExpiredError(uri: string, last: number): Error {
  const what = last < 0 ? 'the key of this owner is missing' : 'Redis has lost changes that it had confirmed'
  return new NotConnected(`${uri}: ${what}; every claim is lost`)
}

export function boardEmptiedError(uri: string): Error {
  return new NotFound(
    `${uri}: the board was missing and was created anew: Redis came back without its data, or it was emptied; ` +
      'the jobs that waited on the board are lost',
  )
}
