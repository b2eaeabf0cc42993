/**
 * The record of a pause: who has paused the board, when and why. The gate alone decides whether jobs are claimed. A board that an older
 * release or TaskFlow has paused has no record, and is paused nevertheless.
 */
import { InvalidArgument, InvalidPosting, NotConnected, OutcomeUnknown } from '../../core/errors.ts'
import { assertOptions, defined } from '../../core/options.ts'
import { queueProblem } from '../model/queues.ts'
import type { BoardRecords } from './board-records.ts'
import type { RecordKind } from './record-store.ts'

/** The options of `board.pause`. */
export interface PauseOptions {
  /** The reason, for people. */
  readonly reason?: string | undefined
  /** The person or program that asks for it; the name of this process by default. */
  readonly by?: string | undefined
  /** The queue whose jobs are not claimed; by default no job of the board is. */
  readonly queue?: string | undefined
}

/** A pause of the board. */
export interface BoardPause {
  readonly by: string
  readonly since: Date
  readonly reason?: string
}

/** A pause of a queue, or of the queues of a pattern. */
export interface QueuePause extends BoardPause {
  /** The queue, or a pattern such as `tenant-*`, whose limit was stopped. */
  readonly queue: string
}

interface PauseRecord {
  readonly by: string
  readonly at: number
  readonly reason?: string
}

const PAUSE: RecordKind<PauseRecord> = { name: 'pause', format: 1, parse: parsePause }
const ID = 'board'
const MAX_TEXT = 1_000

/** Checks the options of `board.pause`. @throws InvalidArgument */
export function assertPauseOptions(options: unknown): void {
  assertOptions<PauseOptions>(options, { reason: true, by: true, queue: true }, 'pause')
  const { queue, ...texts } = options as PauseOptions
  assertQueueOption(queue, 'pause')
  for (const [name, text] of Object.entries(texts))
    if (text !== undefined && (typeof text !== 'string' || text.length > MAX_TEXT || !text.isWellFormed()))
      throw new InvalidArgument(`pause: ${name} must be a text of at most ${MAX_TEXT} characters`)
}

/** Checks the queue of a pause. @throws InvalidArgument */
export function assertQueueOption(queue: unknown, what: string): void {
  const problem = queue === undefined ? undefined : queueProblem(queue)
  if (problem !== undefined) throw new InvalidArgument(`${what}: ${problem}`)
}

/**
 * Writes the record, in place of the record of an earlier pause. Does nothing on a board without records.
 *
 * @param options.isPaused whether the board was paused before: then the pause goes on, and keeps the time of its beginning
 */
export async function writePause(
  records: BoardRecords,
  pause: PauseRecord,
  { isPaused }: { readonly isPaused: boolean },
): Promise<void> {
  const before = isPaused ? await readPause(records) : undefined
  await change(records, before ? { ...pause, at: before.since.getTime() } : pause)
}

/** Removes the record. */
export async function removePause(records: BoardRecords): Promise<void> {
  await change(records, undefined)
}

/** Returns the pause; undefined if there is no record that can be read. */
export async function readPause(records: BoardRecords): Promise<BoardPause | undefined> {
  const found = await records.of(PAUSE).get(ID)
  if (!found || 'error' in found) return undefined
  const { by, at, reason } = found.value
  return { by, since: new Date(at), ...defined({ reason }) }
}

/** Returns a sentence that says by whom the board is paused, and why, as far as it is known. */
export function describePause(pause: BoardPause | undefined): string {
  if (!pause) return 'the board is paused'
  return `the board is paused by ${pause.by}${pause.reason === undefined ? '' : `: ${pause.reason}`}`
}

/** The number of attempts of a change: another process may change the record at the same time, or the connection may break. */
const ROUNDS = 5

/** Changes the record. To make a change twice does no harm, so it is tried again also when its outcome is unknown. */
async function change(records: BoardRecords, value: PauseRecord | undefined): Promise<void> {
  const store = records.of(PAUSE)
  for (let round = 1; round <= ROUNDS; round += 1) {
    try {
      const found = await store.get(ID)
      if (!found && !value) return
      const { done } = await store.write([{ id: ID, revision: found?.revision, value }])
      if (done) return
    } catch (error) {
      const isAway = error instanceof NotConnected || error instanceof OutcomeUnknown
      if (!isAway || round === ROUNDS) throw error
    }
  }
}

/** A date that JavaScript can show. */
const MAX_TIME_MS = 8.64e15

function parsePause(value: unknown): PauseRecord {
  const { by, at, reason } = Object(value)
  const isText = (text: unknown) => typeof text === 'string' && text.length <= MAX_TEXT
  if (isText(by) && typeof at === 'number' && Math.abs(at) <= MAX_TIME_MS && (reason === undefined || isText(reason)))
    return { by, at, ...defined({ reason }) }
  throw new InvalidPosting('the record of the pause is not complete')
}
