/** Finds the row of a job for the steps that change it. */
import type { Row } from '../../../../sqlite/index.ts'
import { refusalError } from '../../../contract/refusals.ts'
import type { BoardContext } from './change-log.ts'
import { jobNumber } from './rows.ts'

/** Reads a job, and whether other tables have rows for it: the step that ends the job skips the statements that would find nothing. */
const JOB = `SELECT id, uuid, rank, revision, session, batch, cancelled_by, due_when_ready, body IS NULL AS large,
  EXISTS (SELECT 1 FROM dependencies WHERE waits_for = jobs.id) OR EXISTS (SELECT 1 FROM dependencies WHERE job = jobs.id) AS linked,
  EXISTS (SELECT 1 FROM permits WHERE job = jobs.id) OR EXISTS (SELECT 1 FROM slots WHERE job = jobs.id) AS holding,
  EXISTS (SELECT 1 FROM history WHERE uuid = jobs.uuid) AS ended_before
FROM jobs WHERE id = ? AND board = ?`
const JOB_TO_CLAIM = 'SELECT id, revision, session, due_when_ready FROM jobs WHERE id = ? AND board = ?'

export class JobRows {
  readonly #context: BoardContext

  constructor(context: BoardContext) {
    this.#context = context
  }

  /** Returns the row of a job; undefined if it is not on the board. */
  find(id: string): Row | undefined {
    const { db, board } = this.#context
    return db.get(JOB, jobNumber(id), board)
  }

  /** @throws NotFound; Unclaimable for a job that is claimed, or is at another revision */
  requireUnclaimed(id: string, revision: number): Row {
    return checkUnclaimed(this.find(id), id, revision)
  }

  /** Returns the row of an unclaimed job, with only the columns that a claim needs. @throws as {@link requireUnclaimed} */
  requireUnclaimedForClaim(id: string, revision: number): Row {
    const { db, board } = this.#context
    return checkUnclaimed(db.get(JOB_TO_CLAIM, jobNumber(id), board), id, revision)
  }
}

/** Returns the row if it is of an unclaimed job at the revision. @throws NotFound, Unclaimable */
function checkUnclaimed(row: Row | undefined, id: string, revision: number): Row {
  if (!row) throw refusalError(id, { why: 'gone' })
  if (row['session'] !== null || row['revision'] !== revision) throw refusalError(id, { why: 'changed' })
  return row
}
