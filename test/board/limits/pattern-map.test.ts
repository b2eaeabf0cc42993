/** The settings of a key among those of keys and patterns. */
import { expect, test, vi } from 'vitest'
import { MemoryBackend, memorySpace } from '../../../src/board/backends/memory/index.ts'
import { LimitReader } from '../../../src/board/limits/limit-reader.ts'
import type { LimitView } from '../../../src/board/limits/limit-view.ts'
import { HOLDS, LIMITS as LIMITS_KIND } from '../../../src/board/limits/record.ts'
import { stopsOf } from '../../../src/board/limits/stops.ts'
import type { UnclaimedJob } from '../../../src/board/limits/waiting.ts'
import { RecordStore } from '../../../src/board/records/record-store.ts'
import { PatternMap } from '../../../src/core/collections/pattern-map.ts'

test('the most specific settings come first: the key itself, then the longest pattern', () => {
  const map = new PatternMap(['*', 'tenant/*', 'tenant/a', 'tenant/a*', 'other/*'], (key) => key)
  expect(map.findAll('tenant/a')).toEqual(['tenant/a', 'tenant/a*', 'tenant/*', '*'])
  expect(map.findAll('tenant/*')).toEqual(['tenant/*', '*'])
  expect(map.find('else')).toBe('*')
})

test('what stops a pattern is its own, above it and within it', () => {
  const held = { by: 'ada', since: new Date(0) }
  const views: LimitView[] = ['*', 'tenant/*', 'tenant/a', 'other'].map((key) => ({ key, held }))
  expect(stopsOf('tenant/*', views).map(({ limit }) => limit.key)).toEqual(['tenant/*', '*', 'tenant/a'])
})

test('a list of limits looks up each key once, and does not compare it with every limit', async () => {
  const LIMITS = 1_000
  const JOBS = 20
  const KEYS = 32
  const limits = Array.from({ length: LIMITS }, (_, n) => ({
    ...{ id: `limit-${n}/*`, revision: 0 },
    value: { concurrency: 1, by: 'ada', at: 0 },
  }))
  async function* unclaimed(): AsyncGenerator<UnclaimedJob> {
    for (let n = 0; n < JOBS; n += 1) {
      const keys = Array.from({ length: KEYS }, (_, k) => ({ key: `limit-${(n + k) % LIMITS}/${n}`, cost: 1 }))
      yield { limits: keys, queue: 'default', delayedUntil: undefined }
    }
  }
  const memory = new MemoryBackend({ uri: 'memory:', space: memorySpace('pattern-map') })
  const stores = { limits: new RecordStore(memory, LIMITS_KIND), holds: new RecordStore(memory, HOLDS) }
  vi.spyOn(stores.limits, 'list').mockResolvedValue(limits)
  vi.spyOn(stores.holds, 'list').mockResolvedValue([])
  const compared = vi.spyOn(String.prototype, 'endsWith')
  try {
    const views = await new LimitReader({ now: () => 0, use: async () => [], unclaimed }, stores).list({
      waiting: true,
    })
    expect(views.reduce((sum, { waiting = 0 }) => sum + waiting, 0)).toBe(JOBS * KEYS)
    expect(compared.mock.calls.length).toBeLessThan(10 * (LIMITS + JOBS * KEYS))
  } finally {
    vi.restoreAllMocks()
  }
})
