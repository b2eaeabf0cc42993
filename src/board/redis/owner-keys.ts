/** The keys of owners: made, renewed, and cleared away with all that a dead owner held. */
import { randomBytes } from 'node:crypto'
import { IncompatibleVersion, NotConnected, NotFound } from '../../core/errors.ts'
import { shortened } from '../../core/texts.ts'
import { type Connection, script } from './connection.ts'
import type { Layout } from './layout.ts'
import type { RedisPlace } from './place.ts'
import { textOf } from './records.ts'
import { decoded, listOf } from './replies.ts'
import { BURY, JOIN, LOOK } from './scripts/session.ts'

const SCRIPTS = { join: script(JOIN), look: script(LOOK), bury: script(BURY) }
/** Of the board; a larger one is a newer release's. */
const FORMAT = 1
/** As long as nobody guesses. */
const SECRET_BYTES = 16

/** An owner on a connection. */
export interface Attached {
  readonly id: string
  readonly connection: Connection
  /** Of batches: the newest that was answered, and the newest that was sent. */
  acked: number
  sent: number
}

/** What is told to whoever looks; numbers that may be large are texts. */
export type Outlook = readonly [
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
  readonly #place: RedisPlace
  readonly #layout: Layout

  constructor(options: { readonly place: RedisPlace; readonly layout: Layout }) {
    this.#place = options.place
    this.#layout = options.layout
  }

  /**
   * @returns whether the board was made, and how things stand
   * @throws NotFound, IncompatibleVersion
   */
  async join(
    { id, connection }: Attached,
    { mayMake }: { readonly mayMake: boolean },
  ): Promise<{ readonly made: boolean; readonly outlook: Outlook }> {
    const { uri, ttl, prefix } = this.#place
    const args = [id, this.#layout.channel, String(ttl), mayMake ? '1' : '0', String(FORMAT), newSecret()]
    const [answer, outlook] = listOf(await connection.run(SCRIPTS.join, this.#layout.keys(id), args))
    const [joined, told] = decoded<[boolean, unknown]>(answer)
    if (joined) return { made: told === true, outlook: decoded<Outlook>(outlook) }
    if (told === 0)
      throw new NotFound(
        `${uri}: there is no board with the prefix ${prefix}; check the URI, or post a job to make one`,
      )
    throw new IncompatibleVersion(
      `${uri}: its format is ${shortened(String(told))}, this release knows ${FORMAT}; upgrade it`,
    )
  }

  /** Renews the key, if it is there and knows all that its owner was told was done. */
  async look(
    there: Attached,
    seen: number | undefined,
  ): Promise<{ readonly alive: true; readonly outlook: Outlook } | { readonly alive: false; readonly reason: Error }> {
    const { id, connection } = there
    // A batch that was sent before the look is counted, or its owner would be taken for one that Redis does not know.
    const args = () => [id, this.#place.ttl, seen ?? '', there.acked, there.sent].map(String)
    const [answer, outlook] = listOf(await connection.run(SCRIPTS.look, this.#layout.keys(id), args))
    const [alive, last] = decoded<[boolean, number]>(answer)
    if (alive) return { alive, outlook: decoded<Outlook>(outlook) }
    return { alive, reason: forgotten(this.#place.uri, last) }
  }

  /**
   * What the owner held is free. Of one that lives nothing is taken, unless it is the owner itself that goes.
   *
   * @returns what was found damaged
   */
  async bury(
    connection: Connection,
    id: string,
    { itself }: { readonly itself?: boolean } = {},
  ): Promise<readonly string[]> {
    const args = [id, this.#layout.channel, itself ? '1' : '0', String(this.#place.ttl)]
    return listOf(await connection.run(SCRIPTS.bury, this.#layout.keys(id), args)).map((fault) =>
      fault instanceof Uint8Array ? textOf(fault) : String(fault),
    )
  }
}

/** Signs what is published on the board, where it has no secret yet. */
function newSecret(): string {
  return randomBytes(SECRET_BYTES).toString('hex')
}

export function forgotten(uri: string, last: number): Error {
  const what = last < 0 ? 'the key of this owner is gone' : 'Redis has forgotten what it had said was done'
  return new NotConnected(`${uri}: ${what}; every claim is lost`)
}

export function emptied(uri: string): Error {
  return new NotFound(
    `${uri}: the board was gone, and was begun anew: Redis came back without its data, or somebody emptied it; ` +
      'jobs that waited there are lost with it',
  )
}
