/** Why a job is not being run: what operators ask first. */
import type { Backend, Entity } from './backend.ts'
import type { Entry } from './entry.ts'
import { Job } from './job.ts'
import { workOf } from './outline.ts'
import type { ClaimQueue } from './queue/queue.ts'

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

/** The same, and since when whoever holds a resource has it, and whether anybody knows the flow. */
export async function waitingFor(
  entry: Entry,
  { backend, ...situation }: Situation & { readonly backend: Pick<Backend, 'read' | 'entities'> },
): Promise<WaitingFor | undefined> {
  const held = heldBack(entry, situation)
  if (held?.kind === 'resource') {
    const holder = situation.queue.blockedBy(entry)?.entry
    const since = holder?.claimed ? await claimedAt(holder, backend) : undefined
    return since ? { ...held, since } : held
  }
  const { flow, version } = entry.stored ? workOf(entry.stored.posting) : {}
  if (held || flow === undefined || entry.ended || entry.claimed) return held
  const conductors = await backend.entities('conductor')
  // Who works without conductors, in loops of their own, names no flows anywhere: nothing is known to be missing.
  if (conductors.length === 0 || conductors.some((conductor) => knows(conductor, { flow, version }))) return undefined
  const what = version === undefined ? flow : `${flow} in version ${version}`
  return { kind: 'flow', flow, text: `no conductor here knows flow ${what}` }
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

/** One that does not say which flows it knows, or which versions of them, may know this one. */
function knows({ metadata }: Entity, { flow, version }: { flow: string; version: string | undefined }): boolean {
  const { flows, versions } = metadata
  if (Array.isArray(flows) && !flows.some((known) => known === flow || Object(known).name === flow)) return false
  const known: unknown = Object.hasOwn(Object(versions), flow) ? Object(versions)[flow] : undefined
  return version === undefined || !Array.isArray(known) || known.includes(version)
}
