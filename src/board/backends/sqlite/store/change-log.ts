/** Writes the feed of a board: a row for each change, in the transaction that makes the change. `feed.ts` reads it. */

import { decodeText, encodeText } from '../../../../core/texts.ts'
import type { SqliteConnection } from '../../../../sqlite/index.ts'
import type { RecordName } from '../../../model/record.ts'

/** The context in which steps read and write the rows of a board: the connection, the number of the board, and the clock of its jobs. */
export interface BoardContext {
  readonly db: SqliteConnection
  readonly board: number
  /** Returns milliseconds since 1970. */
  readonly now: () => number
}

/** The change of a job that a row reports. `freed`: its claim ended with the session. */
export type JobChange =
  | 'posted'
  | 'ready'
  | 'replaced'
  | 'claimed'
  | 'abandoned'
  | 'freed'
  | 'consumed'
  | 'trashed'
  | 'cancelled'
/** The change of the board, a session, a batch, or a record that a row reports. */
export type OtherChange = 'paused' | 'resumed' | 'ended' | 'batch' | 'record'
export type ChangeKind = JobChange | OtherChange

/** The name in the row of a claim that holds resources or slots. */
export const HOLDS = 'holds'

const INSERT = 'INSERT INTO changes (board, kind, job, rank, due, name) VALUES (?, ?, ?, ?, ?, ?)'

export class ChangeLog {
  readonly #context: BoardContext

  constructor(context: BoardContext) {
    this.#context = context
  }

  /** Adds that a job was claimed. @param options.holds whether its claim holds resources or slots */
  addClaimed(job: number, { holds }: { readonly holds: boolean }): void {
    const { db, board } = this.#context
    db.run(INSERT, board, 'claimed', job, null, null, holds ? HOLDS : null)
  }

  /** Adds a change of a job. */
  add(kind: JobChange, job: number): void {
    const { db, board } = this.#context
    db.run(INSERT, board, kind, job, null, null, null)
  }

  /** Adds a change that moves the job in the queue, with its new place. */
  addPlaced(
    kind: 'posted' | 'ready' | 'replaced',
    job: number,
    at: { readonly rank: number; readonly due: number; readonly queue: string | null },
  ): void {
    const { db, board } = this.#context
    db.run(INSERT, board, kind, job, at.rank, at.due, at.queue)
  }

  /** Adds the end of a session. */
  addEnded(session: number): void {
    const { db, board } = this.#context
    db.run(INSERT, board, 'ended', session, null, null, null)
  }

  /** Adds that the board was paused or resumed. */
  addGate(kind: 'paused' | 'resumed'): void {
    const { db, board } = this.#context
    db.run(INSERT, board, kind, null, null, null, null)
  }

  addBatch(uuid: string): void {
    const { db, board } = this.#context
    db.run(INSERT, board, 'batch', null, null, null, encodeText(uuid))
  }

  addRecord({ kind, id }: RecordName): void {
    const { db, board } = this.#context
    db.run(INSERT, board, 'record', null, null, null, encodeText(JSON.stringify([kind, id])))
  }
}

/** Parses the name of a record in the feed; undefined for a text that is none. */
export function parseRecordName(text: string): RecordName | undefined {
  try {
    const [kind, id] = JSON.parse(decodeText(text)) as unknown[]
    return typeof kind === 'string' && typeof id === 'string' ? { kind, id } : undefined
  } catch {
    return undefined
  }
}
