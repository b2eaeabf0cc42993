/** What operators do: waiting, cancelling, pausing, looking at conductors, and putting the trash in order. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { encode } from '../../src/core/codec.ts'
import { openBoard } from '../../src/index.ts'
import { ZooKeeper } from '../../src/zookeeper/index.ts'
import { refresh } from '../board/jobs.ts'
import { zookeeperHosts } from '../support/namespace.ts'
import { type CliFolder, createCliFolder, FLOWS, jsonLines, killRemaining, type Outcome } from './workplace.ts'

let place: CliFolder

beforeEach(async () => {
  place = await createCliFolder()
  await place.write('flows.js', FLOWS)
})
afterEach(async () => place[Symbol.asyncDispose]())
afterAll(killRemaining)

async function post(...args: string[]): Promise<string> {
  return (await place.jobboard(['post', ...args])).stdout.trim()
}

/** The only line on standard error, and the exit code. */
function complaint({ exitCode, stdout, stderr }: Outcome): [exitCode: number | null, line: string] {
  expect(stdout).toBe('')
  expect(stderr.split('\n')).toHaveLength(2)
  return [exitCode, stderr]
}

const conduct = () => place.jobboard(['conductor', '--flows', 'flows.js', '--burst'])
/** Answers no, and notes what was asked. */
const refusing = (asked: string[]) => (question: string) => {
  asked.push(question)
  return 'n'
}
const beginning = (uuid: string) => uuid.slice(0, 30)

describe.skipIf(!zookeeperHosts)('on ZooKeeper', () => {
  test('wait: until a job is done, or in the trash, or for so long', async () => {
    const later = await post('other')
    expect(complaint(await place.jobboard(['wait', later, '--within', '1ms']))).toEqual([
      1,
      expect.stringContaining('still UNCLAIMED after 1ms'),
    ])
    const [good, bad] = [await post('hello', '--store', '{"name":"Ada"}'), await post('refused')]
    const waiting = [place.jobboard(['wait', good.toUpperCase()]), place.jobboard(['wait', bad, '--json'])] as const
    await conduct()
    expect(await waiting[0]).toMatchObject({ exitCode: 0, stdout: 'COMPLETE\n' })
    const { exitCode, stdout } = await waiting[1]
    expect([exitCode, jsonLines(stdout)]).toMatchObject([1, [{ uuid: bad, name: 'refused', state: 'TRASHED' }]])
  })

  test('wait: a job that has left before ended as trash and logbook say', async () => {
    const [good, bad] = [await post('hello', '--store', '{"name":"Ada"}'), await post('refused')]
    await conduct()
    expect(await place.jobboard(['wait', beginning(good)])).toEqual({ exitCode: 0, stdout: 'COMPLETE\n', stderr: '' })
    expect(await place.jobboard(['wait', bad])).toEqual({ exitCode: 1, stdout: 'TRASHED\n', stderr: '' })
    await place.jobboard(['trash', 'purge', bad])
    expect(complaint(await place.jobboard(['wait', bad]))).toEqual([
      1,
      expect.stringMatching(/nor in its trash; its logbook says REVERTED: jobboard track [0-9a-f-]+ shows more\n$/),
    ])
    const blind = await place.bare(['wait', good, '--board', place.board])
    expect(complaint(blind)).toEqual([1, expect.stringContaining('add --persistence URI')])
    // Where logbooks are named, and would know, it is told why they cannot be asked.
    const locked = await place.jobboard(['wait', good], { env: { JOBBOARD_LOGBOOK_KEY: 'no key' } })
    expect(complaint(locked)).toEqual([2, expect.stringContaining('JOBBOARD_LOGBOOK_KEY must be the base64')])
  })

  test('wait: a job that was in the trash, was posted again and is done, is done', async () => {
    const uuid = '0199c0de-0000-7000-8000-000000000001'
    for (const reason of ['mistaken', 'again']) {
      await post('hello', '--store', '{"name":"Ada"}', '--uuid', uuid)
      await place.jobboard(['cancel', uuid, '--reason', reason])
    }
    await post('hello', '--store', '{"name":"Ada"}', '--uuid', uuid)
    await conduct()
    expect(await place.jobboard(['wait', uuid])).toEqual({ exitCode: 0, stdout: 'COMPLETE\n', stderr: '' })
    // Whoever has no logbooks to ask is told what is known without.
    expect(await place.bare(['wait', uuid, '--board', place.board])).toMatchObject({ exitCode: 1, stdout: 'TRASHED\n' })
  })

  test('wait: the beginning of several uuids is refused, wherever the jobs are', async () => {
    const uuids = ['0199c0de-0000-7000-8000-000000000001', '0199c0de-0000-7000-8000-000000000002']
    for (const uuid of uuids) await post('hello', '--store', '{"name":"Ada"}', '--uuid', uuid)
    await place.jobboard(['cancel', uuids[0] ?? ''])
    const some = complaint(await place.bare(['wait', '0199c0de', '--board', place.board]))
    expect(some).toEqual([2, expect.stringContaining('matches 2 jobs')])
    await place.jobboard(['cancel', uuids[1] ?? ''])
    const all = complaint(await place.bare(['wait', '0199c0de', '--board', place.board]))
    expect(all).toEqual([2, expect.stringContaining('matches 2 jobs')])
  })

  test('post: a flow that no living conductor knows is posted, and it is said', async () => {
    await using board = await openBoard(place.board)
    await using _conductor = await board.registerEntity({
      kind: 'conductor',
      name: 'one',
      metadata: { flows: ['hello'] },
    })
    expect(await place.jobboard(['post', 'hullo'])).toMatchObject({
      exitCode: 0,
      stderr: 'no conductor here knows flow hullo; it waits for one that does\n',
    })
    expect(await place.jobboard(['post', 'hello'])).toMatchObject({ exitCode: 0, stderr: '' })
  })

  test('cancel: one that was never run is in the trash, one that runs is asked', async () => {
    const [waiting, running] = [
      await post('hello', '--store', '{"name":"Ada"}'),
      await post('hello', '--store', '{"name":"Bob"}'),
    ]
    await using board = await openBoard(place.board)
    const claim = await board.claim(await board.find(running))
    const gone = await place.jobboard(['cancel', waiting, '--reason', 'by mistake'])
    expect(gone).toEqual({ exitCode: 0, stdout: `job ${waiting} (hello) is in the trash\n`, stderr: '' })
    const asked = await place.jobboard(['cancel', running, '--json'])
    expect(jsonLines(asked.stdout)).toEqual([{ uuid: running, name: 'hello', state: 'CLAIMED' }])
    if (!claim.cancelled.aborted) await new Promise((resolve) => claim.cancelled.addEventListener('abort', resolve))
    expect((await place.jobboard(['jobs'])).stdout).toContain('CLAIMED, cancelling')
    const by = /\n {2}cancel {4}asked by \S+\n/
    expect((await place.jobboard(['show', running])).stdout).toMatch(by)
    expect((await place.jobboard(['show', running])).stdout).toMatch(/^job .* {2}CLAIMED, cancelling\n/)
    expect((await place.jobboard(['track', running])).stdout).toMatch(by)
    const [shown] = jsonLines((await place.jobboard(['show', running, '--json'])).stdout)
    expect(shown).toMatchObject({
      job: { cancelRequested: true, cancellation: { reason: 'cancelled' }, owner: board.who },
    })
    await claim.consume()
    expect(complaint(await place.jobboard(['cancel', running]))[0]).toBe(1)
    expect((await place.jobboard(['trash', 'show', beginning(waiting)])).stdout).toMatch(
      /reason +cancelled by .*: by mistake\n/,
    )
  })

  test('cancel: a short beginning names no job, although only one on the board begins so', async () => {
    const uuid = await post('hello', '--store', '{"name":"Ada"}')
    const [exitCode, line] = complaint(await place.jobboard(['cancel', uuid.slice(0, 8)]))
    expect([exitCode, line]).toEqual([1, expect.stringContaining(`there is no job ${uuid.slice(0, 8)}`)])
    for (const part of [uuid.slice(0, 13), uuid.slice(-8)]) {
      const asked: string[] = []
      const no = await place.jobboard(['cancel', part], { answer: refusing(asked) })
      expect(no).toEqual({ exitCode: 0, stdout: '', stderr: 'nothing was changed\n' })
      expect(asked).toEqual([`cancel job ${uuid} (hello)? [y/N] `])
    }
    const asked: string[] = []
    const whole = await place.jobboard(['cancel', uuid], { answer: refusing(asked) })
    expect([whole.exitCode, asked]).toEqual([0, []])
  })

  test('cancel: many at once, by name or all of them, where that is confirmed', async () => {
    for (let number = 0; number < 30; number += 1) await post('hello', '--store', '{"name":"Ada"}', '--name', 'import')
    const other = await post('hello', '--store', '{"name":"Bob"}')
    const [exitCode, line] = complaint(await place.jobboard(['cancel', '--name', 'import']))
    expect([exitCode, line]).toEqual([2, expect.stringMatching(/cancel 30 jobs on .*, 0 of them running\?.*add --yes/)])
    expect(jsonLines((await place.jobboard(['jobs', '--json'])).stdout)).toHaveLength(31)
    expect(jsonLines((await place.jobboard(['jobs', '--json', '--limit', '3'])).stdout)).toHaveLength(3)
    const done = await place.jobboard(['cancel', '--name', 'import', '--yes', '--reason', 'posted by mistake'])
    expect([done.exitCode, done.stderr]).toEqual([0, 'cancellation requested: 30 of 30\n'])
    expect(done.stdout.match(/ is in the trash\n/g)).toHaveLength(30)
    expect(jsonLines((await place.jobboard(['jobs', '--json'])).stdout)).toMatchObject([{ uuid: other }])
    const all = await place.jobboard(['cancel', '--all'], { answer: () => 'y' })
    expect(all).toEqual({ exitCode: 0, stdout: `job ${other} (hello) is in the trash\n`, stderr: '' })
    expect((await place.jobboard(['cancel', '--all'])).stderr).toContain('no matching jobs')
  })

  test('trash restore: jobs whose owners died stay in the trash, unless they are asked for', async () => {
    const attempts = Array.from({ length: 10 }, () => ({ who: 'dead', at: new Date() }))
    const poison = '0199c0de-0000-7000-8000-000000000001'
    {
      await using board = await openBoard(place.board)
      await using observer = new ZooKeeper({ hosts: zookeeperHosts })
      await observer.connect()
      const posting = { uuid: poison, name: 'poison', details: { flow: 'hello' }, priority: 'NORMAL', attempts }
      await observer.create(`${place.path}/job`, encode(posting, 'msgpack'), { sequential: true })
      await refresh(board)
      await board.claim(await board.find(poison)).catch(() => undefined)
    }
    const good = await post('hello', '--store', '{"name":"Ada"}')
    await place.jobboard(['cancel', good])
    const some = await place.jobboard(['trash', 'restore', '--all'])
    expect(some).toMatchObject({ exitCode: 0, stdout: `${good}\n` })
    expect(some.stderr).toContain('1 job stays in the trash')
    expect((await place.jobboard(['trash', 'restore', '--all', '--poison'])).stdout).toBe(`${poison}\n`)
  })

  test('post: with a key, with resources, later: what the board then says of them', async () => {
    const first = await post('hello', '--key', 'tidy', '--exclusive', 'disk', '--shared', 'net', '--delay', '1h')
    const again = await place.jobboard(['post', 'hello', '--key', 'tidy'])
    expect(again).toMatchObject({ exitCode: 0, stdout: `${first}\n` })
    expect(again.stderr).toMatch(/^a job with this key is on the board already: job .+ \(hello\)\n$/)
    const replacing = ['post', 'hello', '--key', 'tidy', '--key-on', 'replace', '--key-for', '2h', '--delay', '1h']
    const newest = await place.jobboard([...replacing, '--name', 'newest', '--exclusive', 'disk', '--json'])
    expect(newest.stderr).toMatch(/^the posting of the job that waits with this key was replaced: job .+ \(newest\)\n$/)
    expect(JSON.parse(newest.stdout)).toMatchObject({ uuid: first, created: false, because: 'waiting', replaced: true })
    const shown = await place.jobboard(['show', first])
    expect(shown.stdout).toMatch(/key +tidy, taken until \d{4}-.+ or its end, whichever is later\n/)
    const { job } = JSON.parse((await place.jobboard(['show', first, '--json'])).stdout)
    expect(job).toMatchObject({ key: 'tidy', keyTakenUntil: expect.stringMatching(/^\d{4}-/) })
    expect((await place.jobboard(['track', first.slice(-12)])).stdout).toMatch(/because +it rests until /)
    await using board = await openBoard(place.board)
    await using holder = await board.claim(
      await board.find(
        await post('hello', '--exclusive', 'tape', '--deadline', '5m', '--key', 'tape', '--key-for', '1h'),
      ),
    )
    const running = await place.jobboard(['post', 'hello', '--key', 'tape', '--key-on', 'replace'])
    expect(running.stderr).toMatch(/^a job with this key is on the board already, and was started: job /)
    expect(holder.job.deadline).toBe(300_000)
    const blocked = await post('hello', '--exclusive', 'tape')
    expect((await place.jobboard(['track', blocked])).stdout).toContain('resource tape is held by job')
    const nonsense = await place.jobboard(['post', 'hello', '--delay', 'soon'])
    expect(complaint(nonsense)).toEqual([2, expect.stringContaining('--delay: "soon" is not a duration')])
  })

  test('post --expires-after: a job that nobody starts is in the trash with that reason, and show says when before', async () => {
    const kept = await post('hello', '--expires-after', '2h')
    expect((await place.jobboard(['show', kept])).stdout).toMatch(/^ *expires +\d{4}-.*Z, if nobody has started it$/m)
    const uuid = await post('hello', '--expires-after', '200ms')
    await using board = await openBoard(place.board)
    const stop = new AbortController()
    const waiting = board.claimNext({ accept: () => false, signal: stop.signal }).catch(() => undefined)
    expect(await place.jobboard(['wait', uuid])).toMatchObject({ exitCode: 1, stdout: 'TRASHED\n' })
    stop.abort()
    await waiting
    const listed = await place.jobboard(['trash', 'list', '--json'])
    expect(JSON.parse(listed.stdout)).toMatchObject({
      ...{ uuid, expired: true, by: board.who },
      reason: 'nobody started it within 200 ms',
    })
    expect((await place.jobboard(['trash', 'list'])).stdout).toContain('nobody started it within 200 ms')
    const refusals = [
      [['--expires-after', '1 fortnight'], '--expires-after: "1 fortnight" is not a duration'],
      [['--expires-after', '0s'], 'expiresAfter must be longer than 0'],
      [['--expires-after', '1h', '--delay', '2h'], 'expiresAfter must be longer than delay'],
    ] as const
    for (const [flags, text] of refusals) {
      const refused = await place.jobboard(['post', 'hello', ...flags])
      expect(refused.exitCode).toBeGreaterThan(0)
      expect(refused.stderr).toContain(text)
    }
  })

  test('wait: --timeout does not limit it, and that is said', async () => {
    const uuid = await post('hello', '--store', '{"name":"Ada"}')
    const waiting = place.jobboard(['wait', uuid, '--timeout', '5s'])
    await conduct()
    expect(await waiting).toMatchObject({
      exitCode: 0,
      stdout: 'COMPLETE\n',
      stderr: expect.stringContaining('--timeout limits the opening of the board, --within limits the wait'),
    })
  })

  test('track: that no conductor is connected that could run it', async () => {
    const uuid = await post('hello')
    expect((await place.jobboard(['track', uuid])).stdout).toMatch(
      /waits for +its turn; no conductor is connected to this board/,
    )
    await using board = await openBoard(place.board)
    await using _conductor = await board.registerEntity({ kind: 'conductor', name: 'one', metadata: {} })
    expect((await place.jobboard(['track', uuid])).stdout).toMatch(/waits for +its turn\n/)
  })

  test('a job that was asked back says in the trash by whom, and why, whichever owner put it there', async () => {
    const uuid = await post('hello', '--store', '{"name":"Ada"}')
    await using board = await openBoard(place.board)
    const claim = await board.claim(await board.find(uuid))
    const work = claim.perform(async (_, { signal }) => {
      await place.jobboard(['cancel', uuid, '--reason', 'by mistake'])
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve))
      throw signal.reason
    })
    expect(await work).toBe('trashed')
    expect((await place.jobboard(['trash', 'show', uuid])).stdout).toMatch(/reason +cancelled by .*: by mistake\n/)
  })

  test('pause and resume: no owner claims in between', async () => {
    const uuid = await post('hello', '--store', '{"name":"Ada"}')
    expect(await place.jobboard(['pause'])).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining('claiming paused on'),
    })
    await conduct()
    expect((await place.jobboard(['jobs'])).stdout).toContain(uuid)
    expect(await place.jobboard(['resume'])).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining('claiming resumed'),
    })
    await conduct()
    expect((await place.jobboard(['jobs'])).stdout).toContain('no jobs on')
  })

  test('pause and resume of one queue, which info shows; a job of it waits for that', async () => {
    const bulk = await post('hello', '--queue', 'bulk', '--store', '{"name":"Ada"}')
    await post('hello', '--store', '{"name":"Bob"}')
    const paused = await place.jobboard(['pause', '--queue', 'bulk', '--reason', 'the disk is full'])
    expect(paused.stdout).toMatch(/claiming from queue bulk paused on .*; jobboard resume --queue bulk ends the pause/)
    await conduct()
    expect((await place.jobboard(['jobs', '--queue', 'default'])).stdout).toContain('no jobs on')
    expect((await place.jobboard(['jobs', '--queue', 'bulk'])).stdout).toContain(bulk)
    expect((await place.jobboard(['info'])).stdout).toMatch(/bulk +1 +0 +\d+m?s +0 +- +0 +by .*: the disk is full/)
    expect((await place.jobboard(['show', bulk])).stdout).toMatch(
      /because +queue bulk was paused by .*: the disk is full/,
    )
    expect((await place.jobboard(['resume'])).stdout).toContain('; still paused: queue bulk')
    expect((await place.jobboard(['resume', '--queue', 'bluk'])).stdout).toContain('queue bluk was not paused')
    expect((await place.jobboard(['resume', '--queue', 'bulk'])).stdout).toContain('from queue bulk resumed')
    await conduct()
    expect((await place.jobboard(['jobs'])).stdout).toContain('no jobs on')
  })

  test('a burst that leaves jobs which were to run by now ends with 1; those for later are no work that is left', async () => {
    await post('hello', '--store', '{"name":"Ada"}', '--delay', '1h')
    await post('other')
    expect((await conduct()).exitCode).toBe(0)
    await post('hello', '--queue', 'bulk', '--store', '{"name":"Bob"}')
    await place.jobboard(['pause', '--queue', 'bulk'])
    const { exitCode, stderr } = await place.spawned(['conductor', '--flows', 'flows.js', '--burst'])
    expect([exitCode, jsonLines(stderr).at(-1)]).toMatchObject([1, { left: 1, msg: expect.stringContaining('burst') }])
    expect((await place.jobboard(['cancel', '--queue', 'bulk', '--yes'])).stdout).toContain('is in the trash')
    expect((await conduct()).exitCode).toBe(0)
    await post('refused', '--max-attempts', '1')
    expect((await conduct()).exitCode).toBe(1)
    const urgent = await place.jobboard(['conductor', '--flows', 'flows.js', '--burst', '--queue', 'urgent'])
    expect(urgent.exitCode).toBe(0)
  })

  test('--pid: a file with the number of the process while it runs, and of one conductor only', async () => {
    const start = () => place.start(['conductor', '--flows', 'flows.js', '--pid', 'conductor.pid'])
    const file = join(place.cwd, 'conductor.pid')
    // The file of a process that was killed.
    await writeFile(file, '999999999\n')
    const conductor = start()
    await conductor.says('Ctrl-C')
    expect(await readFile(file, 'utf8')).toBe(`${conductor.process.pid}\n`)
    const second = await place.jobboard(['conductor', '--flows', 'flows.js', '--pid', 'conductor.pid'])
    expect(complaint(second)).toEqual([
      2,
      expect.stringContaining(`has the number ${conductor.process.pid} of a process that lives`),
    ])
    conductor.process.kill('SIGTERM')
    await conductor.ended
    await expect(readFile(file)).rejects.toThrow('ENOENT')
    expect(complaint(await place.jobboard(['conductor', '--flows', 'flows.js', '--pid', 'no/such/folder']))).toEqual([
      2,
      expect.stringContaining('cannot be written: ENOENT'),
    ])
  })

  test('--pid: of two conductors that find the file of a dead one at the same time, one runs', async () => {
    const file = join(place.cwd, 'conductor.pid')
    await writeFile(file, '999999999\n')
    const both = [1, 2].map(() => place.start(['conductor', '--flows', 'flows.js', '--pid', 'conductor.pid']))
    await Promise.any(both.map((conductor) => conductor.says('Ctrl-C')))
    const refused = await Promise.race(both.map(({ ended }) => ended))
    expect([refused.exitCode, refused.stderr]).toEqual([2, expect.stringContaining('--pid')])
    const winner = both.find(({ process }) => process.exitCode === null)
    expect(await readFile(file, 'utf8')).toBe(`${winner?.process.pid}\n`)
    winner?.process.kill('SIGTERM')
    await Promise.all(both.map(({ ended }) => ended))
  })

  test('conductors: who lives, and what they can do', async () => {
    await using _board = await openBoard(place.board)
    expect((await place.jobboard(['conductors'])).stdout).toBe(`no conductors on ${place.board}\n`)
    const conductor = place.start([
      'conductor',
      '--flows',
      'flows.js',
      '--name',
      'one',
      '--concurrency',
      '3',
      '--queue',
      'large',
      '--release',
      '2026-11',
    ])
    await conductor.says('Ctrl-C')
    const [titles, row] = (await place.jobboard(['conductors'])).stdout.split('\n')
    expect(titles).toMatch(/^NAME +STATE +RUNS +DONE +FAILED +QUEUES +FLOWS +HOST +PID +UP +RELEASE +JOBBOARD$/)
    expect(row).toMatch(
      /^one +(starting|idle) +0\/3 +0 +0 +large +refused 1\.0, hello 2\.1 +\S+ +\d+ +\d+s +2026-11 +\d+\.\d+\.\d+$/,
    )
    expect(jsonLines((await place.jobboard(['conductors', '--json'])).stdout)).toMatchObject([
      {
        name: 'one',
        pid: conductor.process.pid,
        concurrency: 3,
        running: 0,
        counts: { done: 0, failed: 0, other: 0, workedMs: 0 },
        reportedAt: expect.stringMatching(/Z$/),
        queues: ['large'],
        flows: ['refused', 'hello'],
      },
    ])
    conductor.process.kill('SIGTERM')
    await conductor.ended
  })

  test('conductors: their child processes, and whether these can be started', async () => {
    await using board = await openBoard(place.board)
    const children = ['busy', 'busy', 'idle'].map((state, number) => ({
      number,
      pid: 7 + number,
      state,
      tasks: 2,
      memory: 5e7,
    }))
    await board.registerEntity({ kind: 'conductor', name: 'one', metadata: { children } })
    await board.registerEntity({ kind: 'conductor', name: 'two', metadata: { children: [], noChild: 'no such file' } })
    const [titles, one, two] = (await place.jobboard(['conductors'])).stdout.split('\n')
    expect(titles).toMatch(/^NAME +STATE +RUNS +CHILDREN/)
    expect(one).toContain('2 busy, 1 idle')
    expect(two).toContain('cannot be started')
    const [first, second] = jsonLines((await place.jobboard(['conductors', '--json'])).stdout)
    expect([first, second]).toMatchObject([{ children }, { noChild: 'no such file' }])
  })

  test('the trash: shown, restored and purged, by uuid, by name, by age', async () => {
    const uuids: string[] = []
    for (const name of ['a', 'a', 'b', 'c']) uuids.push(await post('refused', '--name', name))
    await conduct()
    const [first = '', second = '', third = '', fourth = ''] = uuids
    const shown = await place.jobboard(['trash', 'show', first])
    expect(shown.stdout).toMatch(new RegExp(`^job ${first} {2}a {2}TRASHED\n`))
    expect(shown.stdout).toContain('the paper is out')
    expect(jsonLines((await place.jobboard(['trash', 'show', first, '--json'])).stdout)).toMatchObject([
      { uuid: first, state: 'TRASHED', storeKeys: [], attempts: [{ ended: 'failed' }] },
    ])
    expect(await place.jobboard(['trash', 'restore', beginning(third)])).toEqual({
      exitCode: 0,
      stdout: `${third}\n`,
      stderr: '',
    })
    expect((await place.jobboard(['trash', 'restore', '--name', 'a'])).stdout.split('\n').sort()).toEqual(
      ['', first, second].sort(),
    )
    expect(jsonLines((await place.jobboard(['jobs', '--json'])).stdout)).toHaveLength(3)
    expect(await place.jobboard(['trash', 'purge', '--older-than', '1d'])).toEqual({
      exitCode: 0,
      stdout: '',
      stderr: `no matching jobs in the trash of ${place.board}\n`,
    })
    expect((await place.jobboard(['trash', 'purge', '--all'])).stdout).toBe(`${fourth}\n`)
    expect((await place.jobboard(['trash', 'list'])).stdout).toContain('nothing in the trash')
  })

  test('the trash: of one uuid that is there several times the newest is meant, and what is named twice is done once', async () => {
    const uuid = '0199c0de-0000-7000-8000-000000000001'
    for (const reason of ['first', 'second']) {
      await post('hello', '--store', '{"name":"Ada"}', '--uuid', uuid)
      await place.jobboard(['cancel', uuid, '--reason', reason])
    }
    expect((await place.jobboard(['trash', 'show', uuid])).stdout).toContain(': second\n')
    expect(await place.jobboard(['trash', 'restore', uuid, beginning(uuid)])).toEqual({
      exitCode: 0,
      stdout: `${uuid}\n`,
      stderr: '',
    })
    expect((await place.jobboard(['trash', 'list'])).stdout).toContain(': first\n')
    expect((await place.jobboard(['trash', 'purge', uuid])).stdout).toBe(`${uuid}\n`)
    expect((await place.jobboard(['trash', 'list'])).stdout).toContain('nothing in the trash')
  })

  test.each([
    [['cancel', 'nonsense'], 2, 'nonsense is not a uuid; give a uuid, its first 13 characters or more'],
    [['cancel'], 2, 'select jobs by'],
    [['cancel', 'abcdef', '--all'], 2, 'select jobs by'],
    [['wait', 'ab'], 2, 'ab is not a uuid'],
    [['wait', '00000000-0000-7000-8000-000000000000'], 1, 'job 00000000-0000-7000-8000-000000000000 is not on'],
    [['cancel', 'abcdef'], 1, 'a change needs at least 13 characters of a beginning'],
    [['wait', '00000000', '--within', 'soon'], 2, '--within: "soon" is not a duration'],
    [['trash', 'show', 'abcdef'], 1, 'there is no job abcdef in the trash'],
    [['trash', 'purge'], 2, 'select jobs by'],
    [['trash', 'purge', 'abcdef', '--all'], 2, 'select jobs by'],
    [['trash', 'restore', '--name', 'a', '--all'], 2, 'select jobs by'],
    [['trash', 'restore', '--older-than', 'long'], 2, '--older-than: "long" is not a duration'],
  ])('%j is refused in one line', async (args, exitCode, words) => {
    await using _board = await openBoard(place.board)
    expect(complaint(await place.jobboard(args))).toEqual([exitCode, expect.stringContaining(words)])
  })

  test('the beginning of several uuids is refused, and names two', async () => {
    const common = '0199c0de-0000-7000'
    const uuids = [1, 2].map((number) => `${common}-8000-00000000000${number}`)
    for (const uuid of uuids) await post('hello', '--store', '{"name":"Ada"}', '--uuid', uuid)
    const [exitCode, line] = complaint(await place.jobboard(['cancel', common]))
    expect(exitCode).toBe(2)
    for (const uuid of uuids) expect(line).toContain(uuid)
  })
})
