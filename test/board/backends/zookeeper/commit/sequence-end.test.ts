/** Near the end of ZooKeeper's numbers posters make them: another board's numbers, its own and ZooKeeper's go together. */
import { describe, expect, test, vi } from 'vitest'
import { zookeeperHosts } from '../../../../support/namespace.ts'
import { startProxy } from '../../../../support/proxy.ts'
import { portOf } from '../../../../zookeeper/clients.ts'
import { jobIdFor, zookeeperPlace } from '../../../boards.ts'
import { nextEvent } from '../../../events.ts'
import { all, claimed, namesOn, refresh } from '../../../jobs.ts'
import { boardAt } from '../bare-backends.ts'

/** Chance is taken away, so that numbers made at the same time by two boards are the same. */
vi.mock('node:crypto', async (original) => ({ ...(await original<object>()), randomInt: () => 7 }))

describe.skipIf(!zookeeperHosts)('numbers made here', () => {
  test('take over from those of ZooKeeper, and everything goes on: order, claims, keys, the trash', async () => {
    await using place = await zookeeperPlace()
    await using near = await boardAt(place, { numbersFrom: 14 })
    await using far = await place.open()
    const names = Array.from({ length: 12 }, (_, number) => `job ${number}`)
    const digits: number[] = []
    for (const [index, name] of names.entries()) {
      const job = await (index % 3 === 2 ? far : near).post('flow', {}, { name, key: name })
      digits.push(jobIdFor(job).length - 'job'.length)
    }
    expect(new Set(digits)).toEqual(new Set([10, 20]))
    for (const board of [near, far]) expect(await namesOn(board)).toEqual(names)
    for (const name of names) {
      const [claim] = await (name.endsWith('1') ? near : far).claimNext()
      expect(claim.job.name).toBe(name)
      await (name.endsWith('1') ? claim.trash() : claim.consume())
    }
    for (const entry of await all(far.trashed())) await near.restore(entry)
    await refresh(near)
    expect((await near.claimNext({ max: 5 })).map(({ job }) => job.name)).toEqual(['job 1', 'job 11'])
    expect(await near.post('flow', {}, { key: 'job 1' })).toMatchObject({ created: false })
  })

  test('jobs that are posted at once keep the order in which they were asked for', async () => {
    await using place = await zookeeperPlace()
    await using board = await boardAt(place, { numbersFrom: 0 })
    const names = Array.from({ length: 100 }, (_, number) => `job ${number}`)
    await Promise.all(names.map((name) => board.post('flow', {}, { name })))
    await using other = await place.open()
    expect(await namesOn(other)).toEqual(names)
  })

  test('two boards that restore under the same number each get one of their own', async () => {
    await using place = await zookeeperPlace()
    await using far = await place.open()
    for (const name of ['a', 'b']) {
      await far.post('flow', {}, { name })
      await (await claimed(far, name)).trash()
    }
    const [a, b] = await all(far.trashed())
    if (!a || !b) throw new Error('both were trashed')
    await using one = await boardAt(place, { numbersFrom: 0 })
    await using two = await boardAt(place, { numbersFrom: 0 })
    const now = Date.now()
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => now)
    try {
      await one.restore(a)
      await two.restore(b)
    } finally {
      clock.mockRestore()
    }
    expect(await namesOn(far)).toHaveLength(2)
  })

  test('two boards that make the same number each get one of their own', async () => {
    await using place = await zookeeperPlace()
    await using one = await boardAt(place, { numbersFrom: 0 })
    await using two = await boardAt(place, { numbersFrom: 0 })
    const now = Date.now()
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => now)
    try {
      const posting = Array.from({ length: 20 }, (_, number) => {
        const options = number % 2 ? { key: `${number}` } : {}
        return [one, two].map((board) => board.post('flow', {}, options))
      })
      const jobs = await Promise.all(posting.flat())
      expect(jobs.filter(({ created }) => created)).toHaveLength(30)
      expect(new Set(jobs.map(jobIdFor)).size).toBe(30)
    } finally {
      clock.mockRestore()
    }
    expect(await namesOn(one)).toHaveLength(30)
    await (await claimed(two, 'flow')).consume()
  })

  test('a job whose post was not answered is found, although others whose clocks are ahead posted before', async () => {
    await using place = await zookeeperPlace()
    await using proxy = await startProxy({ port: portOf(zookeeperHosts) })
    await using ahead = await boardAt(place, { numbersFrom: 0 })
    const later = Date.now() + 60_000
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => later)
    try {
      for (let number = 0; number < 70; number++) await ahead.post('flow', {})
    } finally {
      clock.mockRestore()
    }
    for (const numbersFrom of [0, 2 ** 31]) {
      await using board = await boardAt(place, { numbersFrom, hosts: proxy.hosts, sessionTimeout: '30s' })
      await board.post('flow', {})
      const heard = nextEvent(ahead, 'posted', ({ job }) => job.name === 'mine')
      proxy.mode = 'swallow-replies'
      const posting = board.post('flow', {}, { name: 'mine' })
      await heard
      proxy.mode = 'pass'
      proxy.resetAll()
      expect((await posting).state).toBe('UNCLAIMED')
      await (await claimed(ahead, 'mine')).consume()
    }
  })
})
