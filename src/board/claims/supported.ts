/** Finds the options of a job that a board cannot keep: such a job is refused where it is posted or changed. */
import { UnsupportedCapability } from '../../core/errors.ts'
import type { Backend } from '../contract/index.ts'
import type { Posting } from '../model/posting/posting.ts'

/** Refuses a posting with options that other programs on a shared board would not respect. @throws UnsupportedCapability */
export function assertSupported({ shared, uri }: Pick<Backend, 'shared' | 'uri'>, posting: Posting): void {
  const lacking = shared && findUnsupported(posting)
  if (!lacking) return
  const what = `job ${posting.uuid} (${posting.name})`
  throw new UnsupportedCapability(`${what}: ${uri} does not support ${lacking}; post the job without this option`, {
    capability: lacking,
  })
}

/**
 * Returns the first option that programs of TaskFlow do not know. Such a program would claim the job in spite of the option, or end the job without
 * the counts and records that follow from its end. It records no runs either, so a job that it has tried would expire.
 */
function findUnsupported({ key, resources, limits, after, batch, delay, expiresAfter }: Posting): string | undefined {
  if (key !== undefined) return 'keys'
  if (resources !== undefined) return 'resources'
  if (limits !== undefined && limits !== 'none') return 'limits'
  if (after !== undefined) return 'dependencies'
  if (batch !== undefined) return 'batches'
  if (delay !== undefined) return 'delays'
  return expiresAfter === undefined ? undefined : 'expiry'
}
