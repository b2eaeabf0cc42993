import { describe, expect, test, vi } from 'vitest'
import { isRefused, isWhole, outlined, workOf } from '../../../src/board/outline.ts'
import { decodePosting, encodePosting, makePosting, type Posting } from '../../../src/board/posting.ts'

const details = { flow: 'archive', version: '2.0', store: { secret: 'x'.repeat(100) }, tenant: 'north' }
const posting: Posting = {
  ...makePosting({
    name: 'a name that is long enough to be cut out of its record',
    details,
    book: { uuid: '00000000-0000-7000-8000-000000000000', name: 'book' },
    priority: 'HIGH',
    size: 'large',
    resources: { exclusive: ['disk'], shared: ['net'] },
    key: 'key',
    delay: 1,
    deadline: 2,
    maxAttempts: 4,
  }),
  runs: 3,
  attempts: [{ who: 'who', at: new Date(0), ended: 'failed', reason: 'because' }],
}
const stored = { id: 'job0000000001', posting, revision: 5, order: 6n, postedAt: 7, writtenAt: 8, bytes: 9 }

describe('an outline', () => {
  test('is all but the details, and of these what names the work', () => {
    const outline = outlined(stored)
    const { details: _, ...rest } = posting
    expect(outline).toEqual({ ...stored, posting: { ...rest, work: { flow: 'archive', version: '2.0' } } })
    expect([isWhole(stored), isWhole(outline)]).toEqual([true, false])
    expect(workOf(posting)).toEqual(workOf(outline.posting))
  })

  test('has neither what the posting has not nor what nobody here knows', () => {
    const written = { ...makePosting({ name: 'job', details: {} }), work: 'a field of a later release' }
    const read = decodePosting(encodePosting(written, { encoding: 'msgpack', limit: 1_000 }), 'msgpack')
    expect(isWhole({ ...stored, posting: read })).toBe(true)
    const { details: _, work: __, ...rest } = written
    expect(outlined({ ...stored, posting: read }).posting).toEqual({ ...rest, work: {} })
  })
})

describe('whether a job is refused', () => {
  const refused = (accept: (posting: Posting) => boolean) => [
    isRefused(accept, outlined(stored).posting),
    isRefused(accept, posting),
  ]

  test('is known by its outline where that is all that is asked for', () => {
    expect(refused(({ details: { flow, version } }) => flow === 'other' && version === '2.0')).toEqual([true, true])
    expect(refused(({ name, priority, resources }) => !name || !priority || !resources)).toEqual([true, true])
    expect(refused(({ details: { flow } }) => flow === 'archive')).toEqual([false, false])
  })

  test.each<[string, (posting: Posting) => boolean]>([
    ['a field', ({ details: { store } }) => store === undefined],
    ['whether there is one', ({ details }) => !('tenant' in details)],
    ['whether it has one of its own', ({ details }) => !Object.hasOwn(details, 'tenant')],
    ['which there are', ({ details }) => Object.keys(details).length < 4],
    ['a copy', ({ details }) => ({ ...details }).tenant !== 'north'],
    ['what throws where it is missing', ({ details }) => String(Object(details.store).secret.length) === ''],
  ])('is not known by its outline where more is asked for: %s', (_, accept) => {
    expect(refused(accept)).toEqual([false, true])
  })

  test('is asked again with the whole where the outline makes it throw', () => {
    const accept = vi.fn(() => {
      throw new Error('not now')
    })
    expect(isRefused(accept, outlined(stored).posting)).toBe(false)
    expect(() => isRefused(accept, posting)).toThrow('not now')
  })
})
