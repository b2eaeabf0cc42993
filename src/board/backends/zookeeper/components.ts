/** The components of an open board: how they are put together, and what each of them does with the events of the board's watch. */

import type { WatchEvent, ZooKeeper } from '../../../zookeeper/index.ts'
import type { BackendSink } from '../../contract/index.ts'
import type { ServerClock } from '../server-clock.ts'
import { UnreadableValues } from '../unreadable-values.ts'
import { BatchCounter } from './batch-counter.ts'
import { ZooKeeperBatches } from './batches.ts'
import type { TransactionCommitter } from './commit/committer.ts'
import { ConflictTracker } from './commit/conflict-tracker.ts'
import { SequenceNumbers } from './commit/sequence-numbers.ts'
import { DependencyNodes } from './dependency-nodes.ts'
import { HistoryNodes } from './history-nodes.ts'
import { KnownDependencies } from './known-dependencies.ts'
import { LimitNodes } from './limit-nodes.ts'
import { RecordWriter } from './record-writer.ts'
import { BatchNodes } from './store/batch-nodes.ts'
import type { BoardKind, ReleaseFilter } from './store/board-kind.ts'
import { EntityNodes } from './store/entity-nodes.ts'
import { FollowedJobNodes } from './store/followed-jobs.ts'
import { BoardGate } from './store/gate.ts'
import { KeyNodes } from './store/key-nodes.ts'
import { LateCancellations } from './store/late-cancellations.ts'
import type { Layout } from './store/layout.ts'
import { LimitSweep } from './store/limit-sweep.ts'
import { LostPosts } from './store/lost-posts.ts'
import { batchedReader, ZooKeeperReader } from './store/reader.ts'
import { RecordNodes } from './store/record-nodes.ts'
import { ResourceNodes } from './store/resource-nodes.ts'
import { Scan } from './store/scan.ts'
import { sweep } from './store/sweep.ts'
import { TokenWriter } from './token-writer.ts'
import { ZooKeeperWriter } from './writer.ts'

export interface ZooKeeperComponents {
  readonly kind: BoardKind
  readonly layout: Layout
  readonly reader: ZooKeeperReader
  readonly changer: ZooKeeperWriter
  readonly entities: EntityNodes
  readonly gate: BoardGate
  readonly scan: Scan
  readonly releases: ReleaseFilter
  readonly conflicts: ConflictTracker
  readonly lateCancellations: LateCancellations
  readonly folders: ResourceNodes
  readonly limits: LimitNodes
  readonly tokens: TokenWriter
  readonly dependencies: DependencyNodes
  readonly known: KnownDependencies
  readonly history: HistoryNodes
  readonly counter: BatchCounter
  readonly batches: ZooKeeperBatches
  readonly followed: FollowedJobNodes
  readonly records: RecordNodes
  readonly recordWriter: RecordWriter
  readonly sink: BackendSink
}

export interface ComponentsOptions {
  readonly zookeeper: ZooKeeper
  readonly layout: Layout
  readonly kind: BoardKind
  readonly sink: BackendSink
  readonly committer: TransactionCommitter
  readonly clock: ServerClock
  /** The period of the scans, in milliseconds. */
  readonly scanPeriod: number
  /** The number of children created and deleted before the board was opened, as a 32-bit number. */
  readonly created: number
  /** The count of children from which this client numbers postings itself. */
  readonly numbersFrom: number | undefined
  /** The time for which a key of a limit is unused before it is swept, in milliseconds. */
  readonly limitsUnusedAfterMs: number | undefined
  readonly onError: (error: unknown) => void
}

export function createComponents(options: ComponentsOptions): ZooKeeperComponents {
  const {
    zookeeper,
    layout,
    kind,
    sink,
    committer,
    clock,
    scanPeriod,
    created,
    numbersFrom: from,
    limitsUnusedAfterMs,
    onError,
  } = options
  const unreadable = new UnreadableValues({ onError })
  const parts = {
    ...{ zookeeper, layout, kind, encoding: kind.encoding },
    ...{ readMany: batchedReader(zookeeper), onError, unreadable },
  }
  const reader = new ZooKeeperReader({
    ...parts,
    onDependedOn: (id, count) => known.noteCount(id, count),
  })
  const gate = new BoardGate({ ...parts, onGate: (paused) => sink.paused(paused) })
  const scan = new Scan({
    ...parts,
    period: scanPeriod,
    onMissed: () => reportGap(components),
    onGate: (node) => (node ? gate.noteRead(node) : gate.refresh()),
    onIdle: ({ isViewed }) => {
      const limits = kind.capabilities.limits ? limitSweep : undefined
      const mayExist = (uuid: string) => !isViewed || sink.mayExist(uuid)
      return sweep({ ...parts, dependencies, batches, limits, now: clock.now(), mayExist })
    },
  })
  const known = new KnownDependencies(layout)
  const dependencies = new DependencyNodes({
    ...{ zookeeper, layout, committer, known },
    onDoomed: (ids) => sink.doomed(ids),
  })
  const history = new HistoryNodes(parts)
  const folders = new ResourceNodes(parts)
  const limits = new LimitNodes({ ...parts, now: () => clock.now() })
  const tokens = new TokenWriter({ layout, committer, gate, limits })
  const lateCancellations = new LateCancellations(parts)
  const conflicts = new ConflictTracker()
  const numbers: SequenceNumbers = new SequenceNumbers({
    newPosting: layout.newPosting,
    count: () => scan.count,
    created,
    ...(from === undefined ? {} : { from }),
  })
  const nodes = new BatchNodes(parts)
  const counter: BatchCounter = new BatchCounter({
    ...{ ...parts, nodes, committer },
    toCallbackStep: (posting) => changer.toCallbackStep(posting),
    now: () => clock.now(),
  })
  const changer = new ZooKeeperWriter({
    ...parts,
    ...{ committer, reader, gate, conflicts, folders, limits, lateCancellations, dependencies, history, numbers },
    batches: counter,
    keys: new KeyNodes({ ...parts, now: () => clock.now() }),
    session: () => zookeeper.session,
    now: () => clock.now(),
    lostPosts: new LostPosts(reader),
  })
  const onChanges: BackendSink['changes'] = (changes) => sink.changes(changes)
  const releases = kind.filterReleases({ sync: () => zookeeper.exists(layout.path), onReleased: onChanges })
  const entities = new EntityNodes(parts)
  const followed = new FollowedJobNodes({
    ...{ ...parts, reader },
    onChanges: (changes) => {
      // Without a view, a cancel request shows only in this way.
      lateCancellations.changed(changes)
      sink.followed(changes)
    },
  })
  const records = new RecordNodes({
    ...parts,
    now: () => clock.now(),
    onChanges: (names) => sink.records(names),
  })
  const batches: ZooKeeperBatches = new ZooKeeperBatches({
    ...{ ...parts, nodes, counter, committer },
    assertClaimable: (posting) => changer.assertClaimable(posting),
    onChanged: (batch) => sink.batchChanged(batch),
  })
  const limitSweep = new LimitSweep({ ...parts, gate, records, unusedAfterMs: limitsUnusedAfterMs })
  const recordWriter = new RecordWriter({
    ...{ committer, nodes: records, writer: changer, gate, layout, batches: counter },
    recordPath: (name) => layout.record(name),
  })
  const components: ZooKeeperComponents = {
    ...{ kind, layout, reader, changer, entities, gate, scan, releases },
    ...{ conflicts, lateCancellations, folders, limits, tokens, followed, records, recordWriter, sink },
    ...{ dependencies, known, history, counter, batches },
  }
  return components
}

export function applyEvents(batch: readonly WatchEvent[], components: ZooKeeperComponents): void {
  const { layout, sink, scan, gate, releases, conflicts, folders, lateCancellations, known } = components
  scan.countChanges(batch)
  folders.changed(batch)
  const changes = layout.toChanges(batch)
  for (const event of batch) known.apply(event)
  for (const { kind, id } of changes) if (kind === 'gone') known.forget(id)
  conflicts.changed(changes)
  lateCancellations.changed(changes)
  sink.changes(releases.confirmed(changes))
  const ofGate = batch.filter(({ path }) => path === layout.gate)
  if (ofGate.some(({ type }) => type === 'deleted')) gate.forget()
  if (ofGate.length > 0) gate.refresh()
}

/** Reports that changes may have been missed. What the components know from changes is forgotten before. */
export function reportGap(components: ZooKeeperComponents): void {
  const { sink, gate } = components
  forgetChanges(components)
  sink.gap()
  gate.refresh()
}

/** Makes the components forget what they know from changes. */
export function forgetChanges({ scan, releases, folders, known }: ZooKeeperComponents): void {
  known.clear()
  scan.clearBaseline()
  folders.clear()
  releases.clear()
}
