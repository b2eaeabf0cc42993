/** Why a job is not being run: what operators ask first. */
import { printableDuration } from '../core/time.ts'
import type { Backend, Entity } from './backend.ts'
import type { Entry } from './entry.ts'
import { Job } from './job.ts'
import { CONDUCTOR_KIND, isKnown, printableWork, type Work, workNamed } from './known-work.ts'
import type { ClaimQueue } from './queue/queue.ts'
import type { UnacceptedFlows } from './view/unaccepted-flows.ts'

/** What holds a job back; `text` says it to people. */
export type WaitingFor = { readonly text: string } & (
  | { readonly kind: 'pause' }
  | { readonly kind: 'delay'; readonly until: Date }
  | {
      readonly kind: 'resource'
      readonly resource: string
      /** Who holds it, or stands first in line. */
      readonly job?: Job
      /** Since when that one has it. */
      readonly since?: Date
    }
  | { readonly kind: 'flow'; readonly flow: string }
)

/** Of what a Date can name, in milliseconds since 1970: a delay may be longer. */
const LAST_DAY = 8.64e15

export interface Situation {
  readonly queue: Pick<ClaimQueue, 'blockedBy'>
  readonly paused: boolean
}

export interface WholeSituation extends Situation {
  readonly backend: Pick<Backend, 'read' | 'entities'>
  readonly unaccepted: Pick<UnacceptedFlows, 'learn' | 'after'>
}

/** What holds it back as far as this process knows; undefined where nothing does: it runs, has ended, or can be claimed. */
export function heldBack(entry: Entry, { queue, paused }: Situation): WaitingFor | undefined {
  if (entry.ended || entry.claimed) return undefined
  if (paused) return { kind: 'pause', text: 'the board is paused' }
  const { place } = entry
  if (place?.stance === 'asleep') {
    const until = new Date(Math.min(place.dueAt, LAST_DAY))
    return { kind: 'delay', until, text: `it rests until ${until.toISOString()}` }
  }
  const blocker = queue.blockedBy(entry)
  return blocker && behind(blocker)
}

/** The same, and since when whoever holds a resource has it, and whether any conductor knows the flow. */
export async function waitingFor(entry: Entry, situation: WholeSituation): Promise<WaitingFor | undefined> {
  const { backend, queue, unaccepted } = situation
  const held = heldBack(entry, situation)
  if (entry.ended || entry.claimed || (held && held.kind !== 'resource')) return held
  const blocker = queue.blockedBy(entry)?.entry
  if (held && blocker?.claimed) {
    const since = await claimedAt(blocker, backend)
    return since ? { ...held, since } : held
  }
  const conductors = await backend.entities(CONDUCTOR_KIND)
  // It may be that nobody waits for those before it any more.
  unaccepted.learn(conductors)
  const still = heldBack(entry, situation)
  const first = queue.blockedBy(entry)?.entry
  const unknown = unknownWork(first ?? entry, conductors)
  if (!unknown) return still
  const text = `no conductor here knows flow ${printableWork(unknown)}`
  if (!still) return { kind: 'flow', flow: unknown.flow, text }
  if (!first || still.kind !== 'resource') return still
  const until = `after ${printableDuration(unaccepted.after)} without one, others no longer wait for it`
  return { ...still, text: `${still.text}; ${text}: ${until}` }
}

function unknownWork({ stored, claimed }: Entry, conductors: readonly Entity[]): Work | undefined {
  const work = stored && !claimed ? workNamed(stored) : undefined
  return work && !isKnown(work, conductors) ? work : undefined
}

function behind({ resource, entry }: { resource: string; entry: Entry }): WaitingFor {
  if (!entry.stored) return { kind: 'resource', resource, text: `postings before it have not been read yet` }
  const job = new Job(entry)
  const how = entry.claimed ? 'is held by' : 'is wanted before it by'
  return { kind: 'resource', resource, job, text: `resource ${resource} ${how} ${job}` }
}

/** What a claim wrote is not read by those who did not make it, until they have need of it. */
async function claimedAt({ id, stored }: Entry, backend: Pick<Backend, 'read'>): Promise<Date | undefined> {
  const [now] = id === undefined ? [] : await backend.read([id])
  const { posting } = now && 'posting' in now ? now : (stored ?? {})
  return posting?.attempts.at(-1)?.at
}
