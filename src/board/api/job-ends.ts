/**
 * Reads how jobs ended, many at once and without waiting: the jobs on which another one depends.
 *
 * | known of the job | outcome | results |
 * |---|---|---|
 * | its record in the history | as in the record | as the record keeps them, else as in the logbook |
 * | only its logbook | COMPLETE after success, TRASHED after a failure | those of the logbook |
 * | nothing any more | undefined | undefined |
 */
import type { AnyFlow } from '../../flow/index.ts'
import type { Backend } from '../contract/index.ts'
import type { EndedJob } from '../model/ended-job.ts'
import { keptResultsOf } from '../model/ended-job.ts'
import { collectLogged, type LoggedFlow, type ResultLogbooks, readLoggedFlow } from './job-result.ts'

/** The number of logbooks that are read at the same time. */
const LOGBOOKS_AT_ONCE = 16

/** The jobs whose ends are read, and where their results are found. */
export interface JobEndsRequest {
  readonly uuids: readonly string[]
  /** The logbooks of the jobs. */
  readonly persistence?: ResultLogbooks
  /** Returns the flow of this name and version, which says what its tasks provide; undefined for a flow that is unknown here. */
  readonly findFlow?: (flow: { readonly name: string; readonly version: string }) => AnyFlow | undefined
}

/** The end of a job, as far as it is known. */
export interface KnownJobEnd {
  readonly uuid: string
  readonly name: string | undefined
  readonly outcome: 'COMPLETE' | 'TRASHED' | undefined
  readonly reason: string | undefined
  readonly results: Readonly<Record<string, unknown>> | undefined
}

/** @throws SealedLogbook, StorageFailure, NotConnected */
export async function readJobEnds(
  { uuids, ...source }: JobEndsRequest,
  backend: Pick<Backend, 'history' | 'clock'>,
): Promise<readonly KnownJobEnd[]> {
  const records = await backend.history.find(uuids)
  const read = { ...source, now: backend.clock.now() }
  const ends: KnownJobEnd[] = []
  for (let from = 0; from < uuids.length; from += LOGBOOKS_AT_ONCE) {
    const part = uuids.slice(from, from + LOGBOOKS_AT_ONCE)
    ends.push(...(await Promise.all(part.map((uuid, index) => readJobEnd(uuid, records[from + index], read)))))
  }
  return ends
}

async function readJobEnd(
  uuid: string,
  record: EndedJob | undefined,
  { persistence, findFlow, now }: Omit<JobEndsRequest, 'uuids'> & { readonly now: number },
): Promise<KnownJobEnd> {
  const kept = record?.outcome === 'COMPLETE' ? readKept(uuid, record, { persistence, now }) : undefined
  const logged =
    kept || record?.outcome === 'TRASHED' ? undefined : await readLoggedFlow({ uuid, book: uuid, persistence })
  const outcome = record?.outcome ?? toOutcome(logged)
  const flow = logged?.state === 'SUCCESS' && outcome === 'COMPLETE' ? findFlow?.(logged) : undefined
  return {
    uuid,
    name: record?.name,
    outcome,
    reason: record?.reason,
    results: kept ?? (logged && flow && collectLogged(logged, flow)),
  }
}

/** Returns the results that the board has kept and that can be read here. @throws SealedLogbook */
function readKept(
  uuid: string,
  record: EndedJob,
  { persistence, now }: { readonly persistence: ResultLogbooks | undefined; readonly now: number },
): Readonly<Record<string, unknown>> | undefined {
  const kept = keptResultsOf(record, { now })
  if (!kept || 'notKept' in kept) return undefined
  if (persistence?.unsealResults) return persistence.unsealResults(kept, { book: uuid, flow: uuid })
  return 'values' in kept ? kept.values : undefined
}

function toOutcome(logged: LoggedFlow | undefined): KnownJobEnd['outcome'] {
  switch (logged?.state) {
    case 'SUCCESS':
      return 'COMPLETE'
    case 'FAILURE':
    case 'REVERTED':
      return 'TRASHED'
    default:
      return undefined
  }
}
