/** Finds the options of a job that a backend cannot keep: such a job is refused where it is posted or changed, and not claimed. */
import { UnsupportedCapability } from '../../core/errors.ts'
import type { Backend } from '../contract/index.ts'
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
