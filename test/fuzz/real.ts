/** Records as boards write them, beside postings: what is mutated before it is written. */
import { encodePlain } from '../../src/core/codec.ts'
import { postingRecord } from '../support/poison.ts'

export const ENTITY = { kind: 'conductor', name: 'odd', instance: 'i', metadata: { flows: ['innocent'], versions: {} } }
export const FAILURE = { name: 'Error', message: 'broken', causes: [{ name: 'Error', message: 'm' }] }
export const TRASH = {
  ...{ format: 1, who: 'w', at: new Date(0), reason: 'none', posting: encodePlain(postingRecord(), 'msgpack') },
  failure: FAILURE,
}
export const ENDED = {
  ...{
    uuid: 'u',
    name: 'n',
    flow: 'innocent',
    outcome: 'COMPLETE',
    who: 'w',
    runs: 1,
    postedAt: 0,
    startedAt: 0,
    endedAt: 0,
  },
  results: new Uint8Array(1),
}
export const BATCH = { format: 1, value: { name: 'n', who: 'w', createdAt: 0, meta: {}, onDone: postingRecord() } }
export const CANCELLATION = { who: 'w', reason: 'r' }

/** Texts in the place of a name or a number. */
export const ODD_TEXTS: readonly string[] = [
  ...['', ' ', '0', '-1', '1.5', '1e308', 'inf', 'nan', 'x', ':', '::::', '+', '__proto__', 'NULL', '\u00e9\u2028'],
  ...[String(2 ** 53), '9'.repeat(20), '9'.repeat(400), 'x'.repeat(3_000), 'job1', `job${'9'.repeat(400)}`],
]
