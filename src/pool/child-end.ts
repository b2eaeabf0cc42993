/** The meaning of the end of a child: for its pool, and as the error of the work that it was doing. */
import { ChildDied, ChildUnavailable, OutOfMemory } from '../core/errors.ts'
import { failureOf } from '../core/failure.ts'

/** The limit of the last output in a failure, in characters. */
const MAX_TAIL_LENGTH = 8_000
/** The exit code of a process that a shell reports as ended by SIGABRT. */
const ABORT_EXIT_CODE = 134

/** The end of a child, by its exit code or its signal. */
export interface ChildEnd {
  readonly exitCode: number | null
  readonly signal: NodeJS.Signals | null
  /** Whether the pool has ended it. */
  readonly isExpected: boolean
  /** The end in words: `was killed by SIGSEGV`. */
  readonly reason: string
  readonly isOutOfMemory: boolean
}

/** The known facts of the end of a process. */
export interface ProcessEnd {
  readonly exitCode: number | null
  readonly signal: NodeJS.Signals | null
  readonly isExpected: boolean
  /** The error with which the pool has killed it, if it has. */
  readonly killedFor: unknown
  /** Whether the kernel has killed a process of this control group for want of memory meanwhile. */
  readonly isKilledByKernel: boolean
  readonly lastLines: readonly string[]
}

export function toChildEnd({ exitCode, signal, isExpected, killedFor, ...end }: ProcessEnd): ChildEnd {
  const hasAborted = signal === 'SIGABRT' || exitCode === ABORT_EXIT_CODE
  const isHeapFull = hasAborted && /heap out of memory|Allocation failed/i.test(end.lastLines.join('\n'))
  return {
    ...{ exitCode, signal, isExpected },
    reason: signal === null ? `ended with exit code ${exitCode}` : `was killed by ${signal}`,
    isOutOfMemory: killedFor instanceof OutOfMemory || (signal === 'SIGKILL' && end.isKilledByKernel) || isHeapFull,
  }
}

export interface EndedChild {
  /** The child for people: `child 3 (pid 4711, 12 s old, 80 MB)`. */
  readonly who: string
  readonly end: ChildEnd
  readonly lastLines: readonly string[]
}

/**
 * Returns the error of a child that was not ready; its cause is an OutOfMemory if the child has too little memory to begin with.
 *
 * @param killedFor the error with which the pool has killed it
 */
export function toStartError({ who, end, lastLines }: EndedChild, killedFor: unknown): ChildUnavailable {
  const why = killedFor === undefined ? `${who} ${end.reason} before it was ready` : failureOf(killedFor).message
  const cause = withOutput(killedFor, lastLines)
  return new ChildUnavailable(`no child can be started: ${why}`, {
    cause: end.isOutOfMemory ? new OutOfMemory(why, { cause }) : cause,
  })
}

/**
 * Returns the error of the work that a child was doing.
 *
 * @param silentMs how long the child was allowed to live without a beat, if the pool was silent for longer; else undefined
 */
export function toDeathError({ who, end, lastLines }: EndedChild, silentMs: number | undefined): Error {
  const options = { cause: withOutput(undefined, lastLines) }
  if (end.signal === 'SIGKILL' && silentMs !== undefined) {
    const why = 'because this process was stopped or blocked for longer than'
    // The fault is of this process, not of the work: the work must not be charged for it.
    return new ChildUnavailable(`${who} has ended itself, ${why} ${Math.floor(silentMs)} ms`, options)
  }
  if (end.isOutOfMemory) return new OutOfMemory(`${who} was out of memory (it ${end.reason})`, options)
  const how = end.exitCode === 0 ? 'ended with exit code 0, as process.exit() does' : end.reason
  return new ChildDied(`${who} ${how} while it worked`, options)
}

/** A line of a stack that belongs to Node.js itself: it says nothing about the work. */
const NATIVE_STACK = /^(?:-+ Native stack trace -+|\s*\d+: 0x[\da-f]+ .*|)$/

/** Returns an error with the last output, which is often the only trace of a crash. */
function withOutput(cause: unknown, lastLines: readonly string[]): unknown {
  const text = lastLines
    .filter((line) => !NATIVE_STACK.test(line))
    .join('\n')
    .slice(-MAX_TAIL_LENGTH)
  return text === '' ? cause : new Error(`its last output: ${text}`, { cause })
}
