/** Repairs the board, and continues ends of jobs that were not finished, when a status or an answer asks for it. */
import { asError, JobboardError } from '../../../../core/errors.ts'
import { toTexts } from '../store/replies.ts'
import type { RedisBoard } from './board.ts'
import { type ScriptStep, SMALL_STEP_BYTES } from './steps.ts'

/** Limit of repair steps that are sent at once; each inconsistent posting takes one step. */
const MAX_REPAIRS_PER_BATCH = 256

/** The step that continues the ends of jobs on which many others depend: see `scripts/shared/due.lua`. */
const FINISH_STEP: ScriptStep = {
  arguments: ['finish'],
  what: 'release of jobs after one that has ended',
  bytes: SMALL_STEP_BYTES,
}

export class Upkeep {
  readonly #board: RedisBoard
  #finishing: Promise<void> | undefined

  constructor(board: RedisBoard) {
    this.#board = board
  }

  /**
   * Releases the jobs that still depend on a job that has ended, in the background. If that fails, the next status asks for it again,
   * on this board or on another.
   */
  finishEnds(): void {
    this.#finishing ??= this.#finishAll()
      .catch((error: unknown) => {
        if (!(error instanceof JobboardError)) this.#board.reportError(asError(error))
      })
      .finally(() => {
        this.#finishing = undefined
      })
  }

  async #finishAll(): Promise<void> {
    for (let isMore = true; isMore; ) isMore = (await this.#board.submit(FINISH_STEP)).details[0] === true
  }

  /** Repairs postings without a row and rows without a posting, which were made by hand; the view receives the changes. */
  async repair(): Promise<void> {
    const ids = await this.#findInconsistent()
    for (let from = 0; from < ids.length; from += MAX_REPAIRS_PER_BATCH) {
      const part = ids.slice(from, from + MAX_REPAIRS_PER_BATCH)
      await Promise.all(
        part.map((id) => this.#board.submit({ arguments: ['repair', id], what: `repair of ${id}`, bytes: 50 })),
      )
    }
  }

  /** Returns ids that have a posting without a row, or a row without a posting. */
  async #findInconsistent(): Promise<string[]> {
    const keys = [this.#board.command('hkeys', 'jobs'), this.#board.command('hkeys', 'rows')]
    const [jobs = [], rows = []] = (await Promise.all(keys)).map(toTexts)
    const [postings, known] = [new Set(jobs), new Set(rows)]
    return [...jobs.filter((id) => !known.has(id)), ...rows.filter((id) => !postings.has(id))]
  }
}
