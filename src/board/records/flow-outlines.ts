/**
 * Keeps the outlines of the flows that conductors know as records, so that flows can be listed and drawn without their code. Conductors
 * write one record for each digest, once.
 */
import { asError, InvalidPosting, PayloadTooLarge } from '../../core/errors.ts'
import { type AnyFlow, type FlowOutline, toOutline } from '../../flow/index.ts'
import type { BoardRecords } from './board-records.ts'
import type { RecordKind } from './record-store.ts'

/** A flow that a conductor of the board has, or has had. */
export interface ListedFlow extends FlowOutline {
  /** The time at which a conductor first had this structure. */
  readonly since: Date
}

interface StoredOutline {
  readonly outline: FlowOutline
  readonly at: number
}

const OUTLINES: RecordKind<StoredOutline> = { name: 'outline', format: 1, parse: parseOutline }

/** Writes the outlines that are not on the board yet. @throws NotConnected, UnsupportedCapability */
export async function publishOutlines(
  records: BoardRecords,
  {
    flows,
    now,
    onError,
  }: { readonly flows: readonly AnyFlow[]; readonly now: number; readonly onError: (error: Error) => void },
): Promise<void> {
  const store = records.of(OUTLINES)
  const publish = async (flow: AnyFlow) => {
    const outline = toOutline(flow)
    if (await store.get(outline.digest)) return
    try {
      // A conflict means that another conductor was faster.
      await store.write([{ id: outline.digest, revision: undefined, value: { outline, at: now } }])
    } catch (error) {
      // A flow of thousands of tasks may be too large for a record. It can be run all the same.
      if (!(error instanceof PayloadTooLarge)) throw error
      onError(asError(error))
    }
  }
  await Promise.all(flows.map(publish))
}

/** Returns the newest structure of each version of each flow, ordered by name and version. @throws NotConnected, UnsupportedCapability */
export async function listFlows(records: BoardRecords): Promise<ListedFlow[]> {
  const newest = new Map<string, StoredOutline>()
  for (const record of await records.of(OUTLINES).list()) {
    if ('error' in record) continue
    const { outline, at } = record.value
    const key = `${outline.name}\n${outline.version}`
    if (at >= (newest.get(key)?.at ?? 0)) newest.set(key, record.value)
  }
  const listed = [...newest.values()].map(({ outline, at }) => ({ ...outline, since: new Date(at) }))
  return listed.sort((a, b) => compare(a.name, b.name) || compare(a.version, b.version))
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** @throws InvalidPosting for a value that is no outline */
function parseOutline(value: unknown, id: string): StoredOutline {
  const { outline, at } = Object(value)
  const { name, version, nodes } = Object(outline)
  const isWhole = typeof name === 'string' && typeof version === 'string' && Array.isArray(nodes) && Number.isFinite(at)
  if (!isWhole) throw new InvalidPosting(`outline ${id} is not complete`)
  return value as StoredOutline
}
