/** Transactions of several operations: all are carried out, in order, or none. */
import { InvalidArgument } from '../../core/errors.ts'
import { checkData, checkVersion } from './arguments.ts'
import { toCreateKind, writeCreate } from './create.ts'
import { toError } from './errors.ts'
import { type JuteReader, type JuteWriter, MalformedBytes } from './jute.ts'
import { OPCODE } from './opcodes.ts'
import type { CreatedInMulti, Op } from './ops.ts'
import { readStat, STAT_BYTES, type Stat } from './records.ts'
import { type Request, request } from './requests.ts'

export type AnyResult = CreatedInMulti | Stat | undefined

export interface MultiAnswer {
  /** Id of the transaction, which all of its operations share. */
  readonly zxid: bigint
  readonly results: readonly AnyResult[]
}

/** Code, in a failed multi, of the operations after the failed one. */
const NOT_REACHED_CODE = -2

/**
 * Returns the request for a transaction.
 *
 * @param named the same operations with the paths that errors show
 * @throws InvalidArgument for an operation that only reads, and for an invalid create
 */
export function multi(ops: readonly Op[], named: readonly Op[] = ops): Request<MultiAnswer> {
  return request({
    operation: 'multi',
    opcode: OPCODE.multi,
    write: (writer) => {
      for (const each of ops) writeOp(writer, each)
      endParts(writer)
    },
    read: (body, zxid) => ({ zxid, results: readResults(body, named) }),
  })
}

function writeOp(writer: JuteWriter, each: Op): void {
  switch (each.type) {
    case 'create': {
      const kind = toCreateKind(each)
      // ZooKeeper 3.8 answers create2 in a multi like create, without a Stat, so the older operation is sent.
      beginPart(writer, kind.opcode === OPCODE.create2 ? OPCODE.create : kind.opcode)
      writeCreate(writer, each, kind)
      return
    }
    case 'setData':
      beginPart(writer, OPCODE.setData).text(each.path).bytes(checkData(each.data)).int(checkVersion(each.version))
      return
    case 'delete':
    case 'check':
      beginPart(writer, OPCODE[each.type]).text(each.path).int(checkVersion(each.version))
      return
    default:
      throw new InvalidArgument(`a multi cannot contain ${toOpcode(each)}; use a multiRead for reads`)
  }
}

function toOpcode(operation: { readonly type: string }): string {
  return operation.type
}

/**
 * Reads the results in turn. The header of a failed multi reports success, and *every* operation has an error: 0 before
 * the failed operation, the code of the failure at it, and {@link NOT_REACHED_CODE} after it.
 */
function readResults(body: JuteReader, ops: readonly Op[]): AnyResult[] {
  const failures: { readonly index: number; readonly code: number }[] = []
  const results = readParts(body, ops.length, (type, index): AnyResult => {
    if (type !== OPCODE.error) return isUnread(ops[index]) ? skipResult(body, type) : readResult(body, type)
    const code = body.int()
    if (code !== 0) failures.push({ index, code })
    return undefined
  })
  const failure = failures.find(({ code }) => code !== NOT_REACHED_CODE) ?? failures[0]
  if (!failure) return results
  const culprit = ops[failure.index]
  const operation = culprit?.type ?? 'multi'
  throw toError(failure.code, { operation, path: culprit?.path, index: failure.index })
}

/** Reads a result by the type in the answer, which differs from the type in the request for every kind of create. */
function readResult(body: JuteReader, type: number): AnyResult {
  switch (type) {
    case OPCODE.create:
      return { path: body.text() }
    case OPCODE.create2:
      return { path: body.text(), stat: readStat(body) }
    case OPCODE.setData:
      return readStat(body)
    case OPCODE.delete:
    case OPCODE.check:
      return undefined
    default:
      throw new MalformedBytes(`a result of type ${type} in a multi`)
  }
}

/** Returns whether the result of an operation can be stepped over. */
function isUnread(op: Op | undefined): boolean {
  return op !== undefined && 'isUnread' in op
}

function skipResult(body: JuteReader, type: number): AnyResult {
  if (type === OPCODE.create) body.skipText()
  else if (type === OPCODE.setData) body.skip(STAT_BYTES)
  else return readResult(body, type)
  return undefined
}

// --- The frame of both multis: parts with a header each, and a header that ends them -------------------------------

const END_TYPE = -1
const NO_ERROR_CODE = -1

export function beginPart(writer: JuteWriter, type: number): JuteWriter {
  return writer.int(type).boolean(false).int(NO_ERROR_CODE)
}

export function endParts(writer: JuteWriter): void {
  writer.int(END_TYPE).boolean(true).int(NO_ERROR_CODE)
}

/**
 * Reads the parts of a multi.
 *
 * @throws MalformedBytes unless there is exactly one result per operation
 */
export function readParts<T>(body: JuteReader, count: number, read: (type: number, index: number) => T): T[] {
  const parts: T[] = []
  for (;;) {
    const type = body.int()
    const done = body.boolean()
    body.int()
    if (done) break
    parts.push(read(type, parts.length))
  }
  if (parts.length !== count) throw new MalformedBytes(`${parts.length} results for a multi of ${count} operations`)
  return parts
}
