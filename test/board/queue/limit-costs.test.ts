/** What a claim costs beside very many jobs that wait for limits: counted in comparisons, of which every move of a group needs some. */
import { describe, expect, vi } from 'vitest'
import type { JobEntry } from '../../../src/board/model/entry.ts'
import type { LimitRule } from '../../../src/board/model/limits.ts'
import type { ClaimQueue } from '../../../src/board/queue/queue.ts'
import { variant } from '../../variant.ts'
import { change, createEntry, createQueue, everything } from './entries.ts'

const counted = vi.hoisted(() => ({ comparisons: 0 }))

vi.mock('../../../src/board/queue/sorted.ts', async (original) => {
  const real = await original<typeof import('../../../src/board/queue/sorted.ts')>()
  class CountingList<T extends K, K = T> extends real.SortedList<T, K> {
    constructor(compare: (a: K, b: K) => number) {
      super((a, b) => {
        counted.comparisons += 1
        return compare(a, b)
      })
    }
  }
  return { ...real, SortedList: CountingList }
})

const MANY = 5_000
const CLAIMS = 50
const AT_ONCE = 8

interface Setup {
  readonly queue: ClaimQueue
  readonly count: number
}

/** @param limitsOf the keys of the job with this number */
function setupOf(
  ruleOf: (key: string) => LimitRule | undefined,
  limitsOf: (job: number) => string[],
  count = MANY,
): Setup {
  const entries = Array.from({ length: count }, (_, job) => createEntry({ limits: limitsOf(job) }))
  const queue = createQueue(...entries)
  queue.setLimits({ isEmpty: false, isFair: true, ruleOf }, entries)
  return { queue, count }
}

/** Claims jobs as a conductor does that runs several, and ends the oldest before each further one; returns the comparisons of a claim. */
function costPerClaim({ queue }: Setup): number {
  const running: JobEntry[] = []
  let claims = 0
  const work = (max: number): void => {
    const places = queue.reserveNext({ ...everything, max })
    for (const { entry } of places) {
      change(queue, entry, { claimed: true })
      running.push(entry)
    }
    queue.endTrials(places)
    queue.unreserve(places)
    claims += places.length
  }
  const end = (): void => {
    const oldest = running.shift()
    if (oldest) change(queue, oldest, { ended: 'COMPLETE' })
  }
  // The first searches visit the groups that have no room, each once, and park them.
  for (let round = 0; round < 5; round += 1) {
    end()
    work(AT_ONCE)
  }
  ;[claims, counted.comparisons] = [0, 0]
  while (claims < CLAIMS && running.length > 0) {
    end()
    work(AT_ONCE)
  }
  expect(claims).toBeGreaterThanOrEqual(CLAIMS)
  return counted.comparisons / claims
}

const fairTenants = (key: string): LimitRule | undefined =>
  key.startsWith('tenant/') ? { fair: 'tenant/*' } : undefined

/** More than the searches in sorted lists that the steps of a claim take. */
const A_FEW = 500

describe('a claim beside 5,000 jobs that wait costs a few comparisons', () => {
  variant.each<[string, (key: string) => LimitRule | undefined, (job: number) => string[]]>([
    [
      'where 200 keys take turns, each with slots',
      (key) => ({ ...fairTenants(key), concurrency: 1 }),
      (job) => [`tenant/${job % 200}`],
    ],
    [
      'where 200 keys take turns and share slots',
      (key) => (key === 'api' ? { concurrency: 4 } : fairTenants(key)),
      (job) => [`tenant/${job % 200}`, 'api'],
    ],
    [
      'where each job has a key of its own, and all keys share slots',
      (key) => (key === 'api' ? { concurrency: 4 } : fairTenants(key)),
      (job) => [`tenant/${job}`, 'api'],
    ],
    [
      'where two keys take turns, of which each has very many groups',
      (key) => (key.startsWith('kind/') ? { fair: 'kind/*' } : { concurrency: 1 }),
      (job) => [`kind/${job % 2}`, `tenant/${job % 2_500}`],
    ],
    [
      'where two keys take turns and have slots, and each has very many groups',
      (key) => (key.startsWith('kind/') ? { fair: 'kind/*', concurrency: 4 } : { concurrency: 1 }),
      (job) => [`kind/${job % 2}`, `tenant/${job % 2_500}`],
    ],
    [
      'where no keys take turns, and all jobs share slots',
      (key) => ({ concurrency: key === 'api' ? 4 : 1 }),
      (job) => [`tenant/${job % 2_500}`, 'api'],
    ],
  ])('%s', (_, ruleOf, limitsOf) => {
    expect(costPerClaim(setupOf(ruleOf, limitsOf))).toBeLessThan(A_FEW)
  })
})
