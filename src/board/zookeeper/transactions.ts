/**
 * The board's transactions, one function a row. Each is one multi, so it is granted whole or not at all, and checks the
 * server's state, never this process' view of it.
 *
 * | operation | one multi of                                                                        |
 * |-----------|-------------------------------------------------------------------------------------|
 * | post      | create posting                                                                      |
 * | claim     | setData posting at the revision seen (next run, its attempt), create lock            |
 * | consume   | delete posting at the revision this claim wrote, lock                                |
 * | abandon   | setData posting at that revision, delete lock                                        |
 * | trash     | create trash entry, delete posting at that revision, lock                            |
 * | discard   | create trash entry, delete posting at the revision seen, create lock, delete lock    |
 *
 * Posting first, lock last: a watcher never sees a free lock beside an old posting. Making and deleting the lock in a
 * discard proves that there was none. The revision is what makes a former owner harmless: every claim and abandon raises
 * it, so a settle by anybody but the newest claim is refused.
 */
import { type Op, op } from '../../zookeeper/index.ts'
import type { Layout } from './layout.ts'

export function post(layout: Layout, posting: Uint8Array): Op[] {
  return [op.create(layout.newPosting, posting, { sequential: true })]
}

export function claim(
  layout: Layout,
  id: string,
  at: { revision: number; posting: Uint8Array; lock: Uint8Array },
): Op[] {
  return [
    op.setData(layout.posting(id), at.posting, { version: at.revision }),
    op.create(layout.lock(id), at.lock, { ephemeral: true }),
  ]
}

export function consume(layout: Layout, id: string, at: { revision: number }): Op[] {
  return [op.delete(layout.posting(id), { version: at.revision }), op.delete(layout.lock(id))]
}

export function abandon(layout: Layout, id: string, at: { revision: number; posting: Uint8Array }): Op[] {
  return [op.setData(layout.posting(id), at.posting, { version: at.revision }), op.delete(layout.lock(id))]
}

export function trash(layout: Layout, id: string, at: { revision: number; entry: Uint8Array }): Op[] {
  return [
    op.create(layout.trash(id), at.entry),
    op.delete(layout.posting(id), { version: at.revision }),
    op.delete(layout.lock(id)),
  ]
}

export function discard(layout: Layout, id: string, at: { revision: number; entry: Uint8Array }): Op[] {
  return [
    op.create(layout.trash(id), at.entry),
    op.delete(layout.posting(id), { version: at.revision }),
    op.create(layout.lock(id), null, { ephemeral: true }),
    op.delete(layout.lock(id)),
  ]
}
