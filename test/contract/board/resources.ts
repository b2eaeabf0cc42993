/** What a job owns beside itself while it runs: alone, or together with those who share; first come, first served. */
import { describe, expect, test } from 'vitest'
import type { Claim, Job, JobBoard, Resources } from '../../../src/board/index.ts'
import { ClaimLost, InvalidArgument, InvalidPosting, Timeout, Unclaimable } from '../../../src/core/errors.ts'
import { nextEvent, rejectionOf, whenLost } from '../../board/events.ts'
import { claimed, refresh } from '../../board/jobs.ts'
import type { Place } from '../board.ts'
import { ODD_NAMES } from './keys.ts'

const ALONE: Resources = { exclusive: ['disk'] }
const TOGETHER: Resources = { shared: ['disk'] }

export function resourcesContract({ open, expire }: Place): void {
  /** Names of all that can be claimed now; they stay claimed. */
  async function take(board: JobBoard): Promise<string[]> {
    await refresh(board)
    if (!(await claimable(board))) return []
    return (await board.claimNext({ max: 100 })).map(({ job }) => job.name)
  }

  async function claimable(board: JobBoard): Promise<boolean> {
    return board.wait({ signal: AbortSignal.timeout(1) }).then(
      () => true,
      () => false,
    )
  }

  test('an exclusive resource is owned by one job at a time, on every board', async () => {
    const [here, there] = await Promise.all([open(), open()])
    await here.post('flow', {}, { name: 'a', resources: ALONE })
    const second = await here.post('flow', {}, { name: 'b', resources: ALONE })
    await here.post('flow', {}, { name: 'free' })
    expect(await take(here)).toEqual(['a', 'free'])
    expect(await take(there)).toEqual([])
    for (const board of [here, there]) {
      const failure = await rejectionOf(board.claim(second))
      expect(failure).toBeInstanceOf(Unclaimable)
      expect(String(failure)).toContain('disk')
    }
  })

  test('a shared one is owned together, and keeps out who wants it alone', async () => {
    const [here, there] = await Promise.all([open(), open()])
    for (const name of ['a', 'b', 'c']) await here.post('flow', {}, { name, resources: TOGETHER })
    const claims = [await claimed(here, 'a'), await claimed(there, 'b'), await claimed(here, 'c')]
    await here.post('flow', {}, { name: 'alone', resources: ALONE })
    for (const claim of claims) {
      expect(await take(there)).toEqual([])
      await claim.consume()
    }
    expect(await take(there)).toEqual(['alone'])
  })

  test('one that waits to have it alone holds back those who come later to share', async () => {
    const [here, there] = await Promise.all([open(), open()])
    await here.post('flow', {}, { name: 'early', resources: TOGETHER })
    await here.post('flow', {}, { name: 'alone', resources: ALONE })
    await here.post('flow', {}, { name: 'late', resources: TOGETHER })
    expect(await take(there)).toEqual(['early'])
    expect(await take(here)).toEqual([])
    await there.consume(await there.find(await uuidOf(there, 'early')))
    expect(await take(here)).toEqual(['alone'])
    expect(await take(there)).toEqual([])
    await here.consume(await here.find(await uuidOf(here, 'alone')))
    expect(await take(there)).toEqual(['late'])
  })

  test('jobs of one priority get it in the order in which they were posted; a higher one goes first', async () => {
    const boards = await Promise.all([open(), open(), open()])
    const [first] = boards
    for (let number = 0; number < 6; number++) {
      await boards[number % 3]?.post('flow', {}, { name: `job ${number}`, resources: ALONE })
    }
    await first.post('flow', {}, { name: 'urgent', priority: 'HIGH', resources: ALONE })
    const names: string[] = []
    for (let number = 0; number < 7; number++) {
      const board = boards[number % 3] ?? first
      await refresh(board)
      const [claim, ...others] = await board.claimNext({ max: 10 })
      expect(others).toEqual([])
      names.push(claim.job.name)
      await claim.consume()
    }
    expect(names).toEqual(['urgent', ...[0, 1, 2, 3, 4, 5].map((number) => `job ${number}`)])
  })

  test('who wants several gets all of them at once, and keeps its place in each line until then', async () => {
    const [here, there] = await Promise.all([open(), open()])
    await here.post('flow', {}, { name: 'disk', resources: ALONE })
    await here.post('flow', {}, { name: 'both', resources: { exclusive: ['disk', 'tape'] } })
    await here.post('flow', {}, { name: 'tape', resources: { shared: ['tape'] } })
    await here.post('flow', {}, { name: 'net', resources: { exclusive: ['net'] } })
    expect(await take(here)).toEqual(['disk', 'net'])
    await here.consume(await here.find(await uuidOf(here, 'disk')))
    expect(await take(there)).toEqual(['both'])
    expect(await take(here)).toEqual([])
    await there.consume(await there.find(await uuidOf(there, 'both')))
    expect(await take(here)).toEqual(['tape'])
  })

  test('a name that is given twice, or both ways, is wanted once, alone', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const twice = { exclusive: ['disk', 'disk'], shared: ['disk', 'tape', 'tape'] }
    const job = await here.post('flow', {}, { name: 'twice', resources: twice })
    for (const [name, resources] of [
      ['disk', { shared: ['disk'] }],
      ['tape', { shared: ['tape'] }],
    ] as const) {
      await here.post('flow', {}, { name, resources })
    }
    const claim = await there.claim(job)
    expect(await take(here)).toEqual(['tape'])
    await claim.abandon({ reason: 'again' })
    await (await claimed(here, 'twice')).consume()
    expect(await take(there)).toEqual(['disk'])
  })

  describe('is free again', () => {
    const endings: [string, (claim: Claim, board: JobBoard) => Promise<unknown>][] = [
      ['when its job is consumed', (claim) => claim.consume()],
      ['when its job is given back', (claim) => claim.abandon({ delay: '1h' })],
      ['when its job is trashed', (claim) => claim.trash()],
      ['when the session of its owner ends', (_, board) => expire(board)],
      ['when its owner is closed', (_, board) => board.close()],
    ]
    test.each(endings)('%s', async (_, end) => {
      const [owner, nextOwner] = await Promise.all([open(), open()])
      const resources = { exclusive: ['disk'], shared: ['net'] }
      await owner.post('flow', {}, { name: 'first', resources })
      const [claim] = await owner.claimNext()
      await owner.post('flow', {}, { name: 'second', resources: { exclusive: ['net', 'disk'] } })
      await refresh(nextOwner)
      // The one whose owner died comes first again: it is let go of for good.
      const waiting = nextOwner.claimNext({ accept: ({ name }) => name === 'second' })
      const lost = whenLost(claim)
      await end(claim, owner)
      if (!claim.settled) {
        await lost
        await (await claimed(nextOwner, 'first')).consume()
      }
      expect((await waiting)[0].job.name).toBe('second')
    })
  })

  test('jobs of a flow that no conductor knows hold others back only for a while, and again once one knows it', async () => {
    const [here, there] = await Promise.all([open(), open({ unacceptedAfter: 0 })])
    await using _young = await here.registerEntity({ kind: 'conductor', name: 'a', metadata: { flows: ['young'] } })
    const unaccepted = nextEvent(there, 'unaccepted')
    const old = await here.post('old', {}, { name: 'old', resources: ALONE })
    await here.post('young', {}, { name: 'young', resources: ALONE })
    const claim = await claimed(there, 'young')
    expect(await unaccepted).toMatchObject({ flow: 'old', job: { uuid: old.uuid } })
    expect(String(await rejectionOf(here.claim(old)))).toContain('disk')

    const younger = await here.post('young', {}, { name: 'younger', resources: { shared: ['disk'] } })
    await using _old = await here.registerEntity({ kind: 'conductor', name: 'b', metadata: { flows: ['old'] } })
    await claim.consume()
    await refresh(there)
    expect(await there.waitingFor(younger)).toMatchObject({ kind: 'resource', job: { uuid: old.uuid } })
    expect(await take(there)).toEqual(['old'])
  })

  test('claims of several boards at the same time never overlap', async () => {
    const boards = await Promise.all(Array.from({ length: 4 }, () => open()))
    const names = ['disk', 'tape', 'net']
    const wanted = Array.from({ length: 60 }, (_, number): Resources => {
      const [one, other] = [names[number % 3] ?? '', names[(number + 1) % 3] ?? '']
      if (number % 4 === 0) return { exclusive: [one, other] }
      return number % 4 === 1 ? { exclusive: [one], shared: [other] } : { shared: [one, other] }
    })
    const held = new Map(names.map((name) => [name, { alone: 0, together: 0, shared: 0 }]))
    const change = ({ exclusive = [], shared = [] }: Resources, by: 1 | -1) => {
      for (const name of exclusive) (held.get(name) ?? { alone: 0 }).alone += by
      for (const name of shared) (held.get(name) ?? { together: 0 }).together += by
      for (const use of held.values()) {
        expect(use.alone + Math.min(use.together, 1)).toBeLessThanOrEqual(1)
        use.shared = Math.max(use.shared, use.together)
      }
    }
    const finished = new AbortController()
    let done = 0
    const work = async (board: JobBoard) => {
      for await (const claim of board.claims({ signal: finished.signal })) {
        const resources = wanted[Number(claim.job.name)] ?? {}
        change(resources, 1)
        await board.findOwner(claim.job)
        change(resources, -1)
        if (claim.run === 1 && Number(claim.job.name) % 5 === 0) await claim.abandon()
        else {
          await claim.consume()
          done += 1
        }
        if (done === wanted.length) finished.abort()
      }
    }
    const working = boards.flatMap((board) => [work(board), work(board)])
    await Promise.all(
      wanted.map((resources, number) => boards[number % 4]?.post('flow', {}, { name: `${number}`, resources })),
    )
    await Promise.all(working)
    expect(done).toBe(wanted.length)
    expect(Math.max(...[...held.values()].map(({ shared }) => shared))).toBeGreaterThan(1)
  })

  test('may have any name but the empty one; those that look alike are kept apart', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const names = ODD_NAMES.map((_, index) => `${index}`)
    for (const [index, odd] of ODD_NAMES.entries()) {
      const mode = index % 2 ? 'exclusive' : 'shared'
      await here.post('flow', {}, { name: `${index}`, resources: { [mode]: [odd] } })
      await here.post('flow', {}, { name: `after ${index}`, resources: { exclusive: [odd] } })
    }
    expect(await take(there)).toEqual(names)
    expect(await take(here)).toEqual([])
    for (const name of names) await there.consume(await there.find(await uuidOf(there, name)))
    expect(await take(here)).toEqual(names.map((name) => `after ${name}`))
  })

  test('as many as a job may want, each with a long name, are granted and let go', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const many = Array.from({ length: 256 }, (_, number) => `${number} ${'é'.repeat(200)}`)
    const resources = { exclusive: many.slice(0, 128), shared: many.slice(128) }
    const job = await here.post('flow', {}, { resources })
    await (await there.claim(job)).abandon({ failed: true })
    // What one board has done another has not heard of yet.
    await refresh(here)
    await (await here.claim(job)).trash()
    expect(job.state).toBe('TRASHED')
  })

  describe('a hold', () => {
    test('owns resources in their line, until it is released', async () => {
      const [here, there] = await Promise.all([open(), open()])
      await using hold = await here.hold({ exclusive: ['disk'], shared: ['room'], name: 'nightly' })
      expect(hold.resources).toEqual({ exclusive: ['disk'], shared: ['room'] })
      hold.assertHeld()
      await there.post('flow', {}, { name: 'disk', resources: ALONE })
      await there.post('flow', {}, { name: 'room', resources: { shared: ['room'] } })
      expect(await take(there)).toEqual(['room'])
      const waiting = await there.find(await uuidOf(there, 'disk'))
      expect(await there.waitingFor(waiting)).toMatchObject({
        kind: 'resource',
        resource: 'disk',
        job: { name: 'nightly' },
      })
      const later = here.hold({ exclusive: ['disk'] })
      await hold.release()
      await hold.release()
      const [claim] = await there.claimNext()
      expect(claim.job.name).toBe('disk')
      await claim.consume()
      const next = await later
      expect(next.fence).toBeGreaterThan(hold.fence)
      await next.release()
      expect(next.lost.aborted).toBe(false)
      expect(await there.countJobs()).toBe(1)
    })

    test('that waits too long leaves nothing behind in the line', async () => {
      const [here, there] = await Promise.all([open(), open()])
      const first = await here.hold(ALONE)
      expect(await rejectionOf(there.hold({ ...ALONE, timeout: 50 }))).toBeInstanceOf(Timeout)
      const stop = new AbortController()
      const waiting = there.hold({ ...ALONE, signal: stop.signal })
      stop.abort(new Error('enough'))
      await expect(waiting).rejects.toThrow('enough')
      await first.release()
      await here.post('flow', {}, { name: 'after', resources: ALONE })
      expect(await take(there)).toEqual(['after'])
    })

    test('is lost with the session, and its resources are free', async () => {
      const [here, there] = await Promise.all([open(), open()])
      const hold = await here.hold(ALONE)
      const lost = new Promise((resolve) => hold.lost.addEventListener('abort', resolve, { once: true }))
      await there.post('flow', {}, { name: 'after', resources: ALONE })
      await refresh(there)
      await expire(here)
      await lost
      expect(await rejectionOf(hold.release())).toBeInstanceOf(ClaimLost)
      await hold[Symbol.asyncDispose]()
      expect((await there.claimNext())[0].job.name).toBe('after')
    })

    test('names at least one resource', async () => {
      const board = await open()
      expect(await rejectionOf(board.hold({}))).toBeInstanceOf(InvalidArgument)
      expect(await rejectionOf(board.hold({ exclusiv: ['disk'] } as object))).toBeInstanceOf(InvalidArgument)
      expect(await rejectionOf(board.hold({ exclusive: [''] }))).toBeInstanceOf(InvalidPosting)
    })
  })

  describe('a job that is given back with further resources', () => {
    test('owns them with its next claim, and nothing of what other jobs hold is freed', async () => {
      const [here, there] = await Promise.all([open(), open()])
      const holder = await claimed(here, (await here.post('flow', {}, { name: 'holder', resources: ALONE })).name)
      const job = await here.post('flow', {}, { name: 'amended', resources: { exclusive: ['tape'] } })
      await refresh(there)
      const resources = { exclusive: ['tape', 'disk'], shared: ['room'] }
      await (await there.claim(job)).amend({ resources }, 'its flow declares them')
      await here.post('flow', {}, { name: 'tape', resources: { exclusive: ['tape'] } })
      await here.post('flow', {}, { name: 'disk', resources: ALONE })
      // The disk is still held, and the amended job is the first in the line of the tape.
      expect(await take(there)).toEqual([])
      expect(await take(here)).toEqual([])
      expect((await here.find(job.uuid)).resources).toEqual(resources)
      await holder.consume()
      const [next] = await there.claimNext({ max: 10 })
      expect(next.job).toMatchObject({ name: 'amended', runs: 2, resources })
      expect(next.job.attempts[0]).toMatchObject({ ended: 'returned', reason: 'its flow declares them' })
      expect(await take(here)).toEqual([])
      await here.post('flow', {}, { name: 'room', resources: { exclusive: ['room'] } })
      expect(await take(here)).toEqual([])
      await next.consume()
      expect((await take(here)).sort()).toEqual(['disk', 'room', 'tape'])
    })

    test('keeps them after another attempt, and when it is restored from the trash', async () => {
      const [here, there] = await Promise.all([open(), open()])
      const job = await here.post('flow', {}, { name: 'amended' })
      await (await here.claim(job)).amend({ resources: ALONE }, 'its flow declares them')
      await (await claimed(there, 'amended')).abandon({ failed: true })
      await (await claimed(here, 'amended')).trash()
      for await (const trashed of there.trashed()) await there.restore(trashed)
      await here.post('flow', {}, { name: 'later', resources: ALONE })
      expect(await take(there)).toEqual(['amended'])
      expect(await take(here)).toEqual([])
    })
  })

  const senseless: [string, unknown][] = [
    ['an empty name', { exclusive: [''] }],
    ['a name that is none', { shared: [7] }],
    ['a name instead of a list', { exclusive: 'disk' }],
    ['a list instead of both', ['disk']],
    ['a third way', { read: ['disk'] }],
    ['too many names', { shared: Array.from({ length: 257 }, (_, number) => `${number}`) }],
  ]
  test.each(senseless)('%s is refused as InvalidPosting', async (_, resources) => {
    const board = await open()
    const posting = board.post('flow', {}, { resources: resources as Resources })
    expect(await rejectionOf(posting)).toBeInstanceOf(InvalidPosting)
    expect(await board.countJobs()).toBe(0)
  })
}

async function uuidOf(board: JobBoard, name: string): Promise<string> {
  for await (const job of board.jobs({ name })) return (job satisfies Job).uuid
  throw new Error(`there is no job ${name}`)
}
