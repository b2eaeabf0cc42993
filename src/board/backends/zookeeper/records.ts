/** Records, which change together with posts. `store/record-nodes.ts` has the znodes. */

import { PayloadTooLarge } from '../../../core/errors.ts'
import { defined } from '../../../core/options.ts'
import { BadVersion, NodeExists, NoNode, type ZooKeeperError } from '../../../zookeeper/index.ts'
import type { BackendRecords, PostRequest, WriteRequest, Written } from '../../contract/index.ts'
import {
  changesLimits,
  describeWrite,
  type RecordChange,
  type RecordName,
  type StoredRecord,
} from '../../model/record.ts'
import { AGAIN, type Again, type TransactionPart, untilDone, withParts } from './commit/parts.ts'
import type { Transaction, TransactionStep } from './commit/transaction.ts'
import { gateSteps, recordStep } from './commit/transactions.ts'
import type { BatchOpening } from './parts/batch-counter.ts'
import type { BoardHandle } from './parts/board-handle.ts'
import { SIZE_SETTING } from './parts/posting-parts.ts'
import { encodeGate } from './store/encoding.ts'
import { assertIntact } from './store/fence-base.ts'
import { translateErrors } from './store/reader.ts'
import { encodeRecordNode } from './store/record-nodes.ts'

/** The bytes of a frame beside the steps of one transaction. */
const FRAME_OVERHEAD_BYTES = 1_024

/** A change with the version of the znode that it replaces: of a record that was removed, too. */
interface PreparedChange {
  readonly change: RecordChange
  version: number | undefined
}

/** A write under way. What a refusal has shown is kept for the next try. */
interface Writing {
  readonly what: string
  readonly changes: readonly PreparedChange[]
  /** The posts as they take keys over whose windows are over. */
  posts: readonly PostRequest[]
}

export class ZooKeeperRecords implements BackendRecords {
  readonly #board: BoardHandle

  constructor(board: BoardHandle) {
    this.#board = board
  }

  async list(kind: string): Promise<StoredRecord[]> {
    return translateErrors(`listing every ${kind} of ${this.#board.uri}`, () =>
      this.#board.components.records.list(kind),
    )
  }

  async get(name: RecordName): Promise<StoredRecord | undefined> {
    return translateErrors(`reading ${name.kind} ${name.id}`, () => this.#board.components.records.get(name))
  }

  async watch(kind: string): Promise<void> {
    await translateErrors(`watching every ${kind} of ${this.#board.uri}`, () =>
      this.#board.components.records.watch(kind),
    )
  }

  async unwatch(kind: string): Promise<void> {
    await this.#board.componentsIfOpen?.records.unwatch(kind)
  }

  async write({ changes, posts }: WriteRequest): Promise<Written> {
    const writing: Writing = {
      what: describeWrite({ changes, posts }),
      changes: changes.map((change) => ({ change, version: change.revision })),
      posts,
    }
    return untilDone(() => this.#tryToWrite(writing))
  }

  async #tryToWrite(writing: Writing): Promise<Written | Again> {
    const { committer } = this.#board
    const { postings } = this.#board.components
    const { what, changes, posts } = writing
    const openings = await this.#openPosted(posts)
    const created = posts.map(({ posting, after = [], takeOver }) => {
      const bytes = postings.encodePosted(posting)
      const creation = postings.create<Written>({
        ...{ posting, bytes, after, takeOver },
        onGone: (gone) => ({ done: false, conflict: { gone } }),
        onKeyTaken: () => this.#takeKeyOver(writing, posting.key ?? ''),
      })
      return { ...creation, sent: { uuid: posting.uuid, path: creation.path, bytes: postings.toCounted(bytes) } }
    })
    const before = [this.#recordPart(writing), await this.#limitsPart(what, changes), toChecks(openings)]
    const stepsOfPosts = created.map(({ steps }, index) => [...steps, ...(openings[index]?.steps ?? [])])
    const first = before.reduce((sum, part) => sum + (part?.steps.length ?? 0), 0)
    const steps = [...before.flatMap((part) => part?.steps ?? []), ...stepsOfPosts.flat()]
    this.#assertFits(what, steps)
    const revisions = changes.map(({ change, version }) => {
      if (!change.bytes) return undefined
      return version === undefined ? 0 : version + 1
    })
    const transaction: Transaction<Written | Again> = {
      ...{ what, steps, touches: [] },
      onCommitted: ({ zxid, results }) => {
        let next = first
        const posted = created.map(({ sent }, index) => {
          const answer = results[next]
          next += stepsOfPosts[index]?.length ?? 0
          return postings.toPosted(sent, answer && 'path' in answer ? answer.path : undefined, zxid)
        })
        return { done: true, revisions, posted }
      },
      onRecovered: async ({ zxid }) => {
        const posted = await Promise.all(created.map(({ sent }) => postings.recoverPosted(sent, zxid)))
        return { done: true, revisions, posted }
      },
      onRefused: (error) => error,
    }
    // The checks of the batches are steps here: a transaction has one guard, and the posts may be for several batches.
    const counted = openings.map((opening) => opening && { ...opening, guard: undefined })
    const parts = [...before, ...counted, ...created.flatMap(({ parts }) => parts.map(withoutReads))]
    return committer.commit(withParts(transaction, parts))
  }

  #openPosted(posts: readonly PostRequest[]): Promise<readonly (BatchOpening | undefined)[]> {
    const { batches } = this.#board.components
    return Promise.all(
      posts.map(async (post) => {
        const { batch } = post.posting
        return batch === undefined ? undefined : batches.openPosted(batch, post)
      }),
    )
  }

  #assertFits(what: string, steps: readonly TransactionStep[]): void {
    const { committer } = this.#board
    const size = committer.sizeOf(steps) + FRAME_OVERHEAD_BYTES
    if (size <= committer.maxBytes) return
    throw new PayloadTooLarge(
      `${what}: it has ${size} bytes; this board accepts ${committer.maxBytes} in one transaction (${SIZE_SETTING})`,
    )
  }

  #recordPart(writing: Writing): TransactionPart<Written | Again> & Pick<BatchOpening, 'steps'> {
    const { layout } = this.#board
    const { records } = this.#board.components
    const steps = writing.changes.map(({ change, version }) =>
      recordStep(layout.record(change), encodeRecordNode(change.id, change.bytes), version),
    )
    return {
      steps,
      touches: writing.changes.map(({ change: { kind, id } }) => ({ name: `record ${kind}/${id}`, mode: 'alone' })),
      repair: (step, error) => {
        const written = writing.changes[steps.indexOf(step)]
        const isFolderMissing = error instanceof NoNode && step.op.type === 'create'
        return written && isFolderMissing ? () => records.createFolder(written.change.kind) : undefined
      },
      onRefused: (error, step) => {
        const written = step === undefined || step === 'guard' ? undefined : writing.changes[steps.indexOf(step)]
        const isConflict = isChanged(error) || error instanceof NodeExists
        return written && isConflict ? { answer: () => this.#examineRecord(written) } : undefined
      },
    }
  }

  /** Looks whether a record that must not exist was removed: then its znode is there, and is written at its version. */
  async #examineRecord(written: PreparedChange): Promise<Written | Again> {
    const { kind, id, revision } = written.change
    if (revision !== undefined) return { done: false, conflict: { kind, id } }
    const { records } = this.#board.components
    const found = await translateErrors(`reading ${kind} ${id}`, () => records.find({ kind, id }))
    if (found?.bytes) return { done: false, conflict: { kind, id } }
    written.version = found?.revision
    return AGAIN
  }

  /** Returns the part by which a change of a limit gives the limits another revision: every claim checks the gate. */
  async #limitsPart(
    what: string,
    changes: readonly PreparedChange[],
  ): Promise<(TransactionPart<Again> & Pick<BatchOpening, 'steps'>) | undefined> {
    if (!changesLimits(changes.map(({ change }) => change))) return undefined
    const { layout } = this.#board
    const { gate } = this.#board.components
    const seen = await translateErrors(what, () => gate.read())
    assertIntact(seen, layout.gate)
    const { version, ...record } = seen
    return {
      steps: gateSteps(layout, encodeGate({ ...record, limits: record.limits + 1 }), { version }),
      touches: [{ name: 'gate', mode: 'alone' }],
      onRefused: (error) => {
        if (!isChanged(error)) return undefined
        return { answer: () => translateErrors('reading the gate', () => gate.read()).then(() => AGAIN) }
      },
    }
  }

  /** Takes a key over whose window is over, with the next try. */
  async #takeKeyOver(writing: Writing, key: string): Promise<Written | Again> {
    const holder = await this.#board.components.keys.find(`looking for key ${key}`, key)
    const withKey = writing.posts.filter(({ posting }) => posting.key === key)
    const [tried] = withKey.flatMap(({ takeOver }) => takeOver ?? [])
    const isFree = holder ? holder.state === 'free' && holder.revision !== tried : tried !== undefined
    if (!isFree) return { done: false, conflict: { key } }
    writing.posts = writing.posts.map(({ takeOver, ...post }) => {
      // Without a holder, the key was deleted since: there is nothing to take over any more.
      const revision = post.posting.key === key ? holder?.revision : takeOver
      return { ...post, ...defined({ takeOver: revision }) }
    })
    return AGAIN
  }
}

/** Returns the checks of the batches, one for each. */
function toChecks(
  openings: readonly (BatchOpening | undefined)[],
): (TransactionPart<Again> & Pick<BatchOpening, 'steps'>) | undefined {
  const checks = new Map<string, { readonly step: TransactionStep; readonly opening: BatchOpening }>()
  for (const opening of openings) if (opening) checks.set(opening.guard.path, { step: { op: opening.guard }, opening })
  if (checks.size === 0) return undefined
  const found = [...checks.values()]
  return {
    steps: found.map(({ step }) => step),
    onRefused: (error, refused) => found.find(({ step }) => step === refused)?.opening.onRefused?.(error, 'guard'),
  }
}

/**
 * Returns the part without what is read before a transaction is tried again: a record that was changed is reported before a key that is
 * taken, as the order of the steps has it.
 */
function withoutReads<T>({ steps = [], touches = [], repair, onRefused }: TransactionPart<T>): TransactionPart<T> {
  return { steps, touches, ...defined({ repair, onRefused }) }
}

function isChanged(error: ZooKeeperError): boolean {
  return error instanceof BadVersion || error instanceof NoNode
}
