/** The doctor's check for batches that never end, because jobs that they count have left the board in a way that counts nothing. */
import type { BatchView, JobBoard } from '../../board/index.ts'
import { type Finding, formatCount, okFinding, warningFinding } from './finding.ts'

/** The number of batches that are examined, the newest ones. */
const MAX_EXAMINED = 1_000

/** Examines the batches that have not ended. @throws NotConnected, UnsupportedCapability */
export async function examineBatches(board: JobBoard): Promise<Finding[]> {
  const before = await openBatches(board)
  if (before.size === 0) return []
  const there = new Map<string, number>()
  for await (const { batch } of board.jobs({ ensureFresh: true }))
    if (batch !== undefined) there.set(batch, (there.get(batch) ?? 0) + 1)
  // Jobs may have ended while the others were read: a job that is missing was counted before and is counted after.
  const after = await openBatches(board)
  const found = [...after.values()].flatMap((view) => {
    const open = Math.min(view.open, before.get(view.uuid)?.open ?? 0)
    const missing = open - (there.get(view.uuid) ?? 0)
    return missing > 0 ? [toFinding(view, missing)] : []
  })
  if (found.length > 0) return found
  return [okFinding('batches', `${after.size} with open jobs`)]
}

async function openBatches(board: JobBoard): Promise<Map<string, BatchView>> {
  const views = await board.batches({ limit: MAX_EXAMINED })
  return new Map(views.filter(({ open }) => open > 0).map((view) => [view.uuid, view]))
}

function toFinding({ uuid, name, state }: BatchView, missing: number): Finding {
  const text = `batch ${uuid} (${name}) counts ${formatCount(missing, 'open job')} that the board does not have: removed by hand, or damaged; it never ends`
  const rest = 'post what is missing in another batch'
  return warningFinding('batch', text, state === 'cancelled' ? rest : `jobboard batch cancel ${uuid}, and ${rest}`)
}
