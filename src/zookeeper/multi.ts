/** Several operations as one transaction: all of them happen, in order, or none. */
import { errorOfCode } from './errors.ts'
import { type JuteReader, type JuteWriter, MalformedBytes } from './jute.ts'
import { OPCODE } from './opcodes.ts'
import { readStat, type Stat } from './records.ts'
import { type CreateMode, type Request, request, writeCreate } from './requests.ts'

export interface CreateOp extends CreateMode {
  readonly type: 'create'
  readonly path: string
  readonly data: Uint8Array | null
}

export interface DeleteOp {
  readonly type: 'delete'
  readonly path: string
  readonly version: number
}

export interface SetDataOp {
  readonly type: 'setData'
  readonly path: string
  readonly data: Uint8Array | null
  readonly version: number
}

export interface CheckOp {
  readonly type: 'check'
  readonly path: string
  readonly version: number
}

export type Op = CreateOp | DeleteOp | SetDataOp | CheckOp

const ANY_VERSION = -1

/**
 * Makes the operations of a multi.
 *
 * @example
 * const { zxid, results } = await zookeeper.multi([op.check('/gate'), op.create('/lock', null, { ephemeral: true })])
 */
export const op = {
  /** There is no Stat in the answer; the multi's zxid is the znode's czxid, mzxid and pzxid. */
  create: (path: string, data: Uint8Array | null, mode: CreateMode = {}): CreateOp => ({
    type: 'create',
    path,
    data,
    ...mode,
  }),
  /** @param options.version what the znode must be at; any by default */
  delete: (path: string, options: { version?: number } = {}): DeleteOp => ({
    type: 'delete',
    path,
    version: options.version ?? ANY_VERSION,
  }),
  /** @param options.version what the znode must be at; any by default */
  setData: (path: string, data: Uint8Array | null, options: { version?: number } = {}): SetDataOp => ({
    type: 'setData',
    path,
    data,
    version: options.version ?? ANY_VERSION,
  }),
  /** Changes nothing; fails the multi unless the znode is there, at the version if one is named. */
  check: (path: string, options: { version?: number } = {}): CheckOp => ({
    type: 'check',
    path,
    version: options.version ?? ANY_VERSION,
  }),
} as const

/** What an operation answers: the path created (with its digits, if sequential), the Stat after a setData. */
export type ResultOf<O> = O extends CreateOp ? { readonly path: string } : O extends SetDataOp ? Stat : undefined
export type ResultsOf<Ops extends readonly Op[]> = { -readonly [K in keyof Ops]: ResultOf<Ops[K]> }

type AnyResult = { readonly path: string } | Stat | undefined

export interface MultiAnswer {
  /** The transaction's id: all of its operations share it. */
  readonly zxid: bigint
  readonly results: readonly AnyResult[]
}

const OPCODE_OF = {
  create: OPCODE.create,
  delete: OPCODE.delete,
  setData: OPCODE.setData,
  check: OPCODE.check,
} as const satisfies Record<Op['type'], number>

/** In a failed multi: this operation came after the one that failed. */
const NOT_REACHED = -2

export function multi(ops: readonly Op[]): Request<MultiAnswer> {
  return request({
    operation: 'multi',
    opcode: OPCODE.multi,
    write: (writer) => {
      for (const each of ops) writeOp(writer, each)
      writeHeader(writer, -1, { done: true })
    },
    read: (body, zxid) => ({ zxid, results: readResults(body, ops) }),
  })
}

function writeHeader(writer: JuteWriter, type: number, options: { done: boolean }): void {
  writer.int(type).boolean(options.done).int(-1)
}

function writeOp(writer: JuteWriter, each: Op): void {
  writeHeader(writer, OPCODE_OF[each.type], { done: false })
  switch (each.type) {
    case 'create':
      writeCreate(writer, each.path, each.data, each)
      break
    case 'setData':
      writer.text(each.path).bytes(each.data).int(each.version)
      break
    case 'delete':
    case 'check':
      writer.text(each.path).int(each.version)
  }
}

/**
 * Reads the results in turn. A multi that failed is answered as if it had gone well, with an error for *every*
 * operation: 0 before the one to blame, its code, and {@link NOT_REACHED} after it.
 */
function readResults(body: JuteReader, ops: readonly Op[]): AnyResult[] {
  const results: AnyResult[] = []
  let failure: { index: number; code: number } | undefined
  for (let index = 0; ; index++) {
    const type = body.int()
    const done = body.boolean()
    body.int()
    if (done) {
      if (index !== ops.length) throw new MalformedBytes(`${index} results for a multi of ${ops.length} operations`)
      break
    }
    if (type === OPCODE.error) {
      const code = body.int()
      if (code !== 0 && (!failure || failure.code === NOT_REACHED)) failure = { index, code }
    }
    results.push(readResult(body, type))
  }
  if (!failure) return results
  const culprit = ops[failure.index]
  throw errorOfCode(failure.code, { operation: culprit?.type ?? 'multi', path: culprit?.path, index: failure.index })
}

/** By the type in the answer, not the one that was asked: 3.8 answers even a create2 as a create, without its Stat. */
function readResult(body: JuteReader, type: number): AnyResult {
  switch (type) {
    case OPCODE.create:
      return { path: body.text() }
    case OPCODE.create2: {
      const path = body.text()
      readStat(body)
      return { path }
    }
    case OPCODE.setData:
      return readStat(body)
    case OPCODE.delete:
    case OPCODE.check:
    case OPCODE.error:
      return undefined
    default:
      throw new MalformedBytes(`a result of type ${type} in a multi`)
  }
}
