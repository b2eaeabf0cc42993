/** The operations that several of make a multi: those that change something, and those that only read. */
import { checkNames } from './arguments.ts'
import type { CreateMode } from './create.ts'
import type { ZooKeeperError } from './errors.ts'
import type { Stat } from './records.ts'
import type { ReadData } from './requests.ts'

/** Of a multi: makes a znode. Made by `op.create`. */
export type CreateOp = CreateMode & {
  readonly type: 'create'
  readonly path: string
  readonly data: Uint8Array | null
}

/** Of a multi: deletes a znode. Made by `op.delete`. */
export interface DeleteOp {
  readonly type: 'delete'
  readonly path: string
  readonly version: number
}

/** Of a multi: writes data. Made by `op.setData`. */
export interface SetDataOp {
  readonly type: 'setData'
  readonly path: string
  readonly data: Uint8Array | null
  readonly version: number
}

/** Of a multi: refuses all of it unless the znode is there, at that version if one is named. Made by `op.check`. */
export interface CheckOp {
  readonly type: 'check'
  readonly path: string
  readonly version: number
}

/** Of a multi of reads: the data. Made by `op.getData`. */
export interface GetDataOp {
  readonly type: 'getData'
  readonly path: string
}

/** Of a multi of reads: the names of the children. Made by `op.getChildren`. */
export interface GetChildrenOp {
  readonly type: 'getChildren'
  readonly path: string
}

/** What a `multi` is made of. */
export type Op = CreateOp | DeleteOp | SetDataOp | CheckOp
/** What a `multiRead` is made of. */
export type ReadOp = GetDataOp | GetChildrenOp

const ANY_VERSION = -1

function checkOpVersion(options: { readonly version?: number }): number {
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
  create: (path: string, data: Uint8Array | null, mode: CreateMode = {}): CreateOp => {
    checkNames(mode)
    return { ...mode, type: 'create', path, data }
  },
  /** @param options.version what the znode must be at; any by default */
  delete: (path: string, options: { readonly version?: number } = {}): DeleteOp => ({
    type: 'delete',
    path,
    version: checkOpVersion(options),
  }),
  /** @param options.version what the znode must be at; any by default */
  setData: (path: string, data: Uint8Array | null, options: { readonly version?: number } = {}): SetDataOp => ({
    type: 'setData',
    path,
    data,
    version: checkOpVersion(options),
  }),
  /** Changes nothing; fails the multi unless the znode is there, at the version if one is named. */
  check: (path: string, options: { readonly version?: number } = {}): CheckOp => ({
    type: 'check',
    path,
    version: checkOpVersion(options),
  }),
  getData: (path: string): GetDataOp => ({ type: 'getData', path }),
  /** In a multiRead without the Stat, which the protocol leaves out there. */
  getChildren: (path: string): GetChildrenOp => ({ type: 'getChildren', path }),
} as const

/** What was made by a create of a multi. */
export interface CreatedInMulti {
  /** With its digits, if it is sequential. */
  readonly path: string
  /**
   * Only where the server tells it: of containers and znodes with a TTL, not of others. In any case the multi's zxid is
   * the znode's czxid, mzxid and pzxid.
   */
  readonly stat?: Stat
}

/** What an operation of a multi answers: the path created, the Stat after a setData. */
export type ResultOf<O> = O extends CreateOp ? CreatedInMulti : O extends SetDataOp ? Stat : undefined
/** What a multi answers, operation by operation. */
export type ResultsOf<Ops extends readonly Op[]> = { -readonly [K in keyof Ops]: ResultOf<Ops[K]> }

/** What a read answers, or why it was refused: the others are not refused with it. */
export type ReadResult<T> =
  | (T & { readonly error?: undefined })
  | ({ readonly [K in keyof T]?: undefined } & { readonly error: ZooKeeperError })

/** What one read of a multi of reads answers. */
export type ReadResultOf<O> = O extends GetDataOp
  ? ReadResult<ReadData>
  : O extends GetChildrenOp
    ? ReadResult<{ readonly names: string[] }>
    : never
/** What a multi of reads answers, read by read. */
export type ReadResultsOf<Ops extends readonly ReadOp[]> = { -readonly [K in keyof Ops]: ReadResultOf<Ops[K]> }
