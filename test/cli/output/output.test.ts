/** What is printed: the shapes of `--json`, and what happens when nobody reads it. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeEach, expect } from 'vitest'
import { openBoard, openPersistence } from '../../../src/index.ts'
import { MAIN } from '../../support/build.ts'
import { usual as test, variant } from '../../variant.ts'
import { type CliFolder, createCliFolder, FLOWS, jsonLines, killRemaining } from '../workplace.ts'

let place: CliFolder

beforeEach(async () => {
  place = await createCliFolder()
  await place.write('flows.js', FLOWS)
})
afterEach(async () => place[Symbol.asyncDispose]())
afterAll(killRemaining)

const INSTANT = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

test('jobs --json, post --json and show --json', async () => {
  const post = await place.jobboard([
    'post',
    'hello',
    '--flows',
    'flows.js',
    '--store',
    '{"name":"hunter2"}',
    '--name',
    'a\u009b\u202ename',
    '--json',
  ])
  const [posted] = jsonLines(post.stdout) as [{ uuid: string }]
  const { uuid } = posted
  const job = {
    uuid,
    name: 'a\u009b\u202ename',
    state: 'UNCLAIMED',
    flow: 'hello',
    version: '2.1',
    priority: 'NORMAL',
    runs: 0,
    maxAttempts: 3,
    postedAt: INSTANT,
  }
  expect(posted).toEqual({ ...job, created: true })
  expect(post.stdout).toContain(String.raw`"name":"a\u009b\u202ename"`)

  await using board = await openBoard(place.board, { who: 'somebody' })
  await using claim = await board.claim(await board.find(uuid))
  const jobs = await place.jobboard(['jobs', '--json'])
  const claimed = { ...job, state: 'CLAIMED', owner: 'somebody', runs: 1 }
  expect(jsonLines(jobs.stdout)).toEqual([claimed])

  await place.write('logbooks/here', '')
  const show = await place.jobboard(['show', uuid, '--json'])
  expect(jsonLines(show.stdout)).toEqual([
    {
      uuid,
      job: {
        ...claimed,
        ...{ storeKeys: ['name'], attempts: [{ who: 'somebody', at: INSTANT }], failedAttempts: 0 },
        ref: expect.stringMatching(`^${uuid}\\.job\\d+$`),
        postedBy: expect.stringMatching(/:\d+$/),
      },
      logbook: null,
    },
  ])
  expect(claim.lost.aborted).toBe(false)
  expect([post, jobs, show].map(({ stdout, stderr }) => stdout + stderr).join()).not.toContain('hunter2')
})

test('show: a job whose flow is done, and which was trashed before it was consumed, is in the trash', async () => {
  const uuid = (await place.jobboard(['post', 'other'])).stdout.trim()
  await using board = await openBoard(place.board)
  {
    await using persistence = await openPersistence(place.persistence)
    const flow = { uuid, name: 'other', version: '1.0' }
    await using log = await persistence.acquire({ book: { uuid, name: 'other' }, flow, run: 1, claim: 'c' })
    await log.write({ state: 'RUNNING' })
    await log.write({ state: 'SUCCESS' })
  }
  await board.cancel(await board.find(uuid), { reason: 'too late' })
  const [shown] = jsonLines((await place.jobboard(['show', uuid, '--json'])).stdout)
  expect(shown).toMatchObject({ job: { uuid, state: 'TRASHED' }, logbook: { state: 'SUCCESS' } })
})

test('show says all that was posted, and why the job waits', async () => {
  await using board = await openBoard(place.board)
  const shared = { exclusive: ['disk'], shared: ['room', 'tape'] }
  const job = await board.post(
    'hello',
    {},
    {
      ...{
        key: 'k',
        resources: shared,
        limits: ['api', { key: 'mail', cost: 3 }],
        delay: '1h',
        expiresAfter: '2h',
        deadline: '5m',
        onOwnerLost: 'fail',
      },
      backOff: { first: '2s', factor: 3, max: '1m', jitter: 'none' },
    },
  )
  const { stdout } = await place.jobboard(['show', job.uuid])
  for (const line of [
    /^ *because +it rests until \d{4}-.*Z$/m,
    /^ *key +k$/m,
    /^ *posted +\d{4}-.*Z by \S+:\d+$/m,
    new RegExp(`^ *reference +${job.ref.replace('.', '\\.')}$`, 'm'),
    /^ *exclusive +disk$/m,
    /^ *shared +room, tape$/m,
    /^ *limits +api, mail \(3\)$/m,
    /^ *delayed +until \d{4}-.*Z$/m,
    /^ *expires +\d{4}-.*Z, if nobody has started it$/m,
    /^ *deadline +5m$/m,
    /^ *back-off +first 2s, × 3, at most 1m, no jitter$/m,
    /trashed at 3 failures, or when its owner is lost$/m,
  ])
    expect(stdout).toMatch(line)
  const [report] = jsonLines((await place.jobboard(['show', job.uuid, '--json'])).stdout)
  expect(report).toMatchObject({
    job: {
      ...{
        key: 'k',
        ref: job.ref,
        postedBy: board.who,
        resources: shared,
        deadline: 300_000,
        onOwnerLost: 'fail',
        delayedUntil: INSTANT,
        expiresAt: INSTANT,
      },
      limits: [
        { key: 'api', cost: 1 },
        { key: 'mail', cost: 3 },
      ],
      backOff: { first: 2_000, factor: 3, max: 60_000, jitter: 'none' },
      waitingFor: { kind: 'delay' },
    },
  })
})

test('trash list --json, and show --json of what is in the trash or done', async () => {
  const uuids = await Promise.all(
    [['refused'], ['hello', '--store', '{"name":"Ada"}']].map(async (args) => {
      return (await place.jobboard(['post', ...args])).stdout.trim()
    }),
  )
  const [bad = '', good = ''] = uuids
  await using board = await openBoard(place.board)
  const jobs = await Promise.all(uuids.map((uuid) => board.find(uuid)))
  const conductor = place.start(['conductor', '--flows', 'flows.js', '--name', 'worker'])
  await Promise.all(jobs.map((job) => job.wait()))
  conductor.process.kill('SIGTERM')
  await conductor.ended

  const failure = { name: 'NonRetryable', message: 'the paper\nis out', code: 'JOBBOARD_NON_RETRYABLE' }
  const trashed = {
    uuid: bad,
    name: 'refused',
    state: 'TRASHED',
    flow: 'refused',
    by: 'worker',
    at: INSTANT,
    reason: expect.stringContaining('the paper'),
    failure,
  }
  expect(jsonLines((await place.jobboard(['trash', 'list', '--json'])).stdout)).toEqual([trashed])
  expect(jsonLines((await place.jobboard(['jobs', '--json'])).stdout)).toEqual([])

  const took = { startedAt: INSTANT, milliseconds: expect.any(Number) }
  const atom = { kind: 'task', updatedAt: INSTANT, ...took }
  const book = (uuid: string, name: string) => ({
    uuid,
    name,
    flow: name,
    run: 1,
    createdAt: INSTANT,
    updatedAt: INSTANT,
    ...took,
  })
  expect(jsonLines((await place.jobboard(['show', bad, '--json'])).stdout)).toEqual([
    {
      uuid: bad,
      job: {
        ...trashed,
        storeKeys: [],
        attempts: [expect.objectContaining({ who: 'worker', ended: 'failed' })],
        failedAttempts: 1,
      },
      logbook: {
        ...book(bad, 'refused'),
        version: '1.0',
        state: 'REVERTED',
        atoms: [{ ...atom, name: 'refuse', state: 'REVERTED', failure }],
      },
    },
  ])
  expect(jsonLines((await place.jobboard(['show', good, '--json'])).stdout)).toEqual([
    {
      uuid: good,
      logbook: {
        ...book(good, 'hello'),
        version: '2.1',
        state: 'SUCCESS',
        atoms: ['greet', 'print'].map((name) => ({ ...atom, name, state: 'SUCCESS' })),
      },
    },
  ])
})

test('filters, and the order of priorities', async () => {
  for (const args of [['low', '--priority', 'LOW', '--queue', 'bulk'], ['high', '--priority', 'HIGH'], ['plain']]) {
    await place.jobboard(['post', ...args])
  }
  const names = async (...args: string[]) => {
    const { stdout } = await place.jobboard(['jobs', '--json', ...args])
    return (jsonLines(stdout) as { name: string }[]).map(({ name }) => name)
  }
  expect(await names()).toEqual(['high', 'plain', 'low'])
  expect(await names('--priority', 'low')).toEqual(['low'])
  expect(await names('--queue', 'default')).toEqual(['high', 'plain'])
  expect(await names('--name', 'plain', '--unclaimed')).toEqual(['plain'])
  await using board = await openBoard(place.board, { who: 'owner one' })
  for await (const job of board.jobs({ name: 'plain' })) await board.claim(job)
  expect(await names('--state', 'claimed')).toEqual(['plain'])
  expect(await names('--state', 'UNCLAIMED', '--limit', '1')).toEqual(['high'])
  expect(await names('--owner', 'owner one')).toEqual(['plain'])
  expect(await names('--owner', 'owner')).toEqual([])
  expect(await names('--flow', 'plain')).toEqual(['plain'])
  expect(await names('--flow', 'other')).toEqual([])
})

variant('a reader that goes away ends it without a word', async () => {
  const script = '{ "$NODE" "$MAIN" --help; echo "code $?" >&2; } | true'
  const env = { ...process.env, NODE: process.execPath, MAIN }
  const { stderr } = await promisify(execFile)('/bin/sh', ['-c', script], { env })
  expect(stderr).toBe('code 0\n')

  await using board = await openBoard(place.board)
  await Promise.all(
    Array.from({ length: 600 }, (_, number) => board.post('many', {}, { name: `${number}`.repeat(50) })),
  )
  const jobs = place.start(['jobs', '--json'])
  jobs.process.stdout.destroy()
  expect(await jobs.ended).toMatchObject({ exitCode: 0, stderr: '' })
})

variant('a conductor goes on when its output is not read', async () => {
  await using board = await openBoard(place.board)
  const job = await board.post('hello', { name: 'Ada' })
  const conductor = place.start(['conductor', '--flows', 'flows.js', '--log-level', 'silent'])
  conductor.process.stdout.destroy()
  expect(await job.wait()).toBe('COMPLETE')
  conductor.process.kill('SIGTERM')
  expect(await conductor.ended).toMatchObject({ exitCode: 0, stderr: '' })
})

test('output that cannot be written is a failure', async () => {
  const child = spawn('/bin/sh', ['-c', 'exec "$0" "$1" --help > /dev/full', process.execPath, MAIN])
  const [stderr, [exitCode]] = await Promise.all([text(child.stderr), once(child, 'close')])
  expect(stderr).toMatch(/^jobboard: the output cannot be written: .*ENOSPC.*\n$/)
  expect(exitCode).toBe(1)
})
