/** Dependencies as znodes: what is left when owners die between two transactions, and answers that get lost. */
import { describe, expect, onTestFinished, vi } from 'vitest'
import { TRY_AGAIN } from '../../../../src/board/backends/zookeeper/commit/parts.ts'
import { ZooKeeperHistory } from '../../../../src/board/backends/zookeeper/history.ts'
import { DependencyRelease, type Release } from '../../../../src/board/backends/zookeeper/parts/dependency-release.ts'
import { KnownDependencies } from '../../../../src/board/backends/zookeeper/store/known-dependencies.ts'
import { ZooKeeperLayout } from '../../../../src/board/backends/zookeeper/store/layout.ts'
import { Waits } from '../../../../src/board/backends/zookeeper/store/waits.ts'
import type { Job, JobBoard } from '../../../../src/board/index.ts'
import { Timeout } from '../../../../src/core/errors.ts'
import { NoNode, NotEmpty } from '../../../../src/zookeeper/index.ts'
import { OPCODE } from '../../../../src/zookeeper/protocol/opcodes.ts'
import { zookeeperHosts } from '../../../support/namespace.ts'
import { type FrameRecorder, recordFrames } from '../../../support/overhearing.ts'
import { usual as test, variant } from '../../../variant.ts'
import { portOf } from '../../../zookeeper/clients.ts'
import { jobIdFor, type ZooKeeperPlace, zookeeperPlace } from '../../boards.ts'
import { nextEvent, rejectionOf } from '../../events.ts'
import { claimed, namesOn, refresh } from '../../jobs.ts'
import { ProxiedBoard } from '../../proxied-board.ts'

/** Returns what sweeps the dependencies of a board. */
function sweeper({ observer, path }: ZooKeeperPlace): Waits {
  return new Waits({ zookeeper: observer, layout: new ZooKeeperLayout(path) })
}

function postAfter(board: JobBoard, name: string, after: readonly Job[] = []): Promise<Job> {
  return board.post('flow', {}, { name, after })
}

describe.skipIf(!zookeeperHosts)('dependencies on ZooKeeper', () => {
  test('leave no znodes behind', async () => {
    await using place = await zookeeperPlace()
    await using board = await place.open()
    const first = await postAfter(board, 'first')
    const second = await postAfter(board, 'second', [first])
    await postAfter(board, 'third', [first, second])
    await postAfter(board, 'fourth', [second])
    await (await claimed(board, 'first')).consume()
    await (await claimed(board, 'second')).trash()
    expect(await place.jobNodes()).toEqual([])
    for (const folder of ['.waits', '.cancel'])
      expect((await place.observer.getChildren(`${place.path}/${folder}`)).names).toEqual([])
  })

  test('a job that nobody freed after the last dependency was met is freed by the sweep', async () => {
    await using place = await zookeeperPlace()
    await using board = await place.open()
    const first = await postAfter(board, 'first')
    const second = await postAfter(board, 'second', [first])
    // As after two owners that ended at the same time, saw each other's dependency, and died before they looked again.
    const { observer, path } = place
    const id = jobIdFor(second)
    await observer.delete(`${path}/.waits/${id}/${jobIdFor(first)}`)
    await refresh(board)
    await (await board.claim(first)).abandon({ delay: '1h' })
    expect(await rejectionOf(board.claimNext({ timeout: 0 }))).toBeInstanceOf(Timeout)
    const next = board.claimNext()
    await sweeper(place).sweep([id])
    expect((await next)[0].job.uuid).toBe(second.uuid)
  })

  describe('an owner that has seen the posts of dependent jobs', () => {
    interface Setup extends AsyncDisposable {
      readonly board: JobBoard
      readonly owner: JobBoard
      /** What the owner asks the servers for. */
      readonly requests: FrameRecorder
      readonly first: Job
      readonly second: Job
    }

    /** The jobs `both`, after two jobs, and `after`, after the first of them. */
    async function setup(): Promise<Setup> {
      const place = await zookeeperPlace()
      const requests = await recordFrames({ port: portOf(zookeeperHosts) })
      const owner = await place.openAt(requests.hosts, { parameters: '?sessionTimeout=60s' })
      const board = await place.open()
      // The first claim and the first end of a board ask for more.
      await postAfter(board, 'earlier')
      await (await claimed(owner, 'earlier')).consume()
      const [first, second] = [await postAfter(board, 'first'), await postAfter(board, 'second')]
      await postAfter(board, 'both', [first, second])
      await postAfter(board, 'after', [first])
      await refresh(owner)
      const close = async () => {
        for (const each of [board, owner, requests, place]) await each[Symbol.asyncDispose]()
      }
      return { board, owner, requests, first, second, [Symbol.asyncDispose]: close }
    }

    test('ends those on which they depend without a read', async () => {
      await using at = await setup()
      const { owner, requests, first, second } = at
      const claims = [await owner.claim(first), await owner.claim(second)]
      await refresh(owner)
      const before = requests.asked.length
      await Promise.all(claims.map((claim) => claim.consume()))
      const asked = requests.asked.slice(before).filter((opcode) => opcode !== OPCODE.ping && opcode !== OPCODE.sync)
      expect(new Set(asked)).toEqual(new Set([OPCODE.multi]))
      for (const name of ['both', 'after']) await (await claimed(owner, name)).consume()
    })

    test('is refused where others have changed them since, and reads what they are now', async () => {
      await using at = await setup()
      const { board, owner, requests, first, second } = at
      const claim = await owner.claim(second)
      requests.dropsWatchEvents = true
      await postAfter(board, 'late', [second])
      await (await board.claim(first)).consume()
      await claim.consume()
      // The three jobs become claimable one after the other; their order shows once all changes have arrived.
      await refresh(board)
      const names = [await board.claimNext(), await board.claimNext(), await board.claimNext()]
      expect(names.map(([{ job }]) => job.name)).toEqual(['both', 'after', 'late'])
    })
  })

  describe('of jobs that end at the same time, the last one frees the job after them', () => {
    interface Setup extends AsyncDisposable {
      readonly place: ZooKeeperPlace
      /** Returns what frees jobs, as in a process of its own. */
      process(): DependencyRelease
      /** Prepares the end of one of the jobs, `first` or `second`. */
      prepare(release: DependencyRelease, name: 'first' | 'second'): Promise<Release>
      commit(...releases: Release[]): Promise<unknown>
      isFree(): Promise<boolean>
    }

    async function setup(): Promise<Setup> {
      const place = await zookeeperPlace()
      const { observer, path } = place
      const layout = new ZooKeeperLayout(path)
      await using board = await place.open()
      const jobs = { first: await postAfter(board, 'first'), second: await postAfter(board, 'second') }
      const last = jobIdFor(await postAfter(board, 'last', [jobs.first, jobs.second]))
      const dependent = { id: last, name: last, on: 'done' } as const
      return {
        place,
        process: () => new DependencyRelease({ zookeeper: observer, layout, known: new KnownDependencies(layout) }),
        prepare: (release, name) =>
          release.prepare(jobIdFor(jobs[name]), [dependent], { outcome: { outcome: 'done' }, changed: TRY_AGAIN }),
        commit: (...releases) => observer.multi(releases.flatMap(({ steps }) => steps.map((step) => step.op))),
        isFree: async () => (await observer.exists(`${path}/.waits/${last}`)) === undefined,
        [Symbol.asyncDispose]: () => place[Symbol.asyncDispose](),
      }
    }

    test('in two processes: the second one is refused, and reads again', async () => {
      await using at = await setup()
      const [one, other] = [at.process(), at.process()]
      const [first, second] = await Promise.all([at.prepare(one, 'first'), at.prepare(other, 'second')])
      await at.commit(first)
      expect(await at.isFree()).toBe(false)
      expect(await rejectionOf(at.commit(second))).toBeInstanceOf(NoNode)
      const [precheck] = second.prechecks
      const [found] = precheck ? (await at.place.observer.multiRead([precheck.op])).results : []
      expect(precheck?.judge(found as never)).toBe(TRY_AGAIN)
      second[Symbol.dispose]()
      await at.commit(await at.prepare(other, 'second'))
      expect(await at.isFree()).toBe(true)
    })

    test('in one process: the one that is sent later relies on the one before it', async () => {
      await using at = await setup()
      const one = at.process()
      await at.commit(await at.prepare(one, 'first'), await at.prepare(one, 'second'))
      expect(await at.isFree()).toBe(true)
    })

    test('in one process, where the one before is refused: they do not rely on each other', async () => {
      await using at = await setup()
      const one = at.process()
      const first = await at.prepare(one, 'first')
      const second = await at.prepare(one, 'second')
      first[Symbol.dispose]()
      const again = await at.prepare(one, 'first')
      expect(await rejectionOf(at.commit(second, again))).toBeInstanceOf(NotEmpty)
      await at.commit(again, second)
      expect(await at.isFree()).toBe(true)
    })
  })

  variant('the sweep looks at all jobs that wait, however many these are', async () => {
    await using place = await zookeeperPlace()
    await using board = await place.open()
    const first = await postAfter(board, 'first')
    const posted = await board.postMany(
      Array.from({ length: 1_200 }, () => ({ flow: 'flow', store: {}, after: [first] })),
    )
    const ids = posted.map((result) => ('job' in result ? jobIdFor(result.job) : ''))
    const { observer, path } = place
    const ready = ids.at(-1) ?? ''
    await observer.delete(`${path}/.waits/${ready}/${jobIdFor(first)}`)
    await sweeper(place).sweep(ids)
    expect((await observer.getChildren(`${path}/.waits`)).names).toHaveLength(1_199)
    expect(await observer.exists(`${path}/.waits/${ready}`)).toBeUndefined()
  })

  test('a post after many jobs that have ended meanwhile looks for all of them at once', async () => {
    await using place = await zookeeperPlace()
    await using poster = await place.openUnviewed()
    await using owner = await place.open()
    const posted = await poster.postMany(Array.from({ length: 40 }, () => ({ flow: 'flow', store: {} })))
    const refs = posted.map((result) => ('job' in result ? result.job.ref : ''))
    await refresh(owner)
    for (const claim of await owner.claimNext({ max: 40 })) await claim.consume()
    const reads = vi.spyOn(ZooKeeperHistory.prototype, 'find')
    onTestFinished(() => reads.mockRestore())
    const last = await poster.post('flow', {}, { name: 'last', after: refs })
    expect(last.created).toBe(true)
    expect(reads.mock.calls.map(([uuids]) => uuids.length)).toEqual([40])
    await (await claimed(owner, 'last')).consume()
  })

  test('the sweep removes what jobs have left that were removed by hand', async () => {
    await using place = await zookeeperPlace()
    await using board = await place.open()
    const first = await postAfter(board, 'first')
    const second = await postAfter(board, 'second', [first])
    await place.removeRaw(second)
    const { observer, path } = place
    await sweeper(place).sweep([jobIdFor(second)])
    expect((await observer.getChildren(`${path}/.waits`)).names).toEqual([])
    await (await board.claim(first)).consume()
    expect(await place.jobNodes()).toEqual([])
  })

  variant(
    'more jobs than one transaction frees are all free, and cancelled, with the other one',
    {
      timeout: 60_000,
    },
    async () => {
      await using place = await zookeeperPlace()
      await using board = await place.open()
      await using other = await place.open()
      for (const how of ['consume', 'trash'] as const) {
        const first = await postAfter(board, 'first')
        const items = Array.from({ length: 1_200 }, (_, n) => ({
          flow: 'flow',
          store: {},
          name: `${n}`,
          after: [first],
        }))
        const results = await board.postMany(items)
        expect(results.filter((result) => 'error' in result)).toEqual([])
        const claim = await other.claim(await other.find(first.ref))
        await claim[how]()
        for (let left = how === 'consume' ? items.length : 0; left > 0; ) {
          const claims = await board.claimNext({ max: 100 })
          left -= claims.length
          await Promise.all(claims.map((each) => each.consume()))
        }
        const ends = await Promise.all(results.map((result) => ('job' in result ? result.job.wait() : undefined)))
        expect(new Set(ends)).toEqual(new Set([how === 'consume' ? 'COMPLETE' : 'TRASHED']))
      }
      // The waits of cancelled jobs are deleted after their ends. Each look is a round trip.
      while ((await place.observer.getChildren(`${place.path}/.waits`)).names.length > 0);
    },
  )

  variant(
    'an owner that dies while it frees many jobs leaves the rest to the next one',
    { timeout: 60_000 },
    async () => {
      await using place = await zookeeperPlace()
      await using board = await place.open()
      await using other = await place.open()
      const first = await postAfter(board, 'first')
      const items = Array.from({ length: 1_200 }, (_, n) => ({ flow: 'flow', store: {}, name: `${n}`, after: [first] }))
      await board.postMany(items)
      const claim = await other.claim(await other.find(first.ref))
      // The first part is free by then.
      const begun = board.claimNext({ accept: ({ name }) => name !== 'first' })
      const settling = claim.consume().catch((error: unknown) => error)
      const [one] = await begun
      await place.expire(other)
      await settling
      await one.consume()
      let done = 1
      for (let left = 1; left > 0; left = await board.countJobs()) {
        const claims = await board.claimNext({ max: 200 })
        await Promise.all(claims.map((each) => each.consume()))
        done += claims.filter(({ job }) => job.name !== 'first').length
      }
      expect(done).toBe(items.length)
    },
  )

  variant('a lost answer to the end of a job frees the jobs after it once', async () => {
    await using setup = await ProxiedBoard.set()
    const { board, other, proxy } = setup
    const first = await postAfter(board, 'first')
    const second = await postAfter(board, 'second', [first])
    const claim = await board.claim(first)
    await refresh(other)
    const told = nextEvent(other, 'consumed')
    const swallowing = (async () => {
      // The jobs that depend on it are read, what they wait for is read, and then it is ended.
      for (let request = 0; request < 3; request++) await proxy.nextRequest()
      proxy.mode = 'swallow-replies'
    })()
    const consuming = claim.consume()
    await swallowing
    await told
    proxy.mode = 'pass'
    proxy.resetAll()
    await consuming
    const got = await claimed(other, 'second')
    expect(got.job.uuid).toBe(second.uuid)
    await got.consume()
    expect(await namesOn(other)).toEqual([])
    expect((await other.history({ limit: 2 })).map(({ uuid }) => uuid)).toEqual([second.uuid, first.uuid])
  })
})
