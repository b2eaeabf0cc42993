/**
 * Copies batches in two steps: each is created open before its jobs are posted, so that they are counted, and gets its status and its numbers after
 * them. A batch that has ended posts no callback again.
 */
import { Duplicate } from '../../core/errors.ts'
import { newUuid } from '../../core/uuid.ts'
import { postAndRemove, toTemporary } from './ended.ts'
import type { CopyWork } from './sides.ts'

/** More batches than a board can have: it keeps 1,000 that have ended. */
const ALL = 1_000_000

/** Creates the batches on the target, oldest first, and reopens batches that an earlier copy has closed. Returns their uuids. */
export async function openBatches({ from, to, signal, count }: CopyWork): Promise<ReadonlySet<string>> {
  const uuids = new Set<string>()
  const store = to.backend.batches
  for (const { uuid, bytes } of [...(await from.backend.batches.list({ limit: ALL }))].reverse()) {
    signal.throwIfAborted()
    uuids.add(uuid)
    try {
      await store.create({ uuid, bytes })
      count('batches', 'copied')
    } catch (error) {
      if (!(error instanceof Duplicate)) throw error
      await store.change(uuid, { kind: 'reopen' })
      count('batches', 'present')
    }
  }
  return uuids
}

/** Gives the batches of the target the status and the numbers of the source. */
export async function closeBatches({ from, to, signal }: CopyWork): Promise<void> {
  const store = to.backend.batches
  for (const batch of await from.backend.batches.list({ limit: ALL })) {
    const { uuid, total, failed, sealed, generation, cancelled, endedAt } = batch
    // Jobs that have failed and were deleted from the trash are counted by jobs in their place.
    for (let counted = (await store.find(uuid))?.failed ?? failed; counted < failed; counted += 1) {
      signal.throwIfAborted()
      await postAndRemove(toTemporary({ uuid: newUuid(), name: 'a failed job', batch: uuid }), { to })
    }
    await store.change(uuid, {
      ...{ kind: 'carry', total, sealed, generation },
      ...(cancelled ? { cancelled } : {}),
      ...(endedAt === undefined ? {} : { endedAt }),
    })
  }
}
