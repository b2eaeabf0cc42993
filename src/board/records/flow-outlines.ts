/**
 * Keeps the outlines of the flows that conductors know as records, so that flows can be listed and drawn without their code. Conductors
 * write one record for each digest, once.
 */

import { encodePlain, weigh } from '../../core/codec.ts'
import { asError, InvalidPosting, PayloadTooLarge } from '../../core/errors.ts'
import { shareOfHeap } from '../../core/memory-size.ts'
import { toDate } from '../../core/time.ts'
import { type AnyFlow, type FlowOutline, MAX_REQUIRES, type OutlineNode, toOutline } from '../../flow/index.ts'
import { exactly, fieldsOf, isCount, listOf, optional, parseStored, text, time, where } from '../model/stored.ts'
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
/** The outlines of one list may take the heap divided by this number: any client can write outlines. */
const LIST_PARTS = 16

/** Returns the kind for one list: outlines that would take more than the memory that is left cannot be read. */
function outlinesWithin(memory: number): RecordKind<StoredOutline> {
  let left = memory
  const parse = (value: unknown, id: string) => {
    const outline = parseOutline(value, id)
    const weight = weigh(encodePlain(outline, 'msgpack'), 'msgpack', Number.POSITIVE_INFINITY)
    if (weight > left)
      throw new InvalidPosting(`outline ${id} cannot be read: a list of flows may take ${memory} bytes of memory`)
    left -= weight
    return outline
  }
  return { ...OUTLINES, parse }
}

/** Writes the outlines that are not on the board yet. @throws NotConnected */
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

/**
 * Returns the newest structure of each version of each flow, ordered by name and version. A structure that cannot be read is left out and reported.
 *
 * @param memory the memory that the list may take; structures beyond it are left out and reported
 * @throws NotConnected
 */
export async function listFlows(records: BoardRecords, memory = shareOfHeap(LIST_PARTS)): Promise<ListedFlow[]> {
  const newest = new Map<string, StoredOutline>()
  for (const record of await records.of(outlinesWithin(memory)).list()) {
    if ('error' in record) {
      records.report(OUTLINES.name, record)
      continue
    }
    const { outline, at } = record.value
    const key = `${outline.name}\n${outline.version}`
    if (at >= (newest.get(key)?.at ?? 0)) newest.set(key, record.value)
  }
  const listed = [...newest.values()].map(({ outline, at }) => ({ ...outline, since: toDate(at) }))
  return listed.sort((a, b) => compare(a.name, b.name) || compare(a.version, b.version))
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** Parses a node. An edge back would be a circle, in which a drawing has no end. */
function parseNode(value: unknown, index: number, length: number): OutlineNode {
  const later = where((next): next is number => isCount(next) && next > index && next < length)
  const earlier = where((retry): retry is number => isCount(retry) && retry < index)
  return fieldsOf<OutlineNode>({
    ...{ name: optional(text), version: optional(text), flow: optional(text), isolated: optional(exactly(true)) },
    kind: optional(exactly('task', 'retry')),
    ...{ next: optional(listOf(later)), decides: optional(listOf(later)), retry: optional(earlier) },
  })(value)
}

const OUTLINE = fieldsOf<StoredOutline>({
  outline: fieldsOf<FlowOutline>({
    ...{
      name: text,
      version: text,
      digest: text,
      requires: optional(listOf(text, { most: MAX_REQUIRES })),
      nodes: listOf(parseNode),
    },
  }),
  at: time,
})

/** @throws InvalidPosting for a value that is no outline */
function parseOutline(value: unknown, id: string): StoredOutline {
  return parseStored(value, OUTLINE, `outline ${id}`)
}
