/**
 * The largest request that is sent. A server that receives a frame larger than its `jute.maxbuffer` closes the connection without an
 * answer, with all other requests on it. The client cannot ask for this setting, so it uses the configured size until a server closes the
 * connection before a large request is answered. Then it measures what this server accepts, before any request is sent again: otherwise the
 * same request would end connection after connection, and the session with them.
 *
 * A broken connection alone proves nothing. So the client sends connect requests of the sizes in question, for a session that does not
 * exist: the server answers a request if it accepts the size, and changes nothing.
 */
import type { Logger } from '../../core/log.ts'
import { monotonic } from '../../core/time.ts'
import { toFaultKind } from '../connection/faults.ts'
import { RequestTooLarge } from '../protocol/errors.ts'
import { payloadBytes, type Request } from '../protocol/requests.ts'

/** A size that all servers accept. Smaller requests are not suspected. */
const MIN_SUSPECT_BYTES = 4 * 1_024
/** The precision of the measured limit. */
const PRECISION_BYTES = 1_024

/** Returns whether the server answers a frame of this size; throws where that is not known. */
export type FrameProbe = (bytes: number) => Promise<boolean>

/** The limit of the requests of one client. */
export class RequestLimit {
  readonly #configured: number
  readonly #log: Logger
  #measured: number | undefined
  #suspect: number | undefined

  /** @param configured the option `maxRequestBytes` */
  constructor(configured: number, log: Logger) {
    this.#configured = configured
    this.#log = log
  }

  /** Size of the largest request that is sent, without the length of the frame. */
  get bytes(): number {
    return this.#measured ?? this.#configured
  }

  /** Returns the error for a request that is too large; undefined for others. */
  refusalOf({ frame, operation, path }: Request<unknown>): RequestTooLarge | undefined {
    const bytes = payloadBytes(frame)
    if (bytes <= this.bytes) return undefined
    const subject = path === undefined ? operation : `${operation} ${path}`
    const limit =
      this.#measured === undefined
        ? `the limit of ${this.#configured} (maxRequestBytes)`
        : `the ${this.#measured} that the server accepts; raise jute.maxbuffer on all servers, or set maxRequestBytes to their limit`
    return new RequestTooLarge(`${subject}: not sent, ${bytes} bytes exceed ${limit}`, { path })
  }

  /**
   * Notes the end of a connection. A measured limit belongs to one running server. It is forgotten when the connection ends for another
   * reason than a large request: the next server may accept more.
   *
   * @param unanswered the size of the largest request without an answer
   */
  connectionEnded(cause: Error, unanswered: number): void {
    const kind = toFaultKind(cause)
    this.#suspect = (kind === 'closed' || kind === 'reset') && unanswered > MIN_SUSPECT_BYTES ? unanswered : undefined
    if (this.#suspect === undefined) this.#measured = undefined
  }

  /**
   * Measures what the server accepts, if a large request is suspected to have ended the connection.
   *
   * @param until the time on the monotonic clock from which on a rough limit is good enough
   */
  async measure(isAnswered: FrameProbe, until: number): Promise<void> {
    const suspect = this.#suspect
    if (suspect === undefined) return
    this.#suspect = undefined
    this.#measured = await measureLimit(isAnswered, { suspect, until }).catch(() => undefined)
    if (this.#measured === undefined) return
    this.#log.warn(
      { maxRequestBytes: this.#measured },
      `the ZooKeeper server closes the connection at a request of ${suspect} bytes: its jute.maxbuffer is smaller than ` +
        'maxRequestBytes; larger requests are refused from now on, raise jute.maxbuffer on all servers or set maxRequestBytes to it',
    )
  }
}

/** Returns a size that the server answers while it does not answer a slightly larger one; undefined if it answers `suspect`. */
async function measureLimit(
  isAnswered: FrameProbe,
  { suspect, until }: { readonly suspect: number; readonly until: number },
): Promise<number | undefined> {
  if (await isAnswered(suspect)) return undefined
  let accepted = MIN_SUSPECT_BYTES
  let refused = suspect
  // A server that answers nothing at all has not closed the connection because of the size.
  if (!(await isAnswered(accepted))) return undefined
  while (refused - accepted > PRECISION_BYTES && monotonic() < until) {
    const middle = Math.floor((accepted + refused) / 2)
    if (await isAnswered(middle)) accepted = middle
    else refused = middle
  }
  return (await isAnswered(refused)) ? undefined : accepted
}
