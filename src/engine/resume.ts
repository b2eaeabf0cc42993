/**
 * Determines where an engine starts, from the logbook and the present flow.
 *
 * A flow that has ended with nothing left of it (REVERTED), or stuck (FAILURE, a revert has failed), is **restarted** from
 * clean atoms. One that has succeeded is **finished**. Every other one is **resumed**: each atom's record has its state and its
 * intention. What is SUCCESS stays, what was RUNNING runs again (or is reverted first, or has failed: see
 * `onInterrupted` of tasks), what was to be reverted is reverted.
 *
 * The code may have changed since. Atoms that are new are executed when their turn comes; atoms that are gone keep their
 * records, and their failures still count, but nothing can execute or revert them.
 */
import { Duplicate, IncompatibleVersion, Interrupted } from '../core/errors.ts'
import { type Failure, failureOf } from '../core/failure.ts'
import type { AtomState, FlowState } from '../core/states.ts'
import type { AnyFlow, AtomNode, ExecutionGraph, ExecutionNode, OnInterrupted } from '../flow/index.ts'
import type { AtomDetail, FlowDetail } from '../persistence/index.ts'
import type { AtomStates } from './atom-states.ts'

export type Start = 'resume' | 'restart' | 'finished'

/** The states from the recorded one to RUNNING. A flow whose engine died passes through RESUMING and SUSPENDED. */
const PATH_TO_RUNNING: Readonly<Record<FlowState, readonly FlowState[]>> = {
  PENDING: ['RUNNING'],
  RUNNING: ['RESUMING', 'SUSPENDED', 'RUNNING'],
  SUSPENDING: ['RESUMING', 'SUSPENDED', 'RUNNING'],
  RESUMING: ['SUSPENDED', 'RUNNING'],
  SUSPENDED: ['RUNNING'],
  REVERTED: ['PENDING', 'RUNNING'],
  FAILURE: ['PENDING', 'RUNNING'],
  SUCCESS: [],
}

const REVERTING_STATES: ReadonlySet<AtomState> = new Set(['FAILURE', 'REVERTING', 'REVERTED', 'REVERT_FAILURE'])

/** Returns whether the flow is resumed, restarted, or finished. */
export function toStart(flow: FlowDetail): Start {
  if (flow.state === 'SUCCESS') return 'finished'
  if (flow.state === 'REVERTED') return 'restart'
  // A FAILURE without a failed revert was left as it was, by an engine with `neverResolve`.
  if (flow.state === 'FAILURE' && flow.atoms.some((atom) => atom.state === 'REVERT_FAILURE')) return 'restart'
  return 'resume'
}

/** Returns the states from the recorded one to RUNNING. */
export function pathToRunning(flow: FlowDetail, start: Start): readonly FlowState[] {
  return flow.state === 'FAILURE' && start === 'resume' ? ['RUNNING'] : PATH_TO_RUNNING[flow.state]
}

/**
 * Refuses records that this release cannot carry on.
 *
 * @throws IncompatibleVersion for a kind of atom that this release does not know
 * @throws Duplicate when a name is another kind of atom now than it was
 */
export function assertResumable(detail: FlowDetail, graph: ExecutionGraph): void {
  for (const { name, kind } of detail.atoms) {
    if (kind !== 'task' && kind !== 'retry')
      throw new IncompatibleVersion(
        `flow ${detail.name}: its logbook has ${name} of kind ${String(kind)}, which a newer release has written; run the flow with that release`,
      )
    const now = graph.byName.get(name)?.atom.kind ?? kind
    if (now !== kind)
      throw new Duplicate(
        `flow ${detail.name}: ${name} is a ${now}, but its logbook has a ${kind} of that name; rename the ${now}`,
      )
  }
}

/** Returns the differences between the code that wrote the logbook and the present code, as log lines. */
export function findDifferences(detail: FlowDetail, options: { flow: AnyFlow; graph: ExecutionGraph }): string[] {
  const { flow, graph } = options
  const lines: string[] = []
  if (detail.atoms.length > 0 && detail.version !== flow.version)
    lines.push(`the flow was begun by version ${detail.version} and goes on with ${flow.version}`)
  for (const { name, version } of detail.atoms) {
    const now = graph.byName.get(name)?.atom
    if (!now) lines.push(`atom ${name} is in the logbook but not in the flow any more: it is left as it is`)
    else if (now.version !== version)
      lines.push(`atom ${name} was recorded by version ${version} and is ${now.version} now`)
  }
  return lines
}

export interface ResumeOptions {
  readonly atomStates: AtomStates
  readonly detail: FlowDetail
  readonly deferReverts: boolean
  /** Whether failed atoms run again; by default, their retry decides what follows. */
  readonly neverResolve: boolean
  readonly resolve: (node: AtomNode, failure: Failure) => Promise<void>
}

/**
 * Continues what the last engine had decided: resolves unresolved failures, reverts what a retry wanted reverted, and reverts
 * everything if an atom is being reverted for another reason than a retry.
 */
export async function resumeAtoms(options: ResumeOptions): Promise<void> {
  const { atomStates, detail, neverResolve, resolve } = options
  if (detail.atoms.length === 0) return
  for (const retry of filterRetries(atomStates, isRetrying)) {
    atomStates.intend(retry, 'RETRY')
    atomStates.revertAfter(retry)
  }
  const interrupted = endInterrupted(atomStates)
  const unresolved = atomStates.graph.atoms.filter((node) => {
    const { state, intention } = atomStates.record(node)
    return state === 'FAILURE' && intention === 'EXECUTE'
  })
  const revertedBefore = findRevertedByRetry(options)
  for (const node of unresolved) {
    if (revertedBefore.has(node)) atomStates.intend(node, 'REVERT')
    else if (neverResolve && !interrupted.has(node)) atomStates.renew(node)
    else
      await resolve(
        node,
        atomStates.record(node).failure ??
          failureOf(new Error(`atom ${node.atom.name} failed, but the logbook has no failure for it`)),
      )
  }
  const revertedNow = findRevertedByRetry(options)
  const hasOtherReverts = atomStates.graph.atoms.some(
    (node) => !revertedNow.has(node) && !interrupted.has(node) && isReverting(atomStates.record(node)),
  )
  const gone = detail.atoms.some((atom) => !atomStates.graph.byName.has(atom.name) && isReverting(atom))
  if (hasOtherReverts || (gone && revertedNow.size === 0)) atomStates.revertAll()
}

/**
 * Moves tasks that were interrupted, and may not simply run again, to where they go on: to FAILURE, or to REVERTING, after which they are
 * executed again. Returns the tasks that have failed.
 */
function endInterrupted(atomStates: AtomStates): ReadonlySet<AtomNode> {
  const failed = new Set<AtomNode>()
  for (const node of atomStates.graph.atoms) {
    const { state, intention, meta } = atomStates.record(node)
    const onInterrupted = onInterruptedOf(node)
    if (state !== 'RUNNING' || intention !== 'EXECUTE' || onInterrupted === 'rerun' || meta['begun'] === false) continue
    const message = `task ${node.atom.name} was under way when its process ended, or was stopped; how far it came is not known`
    atomStates.moveTo(node, 'FAILURE', { failure: failureOf(new Interrupted(message)) })
    if (onInterrupted === 'revert') atomStates.moveTo(node, 'REVERTING')
    else failed.add(node)
    atomStates.frontier.consider(node)
  }
  return failed
}

function onInterruptedOf({ atom }: AtomNode): OnInterrupted {
  return (atom.kind === 'task' ? atom.onInterrupted : undefined) ?? 'rerun'
}

/** Returns whether an atom is being undone for good: an atom that is REVERTING and to be executed was interrupted, and begins anew. */
function isReverting({ state, intention }: AtomDetail): boolean {
  if (state === 'REVERTING' && intention === 'EXECUTE') return false
  return intention === 'REVERT' || REVERTING_STATES.has(state)
}

function isRetrying({ state, intention }: AtomDetail): boolean {
  return intention === 'RETRY' || state === 'RETRYING'
}

/** Returns the nodes that are reverted because of a retry: the retry, and all nodes after it. */
function findRevertedByRetry({ atomStates, deferReverts }: ResumeOptions): ReadonlySet<ExecutionNode> {
  const retrying = filterRetries(atomStates, isRetrying)
  const givenUp = deferReverts ? [] : filterRetries(atomStates, isReverting)
  return new Set([
    ...[...retrying, ...givenUp].flatMap((retry) => atomStates.nodesAfter(retry)),
    ...retrying,
    ...givenUp,
  ])
}

function filterRetries(atomStates: AtomStates, has: (atom: AtomDetail) => boolean): AtomNode[] {
  return atomStates.graph.atoms.filter((node) => node.atom.kind === 'retry' && has(atomStates.record(node)))
}
