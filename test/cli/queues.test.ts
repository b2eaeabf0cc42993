/** What the command line shows of queues, and does with them. */
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type JobBoard, openBoard, type ServedQueues } from '../../src/index.ts'
import { describeQueues } from '../../src/views/index.ts'
import { type CliFolder, createCliFolder, FLOWS, jsonLines, killRemaining, type Outcome } from './workplace.ts'

let place: CliFolder
let board: JobBoard

const jobboard = (...args: string[]): Promise<Outcome> => place.jobboard([...args, '--board', board.uri])
/** Posts a job to a queue, under the name of the queue. */
const post = (queue: string) => board.post('hello', { name: 'Ada' }, { queue, name: queue })

beforeEach(async () => {
  place = await createCliFolder()
  await place.write('flows.js', FLOWS)
  board = await openBoard(`sqlite:${join(place.cwd, 'jobs.db')}`)
})
afterEach(async () => {
  await board.close()
  await place[Symbol.asyncDispose]()
})
afterAll(killRemaining)

/** The names of the jobs that a command lists. */
async function listed(...args: string[]): Promise<string[]> {
  const { stdout } = await jobboard(...args, '--json')
  return jsonLines(stdout)
    .map((job) => String(Object(job).name))
    .sort()
}

describe('jobs, trash and history', () => {
  test('list the jobs of a queue, or of the queues of a pattern', async () => {
    for (const queue of ['tenant-a', 'tenant-b', 'bulk', 'default']) {
      const [, trashed, done] = [await post(queue), await post(queue), await post(queue)]
      await board.cancel(trashed)
      await (await board.claim(done)).consume()
    }
    for (const list of [['jobs'], ['trash', 'list'], ['history', '--trashed']]) {
      expect(await listed(...list, '--queue', 'bulk')).toEqual(['bulk'])
      expect(await listed(...list, '--queue', 'default')).toEqual(['default'])
      expect(await listed(...list, '--queue', 'tenant-*')).toEqual(['tenant-a', 'tenant-b'])
      expect(await listed(...list, '--queue', '*')).toEqual(['bulk', 'default', 'tenant-a', 'tenant-b'])
      expect((await jobboard(...list, '--queue', 'nobody')).stdout).toMatch(/^no .*jobs?.db\n$/)
      expect(await jobboard(...list, '--queue', 'a,b')).toMatchObject({
        ...{ exitCode: 2, stdout: '' },
        stderr: expect.stringMatching(/^jobboard: --queue: queue "a,b" must not contain .*, as in tenant-\*\n$/),
      })
    }
  })

  test('have a column for the queue where a job is in another than the default one', async () => {
    for (const queue of ['default', 'bulk']) {
      const [trashed, done] = [await post(queue), await post(queue)]
      await board.cancel(trashed)
      await (await board.claim(done)).consume()
      const isOther = queue === 'bulk'
      for (const list of [['trash', 'list'], ['history']]) {
        const [heads, ...rows] = (await jobboard(...list)).stdout.trim().split('\n')
        expect(/ QUEUE /.test(heads ?? '')).toBe(isOther)
        expect(rows.some((row) => / bulk +bulk /.test(row) || / bulk +\S+ +bulk /.test(row))).toBe(isOther)
        const queues = jsonLines((await jobboard(...list, '--json')).stdout).map((job) => Object(job).queue)
        expect(new Set(queues)).toEqual(new Set(isOther ? ['bulk', undefined] : [undefined]))
      }
      const report = await jobboard('trash', 'show', trashed.uuid)
      expect(/\n +queue +bulk\n/.test(report.stdout)).toBe(isOther)
    }
  })

  test('trash purge: removes the jobs of a queue, and leaves those of others', async () => {
    for (const queue of ['tenant-a', 'tenant-b', 'bulk', 'default']) await board.cancel(await post(queue))
    expect((await jobboard('trash', 'purge', '--queue', 'bulk', '--name', 'other')).stderr).toContain(
      'no matching jobs',
    )
    expect((await jobboard('trash', 'purge', '--queue', 'bulk')).stdout).toMatch(/^\S{36}\n$/)
    expect(await listed('trash', 'list')).toEqual(['default', 'tenant-a', 'tenant-b'])
    expect((await jobboard('trash', 'purge', '--queue', 'tenant-*')).exitCode).toBe(0)
    expect(await listed('trash', 'list')).toEqual(['default'])
    expect(await jobboard('trash', 'purge', '--queue', 'default', '--all')).toMatchObject({
      ...{ exitCode: 2, stdout: '' },
      stderr: expect.stringContaining('select jobs by uuids, by --name, --queue and --older-than, or by --all'),
    })
    // Of a restore, --queue is the queue to which the jobs go, and selects none.
    expect((await jobboard('trash', 'restore', '--queue', 'default')).stderr).toContain(
      'by --name and --older-than, or by --all',
    )
    expect(await listed('trash', 'list')).toEqual(['default'])
  })
})

describe('the queues of a conductor', () => {
  /** The queues of the jobs that a conductor has run, one after the other. */
  async function order(args: readonly string[], queues: ServedQueues | undefined): Promise<string[]> {
    const once = ['--flows', 'flows.js', '--burst', '--concurrency', '1', '--board', board.uri]
    const { stdout, stderr } = await place.spawned(['conductor', ...args, ...once])
    expect(stderr).not.toContain('jobboard: ')
    const named = queues ? `, queues ${describeQueues(queues)}` : ''
    expect(stdout).toContain(`runs hello, refused from ${board.uri}${named}, logbooks in `)
    const started = stderr.split('\n').find((line) => line.includes('"conductor started"')) ?? '{}'
    expect(JSON.parse(started).queues).toEqual(queues)
    return stderr.split('\n').flatMap((line) => (line.includes('"job consumed"') ? [JSON.parse(line).name] : []))
  }

  test('named as words are served in this order, in place of those of the config file', async () => {
    await place.write('jobboard.yaml', 'conductor: { queues: { other: 1 } }\n')
    for (const queue of ['low', 'default', 'high', 'low', 'default', 'high', 'other']) await post(queue)
    const served = ['high', 'high', 'default', 'default', 'low', 'low']
    expect(await order(['high', 'default', 'low'], ['high', 'default', 'low'])).toEqual(served)
    expect(await order([], { other: 1 })).toEqual(['other'])
    for (const queue of ['b1', 'a', 'b2', 'a']) await post(queue)
    expect(await order(['a', 'b*'], ['a', 'b*'])).toEqual(['a', 'a', 'b1', 'b2'])
  })

  test('named with -Q are served in turn, as a worker of Celery serves them', async () => {
    await place.write('jobboard.yaml', 'conductor: { queues: [other] }\n')
    for (const queue of ['images', 'images', 'images', 'mail', 'mail', 'other']) await post(queue)
    const served = await order(['-Q', 'images,mail'], { images: 1, mail: 1 })
    expect([served.slice(0, 2).sort(), served.slice(2, 4).sort(), served.slice(4)]).toEqual([
      ['images', 'mail'],
      ['images', 'mail'],
      ['images'],
    ])
    expect(await order([], ['other'])).toEqual(['other'])
    await place.write('jobboard.yaml', '')
    await post('any')
    expect(await order([], undefined)).toEqual(['any'])
  })

  test.each<[args: string[], message: string]>([
    [['a', '--queue', 'b'], 'the queues are named as words (a) and with --queue: name them all in one of these ways'],
    [['a', '-Q', 'b'], 'the queues are named as words (a) and with -Q: name them all in one of these ways'],
    [['-Q', 'a', '--queue', 'b'], 'the queues are named with --queue and with -Q: name them all in one of these ways'],
    [['other.mjs'], 'other.mjs is the name of a queue here: give a module with --flows, which may be repeated'],
    [['a', 'b=2'], '--queue a needs a weight, as in --queue a=1, because other queues have one'],
    [['a', 'a'], 'a conductor: queues contains "a" twice'],
  ])('named as %j are refused', async (args, message) => {
    const refused = await jobboard('conductor', ...args, '--flows', 'flows.js')
    expect(refused).toEqual({ exitCode: 2, stdout: '', stderr: `jobboard: ${message}\n` })
  })
})

test.each([['worker', 'high', '--burst'], ['work']])('%s is no command, and a conductor is meant', async (...words) => {
  const stderr = `jobboard: unknown command '${words[0]}'; did you mean conductor?\n`
  expect(await jobboard(...words)).toEqual({ exitCode: 2, stdout: '', stderr })
  expect((await jobboard('limits', ...words)).stderr).not.toContain('conductor')
  expect((await jobboard('constructor')).stderr).toBe("jobboard: unknown command 'constructor'; see jobboard --help\n")
})

test('a job of a queue that no conductor serves says so, to who posts and to who tracks it', async () => {
  const register = (name: string, queues: readonly string[]) =>
    board.registerEntity({ kind: 'conductor', name, metadata: { flows: ['hello'], queues } })
  const posted = async (...args: string[]) => {
    const { stdout, stderr } = await jobboard('post', 'hello', '--store', '{"name":"Ada"}', ...args)
    return { uuid: stdout.trim(), stderr }
  }
  await using _bulk = await register('bulk', ['bulk'])
  const { uuid, stderr } = await posted('--queue', 'reports')
  expect(stderr).toBe('no conductor serves queue reports; it waits for one that does\n')
  expect((await posted('--queue', 'bulk')).stderr).toBe('')
  const waited = await jobboard('post', 'hello', '--queue', 'reports', '--wait', '--within', '1ms')
  expect(waited).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('no conductor serves queue reports; ') })
  expect((await jobboard('track', uuid)).stdout).toMatch(/\n +because +no conductor serves queue reports\n/)
  expect((await jobboard('show', uuid)).stdout).toMatch(/\n +because +no conductor serves queue reports\n/)
  const [tracked] = jsonLines((await jobboard('track', uuid, '--json')).stdout)
  expect(tracked).toMatchObject({ waitingFor: { kind: 'queue', queue: 'reports' } })
  await using _all = await register('all', ['*'])
  expect((await jobboard('track', uuid)).stdout).toMatch(/\n +waits for +its turn\n/)
})

test('a pause of a pattern is shown for the queues that it pauses, and outlasts a resume of one of them', async () => {
  for (const queue of ['tenant-a', 'tenant-b', 'bulk']) await post(queue)
  await jobboard('pause', '--queue', 'tenant-b', '--reason', 'unpaid')
  await board.limits.stop('queue/tenant-*', { by: 'ann', reason: 'the night' })
  await board.limits.stop('queue/none-*')
  const rows = (await jobboard('info')).stdout.split('\n')
  expect(rows.find((row) => row.startsWith('tenant-a '))).toMatch(/ tenant-\*: by ann, \d+m?s ago: the night$/)
  expect(rows.find((row) => row.startsWith('tenant-b '))).toMatch(/ by .*: unpaid$/)
  expect(rows.find((row) => row.startsWith('bulk '))).not.toContain('ann')
  expect(rows.some((row) => row.startsWith('none-') || row.startsWith('tenant-*'))).toBe(false)
  const [info] = jsonLines((await jobboard('info', '--json')).stdout)
  const pause = { by: 'ann', reason: 'the night', pattern: 'tenant-*', since: expect.any(String) }
  expect(Object(info).queues).toContainEqual(expect.objectContaining({ queue: 'tenant-a', pause }))
  const still =
    "still stopped: queue tenant-* was paused by ann: the night; jobboard limits resume 'queue/tenant-*' ends it\n"
  const resume = async (...args: string[]) => (await jobboard('resume', ...args)).stdout
  expect(await resume()).toMatch(/; still paused: queue none-\*, queue tenant-\*, queue tenant-b\n$/)
  expect(await resume('--queue', 'tenant-b')).toBe(
    `claiming from queue tenant-b resumed on ${board.uri}; still paused: queue none-*\n${still}`,
  )
  expect(await resume('--queue', 'tenant-b')).toBe(
    `queue tenant-b was not paused by its name on ${board.uri}\n${still}`,
  )
  expect(await jobboard('resume', '--queue', 'a,b')).toMatchObject({ exitCode: 2, stdout: '' })
  await jobboard('limits', 'resume', 'queue/tenant-*', 'queue/none-*')
  expect(await resume('--queue', 'tenant-b')).toBe(`queue tenant-b was not paused on ${board.uri}\n`)
  expect((await jobboard('info')).stdout).not.toContain(' by ')
  await board.limits.set('queue/bulk', { concurrency: 0 })
  expect(await resume('--queue', 'bulk')).toMatch(
    /\nstill stopped: .*; jobboard limits set queue\/bulk --concurrency 1 ends it\n$/,
  )
})
