/** The components of an open board: how they are put together, and what each of them does with the events of the board's watch. */
import type { WatchEvent, ZooKeeper } from '../../../../zookeeper/index.ts'
import type { BackendSink, BoardChange } from '../../../contract/index.ts'
import type { ServerClock } from '../../server-clock.ts'
import { UnreadableValues } from '../../unreadable-values.ts'
import type { TransactionCommitter } from '../commit/committer.ts'
import { ConflictTracker } from '../commit/conflict-tracker.ts'
import { SequenceNumbers } from '../commit/sequence-numbers.ts'
import { BatchNodes } from '../store/batch-nodes.ts'
import type { BoardKind, ReleaseFilter } from '../store/board-kind.ts'
import { FollowedJobNodes } from '../store/followed-jobs.ts'
import { BoardGate } from '../store/gate.ts'
import { KeyNodes } from '../store/key-nodes.ts'
import { KnownDependencies } from '../store/known-dependencies.ts'
import { LateCancellations } from '../store/late-cancellations.ts'
import type { ZooKeeperLayout } from '../store/layout.ts'
import { LimitSweep } from '../store/limit-sweep.ts'
import { LostPosts } from '../store/lost-posts.ts'
import { batchedReader, ZooKeeperReader } from '../store/reader.ts'
import { RecordNodes } from '../store/record-nodes.ts'
import { ResourceNodes } from '../store/resource-nodes.ts'
import { Scan } from '../store/scan.ts'
import { sweep } from '../store/sweep.ts'
import { Waits } from '../store/waits.ts'
import { BatchCounter } from './batch-counter.ts'
import { BatchSweep } from './batch-sweep.ts'
import { DependencyParts } from './dependency-parts.ts'
import { GateWriter } from './gate-writer.ts'
import { HistoryJournal } from './history-journal.ts'
import { JobEnding } from './job-ending.ts'
import { LimitReservations } from './limit-reservations.ts'
import { PostingParts } from './posting-parts.ts'

export interface ZooKeeperComponents {
  readonly layout: ZooKeeperLayout
  readonly kind: BoardKind
  readonly sink: BackendSink
  readonly unreadable: UnreadableValues
  readonly reader: ZooKeeperReader
  readonly gate: BoardGate
  readonly gates: GateWriter
  readonly scan: Scan
  readonly releases: ReleaseFilter
  readonly conflicts: ConflictTracker
  readonly lateCancellations: LateCancellations
  readonly postings: PostingParts
  readonly ending: JobEnding
  readonly keys: KeyNodes
  readonly resources: ResourceNodes
  readonly limits: LimitReservations
  readonly dependencies: DependencyParts
  readonly known: KnownDependencies
  readonly waits: Waits
  readonly history: HistoryJournal
  readonly batches: BatchCounter
  readonly batchNodes: BatchNodes
  readonly followed: FollowedJobNodes
  readonly records: RecordNodes
}

export interface ComponentsOptions {
  readonly zookeeper: ZooKeeper
  readonly layout: ZooKeeperLayout
  readonly committer: TransactionCommitter
  readonly clock: ServerClock
  readonly kind: BoardKind
  readonly sink: BackendSink
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

/** Returns the components of a board that is being opened. */
export function assembleComponents(options: ComponentsOptions): ZooKeeperComponents {
  const { zookeeper, layout, committer, clock, kind, sink, created, onError } = options
  const now = () => clock.now()
  const unreadable = new UnreadableValues({ onError })
  const shared = {
    ...{ zookeeper, layout, kind, committer, encoding: kind.encoding, now },
    ...{ readMany: batchedReader(zookeeper), onError, unreadable },
  }
  const known = new KnownDependencies(layout)
  const waits = new Waits(shared)
  const reader = new ZooKeeperReader({ ...shared, onDependedOn: (id, count) => known.noteCount(id, count) })
  const gate = new BoardGate({ ...shared, onGate: (paused) => sink.paused(paused) })
  const records = new RecordNodes({ ...shared, onChanges: (names) => sink.records(names) })
  const dependencies = new DependencyParts({ ...shared, known, waits, onDoomed: (ids) => sink.doomed(ids) })
  const history = new HistoryJournal(shared)
  const lateCancellations = new LateCancellations(shared)
  const numbers = new SequenceNumbers({
    newPosting: layout.newPosting,
    count: () => scan.count,
    created,
    ...(options.numbersFrom === undefined ? {} : { from: options.numbersFrom }),
  })
  const postings = new PostingParts({ ...shared, numbers, dependencies, lostPosts: new LostPosts(reader) })
  const batchNodes = new BatchNodes(shared)
  const batches = new BatchCounter({
    ...{ ...shared, nodes: batchNodes },
    toCallbackStep: (posting) => postings.toCallbackStep(posting),
    noteRefused: (error, step) => numbers.noteRefused(error, step),
  })
  const scan: Scan = new Scan({
    ...shared,
    period: options.scanPeriod,
    onMissed: () => reportGap(components),
    onGate: (node) => (node ? gate.noteRead(node) : gate.refresh()),
    onIdle: ({ isViewed }) => {
      const mayExist = (uuid: string) => !isViewed || sink.mayExist(uuid)
      return sweep({ ...shared, ...sweeps, now: clock.now(), mayExist })
    },
  })
  const sweeps = {
    waits,
    batches: new BatchSweep({ ...shared, nodes: batchNodes, counter: batches }),
    limits: kind.shared
      ? undefined
      : new LimitSweep({ ...shared, gate, records, unusedAfterMs: options.limitsUnusedAfterMs }),
  }
  const components: ZooKeeperComponents = {
    ...{ layout, kind, sink, unreadable, reader, gate, scan, lateCancellations, postings, known, waits },
    ...{ history, records, dependencies, batches, batchNodes },
    gates: new GateWriter({ ...shared, gate, session: () => zookeeper.session }),
    releases: kind.filterReleases({
      sync: () => zookeeper.exists(layout.path),
      onReleased: (changes) => sink.changes(changes),
    }),
    conflicts: new ConflictTracker(),
    ending: new JobEnding({ ...shared, dependencies, waits, batches, history }),
    keys: new KeyNodes(shared),
    resources: new ResourceNodes(shared),
    limits: new LimitReservations(shared),
    followed: new FollowedJobNodes({
      ...{ ...shared, reader },
      onChanges: (changes) => {
        // Without a view, a cancel request shows only in this way.
        lateCancellations.changed(changes)
        sink.followed(changes)
      },
    }),
  }
  return components
}

/** Applies the events of the watch of the board. */
export function applyEvents(batch: readonly WatchEvent[], components: ZooKeeperComponents): void {
  const { layout, sink, scan, releases, conflicts, lateCancellations, known } = components
  const changes: BoardChange[] = []
  // Almost all events are of postings and locks. Only the others can be of features.
  const others: WatchEvent[] = []
  let jobs = 0
  for (const event of batch) {
    const change = layout.toJobChange(event)
    if (change && (event.type === 'created' || event.type === 'deleted')) jobs += 1
    if (!change) others.push(event)
    const reported = change ?? layout.toFolderChange(event)
    if (reported) changes.push(reported)
  }
  scan.countChanges(others, { jobs })
  if (others.length > 0) applyOtherEvents(others, components)
  for (const { kind, id } of changes) if (kind === 'gone') known.forget(id)
  conflicts.changed(changes)
  lateCancellations.changed(changes)
  sink.changes(releases.confirmed(changes))
  if (others.length > 0) applyGateEvents(others, components)
}

function applyOtherEvents(events: readonly WatchEvent[], { resources, known }: ZooKeeperComponents): void {
  resources.changed(events)
  for (const event of events) known.apply(event)
}

function applyGateEvents(events: readonly WatchEvent[], { layout, gate }: ZooKeeperComponents): void {
  const ofGate = events.filter(({ path }) => path === layout.gate)
  if (ofGate.some(({ type }) => type === 'deleted')) gate.forget()
  if (ofGate.length > 0) gate.refresh()
}

/** Reports that changes may have been missed. What is known from changes is forgotten before. */
export function reportGap(components: ZooKeeperComponents): void {
  forgetChanges(components)
  components.sink.gap()
  components.gate.refresh()
}

/** Makes the components forget what they know from changes. */
export function forgetChanges({ scan, releases, resources, known }: ZooKeeperComponents): void {
  known.clear()
  scan.clearBaseline()
  resources.clear()
  releases.clear()
}
