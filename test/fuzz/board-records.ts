/** Plants records of every kind through the record store without its checks: schedules, limits, holds, outlines, work that is done once. */
import type { JobBoard } from '../../src/board/api/job-board.ts'
import { boardInternals } from '../../src/board/internal.ts'
import type { RecordKind } from '../../src/board/records/record-store.ts'
import { schedule } from '../../src/index.ts'
import type { Random } from '../support/random.ts'
import { FLOW_OF_TARGETS } from './flow.ts'
import type { RecordMaker } from './records.ts'

/** The records of a kind are overwritten, so that no board grows with the time of a test. */
const IDS_PER_KIND = 12
const TEMPLATE = 'template'

const KINDS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  schedule: {},
  limit: {
    concurrency: 1,
    rate: { limit: 1, perMs: 1_000, burst: 1 },
    by: 'w',
    at: 0,
    declared: { owner: 'w', version: 0, digest: 'd' },
  },
  'limit-hold': { until: 1, reason: 'r', by: 'w', at: 0 },
  outline: {
    outline: {
      name: 'f',
      version: '1',
      digest: 'd',
      nodes: [
        { name: 'a', kind: 'task', next: [1] },
        { name: 'b', kind: 'retry', retry: 0 },
      ],
    },
    at: 0,
  },
  once: { at: 0, by: 'w' },
}

function raw(name: string): RecordKind<object> {
  return { name, format: 1, parse: (value) => Object(value) }
}

/** Returns the policy that a board can keep: without keys and resources, jobs cannot wait for each other. */
export function overlapOn(board: JobBoard): 'skip' | 'allow' {
  return board.shared ? 'allow' : 'skip'
}

/** Returns a function that plants a record. */
export async function recordPlanter(board: JobBoard, make: RecordMaker, random: Random): Promise<() => Promise<void>> {
  await board.schedules.put(schedule(TEMPLATE, { every: '30d' }, FLOW_OF_TARGETS, {}, { overlap: overlapOn(board) }))
  const found = await boardInternals(board).records.of(raw('schedule')).get(TEMPLATE)
  if (!found || 'error' in found) throw new Error('the template cannot be read')
  const now = Date.now()
  const real: Readonly<Record<string, unknown>> = {
    ...found.value,
    ...{
      cursor: now - 10_000,
      next: { nominal: now - 5_000, at: now - 5_000 },
      recent: [{ nominal: 1, at: 2, why: 'time' }],
    },
    ...{ last: { nominal: 1, uuid: 'u' }, tenant: 't', declared: { owner: 'w', version: 1, digest: 'd' } },
  }
  return async () => {
    const kind = random.pick(Object.keys(KINDS))
    const template = kind === 'schedule' ? real : (KINDS[kind] ?? {})
    // No key of the innocent job matches such an id.
    const id = `planted/${random.between(1, IDS_PER_KIND)}${kind.startsWith('limit') && random.next() < 0.2 ? '*' : ''}`
    const store = boardInternals(board).records.of(raw(kind))
    const revision = (await store.get(id))?.revision
    // A firing may have changed it meanwhile.
    await store.write([{ id, revision, value: make.altered(template) as object }])
  }
}
