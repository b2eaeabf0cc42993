/**
 * Holds the resources of claimed jobs as advisory locks, so that `pg_locks` shows them, and other programs that lock the same names exclude
 * our jobs and are excluded by them. The permit rows of the board decide between its own claims; the locks only add other programs.
 *
 * | when | what |
 * |---|---|
 * | before the transaction of a claim | tries each lock; where one is taken, the job is not asked for, and keeps its place |
 * | a claim is refused, or its answer is lost | unlocks |
 * | before the transaction that ends a claim | unlocks: a claim that follows the end at once would find our lock |
 * | the session goes on over another connection | tries all of them again, see below |
 * | the session is over | the end of its connection frees them |
 *
 * The locks belong to the connection of the session, which can break while the session goes on. Until the server notices, they remain. Then
 * another program can get one although the job still runs. In that case the session ends, and with it the claims: a job must not run on
 * without what it owns. Locks of our former connection are waited for: the session ends its backend, which takes a moment.
 *
 * The method is Pulp's, with its keys (`advisoryKey`).
 */
import { retryUntilAborted } from '../../../core/async/retry.ts'
import { NotConnected, ResourceLocked } from '../../../core/errors.ts'
import { advisoryKey, type PostgresConnection, type SqlDriver } from '../../../postgres/index.ts'
import type { BackendResources, OrphanedClaim, ResourceHolder } from '../../contract/index.ts'
import type { Posting } from '../../model/posting/posting.ts'
import { toResourceWants } from '../../model/resources.ts'
import { toJobName } from './commit/grouping.ts'
import type { PostgresBoard } from './store/board.ts'
import { translateErrors } from './store/errors.ts'

/** The pauses between two tries to take a lock again that a former connection still holds, in milliseconds. */
const RETAKE_PAUSES = { firstPauseMs: 10, maxPauseMs: 200 }

interface Lock {
  readonly name: string
  readonly key: bigint
  readonly exclusive: boolean
}

interface WantedLocks {
  readonly request: LockRequest
  readonly locks: readonly Lock[]
}

/** The locks of one claim. */
interface HeldLocks {
  readonly locks: readonly Lock[]
  /** The connection that holds them; undefined while they are tried again. */
  connection: PostgresConnection | undefined
}

/** The part of a claim request that locks need. */
export interface LockRequest {
  readonly id: string
  readonly posting: Posting
}

export class PostgresResources implements BackendResources {
  readonly #board: PostgresBoard
  readonly #held = new Map<string, HeldLocks>()
  /** The server processes of all connections that this session had. */
  readonly #backends = new Set<number>()

  constructor(board: PostgresBoard) {
    this.#board = board
  }

  /** Unlocks the resources of a claim that was taken away. */
  async freeOrphans({ id }: OrphanedClaim): Promise<void> {
    if (this.#board.isOpen) await this.unlock([id])
  }

  /** Returns the program that has locked a resource of the posting and is no session of this board. */
  async holder(posting: Posting): Promise<ResourceHolder | undefined> {
    this.#board.assertOpen()
    const locks = this.#locksOf(posting)
    if (locks.length === 0) return undefined
    const holders = await translateErrors('looking for locked resources', () =>
      this.#holdersOf(this.#board.pool, locks),
    )
    for (const { key, name, exclusive } of locks) {
      const holder = holders.get(key)
      if (!holder || holder.isOurs || !(exclusive || holder.exclusive)) continue
      return { resource: name, pid: holder.pid, application: holder.application }
    }
    return undefined
  }

  /**
   * Locks the resources of jobs that are about to be claimed: for each job all of them, or none.
   *
   * @returns the error of each job that has a resource which another program, or another session of this board, has locked
   * @throws NotConnected
   */
  async take(requests: readonly LockRequest[]): Promise<ReadonlyMap<LockRequest, ResourceLocked>> {
    const { uri } = this.#board
    const wanted = requests.flatMap((request) => {
      const locks = this.#locksOf(request.posting)
      return locks.length > 0 ? [{ request, locks }] : []
    })
    if (wanted.length === 0) return NONE_REFUSED
    await this.unlock(wanted.map(({ request }) => request.id))
    const { connection } = this.#board
    if (!connection) throw new NotConnected(`locking resources of ${uri}: the session has no connection now`)
    return translateErrors(`locking resources of ${uri}`, async () => {
      try {
        const refused = await this.#takeOn(connection, wanted)
        // The next connection has begun to take the locks again, and has not seen these.
        if (this.#board.connection !== connection) throw new NotConnected('the connection is broken')
        return refused
      } catch (error) {
        for (const { request } of wanted) this.#held.delete(request.id)
        // A failed statement keeps the locks that it has taken so far. It is not known which these are, so the connection is ended with
        // them.
        connection.disconnect(error)
        throw error
      }
    })
  }

  async #takeOn(
    connection: PostgresConnection,
    wanted: readonly WantedLocks[],
  ): Promise<ReadonlyMap<LockRequest, ResourceLocked>> {
    const all = wanted.flatMap(({ locks }) => locks)
    const locked = await this.#tryLocks(connection, all)
    const needless: Lock[] = []
    const refused: { readonly request: LockRequest; readonly lock: Lock }[] = []
    for (const { request, locks } of wanted) {
      const lock = locks.find((one) => !locked.has(one))
      if (lock) {
        refused.push({ request, lock })
        needless.push(...locks.filter((one) => locked.has(one)))
      } else this.#held.set(request.id, { locks, connection })
    }
    if (refused.length === 0) return NONE_REFUSED
    await unlock(connection, needless)
    const holders = await this.#holdersOf(
      connection,
      refused.map(({ lock }) => lock),
    )
    return new Map(
      refused.map(({ request, lock }) => [request, toLockedError(request.posting, lock, holders.get(lock.key))]),
    )
  }

  /** Unlocks the resources of these jobs. A broken connection has unlocked them already. */
  async unlock(ids: readonly string[]): Promise<void> {
    const current = this.#board.connection
    const locks: Lock[] = []
    for (const id of ids) {
      const held = this.#held.get(id)
      if (!held) continue
      this.#held.delete(id)
      if (current && held.connection === current) locks.push(...held.locks)
    }
    if (!current || locks.length === 0) return
    // A lock that stays would keep its resource from others for as long as this process lives: it ends with the connection.
    await unlock(current, locks).catch((error: unknown) => current.disconnect(error))
  }

  /** Takes all locks again on the present connection, until it is lost. Called when the session goes on over another connection. */
  async retake(): Promise<void> {
    const { connection } = this.#board
    if (!connection) return
    for (const held of this.#held.values()) if (held.connection !== connection) held.connection = undefined
    const options = { ...RETAKE_PAUSES, signal: connection.lost, onRetry: () => undefined }
    await retryUntilAborted(() => this.#retakeOn(connection), options)
  }

  /** Forgets all locks: the session is over, and the end of its connection frees them. */
  clear(): void {
    this.#held.clear()
    this.#backends.clear()
  }

  /** @throws Error while a former connection still holds some of the locks */
  async #retakeOn(connection: PostgresConnection): Promise<void> {
    const left: Lock[] = []
    for (const [id, held] of this.#held) {
      if (held.connection !== undefined) continue
      const locked = await this.#tryLocks(connection, held.locks)
      const missing = held.locks.filter((one) => !locked.has(one))
      // The claim may have ended meanwhile.
      const isHeld = this.#held.get(id) === held
      if (isHeld && missing.length === 0) held.connection = connection
      else await unlock(connection, [...locked])
      if (isHeld) left.push(...missing)
    }
    if (left.length === 0) return
    const holders = await this.#holdersOf(connection, left)
    for (const { key, name } of left) {
      const holder = holders.get(key)
      if (holder && !this.#backends.has(holder.pid)) this.#reportTaken(name, holder)
    }
    throw new Error('a former connection still holds resources')
  }

  #reportTaken(name: string, holder: LockHolder): void {
    const who = describeHolder(holder)
    const why = `${who} has locked resource ${name} of a claim while the connection was broken`
    this.#board.session?.markLost(new NotConnected(`${this.#board.uri}: the session is over: ${why}`))
  }

  #locksOf(posting: Posting): readonly Lock[] {
    if (posting.resources === undefined || !this.#board.options.advisoryLocks) return []
    const { exclusive, shared } = toResourceWants(posting)
    return [
      ...exclusive.map((name) => ({ name, key: advisoryKey(name), exclusive: true })),
      ...shared.map((name) => ({ name, key: advisoryKey(name), exclusive: false })),
    ]
  }

  /** Tries to take the locks. Returns the ones that the connection holds now. */
  async #tryLocks(connection: PostgresConnection, locks: readonly Lock[]): Promise<ReadonlySet<Lock>> {
    const { rows } = await connection.query(TRY_LOCKS, toParameters(locks))
    const { backend, locked } = rows[0] ?? {}
    this.#backends.add(Number(backend))
    return new Set(Array.isArray(locked) ? locks.filter((_, index) => locked[index] === true) : [])
  }

  /** Returns a holder of each key that is locked by another connection than this one. */
  async #holdersOf(driver: SqlDriver, locks: readonly Lock[]): Promise<ReadonlyMap<bigint, LockHolder>> {
    const { schema, number } = this.#board
    const text = FIND_HOLDERS.replace(':SCHEMA', schema)
    const { rows } = await driver.query(text, [locks.map(({ key }) => String(key)), number])
    return new Map(
      rows.map(({ key, pid, application, exclusive, ours }) => [
        BigInt(String(key)),
        { pid: Number(pid), application: String(application), exclusive: exclusive === true, isOurs: ours === true },
      ]),
    )
  }
}

interface LockHolder {
  /** The process of the server that holds the lock. */
  readonly pid: number
  readonly application: string
  readonly exclusive: boolean
  /** Whether it is the connection of a session of this board. */
  readonly isOurs: boolean
}

const NONE_REFUSED: ReadonlyMap<LockRequest, ResourceLocked> = new Map()

const TRY_LOCKS = `SELECT pg_backend_pid() AS backend, pg_catalog.array_agg(
    CASE WHEN exclusive THEN pg_try_advisory_lock(key) ELSE pg_try_advisory_lock_shared(key) END ORDER BY at) AS locked
  FROM ROWS FROM (pg_catalog.unnest($1::bigint[]), pg_catalog.unnest($2::boolean[])) WITH ORDINALITY AS wanted(key, exclusive, at)`

const UNLOCK = `SELECT pg_catalog.count(CASE WHEN exclusive THEN pg_advisory_unlock(key) ELSE pg_advisory_unlock_shared(key) END)
  FROM ROWS FROM (pg_catalog.unnest($1::bigint[]), pg_catalog.unnest($2::boolean[])) AS held(key, exclusive)`

/** A key of 64 bits is shown in two halves without a sign, with objsubid 1. */
const FIND_HOLDERS = `SELECT wanted.key::text AS key, l.pid, coalesce(a.application_name, '') AS application,
    l.mode = 'ExclusiveLock' AS exclusive,
    EXISTS (SELECT FROM :SCHEMA.sessions s WHERE s.board = $2 AND s.backend = l.pid) AS ours
  FROM pg_catalog.unnest($1::bigint[]) AS wanted(key)
  JOIN pg_locks l ON l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted AND l.pid <> pg_backend_pid()
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND l.classid::bigint = (wanted.key >> 32) & 4294967295 AND l.objid::bigint = wanted.key & 4294967295
  LEFT JOIN pg_stat_activity a ON a.pid = l.pid
  ORDER BY ours DESC, l.pid`

async function unlock(connection: PostgresConnection, locks: readonly Lock[]): Promise<void> {
  if (locks.length > 0) await connection.query(UNLOCK, toParameters(locks))
}

function toParameters(locks: readonly Lock[]): unknown[] {
  return [locks.map(({ key }) => String(key)), locks.map(({ exclusive }) => exclusive)]
}

function toLockedError(posting: Posting, lock: Lock, holder: LockHolder | undefined): ResourceLocked {
  const who = holder === undefined ? 'another program' : describeHolder(holder)
  return new ResourceLocked(`claim of ${toJobName(posting)}: ${who} has locked resource ${lock.name}`, {
    resource: lock.name,
    ...(holder && !holder.isOurs ? { holder: { pid: holder.pid, application: holder.application } } : {}),
  })
}

/** Names the holder of a lock for people, such as `backend 4711 (psql)`. */
function describeHolder({ pid, application }: Pick<LockHolder, 'pid' | 'application'>): string {
  return `backend ${pid}${application === '' ? '' : ` (${application})`}`
}
