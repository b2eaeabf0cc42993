/** What every backend checks before it does anything: names it can keep, and a run that means something. */
import { ClaimLost, Fenced, InvalidArgument, NotFound } from '../core/errors.ts'
import type { AcquireRequest, FlowRequest } from './persistence.ts'

/** @throws InvalidArgument for what no backend could store or find again */
export function assertAcquireRequest({ book, flow, run, claim }: AcquireRequest): void {
  assertFlowRequest({ book, flow })
  if (!Number.isSafeInteger(run) || run < 1) throw new InvalidArgument(`run ${run} is no run number; they start at 1`)
  if (typeof claim !== 'string' || claim === '') throw new InvalidArgument('a claim is a text that is not empty')
}

/** @throws InvalidArgument for what no backend could store or find again */
export function assertFlowRequest({ book, flow }: FlowRequest): void {
  assertUuid(book.uuid, "a book's uuid")
  assertUuid(flow.uuid, "a flow's uuid")
}

/** In UTF-8: what every backend can have in an index or a path. */
const MAX_UUID_BYTES = 1_000

/** Half of a surrogate pair has no UTF-8 form: two such names would become one when they are stored. */
const LONE_SURROGATE = /\p{Surrogate}/u

/** @throws InvalidArgument for an empty text, one that is no well-formed Unicode, or one of more than 1,000 bytes */
export function assertUuid(uuid: string, what: string): void {
  if (typeof uuid !== 'string' || uuid === '' || LONE_SURROGATE.test(uuid))
    throw new InvalidArgument(`${JSON.stringify(uuid)} cannot be ${what}; use a text that is not empty`)
  if (Buffer.byteLength(uuid) > MAX_UUID_BYTES)
    throw new InvalidArgument(`${what} can have ${MAX_UUID_BYTES} bytes; this one begins ${uuid.slice(0, 40)}…`)
}

/** The refusal of an acquire: another claim's run is there already. */
export function fencedError(request: AcquireRequest, newestRun: number): Fenced {
  const { flow, run } = request
  const known = newestRun === run ? `another claim has the same run` : `run ${newestRun} has acquired it`
  return new Fenced(`flow ${flow.uuid} is not for run ${run} to acquire: ${known}`, { newestRun })
}

/** The refusal of a write: the flow belongs to run `by` now, or to nobody since it is gone. */
export function supersededError({ flow, run }: AcquireRequest, by: number | undefined): ClaimLost {
  const other = by === run ? 'the same claim has acquired it once more' : `run ${by} has acquired it`
  const why = by === undefined ? 'its logbook was removed' : other
  return new ClaimLost(`run ${run} may not write to flow ${flow.uuid} any more: ${why}`)
}

/** What a look finds where nobody has kept logbooks. */
export function noLogbooksError(uri: string, why: string): NotFound {
  return new NotFound(`there are no logbooks in ${uri}: ${why}; a conductor that keeps them there makes them`)
}
