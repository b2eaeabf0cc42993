/** Why a job is not being run: what operators ask first. */
import type { Entity } from './backend.ts'
import type { Entry } from './entry.ts'
import { Job } from './job.ts'
import type { ClaimQueue } from './queue.ts'

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

export interface Situation {
  readonly queue: Pick<ClaimQueue, 'blockedBy'>
  readonly paused: boolean
  /** Who lives, and which flows each of them knows. */
  readonly conductors: readonly Entity[]
}

/** Undefined where nothing is known to hold it back: it runs, has ended, or is about to be claimed. */
export function waitingFor(entry: Entry, { queue, paused, conductors }: Situation): WaitingFor | undefined {
  if (entry.ended || entry.claimed) return undefined
  if (paused) return { kind: 'pause', text: 'the board is paused' }
  const { place } = entry
  if (place?.stance === 'asleep') {
    const until = new Date(place.dueAt)
    return { kind: 'delay', until, text: `it rests until ${until.toISOString()}` }
  }
  const blocker = queue.blockedBy(entry)
  if (blocker) return behind(blocker)
  const { flow } = entry.stored?.posting.details ?? {}
  if (flow === undefined || conductors.some((conductor) => knows(conductor, flow))) return undefined
  return { kind: 'flow', flow, text: `no conductor here knows flow ${flow}` }
}

function behind({ resource, entry }: { resource: string; entry: Entry }): WaitingFor {
  if (!entry.stored) return { kind: 'resource', resource, text: `postings before it have not been read yet` }
  const job = new Job(entry)
  const at = entry.claimed ? entry.stored.posting.attempts.at(-1)?.at : undefined
  const since = at ? { since: at } : {}
  const how = entry.claimed ? 'is held by' : 'is wanted before it by'
  return { kind: 'resource', resource, job, ...since, text: `resource ${resource} ${how} ${job}` }
}

/** One that does not say which flows it knows may know this one. */
function knows({ metadata }: Entity, flow: string): boolean {
  const { flows } = metadata
  return !Array.isArray(flows) || flows.some((known) => known === flow || Object(known).name === flow)
}
