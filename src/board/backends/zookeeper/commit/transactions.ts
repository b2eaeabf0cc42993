/**
 * The steps of the board's transactions, one function per row. Each is applied as a whole or not at all, and checks the server's state,
 * never this process' view of it.
 *
 * | operation         | one multi of                                                                                |
 * |-------------------|---------------------------------------------------------------------------------------------|
 * | post              | create posting (+ create key, or take over the key of a removed job, at its revision)        |
 * | replace           | setData posting at the revision seen, setData key at its revision                            |
 * | claim             | check gate, setData posting at the revision seen (next run, its attempt), permits, limits, create lock |
 * | consume           | delete posting at the revision this claim wrote, permits, slots, key, cancel request, lock    |
 * | abandon           | setData posting at that revision, permits, lock                                              |
 * | release           | as abandon, at the revision seen, by any client: the delete of the lock is refused if there is no claim |
 * | trash             | create trash entry, delete posting at that revision, permits, key, cancel request, lock       |
 * | discard           | create trash entry, delete posting at the revision seen, create lock, key, cancel, delete lock |
 * | restore           | delete trash entry at its revision, create posting (+ create key)                             |
 * | purge             | delete trash entry at its revision                                                           |
 * | cancel            | check posting, create cancel request                                                         |
 * | gate, fence base  | setData gate at its revision                                                                 |
 * | dependencies      | parts of posts, claims and ends: see `parts/dependency-parts.ts`                             |
 * | history           | create a znode with all jobs that the multi ends: see `parts/history-journal.ts`              |
 * | batches           | parts of posts, ends and restorations: see `parts/batch-counter.ts`                           |
 * | write             | create, or setData at its revision, each record; setData gate, if a limit changes; the steps of each post |
 * | permit, exclusive | delete resource, create it, create `x` in it: the delete fails if another job holds any of it  |
 * | limit             | setData key at the version read (one for all tokens of a group); create slot: fails if another job holds it |
 * | permit, shared    | create `x`, delete `x`, create `s-<job>`: the first create fails if a writer holds it         |
 *
 * The posting is changed first and the lock last: a watcher never sees a free lock beside an old posting. A discard creates
 * and deletes the lock to prove that there was none. The revision protects against former owners: every claim and abandon
 * increments it, so a settle by any claim but the newest is refused. Revisions of resources and locks are not compared,
 * because these znodes are created again all the time. The exception is a lock on a board that is shared with TaskFlow: its
 * revision is compared, because an owner there does not increment the posting's: see `taskflow/shared-board.ts`.
 */

import { type CheckOp, type Op, op } from '../../../../zookeeper/index.ts'
import type { Posting } from '../../../model/posting/posting.ts'
import { toResourceWants } from '../../../model/resources.ts'
import type { BoardKind } from '../store/board-kind.ts'
import type { ZooKeeperLayout } from '../store/layout.ts'
import type { TransactionStep } from './transaction.ts'

/** The way in which a job is locked, which differs on boards that are shared with TaskFlow. */
type LockKind = Pick<BoardKind, 'lockOps' | 'unlockOp'>

/** The resources and the key that a posting requests. */
type KeyAndResources = Pick<Posting, 'resources' | 'key' | 'keyFor'>

/** A key that a transaction creates, or takes over at a revision. */
export interface KeyToTake {
  readonly name: string
  readonly bytes: Uint8Array
  readonly takenOverAt?: number
}

/** Returns the step that creates the posting. ZooKeeper appends the digits, unless the given path has them. */
export function createStep(
  layout: ZooKeeperLayout,
  { bytes, path }: { readonly bytes: Uint8Array; readonly path?: string | undefined },
): TransactionStep {
  const create = path === undefined ? op.create(layout.newPosting, bytes, { sequential: true }) : op.create(path, bytes)
  return { subject: 'posting', op: create }
}

/** Returns the step that replaces the posting of a job that was never claimed: a claim would have changed its revision. */
export function replaceStep(
  layout: ZooKeeperLayout,
  id: string,
  { revision, bytes }: { readonly revision: number; readonly bytes: Uint8Array },
): TransactionStep {
  return { subject: 'posting', op: op.setData(layout.posting(id), bytes, { version: revision }) }
}

export function keyStep(layout: ZooKeeperLayout, { name, bytes, takenOverAt: version }: KeyToTake): TransactionStep {
  const path = layout.key(name)
  return { op: version === undefined ? op.create(path, bytes) : op.setData(path, bytes, { version }) }
}

/** Returns the check of the gate, which is sent once for a whole group of claims. */
export function gateCheckOp(layout: ZooKeeperLayout, version: number): CheckOp {
  return op.check(layout.gate, { version })
}

/** @param at.parts the steps of the parts, by which the claim also takes resources and limits, or proves that the job does not wait */
export function claimSteps(
  layout: ZooKeeperLayout,
  id: string,
  at: {
    readonly revision: number
    readonly bytes: Uint8Array
    readonly lock: Uint8Array
    readonly kind: LockKind
    readonly parts: readonly TransactionStep[]
  },
): TransactionStep[] {
  return [
    { subject: 'posting', op: op.setData(layout.posting(id), at.bytes, { version: at.revision }) },
    ...at.parts,
    ...at.kind.lockOps(layout.lock(id), at.lock).map((each): TransactionStep => ({ subject: 'lock', op: each })),
  ]
}

interface SettledClaim {
  readonly revision: number
  /** The paths of the slots that the claim holds. */
  readonly slots?: readonly string[]
  readonly posting: KeyAndResources
  readonly cancelRequested: boolean
  readonly kind: LockKind
}

export function consumeSteps(layout: ZooKeeperLayout, id: string, at: SettledClaim): TransactionStep[] {
  return [
    { subject: 'posting', op: op.delete(layout.posting(id), { version: at.revision }) },
    ...freeSteps(layout, id, at),
    ...forgetSteps(layout, id, at),
    unlockStep(layout, id, at),
  ]
}

export function abandonSteps(
  layout: ZooKeeperLayout,
  id: string,
  at: Omit<SettledClaim, 'cancelRequested'> & { readonly bytes: Uint8Array },
): TransactionStep[] {
  return [
    { subject: 'posting', op: op.setData(layout.posting(id), at.bytes, { version: at.revision }) },
    ...freeSteps(layout, id, at),
    unlockStep(layout, id, at),
  ]
}

/**
 * Returns the check that begins every transaction which creates a trash entry. A refused multi names only its first
 * refused operation: without this check a job that another client trashed a moment before would be refused because of
 * its entry, as if the entry were a duplicate. The entry is created before the posting is deleted, so that watchers
 * know that the job was trashed when they see the posting deleted.
 */
export function postingCheckStep(
  layout: ZooKeeperLayout,
  id: string,
  { revision }: { readonly revision: number },
): TransactionStep {
  return { subject: 'posting', op: op.check(layout.posting(id), { version: revision }) }
}

export function trashSteps(
  layout: ZooKeeperLayout,
  id: string,
  at: SettledClaim & { readonly entry: Uint8Array },
): TransactionStep[] {
  return [
    postingCheckStep(layout, id, at),
    { subject: 'trash', op: op.create(layout.trash(id), at.entry) },
    ...consumeSteps(layout, id, at),
  ]
}

export function discardSteps(
  layout: ZooKeeperLayout,
  id: string,
  at: Omit<SettledClaim, 'kind'> & { readonly entry: Uint8Array },
): TransactionStep[] {
  return [
    postingCheckStep(layout, id, at),
    { subject: 'trash', op: op.create(layout.trash(id), at.entry) },
    { subject: 'posting', op: op.delete(layout.posting(id), { version: at.revision }) },
    { subject: 'lock', op: op.create(layout.lock(id), null, { ephemeral: true }) },
    ...forgetSteps(layout, id, at),
    { subject: 'lock', op: op.delete(layout.lock(id)) },
  ]
}

export function purgeSteps(
  layout: ZooKeeperLayout,
  entry: { readonly id: string; readonly revision: number },
): TransactionStep[] {
  return [{ subject: 'trash', op: op.delete(layout.trash(entry.id), { version: entry.revision }) }]
}

export function cancelSteps(layout: ZooKeeperLayout, id: string, request: Uint8Array): TransactionStep[] {
  return [
    { subject: 'posting', op: op.check(layout.posting(id)) },
    { subject: 'cancel', op: op.create(layout.cancel(id), request) },
  ]
}

export function gateSteps(
  layout: ZooKeeperLayout,
  record: Uint8Array,
  { version }: { readonly version: number },
): TransactionStep[] {
  return [{ op: op.setData(layout.gate, record, { version }) }]
}

/** Returns the step that creates a record, or changes it at a version. */
export function recordStep(path: string, bytes: Uint8Array, version: number | undefined): TransactionStep {
  return { op: version === undefined ? op.create(path, bytes) : op.setData(path, bytes, { version }) }
}

function unlockStep(layout: ZooKeeperLayout, id: string, { kind }: Pick<SettledClaim, 'kind'>): TransactionStep {
  return { subject: 'lock', op: kind.unlockOp(layout.lock(id)) }
}

/** The steps about resources of a job without any, as most are. */
const NO_STEPS: readonly TransactionStep[] = []

/** A step about a resource. */
export interface PermitStep extends TransactionStep {
  readonly resource: string
}

/** Returns the steps by which a claim takes its resources. */
export function permitSteps(layout: ZooKeeperLayout, id: string, posting: KeyAndResources): readonly PermitStep[] {
  const { exclusive, shared } = toResourceWants(posting)
  const steps = (resource: string, ops: readonly Op[]) => ops.map((each) => ({ resource, op: each }))
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

function freeSteps(
  layout: ZooKeeperLayout,
  id: string,
  { posting, slots = [] }: Pick<SettledClaim, 'posting' | 'slots'>,
): readonly TransactionStep[] {
  const { exclusive, shared } = toResourceWants(posting)
  if (exclusive.length + shared.length + slots.length === 0) return NO_STEPS
  return [
    ...slots.map((path) => deleteStep(op.delete(path))),
    ...exclusive.map((resource) => deleteStep(op.delete(layout.exclusivePermit(resource)))),
    ...shared.map((resource) => deleteStep(op.delete(layout.sharedPermit(resource, id)))),
  ]
}

function forgetSteps(
  layout: ZooKeeperLayout,
  id: string,
  at: Pick<SettledClaim, 'posting' | 'cancelRequested'>,
): readonly TransactionStep[] {
  // A key with a window outlives its job: the next post decides whether the window is over, and sweeps remove it.
  const key = at.posting.keyFor === undefined ? at.posting.key : undefined
  if (key === undefined && !at.cancelRequested) return NO_STEPS
  const steps: TransactionStep[] = []
  if (key !== undefined) steps.push(deleteStep(op.delete(layout.key(key))))
  if (at.cancelRequested) steps.push(deleteStep(op.delete(layout.cancel(id))))
  return steps
}

/** Returns the step that deletes a znode if it is there. */
export function deleteStep(taken: Op): TransactionStep {
  return { op: taken, isOptional: true }
}
