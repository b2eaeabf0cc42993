/** Requests of several reads. Each read is answered or refused on its own; one server answers all of them in order. */
import { InvalidArgument } from '../../core/errors.ts'
import { toError } from './errors.ts'
import { type JuteReader, type JuteWriter, MalformedBytes } from './jute.ts'
import { beginPart, endParts, readParts } from './multi.ts'
import { OPCODE } from './opcodes.ts'
import type { ReadOp, ReadResult } from './ops.ts'
import { type ReadData, type Request, readData, readDataView, readTexts, request } from './requests.ts'

type AnyReadResult = ReadResult<ReadData> | ReadResult<{ readonly names: string[] }>

export interface MultiReadAnswer {
  /** The newest transaction that the server had applied when it answered. */
  readonly zxid: bigint
  readonly results: readonly AnyReadResult[]
}

/**
 * Returns the request for several reads.
 *
 * @param named the same operations with the paths that errors show
 * @throws InvalidArgument for an operation that changes something
 */
export function multiRead(ops: readonly ReadOp[], named: readonly ReadOp[] = ops): Request<MultiReadAnswer> {
  return request({
    operation: 'multiRead',
    opcode: OPCODE.multiRead,
    write: (writer) => {
      for (const each of ops) writeOp(writer, each)
      endParts(writer)
    },
    read: (body, zxid) => ({
      zxid,
      results: readParts(body, ops.length, (type, index) => readResult(body, type, { index, op: named[index] })),
    }),
  })
}

function writeOp(writer: JuteWriter, { type, path }: ReadOp): void {
  if (type !== 'getData' && type !== 'getChildren') {
    throw new InvalidArgument(
      `a multiRead cannot contain ${String(type)}; use a multi for operations that change something`,
    )
  }
  // The flag is for watches; servers ignore it here.
  beginPart(writer, OPCODE[type]).text(path).boolean(false)
}

function readResult(body: JuteReader, type: number, request: { index: number; op: ReadOp | undefined }): AnyReadResult {
  const { index, op } = request
  if (type === OPCODE.error) {
    return { error: toError(body.int(), { operation: op?.type ?? 'multiRead', path: op?.path, index }) }
  }
  if (op && OPCODE[op.type] === type) {
    if (op.type !== 'getData') return { names: readTexts(body) }
    return op.isView ? readDataView(body) : readData(body)
  }
  throw new MalformedBytes(`a result of type ${type} in a multiRead, in the place of ${op?.type ?? 'nothing'}`)
}
