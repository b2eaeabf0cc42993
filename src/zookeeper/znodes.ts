/** Operations on znodes, with the paths and the types of users. */
import { InvalidArgument } from '../core/errors.ts'
import { defined } from '../core/options.ts'
import type { RequestOptions } from './connection/pending.ts'
import { ACL, type Acl } from './protocol/acl.ts'
import { assertList } from './protocol/arguments.ts'
import { type Created, type CreateMode, create } from './protocol/create.ts'
import { type AnyResult, multi } from './protocol/multi.ts'
import { multiRead } from './protocol/multi-read.ts'
import type { Op, ReadOp, ReadResultsOf, ResultsOf } from './protocol/ops.ts'
import type { Stat } from './protocol/records.ts'
import * as requests from './protocol/requests.ts'
import { mapReply } from './protocol/requests.ts'
import type { RequestSender } from './session/request-sender.ts'
import * as tree from './tree.ts'
import type { ReadOptions, WatchManager } from './watches/watch-manager.ts'

type VersionOptions = RequestOptions & { readonly version?: number }

const ANY_VERSION = -1
const SEQUENTIAL = { sequential: true } as const

/**
 * The operations of a client on znodes.
 *
 * Every operation costs one round trip unless stated otherwise; writes also cost a transaction of the ensemble, even
 * refused ones. Paths are checked here: InvalidArgument for malformed ones. Every operation takes a `signal` that
 * cancels it, and a `session`: it is sent in that session or not at all (SessionExpired).
 */
export class Znodes {
  /** ACL of znodes that are created without an `acl` of their own, from now on. */
  acl: readonly Acl[]
  readonly #sender: RequestSender
  readonly #watching: WatchManager

  constructor(sender: RequestSender, watching: WatchManager, acl: readonly Acl[] = ACL.open) {
    this.acl = acl
    this.#sender = sender
    this.#watching = watching
  }

  // --- Writing ------------------------------------------------------------------------------------------------------

  /**
   * Creates a znode. Without `data` it has null, which is not the same as empty data.
   *
   * @param options `ephemeral`: it lives as long as this session. `sequential`: the server appends ten digits, counted
   * per parent, to the name. `container`: it is deleted some time after its last child. `ttl`: it is deleted when it
   * has not been written for that time and has no children. `acl`: its ACL; the client's by default
   * @throws NodeExists, NoNode (no parent), NoChildrenForEphemerals, NoAuth, InvalidAcl, QuotaExceeded; Unimplemented
   * for a `ttl` where servers were not set up for it
   */
  create(path: string, data: Uint8Array | null = null, options: CreateMode & RequestOptions = {}): Promise<Created> {
    const sequential = options.sequential === true
    return this.#sender.send(() => {
      const request = create(this.#sender.toServerPath(path, { sequential }), data, {
        ...options,
        acl: options.acl ?? this.acl,
      })
      return mapReply(request, ({ path: created, stat }) => ({ path: this.#sender.toUserPath(created), stat }))
    }, options)
  }

  /**
   * Deletes a znode without children.
   *
   * @param options.version the version that the znode must have; any by default
   * @throws NoNode, BadVersion, NotEmpty, NoAuth
   */
  delete(path: string, options: VersionOptions = {}): Promise<void> {
    const { version = ANY_VERSION } = options
    return this.#sender.send(() => requests.remove(this.#sender.toServerPath(path), version), options)
  }

  /**
   * Writes the data of a znode.
   *
   * @param options.version the version that the znode must have; any by default
   * @throws NoNode, BadVersion, NoAuth, QuotaExceeded
   */
  setData(path: string, data: Uint8Array | null, options: VersionOptions = {}): Promise<Stat> {
    const { version = ANY_VERSION } = options
    return this.#sender.send(() => requests.setData(this.#sender.toServerPath(path), data, version), options)
  }

  /**
   * Replaces the ACL of a znode.
   *
   * @param options.aversion the ACL's version, as in the Stat; any by default
   * @throws NoNode, BadVersion, NoAuth (it takes ADMIN), InvalidAcl (an empty list, or a scheme without an identity)
   */
  setACL(
    path: string,
    acl: readonly Acl[],
    options: RequestOptions & { readonly aversion?: number } = {},
  ): Promise<Stat> {
    const { aversion = ANY_VERSION } = options
    return this.#sender.send(() => requests.setAcl(this.#sender.toServerPath(path), acl, aversion), options)
  }

  // --- Reading ------------------------------------------------------------------------------------------------------

  /**
   * Returns the Stat of a znode; undefined where there is none.
   *
   * @param options.watch called when the znode is created, deleted or written
   * @throws InvalidState when this client has a persistent watch on the same path
   */
  exists(path: string, options: ReadOptions = {}): Promise<Stat | undefined> {
    return this.#watching.read(path, 'data', options, requests.exists)
  }

  /**
   * Reads the data of a znode.
   *
   * @param options.watch called when the znode is deleted or written
   * @throws NoNode, NoAuth; InvalidState as for `exists`
   */
  getData(path: string, options: ReadOptions = {}): Promise<requests.ReadData> {
    return this.#watching.read(path, 'data', options, requests.getData)
  }

  /**
   * Returns the names of the children, in no order.
   *
   * @param options.watch called when a child is created or deleted, and when the znode itself is deleted
   * @throws NoNode, NoAuth; InvalidState as for `exists`
   */
  getChildren(path: string, options: ReadOptions = {}): Promise<{ readonly names: string[]; readonly stat: Stat }> {
    return this.#watching.read(path, 'children', options, requests.getChildren)
  }

  /**
   * Counts the znodes below this one, at any depth. The server walks through all of its znodes.
   *
   * @throws NoNode, NoAuth
   */
  getAllChildrenNumber(path: string, options: RequestOptions = {}): Promise<number> {
    return this.#sender.send(() => requests.getAllChildrenNumber(this.#sender.toServerPath(path)), options)
  }

  /**
   * Returns the paths of this session's ephemeral znodes, in no order.
   *
   * @param options.under only this znode and what is below it; all by default
   */
  getEphemerals(options: RequestOptions & { readonly under?: string } = {}): Promise<string[]> {
    const { under = '/' } = options
    // The server compares prefixes of texts, so for it /ab is below /a.
    const below = under === '/' ? '/' : `${under}/`
    const isMeant = (path: string) => path === under || path.startsWith(below)
    return this.#sender.send(
      () =>
        mapReply(requests.getEphemerals(this.#sender.toServerPath(under)), (found) =>
          this.#sender.toUserPaths(found).filter(isMeant),
        ),
      options,
    )
  }

  /**
   * Returns the ACL of a znode. The server shows hashes of `digest` identities only to clients with ADMIN.
   *
   * @throws NoNode, NoAuth
   */
  getACL(path: string, options: RequestOptions = {}): Promise<{ readonly acl: Acl[]; readonly stat: Stat }> {
    return this.#sender.send(() => requests.getAcl(this.#sender.toServerPath(path)), options)
  }

  /**
   * Lets the attached server catch up with the leader: a read after it sees every write that was answered before it,
   * whichever client made it. It need not be awaited: send it, and the read right after it.
   */
  sync(path: string, options: RequestOptions = {}): Promise<void> {
    return this.#sender.send(() => requests.sync(this.#sender.toServerPath(path)), options)
  }

  // --- Several at once ------------------------------------------------------------------------------------------------

  /**
   * Executes one transaction: all operations, in order, or none. They see each other's effects.
   *
   * @throws the error of the refused operation, whose `index` names it
   * @example
   * const { zxid, results: [, created] } = await zookeeper.multi([op.check('/a', { version: 3 }), op.create('/a/b', null)])
   */
  multi<const Ops extends readonly Op[]>(
    ops: Ops,
    options: RequestOptions = {},
  ): Promise<{ zxid: bigint; results: ResultsOf<Ops> }> {
    const outward = (each: Op): Op => {
      if (each.type !== 'create') {
        const path = this.#sender.toServerPath(each.path)
        return path === each.path ? each : { ...each, path }
      }
      const path = this.#sender.toServerPath(each.path, each.sequential ? SEQUENTIAL : undefined)
      const acl = each.acl ?? this.acl
      // Copied only where something differs: a multi may hold a thousand operations.
      return path === each.path && acl === (each.acl ?? ACL.open) ? each : { ...each, path, acl }
    }
    const inward = (result: AnyResult): AnyResult => {
      if (!result || !('path' in result)) return result
      const path = this.#sender.toUserPath(result.path)
      return path === result.path ? result : { ...result, path }
    }
    return this.#sender.send(
      () =>
        // The answer is read with one result per operation, of its type.
        mapReply(multi(checkList(ops, 'multi').map(outward), ops), ({ zxid, results }) => ({
          zxid,
          results: results.map(inward) as ResultsOf<Ops>,
        })),
      options,
    )
  }

  /**
   * Executes several reads in one request, all at one moment if nothing is written in between. A refused read has an
   * `error` in its place; the others are answered.
   *
   * @returns `zxid` is the newest transaction that the server had applied
   * @example
   * const { results: [gate, jobs] } = await zookeeper.multiRead([op.getData('/gate'), op.getChildren('/jobs')])
   * if (!gate.error) console.log(gate.data)
   */
  multiRead<const Ops extends readonly ReadOp[]>(
    ops: Ops,
    options: RequestOptions = {},
  ): Promise<{ zxid: bigint; results: ReadResultsOf<Ops> }> {
    const outward = (each: ReadOp): ReadOp => {
      const path = this.#sender.toServerPath(each.path)
      return path === each.path ? each : { ...each, path }
    }
    return this.#sender.send(
      () =>
        // The answer is read with one result per operation, of its type.
        mapReply(multiRead(checkList(ops, 'multiRead').map(outward), ops), ({ zxid, results }) => ({
          zxid,
          results: results as ReadResultsOf<Ops>,
        })),
      options,
    )
  }

  // --- Whole trees ----------------------------------------------------------------------------------------------------

  /**
   * Creates a znode and its missing ancestors, without data. Costs two round trips, and a transaction for each created
   * znode. For `/` under a chroot it creates the chroot.
   *
   * @param options.acl ACL of each created znode; the client's `acl` by default
   */
  async mkdirp(path: string, options: RequestOptions & { readonly acl?: readonly Acl[] } = {}): Promise<void> {
    const { acl = this.acl } = options
    await tree.createPath((request) => this.#sender.send(() => request, options), this.#sender.toServerPath(path), {
      acl,
    })
  }

  /**
   * Deletes a znode and everything below it, children first, in several transactions. It also deletes what is created
   * meanwhile, in a limited number of rounds.
   *
   * @param options.limit the largest number of znodes to delete; 100,000 by default
   * @returns the number of deleted znodes; 0 where there was none
   * @throws InvalidState before anything is deleted when there are more than `limit`
   * @throws NotEmpty when children are created faster than they are deleted
   */
  async deleteRecursive(path: string, options: RequestOptions & { readonly limit?: number } = {}): Promise<number> {
    const inward = (each: string) => this.#sender.toUserPath(each)
    const ask: tree.SendRequest = (request) => this.#sender.send(() => request, options)
    return tree.deleteTree(ask, this.#sender.toServerPath(path), { inward, ...defined({ limit: options.limit }) })
  }
}

function checkList<T>(ops: readonly T[], what: string): readonly T[] {
  assertList(ops, what)
  const wrong = ops.findIndex((each) => typeof each !== 'object' || each === null)
  if (wrong < 0) return ops
  throw new InvalidArgument(
    `${what}: operation ${wrong} is not an operation; make it with op.create, op.getData and so on`,
  )
}
