/** Encodes a group of steps as arguments of the commit script, and describes its answer. */
import { encodePlain } from '../../../../core/codec.ts'
import type { ScriptStep } from './steps.ts'

/** The first part of the answer. After a refusal, `now` is the number of the group that the owner's key holds. */
export type GroupReply = readonly [
  accepted: boolean,
  now: string,
  version: string,
  changes: readonly string[] | false,
  paused: boolean,
  late: readonly string[],
  again: boolean,
  faults: readonly string[],
  unfinished: boolean,
  doomed?: readonly string[],
]

/** The second part: for each step whether it was done, and its details. */
export type GroupAnswers = readonly (readonly [done: boolean, ...details: unknown[]])[]

/** The number of arguments of the script before the bytes of the steps; arguments are counted from 1. */
const HEADER_ARGUMENTS = 4

/** Returns the encoded steps, followed by the byte values that the steps refer to. */
export function encodeSteps(steps: readonly ScriptStep[]): readonly Buffer[] {
  const bytes: Buffer[] = []
  const words = steps.map((step) =>
    step.arguments.map((word) => (word instanceof Uint8Array ? HEADER_ARGUMENTS + bytes.push(toBuffer(word)) : word)),
  )
  return [encodeWords(words), ...bytes]
}

export function encodeWords(words: readonly unknown[]): Buffer {
  return toBuffer(encodePlain(words, 'msgpack'))
}

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
