/** Resources, keys and limits that a flow declares as functions of its store: two posters cannot disagree about them. */
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { type JobBoard, openBoard, type PostOptions, schedule } from '../../../src/board/index.ts'
import { missingDeclarations, toDeclared } from '../../../src/board/internal.ts'
import { makePosting } from '../../../src/board/model/posting/post-options.ts'
import { InvalidArgument, InvalidPosting, MissingDependencies } from '../../../src/core/errors.ts'
import { flowDigest, input, linear, type PostingDefaults, task, toOutline } from '../../../src/flow/index.ts'
import { rejectionOf } from '../events.ts'
import { all } from '../jobs.ts'

const work = task('work', { requires: ['repo', 'tenant'], execute: (_: { repo: string; tenant: string }) => undefined })
const publish = linear(
  {
    name: 'publish',
    posting: {
      maxAttempts: 5,
      resources: ({ repo }) => ({ exclusive: [`repo/${repo}`], shared: ['mirror'] }),
      key: ({ repo }) => `publish/${repo}`,
      limits: ({ tenant }) => [`tenant/${tenant}`, { key: 'points', cost: 2 }],
    },
  },
  input<{ repo: string; tenant: string }>(),
  work,
)
const STORE = { repo: 'fedora', tenant: '7' }

const flowWith = (posting: unknown) =>
  linear({ name: 'broken', posting: posting as PostingDefaults }, input(), task('work', { execute: () => undefined }))

/** Posts the job, and returns what its claim has. */
async function posted(board: JobBoard, options?: PostOptions) {
  const claim = await board.claim(await board.post(publish, STORE, options))
  const { resources, limits, key, maxAttempts } = claim.posting
  await claim.consume()
  return { resources, limits, key, maxAttempts }
}

describe('a post with the code of the flow', () => {
  test('has what the flow declares for its store', async () => {
    await using board = await openBoard('memory:')
    expect(await posted(board)).toEqual({
      resources: { exclusive: ['repo/fedora'], shared: ['mirror'] },
      limits: [
        { key: 'tenant/7', cost: 1 },
        { key: 'points', cost: 2 },
      ],
      key: 'publish/fedora',
      maxAttempts: 5,
    })
    const [one, again] = [await board.post(publish, STORE), await board.post(publish, { ...STORE, tenant: '8' })]
    expect([one.created, again.created]).toEqual([true, false])
    await expect(board.postAndClaim(publish, STORE)).rejects.toThrow('the same key')
  })

  test('has what its caller names, too; exclusive is more than shared, and the greater cost counts', async () => {
    await using board = await openBoard('memory:')
    const resources = { exclusive: ['mirror', 'disk'], shared: ['repo/fedora', 'room'] }
    expect(await posted(board, { resources, limits: ['points', { key: 'tenant/7', cost: 3 }, 'mine'] })).toMatchObject({
      resources: { exclusive: ['mirror', 'disk', 'repo/fedora'], shared: ['room'] },
      limits: [
        { key: 'points', cost: 2 },
        { key: 'tenant/7', cost: 3 },
        { key: 'mine', cost: 1 },
      ],
    })
    // The same names in both count once.
    const many = { exclusive: ['repo/fedora', ...Array.from({ length: 254 }, (_, number) => `r${number}`)] }
    expect((await posted(board, { resources: many })).resources?.exclusive).toHaveLength(255)
    const tooMany = { exclusive: Array.from({ length: 256 }, (_, number) => `r${number}`) }
    expect(await rejectionOf(board.post(publish, STORE, { resources: tooMany }))).toBeInstanceOf(InvalidPosting)
  })

  test('cannot take a declared resource away, nor have another key; limits: none is for work for which somebody waits', async () => {
    await using board = await openBoard('memory:')
    const without = { resources: {}, limits: 'none', key: 'publish/fedora' } as const
    expect(await posted(board, without)).toMatchObject({
      ...{ resources: { exclusive: ['repo/fedora'] }, limits: 'none', key: 'publish/fedora' },
    })
    const other = await rejectionOf(board.post(publish, STORE, { key: 'mine' }))
    expect(other).toBeInstanceOf(InvalidArgument)
    expect(String(other)).toContain('flow publish declares the key of its jobs: omit key')
    expect(await board.countJobs()).toBe(0)
  })

  test('may declare a key with a window, or that replaces; a caller adds what is not declared, and changes nothing', async () => {
    await using board = await openBoard('memory:')
    const flow = flowWith({ key: ({ n }: { n?: number }) => ({ name: `sync ${n ?? 0}`, for: '10m' }) })
    const job = await board.post(flow, {})
    expect(job.key).toBe('sync 0')
    expect(job.keyTakenUntil?.getTime()).toBe((job.postedAt?.getTime() ?? Number.NaN) + 600_000)
    const same = { name: 'sync 0', for: 600_000, on: 'replace' } as const
    expect(await board.post(flow, {}, { key: same })).toMatchObject({ replaced: true, uuid: job.uuid })
    expect(await board.post(flow, {}, { key: 'sync 0' })).toMatchObject({ because: 'waiting', replaced: false })
    for (const key of ['other', { name: 'sync 0', for: '1h' }] as const) {
      const refused = await rejectionOf(board.post(flow, {}, { key }))
      expect(refused).toBeInstanceOf(InvalidArgument)
      expect(String(refused)).toMatch(/flow .+ declares (the key|key\.for) of its jobs/)
    }
    const replacing = flowWith({ key: { name: 'one', on: 'replace' } })
    await board.post(replacing, {})
    expect(await board.post(replacing, {})).toMatchObject({ replaced: true })
    expect(await rejectionOf(board.post(replacing, {}, { key: { name: 'one', on: 'ignore' } }))).toBeInstanceOf(
      InvalidArgument,
    )
  })

  test.each([
    { name: '' },
    { name: 'x', for: 0 },
    { name: 'x', for: 'soon' },
    { name: 'x', on: 'again' },
    { nme: 'x' },
    { name: 'l'.repeat(1_025) },
  ])('a declared key %j is refused with the name of the flow', async (key) => {
    await using board = await openBoard('memory:')
    const refused = await rejectionOf(board.post(flowWith({ key: () => key }), {}))
    expect(refused).toBeInstanceOf(InvalidArgument)
    expect(String(refused)).toMatch(/flow \S+: posting\.key is not valid: /)
  })

  test('may have values instead of functions, and functions that declare nothing', async () => {
    await using board = await openBoard('memory:')
    const fixed = await board.post(flowWith({ resources: { shared: ['db'] }, limits: ['api'], key: 'one' }), {})
    expect(fixed.resources).toEqual({ shared: ['db'] })
    const nothing = { resources: () => undefined, limits: () => [], key: () => undefined }
    expect((await board.post(flowWith(nothing), {})).resources).toEqual({})
    expect((await board.post(flowWith({ resources: () => ({}) }), {}, { key: 'mine' })).created).toBe(true)
  })

  test('evaluates them for what the schema returns, and not before the store has all inputs', async () => {
    await using board = await openBoard('memory:')
    const store = z.object({ repo: z.string().toLowerCase(), mode: z.enum(['read', 'write']).default('write') })
    const seen: unknown[] = []
    const flow = linear(
      {
        name: 'checked',
        posting: {
          resources: ({ repo, mode }) => {
            seen.push(mode)
            return mode === 'write' ? { exclusive: [repo] } : { shared: [repo] }
          },
        },
      },
      input(store),
      task('work', { requires: ['repo'], execute: (_: { repo: string }) => undefined }),
    )
    const job = await board.post(flow, { repo: 'Fedora' })
    expect(job.resources).toEqual({ exclusive: ['fedora'] })
    expect(job.details.store).toEqual({ repo: 'Fedora' })
    expect(await rejectionOf(board.post(flow, { repo: 7 } as never))).toBeInstanceOf(InvalidPosting)
    expect(seen).toEqual(['write'])
    expect(await rejectionOf(board.post(publish, {} as never))).toBeInstanceOf(MissingDependencies)
  })
})

describe('declarations that are wrong', () => {
  const secret = 'a value of the store'
  const rows: [string, unknown, RegExp][] = [
    ['a function that throws', { resources: () => fail() }, /posting\.resources has thrown for a store: .*oops/],
    ['a promise', { limits: async () => ['a'] }, /posting\.limits must return a value, not a promise/],
    ['a promise that is rejected', { key: async () => fail() }, /posting\.key must return a value, not a promise/],
    ['a list of resources', { resources: () => ['a'] }, /posting\.resources is not valid: resources must be/],
    ['a map', { resources: () => new Map([['exclusive', ['a']]]) }, /posting\.resources is not valid/],
    ['null', { resources: () => null }, /posting\.resources is not valid/],
    ['an unknown mode', { resources: () => ({ exclusiv: ['a'] }) }, /posting\.resources is not valid: .*exclusiv/],
    ['no name', { resources: () => ({ exclusive: [undefined] }) }, /resources\.exclusive must be an array/],
    ['a function for one mode', { resources: { exclusive: () => ['a'] } }, /resources\.exclusive must be an array/],
    ['one limit', { limits: () => 'api' }, /posting\.limits is not valid: limits must be an array/],
    ['no limits at all', { limits: 'none' }, /posting\.limits is not valid: limits must be an array/],
    ['a cost of 0', { limits: [{ key: 'a', cost: 0 }] }, /posting\.limits is not valid: .*the cost of a/],
    ['a number as key', { key: () => 7 }, /posting\.key is not valid: a key must be a non-empty string, got number/],
    ['an empty key', { key: '' }, /posting\.key is not valid/],
    ['a key that is too long', { key: 'é'.repeat(5_000) }, /posting\.key is not valid/],
    [
      'a change of the store',
      { key: (store: Record<string, unknown>) => Object.assign(store, { a: 1 }) },
      /posting\.key has thrown/,
    ],
  ]

  test.each(rows)(
    '%s is refused in one line with the name of the flow, and nothing is posted',
    async (_, posting, why) => {
      await using board = await openBoard('memory:')
      const refused = await rejectionOf(board.post(flowWith(posting), { secret }))
      expect(refused).toBeInstanceOf(InvalidArgument)
      expect(String(refused)).toMatch(why)
      expect(String(refused)).toContain('flow broken: ')
      expect(String(refused)).not.toContain('\n')
      expect(String(refused)).not.toContain(secret)
      expect(await board.countJobs()).toBe(0)
    },
  )
})

describe('a schedule', () => {
  test('has what the flow declares for its store, and its own key', async () => {
    await using board = await openBoard('memory:')
    const options = { tenants: { a: { tenant: 'a' }, b: { tenant: 'b' } }, post: { limits: ['nightly'] } }
    await board.schedules.put(schedule('nightly', { every: '1h' }, publish, STORE, options))
    await board.schedules.trigger('nightly/b')
    const [job] = await all(board.jobs())
    if (!job) throw new Error('nothing was posted')
    const { posting } = await board.claim(job)
    expect(posting).toMatchObject({
      resources: { exclusive: ['repo/fedora', 'schedule/nightly/b'], shared: ['mirror'] },
      limits: [
        { key: 'nightly', cost: 1 },
        { key: 'tenant/b', cost: 1 },
        { key: 'points', cost: 2 },
      ],
    })
    expect(posting.key).not.toBe('publish/fedora')
  })

  test('is refused where a declaration is wrong', async () => {
    await using board = await openBoard('memory:')
    const declared = schedule('nightly', { every: '1h' }, flowWith({ resources: () => fail() }), {})
    expect(String(await rejectionOf(board.schedules.put(declared)))).toContain('flow broken: posting.resources')
  })
})

describe('what a posting lacks of the declarations', () => {
  const declared = toDeclared(publish, STORE)
  const lacking = (options: PostOptions) =>
    missingDeclarations(makePosting({ name: 'publish', details: { flow: 'publish' }, ...options }), declared)
  const limits = ['tenant/7', { key: 'points', cost: 2 }] as const

  test('is all of it for a job that was posted by name', () => {
    expect(lacking({})).toEqual({ resources: declared.resources, limits: declared.limits })
  })

  test('is nothing where more is held, or held exclusively, and where the job keeps no limits', () => {
    const resources = { exclusive: ['mirror', 'repo/fedora', 'disk'] }
    expect(lacking({ resources, limits: [...limits, 'more'] })).toBeUndefined()
    expect(lacking({ resources, limits: 'none' })).toBeUndefined()
  })

  test('is added to what it has', () => {
    const resources = { shared: ['repo/fedora', 'disk'] }
    expect(lacking({ resources, limits: ['points', 'tenant/7'] })).toEqual({
      resources: { exclusive: ['repo/fedora'], shared: ['disk', 'mirror'] },
      limits: [
        { key: 'points', cost: 2 },
        { key: 'tenant/7', cost: 1 },
      ],
    })
  })

  test('is not the limit of the flow, which every job keeps', () => {
    const flow = flowWith({ limits: ['flow/broken'] })
    const posting = makePosting({ name: 'broken', details: { flow: 'broken' } })
    expect(missingDeclarations(posting, toDeclared(flow, {}))).toBeUndefined()
  })
})

test('declarations are no part of the digest and the outline of a flow', () => {
  const plain = linear('publish', input<{ repo: string; tenant: string }>(), work)
  expect(flowDigest(publish)).toBe(flowDigest(plain))
  expect(toOutline(publish)).toEqual(toOutline(plain))
})

function fail(): never {
  throw new Error('oops')
}
