/**
 * Writes that find out whether they were carried out.
 *
 * When a connection breaks after a write, its outcome is unknown. These three write in a way that leaves a trace, look
 * for it on the next connection of the same session, and repeat the write only where it is certain that it was not
 * carried out and never will be: requests of an earlier connection have no effect once the session is on another one
 * and a `sync` was answered there. None of them writes in another session than it began in.
 *
 * Without a broken connection they cost as much as the plain operation (idempotentDelete: one more read). A lost answer
 * costs one round trip to look, and another to repeat the write. Where looking is not allowed (NoAuth) the outcome
 * stays `unknown`, with the refusal as its cause.
 */
import { randomUUID } from 'node:crypto'
import { InvalidArgument } from '../../core/errors.ts'
import { defined } from '../../core/options.ts'
import type { ZooKeeper } from '../client.ts'
import type { RequestOptions } from '../connection/pending.ts'
import { assertBigint, assertInteger, checkRequestOptions } from '../protocol/arguments.ts'
import type { Created, CreateMode } from '../protocol/create.ts'
import { BadVersion, ConnectionLoss, NoNode, NotSent, SessionExpired, ZooKeeperError } from '../protocol/errors.ts'
import { MAX_INT32 } from '../protocol/jute.ts'
import { checkPath, parentPath } from '../protocol/path.ts'
import type { Stat } from '../protocol/records.ts'
import type { ReadData } from '../protocol/requests.ts'

/** The part of a client that these writes need. */
export type ExactlyOnceClient = Pick<
  ZooKeeper,
  'state' | 'session' | 'create' | 'delete' | 'setData' | 'exists' | 'getData' | 'getChildren' | 'sync'
>

/**
 * Creates a znode whose name begins with `_c_`, a random uuid and `-`, before the requested name: by that it is found
 * again, sequential or not; the digits come last.
 *
 * For a sequential znode, looking lists the parent's children. An ephemeral znode is never taken from another session:
 * when this one ends before the outcome is known, so does what it may have created, and SessionExpired says so.
 *
 * When the call is cancelled by its `signal` while the request is in flight, the caller does not learn the name of what
 * it may have created. So that is looked for and deleted in the background, as long as the client is connected. A
 * caller that may close the client at that moment gives its own `id`, and can look for `_c_ID-` later.
 *
 * @param options.id replaces the random uuid: a unique text without a slash. A znode that had it before is neither
 * taken for the znode that this call creates nor deleted
 * @throws what `create` throws; ConnectionLoss (`unknown`) only where looking is impossible: the client was closed, can
 * connect no more, or may not read
 * @example
 * const { path } = await protectedCreate(zookeeper, '/lock/n-', null, { ephemeral: true, sequential: true })
 * // /lock/_c_0b9f…-n-0000000007
 */
export async function protectedCreate(
  client: ExactlyOnceClient,
  path: string,
  data: Uint8Array | null = null,
  options: CreateMode & RequestOptions & { readonly id?: string } = {},
): Promise<Created> {
  const { id = randomUUID(), ...mode } = options
  checkPath(path, { sequential: options.sequential === true })
  if (typeof id !== 'string' || id === '' || id.includes('/'))
    throw new InvalidArgument('protectedCreate: id must be a non-empty string without a slash')
  const slash = path.lastIndexOf('/')
  const parent = parentPath(path) ?? '/'
  const name = `_c_${id}-${path.slice(slash + 1)}`
  const attempted = `${path.slice(0, slash)}/${name}`
  let begun: CreateStart | undefined
  const find = async (asking: RequestOptions): Promise<WriteOutcome<Created>> => {
    const [, candidates] = await Promise.all([
      client.sync(parent, asking),
      options.sequential ? findChildren(client, { parent, name }, asking) : [attempted],
    ])
    const stats = await Promise.all(candidates.map((each) => client.exists(each, asking)))
    for (const [index, stat] of stats.entries()) {
      const found = candidates[index]
      if (found !== undefined && stat && begun && isCreatedSince(begun, stat))
        return { happened: { path: found, stat } }
    }
    return 'not-done'
  }
  const look = ({ session, signal = {} }: { readonly session: bigint; readonly signal?: Abortable }) =>
    options.ephemeral ? find({ session, ...signal }).catch(findSessionEnd(attempted)) : find(signal)
  const creating = writeExactlyOnce<Created>(client, mode, {
    attempt: (bound) => {
      begun ??= { session: bound.session, newestZxid: client.session?.newestZxid ?? 0n }
      return client.create(attempted, data, { ...mode, ...bound })
    },
    look,
  })
  return creating.catch((error: unknown) => {
    // This runs after the create, on the same connection or after a sync on another: if nothing is found, nothing will
    // follow.
    if (options.signal?.aborted && error === options.signal.reason && begun) {
      const { session } = begun
      cleanUp(client, () => look({ session }))
    }
    throw error
  })
}

/** State of the client at the first create. */
interface CreateStart {
  readonly session: bigint
  /** The newest transaction that the client had received by then. */
  readonly newestZxid: bigint
}

/** Returns whether this call created the znode: false for an older znode with the same id, and for a znode of another session. */
function isCreatedSince({ session, newestZxid }: CreateStart, { czxid, ephemeralOwner }: Stat): boolean {
  return czxid > newestZxid && (ephemeralOwner === 0n || ephemeralOwner === session)
}

/** Cleans up in the background: the caller has stopped waiting. */
function cleanUp(client: ExactlyOnceClient, find: () => Promise<WriteOutcome<Created>>): void {
  const clean = async () => {
    const found = await retryLook(client, find)
    if (typeof found !== 'object' || !('happened' in found)) return
    const { path, stat } = found.happened
    await idempotentDelete(client, path, { czxid: stat.czxid })
  }
  clean().catch(() => undefined)
}

/** Returns a handler for the end of the owning session: there is nothing left to look for. */
function findSessionEnd(path: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof SessionExpired)) throw error
    const message = `create ${path}: the session ended, and what it may have created goes with it`
    throw new SessionExpired(message, { path, outcome: 'unknown', cause: error })
  }
}

/** Digits that a server appends; above 2^31 they include a minus sign. */
const SEQUENCE_DIGITS = /^-?\d{9,10}$/

/** Finds the children with exactly that name and digits: one id may be a prefix of another. */
async function findChildren(
  client: ExactlyOnceClient,
  { parent, name }: { readonly parent: string; readonly name: string },
  options: RequestOptions,
): Promise<string[]> {
  const { names } = await client.getChildren(parent, options)
  const found = names.filter((each) => each.startsWith(name) && SEQUENCE_DIGITS.test(each.slice(name.length)))
  return found.map((each) => `${parent === '/' ? '' : parent}/${each}`)
}

/**
 * Deletes a znode; it is no error if it is deleted already, by any client. A znode that was created anew under the same
 * path has another czxid and is kept: it is read right before each attempt. ZooKeeper cannot delete by czxid, though:
 * where other clients delete and create the same path all the time, one of their znodes can be deleted between the read
 * and the delete, unless `version` names a version that theirs does not have.
 *
 * @param options.czxid the czxid of the znode to delete; by default the czxid of the existing znode
 * @param options.version the version that it must have; any by default
 * @throws BadVersion, NotEmpty, NoAuth; InvalidArgument for invalid options
 */
export async function idempotentDelete(
  client: ExactlyOnceClient,
  path: string,
  options: RequestOptions & { readonly version?: number; readonly czxid?: bigint } = {},
): Promise<void> {
  checkRequestOptions(options)
  assertBigint(options.czxid, 'idempotentDelete: czxid')
  const signal = defined({ signal: options.signal })
  const look = async () => {
    const [, stat] = await Promise.all([client.sync(path, signal), client.exists(path, signal)])
    return stat?.czxid
  }
  let current = await retryLook(client, look, options.signal)
  const meant = options.czxid ?? current
  const version = defined({ version: options.version })
  await writeExactlyOnce(client, options, {
    attempt: async (bound) => {
      if (current === undefined || current !== meant) return
      try {
        await client.delete(path, { ...version, ...bound })
      } catch (error) {
        if (!(error instanceof NoNode)) throw error
      }
    },
    look: async () => {
      current = await look()
      return 'not-done'
    },
  })
}

/**
 * Writes a znode's data if they have not changed since they were read: compare and set.
 *
 * After a lost answer the data are read again. If they are unchanged, the write did not happen. If they were written once and are
 * equal to `data`, this call wrote them. If they were written once and differ, this call was refused. Two clients that write equal
 * data are not distinguished: where that matters, put a name or a number of your own into the data.
 *
 * @param seen the Stat that came with the data; without `czxid` where the path is never created again
 * @throws BadVersion when another client wrote first; ConnectionLoss (`unknown`) when the answer was lost and by the time of
 * looking the data were written more than once, or the znode was deleted, or it may not be read; InvalidArgument without
 * a version
 */
export async function versionedSetData(
  client: ExactlyOnceClient,
  path: string,
  data: Uint8Array | null,
  seen: Pick<Stat, 'version'> & Partial<Pick<Stat, 'czxid'>>,
  options: RequestOptions = {},
): Promise<Stat> {
  // Without a version, or with the version for any, it would write whatever is there.
  assertInteger(Object(seen).version, 'versionedSetData: the version that was seen', VERSION_RANGE)
  assertBigint(seen.czxid, 'versionedSetData: czxid')
  checkRequestOptions(options)
  const signal = defined({ signal: options.signal })
  return writeExactlyOnce(client, options, {
    attempt: (bound) => client.setData(path, data, { ...bound, version: seen.version }),
    look: async () => {
      const [, now] = await Promise.all([client.sync(path, signal), readIfPresent(client, path, signal)])
      if (!now || (seen.czxid !== undefined && now.stat.czxid !== seen.czxid)) return 'unknown'
      if (now.stat.version === seen.version) return 'not-done'
      if (now.stat.version !== seen.version + 1) return 'unknown'
      if (equalBytes(now.data, data)) return { happened: now.stat }
      return { refused: new BadVersion(`setData ${path}: another client wrote first`, { path }) }
    },
  })
}

const VERSION_RANGE = { from: 0, to: MAX_INT32 }

async function readIfPresent(
  client: ExactlyOnceClient,
  path: string,
  options: RequestOptions,
): Promise<ReadData | undefined> {
  try {
    return await client.getData(path, options)
  } catch (error) {
    if (error instanceof NoNode) return undefined
    throw error
  }
}

function equalBytes(one: Uint8Array | null, other: Uint8Array | null): boolean {
  return one === null || other === null ? one === other : Buffer.compare(one, other) === 0
}

// --- How it is found out ------------------------------------------------------------------------------------------

type Abortable = { readonly signal?: AbortSignal }
/** Outcome of a write whose answer was lost, as far as it can be determined. */
type WriteOutcome<T> = { readonly happened: T } | { readonly refused: ZooKeeperError } | 'not-done' | 'unknown'

/** A write of one's own that leaves a trace. */
interface TraceableWrite<T> {
  readonly attempt: (options: Abortable & { readonly session: bigint }) => Promise<T>
  /** Looks what became of it, behind a `sync`; `signal` is of the caller, to be passed on. */
  readonly look: (options: { readonly session: bigint; readonly signal: Abortable }) => Promise<WriteOutcome<T>>
}

/**
 * Attempts the write, and where the answer is lost looks for its trace: it happened, was refused, or is attempted again.
 *
 * @throws what the attempt throws; ConnectionLoss (`unknown`) when looking for the trace fails, too
 */
async function writeExactlyOnce<T>(
  client: ExactlyOnceClient,
  options: RequestOptions,
  write: TraceableWrite<T>,
): Promise<T> {
  const signal = defined({ signal: options.signal })
  const session = options.session ?? (await currentSession(client, signal))
  for (;;) {
    try {
      return await write.attempt({ session, ...signal })
    } catch (lost) {
      if (!(lost instanceof ZooKeeperError)) throw lost
      if (lost.outcome !== 'unknown') throw options.session === undefined ? forNextSession(client, lost) : lost
      // The reason of the signal may be one of our errors that another caller received.
      options.signal?.throwIfAborted()
      const found = await lookForTrace(client, lost, { look: () => write.look({ session, signal }), ...signal })
      if (found === 'unknown') throw lost
      if (found === 'not-done') continue
      if ('refused' in found) throw found.refused
      return found.happened
    }
  }
}

/** Returns the error as one after which the call may be repeated: a call that is bound to no session may run in the next session. */
function forNextSession(client: ExactlyOnceClient, error: ZooKeeperError): ZooKeeperError {
  const { message, path, outcome } = error
  if (!(error instanceof SessionExpired) || outcome !== 'not-sent' || !mayContinue(client)) return error
  return new SessionExpired(message, { path, outcome, cause: error, retryable: true })
}

/** Returns the id of the present session, or of the next one if there is none. */
async function currentSession(client: ExactlyOnceClient, signal: Abortable): Promise<bigint> {
  for (;;) {
    if (client.session) return client.session.id
    await retryLook(client, () => client.sync('/', signal), signal.signal)
  }
}

/** Looks for the trace; throws the lost answer where looking is refused, which proves nothing about the write. */
async function lookForTrace<T>(
  client: ExactlyOnceClient,
  lost: ZooKeeperError,
  { look, signal }: Abortable & { readonly look: () => Promise<T> },
): Promise<T> {
  try {
    return await retryLook(client, look, signal)
  } catch (error) {
    signal?.throwIfAborted()
    const ended = error instanceof SessionExpired
    if (!(error instanceof ZooKeeperError) || (ended && error.outcome === 'unknown')) throw error
    if (ended || error instanceof NotSent) throw lost
    const message = `${lost.message}, and it cannot be looked for (${error.message})`
    throw new ConnectionLoss(message, { path: lost.path, cause: error })
  }
}

/** Looks until there is an answer: looking changes nothing, and each try waits for a connection while one is possible. */
async function retryLook<T>(client: ExactlyOnceClient, look: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  for (;;) {
    try {
      return await look()
    } catch (error) {
      // A caller may abort with any reason, also with one whose cause would be sought for ever.
      signal?.throwIfAborted()
      if (!(error instanceof ZooKeeperError)) throw error
      const ended = error instanceof SessionExpired
      const mayGoOn = ended ? error.outcome !== 'unknown' && mayContinue(client) : isOutcomeUnknown(error)
      if (!mayGoOn) throw error
    }
  }
}

/** Returns whether looking again can help: an answer that cannot be read would be unreadable again. */
function isOutcomeUnknown({ outcome, retryable }: ZooKeeperError): boolean {
  return outcome === 'unknown' && retryable
}

function mayContinue({ state }: ExactlyOnceClient): boolean {
  return state !== 'lost' && state !== 'closed'
}
