/** Encodes a group of steps as arguments of the commit script, and describes its answer. */
import { encodePlain } from '../../../../core/codec.ts'
import type { ScriptStep, StepArguments } from './steps.ts'

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

/** Returns the encoded steps, and the byte values that the steps refer to by their index, from 1: the end of each, and all as one. */
export function encodeSteps(steps: readonly ScriptStep[]): readonly Buffer[] {
  const values: Uint8Array[] = []
  const ends: number[] = []
  let end = 0
  const toWord = (word: StepArguments[number]) => {
    if (!(word instanceof Uint8Array)) return word
    end += word.length
    ends.push(end)
    return values.push(word)
  }
  const words = steps.map((step) => step.arguments.slice(0, countWords(step.arguments)).map(toWord))
  return [encodeWords(words), encodeWords(ends), Buffer.concat(values, end)]
}

/** Counts the arguments of a step without the missing ones at its end. A plain job has many missing arguments, and the script would read each of them. */
function countWords(all: StepArguments): number {
  let count = all.length
  while (count > 0 && all[count - 1] === null) count -= 1
  return count
}

export function encodeWords(words: readonly unknown[]): Buffer {
  return toBuffer(encodePlain(words, 'msgpack'))
}

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
