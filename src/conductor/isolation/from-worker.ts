/** Reads what the code in a child process has sent: it is the code of a task, and may send anything. */
import { toFields } from '../../core/codec.ts'
import { ChildDied, InvalidArgument } from '../../core/errors.ts'
import { defined } from '../../core/options.ts'
import type { AtomQuestion, AtomWorkerFacts } from './atom-request.ts'

/** A note of a task under way. */
export type AtomNote =
  | { readonly progress: number; readonly message?: string }
  | { readonly log: Readonly<Record<string, unknown>> }

/** Parses a note of a task under way. @throws InvalidArgument */
export function parseNote(value: unknown): AtomNote {
  const { progress, message, log } = toFields(value) ?? {}
  if (typeof progress === 'number' && (message === undefined || typeof message === 'string'))
    return { progress, ...defined({ message }) }
  const fields = typeof log === 'string' ? toFields(parseJson(log)) : undefined
  if (fields) return { log: fields }
  throw new InvalidArgument('a note must have a progress, or a line of the log')
}

/** Parses a question of a task under way. @throws InvalidArgument */
export function parseQuestion(value: unknown): AtomQuestion {
  const { take, save, read } = toFields(value) ?? {}
  if (save instanceof Uint8Array) return { save }
  if (read === 'dependencies') return { read }
  const { key, cost } = toFields(take) ?? {}
  if (typeof key === 'string' && (cost === undefined || typeof cost === 'number'))
    return { take: { key, ...defined({ cost }) } }
  throw new InvalidArgument('a question must be about tokens, a checkpoint or dependencies')
}

/** Parses the result of a task. @throws ChildDied for a result that is not encoded: no child of this release sends it */
export function parseResult(value: unknown): Uint8Array {
  if (value instanceof Uint8Array) return value
  throw new ChildDied('a child has sent a result that is not encoded')
}

/** Parses what a child says about itself when it starts. @throws InvalidArgument */
export function parseFacts(value: unknown): AtomWorkerFacts {
  const { flows } = toFields(value) ?? {}
  if (!Array.isArray(flows)) throw new InvalidArgument('a child must say which flows it has')
  return { flows: flows.map(parseFlow) }
}

function parseFlow(value: unknown): AtomWorkerFacts['flows'][number] {
  const { name, version, digest } = toFields(value) ?? {}
  if (typeof name === 'string' && typeof version === 'string' && typeof digest === 'string')
    return { name, version, digest }
  throw new InvalidArgument('a flow of a child must have a name, a version and a digest')
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
