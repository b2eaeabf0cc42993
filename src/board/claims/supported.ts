/** Finds the options of a job that a backend cannot keep: such a job is refused where it is posted or changed, and not claimed. */
import { UnsupportedCapability } from '../../core/errors.ts'
import type { Backend } from '../backend.ts'
import type { Posting } from '../model/posting.ts'

/** Refuses a posting with options that the backend cannot keep. @throws UnsupportedCapability */
export function assertSupported({ capabilities, uri }: Pick<Backend, 'capabilities' | 'uri'>, posting: Posting): void {
  const lacking =
    (posting.key !== undefined && !capabilities.keys && 'keys') ||
    (posting.resources !== undefined && !capabilities.resources && 'resources') ||
    (posting.limits !== undefined && posting.limits !== 'none' && !capabilities.limits && 'limits') ||
    (posting.after !== undefined && !capabilities.dependencies && 'dependencies') ||
    (posting.batch !== undefined && !capabilities.batches && 'batches') ||
    (posting.delay !== undefined && !capabilities.delays && 'delays') ||
    (posting.expiresAfter !== undefined && !capabilities.expiry && 'expiry')
  if (!lacking) return
  const what = `job ${posting.uuid} (${posting.name})`
  throw new UnsupportedCapability(`${what}: ${uri} does not support ${lacking}; post the job without this option`, {
    capability: lacking,
  })
}

/** A feature of a job that a backend may be unable to claim. */
export type ClaimedCapability = NonNullable<Backend['capabilities']['unclaimable']>[number]

/** Returns the feature of the job that the backend cannot claim. */
export function missingCapability(
  { capabilities: { unclaimable = [] } }: Pick<Backend, 'capabilities'>,
  { key, resources, limits, after, batch }: Pick<Posting, 'key' | 'resources' | 'limits' | 'after' | 'batch'>,
): ClaimedCapability | undefined {
  if (resources !== undefined && unclaimable.includes('resources')) return 'resources'
  if (limits !== undefined && limits !== 'none' && unclaimable.includes('limits')) return 'limits'
  if (after !== undefined && unclaimable.includes('dependencies')) return 'dependencies'
  if (batch !== undefined && unclaimable.includes('batches')) return 'batches'
  return key !== undefined && unclaimable.includes('keys') ? 'keys' : undefined
}
