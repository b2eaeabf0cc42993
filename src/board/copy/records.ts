/** Copies the records of a board, byte by byte, and the tokens that starts have taken of its limits. */
import { Conflict } from '../../core/errors.ts'
import { MAX_RECORD_BYTES, MAX_WRITE_ITEMS, type RecordChange } from '../model/record.ts'
import type { CopyKind, CopyWork } from './sides.ts'

/**
 * The kinds of records that are copied, and what they are called. The others belong to their board: its pause (`pause`), how far its expired jobs
 * were looked for (`sweep`), and from where it was copied (`copy`).
 */
export const COPIED_RECORDS: readonly { readonly kind: string; readonly name: CopyKind }[] = [
  { kind: 'schedule', name: 'schedules' },
  { kind: 'limit', name: 'limits' },
  { kind: 'limit-hold', name: 'holds' },
  { kind: 'flow-setting', name: 'settings' },
  { kind: 'outline', name: 'outlines' },
  { kind: 'once', name: 'marks' },
]

/** @throws NotConnected, OutcomeUnknown, Conflict if another process changes the records of the target meanwhile */
export async function copyRecords({ from, to, signal, count }: CopyWork): Promise<void> {
  for (const { kind, name } of COPIED_RECORDS) {
    const copied = new Map((await to.backend.records.list(kind)).map((record) => [record.id, record]))
    let changes: RecordChange[] = []
    let bytes = 0
    const flush = async () => {
      if (changes.length > 0) await write({ to }, changes)
      for (const _ of changes) count(name, 'copied')
      changes = []
      bytes = 0
    }
    for (const record of await from.backend.records.list(kind)) {
      signal.throwIfAborted()
      const before = copied.get(record.id)
      if (before && Buffer.from(before.bytes).equals(record.bytes)) {
        count(name, 'present')
        continue
      }
      if (changes.length === MAX_WRITE_ITEMS || bytes + record.bytes.length > MAX_RECORD_BYTES) await flush()
      changes.push({ kind, id: record.id, revision: before?.revision, bytes: record.bytes })
      bytes += record.bytes.length
    }
    await flush()
  }
}

async function write({ to }: Pick<CopyWork, 'to'>, changes: readonly RecordChange[]): Promise<void> {
  const { backend } = to
  const written = await backend.records.write({ changes, posts: [] })
  if (written.done) return
  const [change] = changes
  throw new Conflict(
    `board ${backend.uri}: another process has changed its ${change?.kind} records meanwhile; run the same command again`,
  )
}

/** Takes as many tokens of each limit as the source is still without, so that the target starts no more jobs than the source would. */
export async function copyTokens({ from, to, signal }: Omit<CopyWork, 'count' | 'skip'>): Promise<void> {
  const revision = await to.backend.limits.revision()
  for (const { key, arrivalMs = 0, rate } of await from.backend.limits.use()) {
    signal.throwIfAborted()
    const left = rate ? Math.ceil((arrivalMs - from.backend.clock.now()) / rate.intervalMs) : 0
    if (!rate || left <= 0) continue
    const [taken] = await to.backend.limits.use([key])
    if (taken?.arrivalMs !== undefined) continue
    await to.backend.limits.takeTokens({ key, revision, rate, costs: [Math.min(left, rate.burst)] })
  }
}
