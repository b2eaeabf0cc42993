/** Operations of multis: operations that change something, and operations that only read. */
import { checkNames } from './arguments.ts'
import type { CreateMode } from './create.ts'
import type { ZooKeeperError } from './errors.ts'
import type { Stat } from './records.ts'
import type { ReadData } from './requests.ts'

/** Operation of a multi that creates a znode. Made by `op.create`. */
export type CreateOp = CreateMode & {
  readonly type: 'create'
  readonly path: string
  readonly data: Uint8Array | null
  /** @internal Whether no caller needs the result, which is undefined then. */
  readonly isUnread?: true
}

/** Operation of a multi that deletes a znode. Made by `op.delete`. */
export interface DeleteOp {
  readonly type: 'delete'
  readonly path: string
  readonly version: number
}

/** Operation of a multi that writes data. Made by `op.setData`. */
export interface SetDataOp {
  readonly type: 'setData'
  readonly path: string
  readonly data: Uint8Array | null
  readonly version: number
  /** @internal Whether no caller needs the result, which is undefined then. */
  readonly isUnread?: true
}

/** Operation of a multi that fails it unless the znode exists, at the given version if any. Made by `op.check`. */
export interface CheckOp {
  readonly type: 'check'
  readonly path: string
  readonly version: number
}

/** Operation of a multiRead that reads data. Made by `op.getData`. */
export interface GetDataOp {
  readonly type: 'getData'
  readonly path: string
  /** @internal Whether the data are a view of all bytes that were received together, for a caller that decodes them at once. */
  readonly isView?: true
}

/** Operation of a multiRead that lists the children. Made by `op.getChildren`. */
export interface GetChildrenOp {
  readonly type: 'getChildren'
  readonly path: string
}

/** Operations of a `multi`. */
export type Op = CreateOp | DeleteOp | SetDataOp | CheckOp
/** Operations of a `multiRead`. */
export type ReadOp = GetDataOp | GetChildrenOp

const ANY_VERSION = -1

function checkOpVersion(options: { readonly version?: number } | undefined): number {
  if (options === undefined) return ANY_VERSION
  checkNames(options)
  return options.version ?? ANY_VERSION
}

/**
 * Makes the operations of a multi and of a multiRead.
 *
 * @example
 * const { zxid, results } = await zookeeper.multi([op.check('/gate'), op.create('/lock', null, { ephemeral: true })])
 * const { results: [gate, jobs] } = await zookeeper.multiRead([op.getData('/gate'), op.getChildren('/jobs')])
 */
export const op = {
  create: (path: string, data: Uint8Array | null, mode?: CreateMode): CreateOp => {
    if (mode === undefined) return { type: 'create', path, data }
    checkNames(mode)
    return { type: 'create', path, data, ...mode }
  },
  /** @param options.version the version that the znode must have; any by default */
  delete: (path: string, options?: { readonly version?: number }): DeleteOp => ({
    type: 'delete',
    path,
    version: checkOpVersion(options),
  }),
  /** @param options.version the version that the znode must have; any by default */
  setData: (path: string, data: Uint8Array | null, options?: { readonly version?: number }): SetDataOp => ({
    type: 'setData',
    path,
    data,
    version: checkOpVersion(options),
  }),
  /** Changes nothing; fails the multi unless the znode exists, at the given version if any. */
  check: (path: string, options?: { readonly version?: number }): CheckOp => ({
    type: 'check',
    path,
    version: checkOpVersion(options),
  }),
  getData: (path: string): GetDataOp => ({ type: 'getData', path }),
  /** Lists the children. The protocol sends no Stat for it in a multiRead. */
  getChildren: (path: string): GetChildrenOp => ({ type: 'getChildren', path }),
} as const

/** Result of a create in a multi. */
export interface CreatedInMulti {
  /** Path, with the digits of a sequential znode. */
  readonly path: string
  /**
   * Stat, which the server sends for containers and znodes with a TTL only. The multi's zxid is always the znode's
   * czxid, mzxid and pzxid.
   */
  readonly stat?: Stat
}

/** Result of an operation of a multi: the path after a create, the Stat after a setData. */
export type ResultOf<O> = O extends CreateOp ? CreatedInMulti : O extends SetDataOp ? Stat : undefined
/** Results of a multi, one per operation. */
export type ResultsOf<Ops extends readonly Op[]> = { -readonly [K in keyof Ops]: ResultOf<Ops[K]> }

/** Result of a read, or the error that refused it; the other reads are not affected. */
export type ReadResult<T> =
  | (T & { readonly error?: undefined })
  | ({ readonly [K in keyof T]?: undefined } & { readonly error: ZooKeeperError })

/** Result of one read of a multiRead. */
export type ReadResultOf<O> = O extends GetDataOp
  ? ReadResult<ReadData>
  : O extends GetChildrenOp
    ? ReadResult<{ readonly names: string[] }>
    : never
/** Results of a multiRead, one per read. */
export type ReadResultsOf<Ops extends readonly ReadOp[]> = { -readonly [K in keyof Ops]: ReadResultOf<Ops[K]> }
