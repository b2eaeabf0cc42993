/** Changes records, and posts jobs in the same transaction. */
import { PayloadTooLarge } from '../../../core/errors.ts'
import { defined } from '../../../core/options.ts'
import { BadVersion, NodeExists, NoNode, type ZooKeeperError } from '../../../zookeeper/index.ts'
import type { Posted, PostRequest, WriteRequest, Written } from '../../contract/index.ts'
import { changesLimits, describeWrite, type RecordChange, type RecordName } from '../../model/record.ts'
import { type BatchCounter, type BatchOpening, NO_OPENING } from './batch-counter.ts'
import type { Applied, CommittedTransaction, TouchedName } from './commit/batch.ts'
import type { TransactionCommitter } from './commit/committer.ts'
import { BatchChangedSignal } from './commit/job-batch-steps.ts'
import { isKeyTaken } from './commit/refused-steps.ts'
import type { TransactionStep } from './commit/transactions.ts'
import * as transactions from './commit/transactions.ts'
import { assertIntact } from './store/fence-base.ts'
import type { BoardGate } from './store/gate.ts'
import type { Layout } from './store/layout.ts'
import { translateErrors } from './store/reader.ts'
import { encodeRecordNode, type RecordNodes } from './store/record-nodes.ts'
import { encodeGate } from './store/records.ts'
import { type PreparedPost, SIZE_SETTING, type ZooKeeperWriter } from './writer.ts'

/** The bytes of a frame beside the steps of one transaction. */
const FRAME_OVERHEAD_BYTES = 1_024

export interface RecordWriterOptions {
  readonly committer: TransactionCommitter
  readonly nodes: RecordNodes
  /** Prepares posts as it does alone. */
  readonly writer: Pick<
    ZooKeeperWriter,
    'preparePost' | 'recoverPosted' | 'createMissingFolder' | 'findKey' | 'noteRefused'
  >
  readonly recordPath: (name: RecordName) => string
  readonly gate: Pick<BoardGate, 'seen' | 'read' | 'noteWritten'>
  readonly layout: Layout
  readonly batches: Pick<BatchCounter, 'openPosted'>
}

/** A change with the version of the znode that it replaces: of a record that was removed, too. */
interface PreparedChange {
  readonly change: RecordChange
  readonly version: number | undefined
}

export class RecordWriter {
  readonly #options: RecordWriterOptions

  constructor(options: RecordWriterOptions) {
    this.#options = options
  }

  /** @throws NotConnected, OutcomeUnknown, PayloadTooLarge */
  async write({ changes, posts: asked }: WriteRequest): Promise<Written> {
    let prepared: readonly PreparedChange[] = changes.map((change) => ({ change, version: change.revision }))
    let posts = asked
    while (true) {
      const refused = await this.#tryToWrite(prepared, posts)
      // A batch was changed meanwhile.
      if (refused === 'again') continue
      if (!(refused instanceof RefusedStep)) return refused
      const { step } = refused
      if (step.subject === 'gate') {
        await translateErrors('reading the gate', () => this.#options.gate.read())
        continue
      }
      // Another poster has created the same number; the next one is free.
      if (step.subject === 'posting') continue
      if (step.subject === 'key') {
        const key = keyOf(posts, step)
        const free = await this.#takeOver(posts, key)
        if (!free) return { done: false, conflict: { key } }
        posts = free
        continue
      }
      if (step.dependency !== undefined) return { done: false, conflict: { gone: [step.dependency] } }
      const replaced = await this.#withRemoved(prepared, step)
      if ('conflict' in replaced) return { done: false, conflict: replaced.conflict }
      prepared = replaced.changes
    }
  }

  async #tryToWrite(
    changes: readonly PreparedChange[],
    posts: readonly PostRequest[],
  ): Promise<Written | RefusedStep | 'again'> {
    const { committer, nodes, writer, recordPath, batches } = this.#options
    const what = describeWrite({ changes: changes.map(({ change }) => change), posts })
    const openings = await Promise.all(posts.map((post) => batches.openPosted(post)))
    const prepared = posts.map((post, index) => writer.preparePost(post, openings[index] ?? NO_OPENING))
    const recordSteps = changes.map(({ change, version }) =>
      transactions.recordStep(recordPath(change), encodeRecordNode(change.id, change.bytes), version),
    )
    const gateStep = await this.#limitsStep(what, changes)
    const before = [...recordSteps, ...gateStep.steps, ...toChecks(openings)]
    const steps = [...before, ...prepared.flatMap((post) => post.steps)]
    const size = committer.sizeOf(steps) + FRAME_OVERHEAD_BYTES
    if (size > committer.maxBytes)
      throw new PayloadTooLarge(
        `${what}: it has ${size} bytes; this board accepts ${committer.maxBytes} in one transaction (${SIZE_SETTING})`,
      )
    const touches: TouchedName[] = [
      ...changes.map(({ change: { kind, id } }) => ({ name: `record ${kind}/${id}`, mode: 'alone' as const })),
      ...(gateStep.steps.length > 0 ? [{ name: 'gate', mode: 'alone' as const }] : []),
      ...prepared.flatMap((post) => post.touches),
    ]
    const revisions = changes.map(({ change, version }) => {
      if (!change.bytes) return undefined
      return version === undefined ? 0 : version + 1
    })
    const kindOf = (step: TransactionStep) => changes[recordSteps.indexOf(step)]?.change.kind
    try {
      return await committer.commit<Written>({
        ...{ what, steps, touches },
        repair: (step, error) => {
          const kind = error instanceof NoNode && step.op.type === 'create' ? kindOf(step) : undefined
          return kind === undefined ? writer.createMissingFolder(step, error) : () => nodes.createFolder(kind)
        },
        onCommitted: (applied) => ({
          done: true,
          revisions,
          posted: postedFrom(prepared, applied, before.length),
        }),
        onRecovered: async (done) => ({ done: true, revisions, posted: await this.#recover(prepared, done) }),
        toRejection: (error, step) => {
          writer.noteRefused(error, step)
          return toBatchRejection(openings, error, step) ?? (isConflict(error, step) ? new RefusedStep(step) : error)
        },
      })
    } catch (error) {
      if (error instanceof RefusedStep) return error
      if (error instanceof BatchChangedSignal) return 'again'
      throw error
    }
  }

  /** Returns the step by which a change of a limit gives the limits another revision: every claim checks the gate. */
  async #limitsStep(
    what: string,
    changes: readonly PreparedChange[],
  ): Promise<{ readonly steps: readonly TransactionStep[] }> {
    if (!changesLimits(changes.map(({ change }) => change))) return { steps: [] }
    const { gate, layout } = this.#options
    const seen = await translateErrors(what, () => gate.read())
    assertIntact(seen, layout.gate)
    const { version, ...record } = seen
    return { steps: transactions.gateSteps(layout, encodeGate({ ...record, limits: record.limits + 1 }), { version }) }
  }

  /** Returns the posts as they take a key over whose window is over; undefined for a key that is taken. */
  async #takeOver(posts: readonly PostRequest[], key: string): Promise<readonly PostRequest[] | undefined> {
    const holder = await this.#options.writer.findKey(`looking for key ${key}`, key)
    const withKey = posts.filter(({ posting }) => posting.key === key)
    const [tried] = withKey.flatMap(({ takeOver }) => takeOver ?? [])
    const isFree = holder ? holder.state === 'free' && holder.revision !== tried : tried !== undefined
    if (!isFree) return undefined
    return posts.map(({ takeOver, ...post }) => {
      if (!withKey.some(({ posting }) => posting === post.posting)) return { ...post, ...defined({ takeOver }) }
      // Without a holder, the key was deleted since: there is nothing to take over any more.
      return { ...post, ...defined({ takeOver: holder?.revision }) }
    })
  }

  #recover(posts: readonly PreparedPost[], { zxid }: CommittedTransaction): Promise<Posted[]> {
    return Promise.all(posts.map((post) => this.#options.writer.recoverPosted(zxid, post)))
  }

  /**
   * Returns the changes as they can be tried again: a record that must not exist may have been removed, and its znode is there. Returns the
   * conflict if that is not so.
   */
  async #withRemoved(
    changes: readonly PreparedChange[],
    step: TransactionStep,
  ): Promise<{ readonly changes: readonly PreparedChange[] } | { readonly conflict: RecordName }> {
    const { nodes, recordPath } = this.#options
    const refused = changes.find(({ change }) => recordPath(change) === step.op.path)
    if (!refused) throw new Error(`no change has the path ${step.op.path}`)
    const { kind, id, revision } = refused.change
    if (revision !== undefined) return { conflict: { kind, id } }
    const found = await translateErrors(`reading ${kind} ${id}`, () => nodes.find({ kind, id }))
    if (found?.bytes) return { conflict: { kind, id } }
    const replaced = { change: refused.change, version: found?.revision }
    return { changes: changes.map((each) => (each === refused ? replaced : each)) }
  }
}

/** Internal signal: a record, a key or a number is not as the write expects; it is not an error yet. */
class RefusedStep extends Error {
  readonly step: TransactionStep

  constructor(step: TransactionStep) {
    super('refused')
    this.step = step
  }
}

function isConflict(error: ZooKeeperError, step: TransactionStep | 'guard' | undefined): step is TransactionStep {
  if (step === undefined || step === 'guard') return false
  if (step.subject === 'gate') return error instanceof BadVersion || error instanceof NoNode
  if (step.dependency !== undefined) return error instanceof NoNode
  if (step.subject !== 'record') return isKeyTaken(error, step)
  return error instanceof NodeExists || error instanceof BadVersion || error instanceof NoNode
}

/** Returns the checks of the batches, one for each. */
function toChecks(openings: readonly BatchOpening[]): readonly TransactionStep[] {
  const checks = openings.flatMap(({ check }) => check ?? [])
  return [...new Map(checks.map((check) => [check.op.path, check])).values()]
}

function toBatchRejection(
  openings: readonly BatchOpening[],
  error: ZooKeeperError,
  step: TransactionStep | 'guard' | undefined,
): Error | undefined {
  for (const opening of openings) {
    const rejection = opening.toRejection(error, step)
    if (rejection) return rejection
  }
  return undefined
}

/** Returns what became of the posts, from the results of the transaction. */
function postedFrom(posts: readonly PreparedPost[], { zxid, results }: Applied, from: number): Posted[] {
  let next = from
  return posts.map((post) => {
    const created = results[next]
    next += post.steps.length
    return post.toPosted(created && 'path' in created ? created.path : undefined, zxid)
  })
}

function keyOf(posts: readonly PostRequest[], step: TransactionStep): string {
  const found = posts.find(({ posting }) => posting.key !== undefined && step.key === posting.key)
  return found?.posting.key ?? ''
}
