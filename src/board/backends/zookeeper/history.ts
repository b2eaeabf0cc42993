/** Reads the history of a board: `parts/history-journal.ts` has the znodes. */
import { decodeWeighed } from '../../../core/codec.ts'
import { op } from '../../../zookeeper/index.ts'
import type { BackendHistory } from '../../contract/index.ts'
import { decodeEndedJob, type EndedJob } from '../../model/ended-job.ts'
import type { UnreadableValues } from '../unreadable-values.ts'
import type { BoardHandle } from './parts/board-handle.ts'
import { listHistory } from './parts/history-journal.ts'
import { translateErrors } from './store/reader.ts'

const READS_AT_ONCE = 50
const MAX_DECODED_BYTES = 16 * 1_024 * 1_024

export class ZooKeeperHistory implements BackendHistory {
  readonly #board: BoardHandle

  constructor(board: BoardHandle) {
    this.#board = board
  }

  async newest({ limit }: { readonly limit: number }): Promise<readonly EndedJob[]> {
    return translateErrors(`reading the history of ${this.#board.uri}`, async () => {
      const jobs: EndedJob[] = []
      for await (const part of this.#read()) {
        jobs.push(...part)
        if (jobs.length >= limit) break
      }
      return jobs.slice(0, limit)
    })
  }

  async find(uuids: readonly string[]): Promise<readonly (EndedJob | undefined)[]> {
    return translateErrors(`reading the history of ${this.#board.uri}`, async () => {
      const wanted = new Set(uuids)
      const found = new Map<string, EndedJob>()
      for await (const part of this.#read()) {
        for (const job of part) if (wanted.has(job.uuid) && !found.has(job.uuid)) found.set(job.uuid, job)
        if (found.size === wanted.size) break
      }
      return uuids.map((uuid) => found.get(uuid))
    })
  }

  /** Yields all jobs in parts, newest first. */
  async *#read(): AsyncGenerator<EndedJob[], void, undefined> {
    const { zookeeper, layout } = this.#board
    const { unreadable } = this.#board.components
    const names = (await listHistory(this.#board)).reverse()
    for (let from = 0; from < names.length; from += READS_AT_ONCE) {
      const paths = names
        .slice(from, from + READS_AT_ONCE)
        .map(({ name }) => op.getData(`${layout.historyFolder}/${name}`))
      const { results } = await zookeeper.multiRead(paths)
      yield results.flatMap((node, index) =>
        node.error ? [] : decodeJobs(node.data, { name: names[from + index]?.name ?? '', unreadable }),
      )
    }
  }
}

/** Returns the jobs of a znode, newest first. Reports bytes that are no job. */
function decodeJobs(
  data: Uint8Array | null,
  { name, unreadable }: { readonly name: string; readonly unreadable: UnreadableValues },
): readonly EndedJob[] {
  const leftOut = () => unreadable.leftOut('history', name)
  try {
    const { value } = decodeWeighed(data ?? new Uint8Array(), 'msgpack', { most: MAX_DECODED_BYTES })
    if (!Array.isArray(value)) return leftOut()
    const decode = (bytes: unknown) => (bytes instanceof Uint8Array ? decodeEndedJob(bytes) : undefined)
    return value.flatMap((bytes) => decode(bytes) ?? leftOut()).reverse()
  } catch {
    return leftOut()
  }
}
