/** Znodes: everything that can be asked about them, with the paths and the types of users. */
import { InvalidArgument } from '../core/errors.ts'
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
import type { RequestSender } from './session/requester.ts'
import * as tree from './tree.ts'
import type { ReadOptions, WatchManager } from './watches/watch-manager.ts'

type VersionOptions = RequestOptions & { readonly version?: number }

const ANY_VERSION = -1
const SEQUENTIAL = { sequential: true } as const

/**
 * The part of a client that is about znodes.
 *
 * Every operation costs one round trip unless it says otherwise; writes also a transaction of the ensemble, even those
 * that are refused. Paths are checked here: InvalidArgument for malformed ones. Every operation takes a `signal` to be
 * given up and a `session` to be sent on that one or not at all (SessionExpired).
 */
export class Znodes {
  /** Who may do what with znodes that are created without an `acl` of their own, from now on. */
  acl: readonly Acl[]
  readonly #sender: RequestSender
  readonly #watching: WatchManager

  constructor(asker: RequestSender, watching: WatchManager, acl: readonly Acl[] = ACL.open) {
    this.acl = acl
    this.#sender = asker
    this.#watching = watching
  }

  // --- Writing ------------------------------------------------------------------------------------------------------

  /**
   * Creates a znode. Without data it has none (null), which is not the same as empty data.
   *
   * @param options `ephemeral`: it lives as long as this session. `sequential`: the server appends ten digits, counted per
   * parent, to the name. `container`: it goes some time after its last child. `ttl`: it goes when it has not been written
   * for so long and has no children. `acl`: who may do what with it; the client's by default
   * @throws NodeExists, NoNode (no parent), NoChildrenForEphemerals, NoAuth, InvalidAcl, QuotaExceeded; Unimplemented for
   * a `ttl` where servers were not set up for it
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
   * @param options.version what the znode must be at; any by default
   * @throws NoNode, BadVersion, NotEmpty, NoAuth
   */
  delete(path: string, options: VersionOptions = {}): Promise<void> {
    const { version = ANY_VERSION } = options
    return this.#sender.send(() => requests.remove(this.#sender.toServerPath(path), version), options)
  }

  /**
   * @param options.version what the znode must be at; any by default
   * @throws NoNode, BadVersion, NoAuth, QuotaExceeded
   */
  setData(path: string, data: Uint8Array | null, options: VersionOptions = {}): Promise<Stat> {
    const { version = ANY_VERSION } = options
    return this.#sender.send(() => requests.setData(this.#sender.toServerPath(path), data, version), options)
  }

  /**
   * Replaces who may do what.
   *
   * @param options.aversion how often the ACL was changed before, as its Stat says; any by default
   * @throws NoNode, BadVersion, NoAuth (it takes ADMIN), InvalidAcl (an empty list, or nobody behind an identity)
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
   * Undefined where there is no such znode.
   *
   * @param options.watch called when it is created, deleted or written
   * @throws InvalidState when a watch is asked for beside a persistent one of this client on the same path
   */
  exists(path: string, options: ReadOptions = {}): Promise<Stat | undefined> {
    return this.#watching.read(path, 'data', options, requests.exists)
  }

  /**
   * @param options.watch called when it is deleted or written
   * @throws NoNode, NoAuth; InvalidState as for `exists`
   */
  getData(path: string, options: ReadOptions = {}): Promise<requests.ReadData> {
    return this.#watching.read(path, 'data', options, requests.getData)
  }

  /**
   * The names of the children, in no order.
   *
   * @param options.watch called when a child is created or deleted, and when the znode itself is deleted
   * @throws NoNode, NoAuth; InvalidState as for `exists`
   */
  getChildren(path: string, options: ReadOptions = {}): Promise<{ readonly names: string[]; readonly stat: Stat }> {
    return this.#watching.read(path, 'children', options, requests.getChildren)
  }

  /**
   * How many znodes there are under this one, at any depth. The server walks through all znodes that it has.
   *
   * @throws NoNode, NoAuth
   */
  getAllChildrenNumber(path: string, options: RequestOptions = {}): Promise<number> {
    return this.#sender.send(() => requests.getAllChildrenNumber(this.#sender.toServerPath(path)), options)
  }

  /**
   * The ephemeral znodes of this session, in no order.
   *
   * @param options.under only this znode and what is below it; all by default
   */
  getEphemerals(options: RequestOptions & { readonly under?: string } = {}): Promise<string[]> {
    const { under = '/' } = options
    // The server compares the beginnings of texts, and takes /ab for something below /a.
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
   * Who may do what. The hashes of `digest` identities are told only to those who may ADMIN.
   *
   * @throws NoNode, NoAuth
   */
  getACL(path: string, options: RequestOptions = {}): Promise<{ readonly acl: Acl[]; readonly stat: Stat }> {
    return this.#sender.send(() => requests.getAcl(this.#sender.toServerPath(path)), options)
  }

  /**
   * Lets the server this client is attached to catch up with the leader: what is read after it shows every write that
   * was answered, to anybody, before it. There is no need to await it: ask, and read right behind it.
   */
  sync(path: string, options: RequestOptions = {}): Promise<void> {
    return this.#sender.send(() => requests.sync(this.#sender.toServerPath(path)), options)
  }

  // --- Several at once ------------------------------------------------------------------------------------------------

  /**
   * One transaction: all operations, in order, or none. They see each other's effects.
   *
   * @throws the error of the operation that was refused; its `index` says which
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
      // Copied only where it says something else than what was asked: a multi may hold a thousand of them.
      return path === each.path && acl === (each.acl ?? ACL.open) ? each : { ...each, path, acl }
    }
    const inward = (result: AnyResult): AnyResult => {
      if (!result || !('path' in result)) return result
      const path = this.#sender.toUserPath(result.path)
      return path === result.path ? result : { ...result, path }
    }
    return this.#sender.send(
      () =>
        // One result per operation, of its type, is what the answer is read as.
        mapReply(multi(checkList(ops, 'multi').map(outward), ops), ({ zxid, results }) => ({
          zxid,
          results: results.map(inward) as ResultsOf<Ops>,
        })),
      options,
    )
  }

  /**
   * Several reads in one request, seen at one moment where nothing is written in between. One that is refused has an
   * `error` in its place; the others are answered all the same.
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
        // One result per operation, of its type, is what the answer is read as.
        mapReply(multiRead(checkList(ops, 'multiRead').map(outward), ops), ({ zxid, results }) => ({
          zxid,
          results: results as ReadResultsOf<Ops>,
        })),
      options,
    )
  }

  // --- Whole trees ----------------------------------------------------------------------------------------------------

  /**
   * Makes a znode and whatever is missing above it, without data. Two round trips; a transaction for each that is made.
   * Of `/` under a chroot it makes the chroot.
   *
   * @param options.acl of each znode that is made; the client's `acl` by default
   */
  async mkdirp(path: string, options: RequestOptions & { readonly acl?: readonly Acl[] } = {}): Promise<void> {
    const { acl = this.acl } = options
    await tree.createPath((request) => this.#sender.send(() => request, options), this.#sender.toServerPath(path), {
      acl,
    })
  }

  /**
   * Deletes a znode and everything under it, children first, in several transactions. What is made meanwhile is deleted,
   * too, up to a point.
   *
   * @param options.limit how many znodes may be deleted; 100,000 by default
   * @returns how many were deleted; 0 where there was nothing
   * @throws InvalidState before anything is deleted when there are more than `limit`
   * @throws NotEmpty when children are made faster than they are deleted
   */
  async deleteRecursive(path: string, options: RequestOptions & { readonly limit?: number } = {}): Promise<number> {
    const inward = (each: string) => this.#sender.toUserPath(each)
    const limit = options.limit === undefined ? {} : { limit: options.limit }
    const ask: tree.SendRequest = (request) => this.#sender.send(() => request, options)
    return tree.deleteTree(ask, this.#sender.toServerPath(path), { inward, ...limit })
  }
}

function checkList<T>(ops: readonly T[], what: string): readonly T[] {
  assertList(ops, what)
  const wrong = ops.findIndex((each) => typeof each !== 'object' || each === null)
  if (wrong < 0) return ops
  throw new InvalidArgument(`${what}: operation ${wrong} is none; op.create, op.getData and their like make them`)
}
