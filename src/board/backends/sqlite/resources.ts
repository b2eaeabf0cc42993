/** The resources that the claims of a board hold. */
import { encodeText } from '../../../core/texts.ts'
import type { BackendResources } from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import type { Posting } from '../../model/posting/posting.ts'
import { toResourceWants } from '../../model/resources.ts'
import type { BoardContext } from './store/change-log.ts'
import { jobId } from './store/rows.ts'

/** A resource that a claim is to hold. */
export interface WantedResource {
  readonly name: string
  readonly exclusive: 0 | 1
}

export class ResourceSteps {
  readonly #context: BoardContext

  constructor(context: BoardContext) {
    this.#context = context
  }

  /** Returns the resources of the posting. @throws Unclaimable if another job holds one of them */
  requireFree(job: number, posting: Posting): readonly WantedResource[] {
    if (!posting.resources) return []
    const { db, board } = this.#context
    const { exclusive, shared } = toResourceWants(posting)
    const wanted: WantedResource[] = [
      ...exclusive.map((name) => ({ name, exclusive: 1 }) as const),
      ...shared.map((name) => ({ name, exclusive: 0 }) as const),
    ]
    const sql = 'SELECT 1 FROM permits WHERE board = ? AND name = ? AND (exclusive = 1 OR ?)'
    for (const each of wanted)
      if (db.get(sql, board, encodeText(each.name), each.exclusive))
        throw refusalError(jobId(job), { why: 'resource', resource: each.name })
    return wanted
  }

  hold(job: number, wanted: readonly WantedResource[]): void {
    const { db, board } = this.#context
    for (const { name, exclusive } of wanted)
      db.run(
        'INSERT INTO permits (board, name, job, exclusive) VALUES (?, ?, ?, ?)',
        board,
        encodeText(name),
        job,
        exclusive,
      )
  }

  /** Frees all resources that the job holds. */
  free(job: number): void {
    this.#context.db.run('DELETE FROM permits WHERE job = ?', job)
  }
}

export class SqliteResources implements BackendResources {
  async freeOrphans(): Promise<void> {
    // Resources are held by the job: without its claim none is left.
  }

  async holder(): Promise<undefined> {
    // Other programs hold no resources of these boards.
  }
}
