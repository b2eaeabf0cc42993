/**
 * The board's transactions, one function a row. Each is granted whole or not at all, and checks the server's state, never
 * this process' view of it.
 *
 * | operation         | one multi of                                                                                |
 * |-------------------|---------------------------------------------------------------------------------------------|
 * | post              | create posting (+ create key, or take over that of a job that is gone, at its revision)       |
 * | claim             | check gate, setData posting at the revision seen (next run, its attempt), permits, create lock |
 * | consume           | delete posting at the revision this claim wrote, permits, key, cancel request, lock           |
 * | abandon           | setData posting at that revision, permits, lock                                              |
 * | trash             | create trash entry, delete posting at that revision, permits, key, cancel request, lock       |
 * | discard           | create trash entry, delete posting at the revision seen, create lock, key, cancel, delete lock |
 * | move              | create trash entry, delete posting that is marked as trashed, at the revision seen            |
 * | restore           | delete trash entry at its revision, create posting (+ create key)                             |
 * | purge             | delete trash entry at its revision                                                           |
 * | cancel            | check posting, create cancel request                                                         |
 * | gate, fence base  | setData gate at its revision                                                                 |
 * | permit, exclusive | delete resource, create it, create `x` in it: the delete fails if anybody holds any of it     |
 * | permit, shared    | create `x`, delete `x`, create `s-<job>`: the first create fails if a writer holds it         |
 *
 * Posting first, lock last: a watcher never sees a free lock beside an old posting. Making and deleting the lock in a
 * discard proves that there was none. The revision is what makes a former owner harmless: every claim and abandon raises
 * it, so a settle by anybody but the newest claim is refused. Revisions of resources and locks are never compared: such
 * znodes are made anew all the time. Only on a board that is shared with TaskFlow a lock has its revision, because an owner
 * there does not raise the posting's: see {@link SHARED_LOCK}.
 */
import { type CheckOp, type Op, op } from '../../zookeeper/index.ts'
import type { Posting } from '../posting.ts'
import { resourcesOf } from '../resources.ts'
import type { Layout } from './layout.ts'

/** What a step is about: who asks learns from it what a refusal means. */
export type Subject = 'gate' | 'posting' | 'lock' | 'resource' | 'key' | 'cancel' | 'trash'

export interface Step {
  readonly op: Op
  readonly about: Subject
  /** Takes away what may have been taken away before, by hand say: without it the rest is as good. */
  readonly mayBeGone?: boolean
  /** Of a step about a resource: which. */
  readonly resource?: string
}

/**
 * The revision of a lock of ours on a shared board. TaskFlow's locks are of revision 0, and it deletes its own at that
 * revision. So neither side can take away a lock that the other has made since: an owner that comes too late is refused.
 */
export const SHARED_LOCK = 1

/** What a posting asks for, beside itself. */
type Asking = Pick<Posting, 'resources' | 'key'>

export function post(
  layout: Layout,
  posting: { readonly bytes: Uint8Array; readonly path?: string },
  key?: { readonly name: string; readonly bytes: Uint8Array; readonly takenOverAt?: number },
): Step[] {
  const steps: Step[] = [created(layout, posting)]
  if (key) steps.push(keyFor(layout, key))
  return steps
}

/** ZooKeeper appends the digits, unless a path is given that has them. */
function created(layout: Layout, posting: { readonly bytes: Uint8Array; readonly path?: string }): Step {
  const { bytes, path } = posting
  const create = path === undefined ? op.create(layout.newPosting, bytes, { sequential: true }) : op.create(path, bytes)
  return { about: 'posting', op: create }
}

function keyFor(
  layout: Layout,
  key: { readonly name: string; readonly bytes: Uint8Array; readonly takenOverAt?: number },
): Step {
  const path = layout.key(key.name)
  const { bytes, takenOverAt: version } = key
  return { about: 'key', op: version === undefined ? op.create(path, bytes) : op.setData(path, bytes, { version }) }
}

/** What a claim checks beside its steps; one for a whole batch of claims. */
export function gateCheck(layout: Layout, version: number): CheckOp {
  return op.check(layout.gate, { version })
}

export function claim(
  layout: Layout,
  id: string,
  at: {
    readonly revision: number
    readonly bytes: Uint8Array
    readonly lock: Uint8Array
    readonly posting: Asking
    readonly shared: boolean
  },
): Step[] {
  const lock = layout.lock(id)
  return [
    { about: 'posting', op: op.setData(layout.posting(id), at.bytes, { version: at.revision }) },
    ...permits(layout, id, at.posting),
    { about: 'lock', op: op.create(lock, at.lock, { ephemeral: true }) },
    ...(at.shared ? [{ about: 'lock', op: op.setData(lock, at.lock, { version: SHARED_LOCK - 1 }) } as const] : []),
  ]
}

interface Settled {
  readonly revision: number
  readonly posting: Asking
  readonly cancelRequested: boolean
  readonly shared: boolean
}

export function consume(layout: Layout, id: string, at: Settled): Step[] {
  return [
    { about: 'posting', op: op.delete(layout.posting(id), { version: at.revision }) },
    ...released(layout, id, at.posting),
    ...forgotten(layout, id, at),
    unlocked(layout, id, at),
  ]
}

export function abandon(
  layout: Layout,
  id: string,
  at: Omit<Settled, 'cancelRequested'> & { readonly bytes: Uint8Array },
): Step[] {
  return [
    { about: 'posting', op: op.setData(layout.posting(id), at.bytes, { version: at.revision }) },
    ...released(layout, id, at.posting),
    unlocked(layout, id, at),
  ]
}

/**
 * Checked first by what makes an entry in the trash. A refused multi names only its first refused operation: without this
 * check a job that another trashed a moment before would be refused for its entry that is there, as if it were there twice.
 * The entry is made before the posting is deleted, so that watchers know that the job was trashed when they see it go.
 */
function stillThere(layout: Layout, id: string, { revision }: { readonly revision: number }): Step {
  return { about: 'posting', op: op.check(layout.posting(id), { version: revision }) }
}

export function trash(layout: Layout, id: string, at: Settled & { readonly entry: Uint8Array }): Step[] {
  return [
    stillThere(layout, id, at),
    { about: 'trash', op: op.create(layout.trash(id), at.entry) },
    ...consume(layout, id, at),
  ]
}

export function discard(
  layout: Layout,
  id: string,
  at: Omit<Settled, 'shared'> & { readonly entry: Uint8Array },
): Step[] {
  return [
    stillThere(layout, id, at),
    { about: 'trash', op: op.create(layout.trash(id), at.entry) },
    { about: 'posting', op: op.delete(layout.posting(id), { version: at.revision }) },
    { about: 'lock', op: op.create(layout.lock(id), null, { ephemeral: true }) },
    ...forgotten(layout, id, at),
    { about: 'lock', op: op.delete(layout.lock(id)) },
  ]
}

/** What a board without multi has marked as trashed belongs into the trash. */
export function move(
  layout: Layout,
  { id, revision, bytes }: { readonly id: string; readonly revision: number; readonly bytes: Uint8Array },
): Step[] {
  return [
    stillThere(layout, id, { revision }),
    { about: 'trash', op: op.create(layout.trash(id), bytes) },
    { about: 'posting', op: op.delete(layout.posting(id), { version: revision }) },
  ]
}

export function restore(
  layout: Layout,
  entry: { readonly id: string; readonly revision: number },
  posting: { readonly bytes: Uint8Array; readonly path?: string },
  key?: { readonly name: string; readonly bytes: Uint8Array },
): Step[] {
  return [...purge(layout, entry), ...post(layout, posting, key)]
}

export function purge(layout: Layout, entry: { readonly id: string; readonly revision: number }): Step[] {
  return [{ about: 'trash', op: op.delete(layout.trash(entry.id), { version: entry.revision }) }]
}

export function cancel(layout: Layout, id: string, request: Uint8Array): Step[] {
  return [
    { about: 'posting', op: op.check(layout.posting(id)) },
    { about: 'cancel', op: op.create(layout.cancel(id), request) },
  ]
}

export function gate(layout: Layout, record: Uint8Array, { version }: { readonly version: number }): Step[] {
  return [{ about: 'gate', op: op.setData(layout.gate, record, { version }) }]
}

function unlocked(layout: Layout, id: string, { shared }: { readonly shared: boolean }): Step {
  return { about: 'lock', op: op.delete(layout.lock(id), shared ? { version: SHARED_LOCK } : {}) }
}

function permits(layout: Layout, id: string, posting: Asking): Step[] {
  const { exclusive, shared } = resourcesOf(posting)
  const steps = (resource: string, ops: readonly Op[]) =>
    ops.map((each): Step => ({ about: 'resource', resource, op: each }))
  return [
    ...exclusive.flatMap((resource) => {
      const path = layout.resource(resource)
      const permit = op.create(layout.exclusivePermit(resource), null, { ephemeral: true })
      return steps(resource, [op.delete(path), op.create(path, null), permit])
    }),
    ...shared.flatMap((resource) => {
      const x = layout.exclusivePermit(resource)
      const permit = op.create(layout.sharedPermit(resource, id), null, { ephemeral: true })
      return steps(resource, [op.create(x, null, { ephemeral: true }), op.delete(x), permit])
    }),
  ]
}

function released(layout: Layout, id: string, posting: Asking): Step[] {
  const { exclusive, shared } = resourcesOf(posting)
  return [
    ...exclusive.map((resource) => gone(op.delete(layout.exclusivePermit(resource)), 'resource')),
    ...shared.map((resource) => gone(op.delete(layout.sharedPermit(resource, id)), 'resource')),
  ]
}

function forgotten(layout: Layout, id: string, at: Pick<Settled, 'posting' | 'cancelRequested'>): Step[] {
  const { key } = at.posting
  return [
    ...(key === undefined ? [] : [gone(op.delete(layout.key(key)), 'key')]),
    ...(at.cancelRequested ? [gone(op.delete(layout.cancel(id)), 'cancel')] : []),
  ]
}

function gone(taken: Op, about: Subject): Step {
  return { about, op: taken, mayBeGone: true }
}
