/** `jobboard post --from`: a job for each line, and one line about each that is refused. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest'
import { type JobBoard, openBoard } from '../../src/index.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { usual as test, variant } from '../variant.ts'
import { type CliFolder, createCliFolder, FLOWS, jsonLines, type Outcome } from './workplace.ts'

let server: RedisServer
let place: CliFolder
let board: JobBoard
let boards = 0

beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

beforeEach(async () => {
  boards += 1
  const uri = `${server.uri}/0?prefix=lines${boards}`
  place = await createCliFolder({ board: uri })
  board = await openBoard(uri)
})
afterEach(async () => {
  await board.close()
  await place[Symbol.asyncDispose]()
})

async function names(): Promise<string[]> {
  const found: string[] = []
  for await (const { name } of board.jobs({ ensureFresh: true })) found.push(name)
  return found
}

async function postLines(lines: readonly unknown[], ...flags: string[]): Promise<Outcome> {
  await place.write(
    'jobs.ndjson',
    lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n'),
  )
  return place.jobboard(['post', '--from', 'jobs.ndjson', ...flags])
}

function byLine(a: unknown, b: unknown): number {
  return Object(a).line - Object(b).line
}

test('each line is a job, with its own options or those of the command line', async () => {
  const lines = [
    { flow: 'hello', name: 'a', priority: 'LOW' },
    '',
    { name: 'b', store: { n: 1 }, delay: '1h', expiresAfter: '2h', limits: ['api'] },
  ]
  const outcome = await postLines(lines, 'tidy', '--priority', 'HIGH')
  expect(outcome).toEqual({ exitCode: 0, stdout: '2 posted\n', stderr: '' })
  const jobs = []
  for await (const job of board.jobs({ ensureFresh: true })) jobs.push(job)
  expect(jobs.map(({ expiresAt }) => expiresAt !== undefined)).toEqual([true, false])
  expect(jobs.map(({ name, priority, details }) => [name, priority, details['flow']])).toEqual([
    ['b', 'HIGH', 'tidy'],
    ['a', 'LOW', 'hello'],
  ])
})

test('a line that is refused is named, and written to --rejects, and the others are posted', async () => {
  const lines = Array.from({ length: 3_000 }, (_, n) => ({ flow: 'hello', name: `${n}` }) as unknown)
  lines[1] = '{"flow":'
  lines[699] = { flow: 'hello', priority: 'TOP' }
  lines[700] = { name: 'without a flow' }
  lines[701] = [7]
  lines[702] = { flow: 'hello', prio: 'HIGH' }
  const big = { flow: 'hello', store: { text: 'x'.repeat(9 * 1_024 * 1_024) } }
  lines[2_999] = big
  const outcome = await postLines(lines, '--rejects', 'rest.ndjson')
  expect(outcome.exitCode).toBe(1)
  expect(outcome.stdout).toBe('2994 posted, 6 not posted\n')
  const said = outcome.stderr.trim().split('\n').sort()
  expect(said.map((line) => line.replace(/^line (\d+): .*/, '$1')).sort()).toEqual([
    '2',
    '3000',
    '700',
    '701',
    '702',
    '703',
  ])
  expect(outcome.stderr).toContain('line 2: ')
  expect(outcome.stderr).toContain('it is not JSON')
  expect(outcome.stderr).toContain('line 701: it names no flow: add "flow" to it, or give one for all lines')
  expect(outcome.stderr).toMatch(/line 703: .*no option "prio"; there are name, /)
  const rest = await readFile(join(place.cwd, 'rest.ndjson'), 'utf8')
  expect(rest).toContain('{"flow":\n')
  expect(rest).toContain('"prio":"HIGH"')
  expect(await board.countJobs()).toBe(2_994)
})

test('a call that goes on adds its lines to --rejects, and another one replaces them', async () => {
  const lines = ['{"flow":', { flow: 'hello' }, '[1]']
  const rest = () => readFile(join(place.cwd, 'rest.ndjson'), 'utf8')
  await postLines(lines.slice(0, 1), '--rejects', 'rest.ndjson')
  await postLines(lines, '--rejects', 'rest.ndjson', '--from-line', '2')
  expect(await rest()).toBe('{"flow":\n[1]\n')
  await postLines(lines, '--rejects', 'rest.ndjson')
  expect(await rest()).toBe('{"flow":\n[1]\n')
  await postLines([{ flow: 'hello' }], '--rejects', 'rest.ndjson')
  expect(await rest()).toBe('')
})

test('standard input is read, and --json prints a line for each job', async () => {
  const stdin = '{"flow":"hello","key":"a"}\r\n{"flow":"hello","key":"a"}\n'
  const { exitCode, stdout } = await place.jobboard(['post', '--from', '-', '--json'], { stdin })
  expect(exitCode).toBe(0)
  const printed = jsonLines(stdout) as { line: number; uuid: string; created: boolean }[]
  expect(printed.map(({ line }) => line).sort()).toEqual([1, 2])
  expect(new Set(printed.map(({ uuid }) => uuid)).size).toBe(1)
  expect(printed.filter(({ created }) => created)).toHaveLength(1)
})

test('a second call leaves out what is on the board: by key, by uuid, or by the number of the line', async () => {
  const uuid = '0190a9c0-0000-7000-8000-000000000001'
  const lines = [
    { flow: 'hello', name: 'key', key: 'k' },
    { flow: 'hello', name: 'uuid', uuid },
    { flow: 'hello', name: 'last' },
  ]
  await postLines(lines)
  expect((await postLines(lines.slice(0, 2), '--resume')).stdout).toBe('0 posted, 2 on the board already\n')
  expect((await postLines(lines, '--from-line', '3')).stdout).toBe('1 posted\n')
  expect(await postLines(lines, '--from-line', '4')).toMatchObject({ exitCode: 0, stdout: '0 posted\n', stderr: '' })
  const behind = { exitCode: 1, stdout: '0 posted\n', stderr: '--from-line 5 is behind the end: there are 3 lines\n' }
  expect(await postLines(lines, '--from-line', '5')).toMatchObject(behind)
  expect((await names()).sort()).toEqual(['key', 'last', 'last', 'uuid'])
})

test('a line can have a key with a window, or that replaces; the last line says how many did', async () => {
  const key = { name: 'sync', on: 'replace' }
  const lines = [
    { flow: 'hello', name: 'first', key },
    { flow: 'hello', name: 'done', key: { name: 'import', for: '1h' } },
  ]
  await postLines(lines)
  const [claim] = await board.claimNext({ accept: ({ name }) => name === 'done' })
  await claim.consume()
  const again = await postLines(
    [{ ...lines[0], name: 'second' }, lines[1], { flow: 'hello', key: { nme: 'x' } }],
    '--json',
  )
  expect(jsonLines(again.stdout).sort(byLine)).toEqual([
    expect.objectContaining({ line: 1, created: false, because: 'waiting', replaced: true }),
    { line: 2, uuid: claim.job.uuid, created: false, because: 'window' },
  ])
  expect(again.stderr).toMatch(/line 3: .*key has no option "nme"/)
  expect(await names()).toEqual(['second'])
  expect((await postLines(lines)).stdout).toBe('0 posted, 1 replaced, 1 in the window of their key\n')
})

test('with --flows each store is checked against the inputs of its flow', async () => {
  await place.write('flows.js', FLOWS)
  const lines = [{ flow: 'hello', store: { name: 'Ada' } }, { flow: 'hello' }, { flow: 'helo', store: {} }]
  const outcome = await postLines(lines, '--flows', 'flows.js')
  expect(outcome.stdout).toBe('1 posted, 2 not posted\n')
  expect(outcome.stderr).toMatch(/line 2: .*name/)
  expect(outcome.stderr).toMatch(/line 3: .*helo/)
})

test('the same error of many lines is said a few times', async () => {
  const lines = Array.from({ length: 20 }, () => ({ flow: 'hello', prio: 'HIGH' }))
  const outcome = await postLines([...lines, { store: {}, flow: '' }])
  expect(outcome.stdout).toBe('0 posted, 21 not posted\n')
  const said = outcome.stderr.trim().split('\n')
  expect(said.filter((line) => line.includes('no option "prio"'))).toHaveLength(5)
  expect(said.filter((line) => line === 'further lines with this error are only counted')).toHaveLength(1)
  expect(said.filter((line) => line.startsWith('line 21: '))).toHaveLength(1)
})

test('a byte order mark and CRLF are no part of a line; one that is not UTF-8 is refused as it is', async () => {
  const file = join(place.cwd, 'jobs.ndjson')
  const latin = Buffer.from('{"flow":"hello","name":"caf\u00e9"}\r\n', 'latin1')
  await writeFile(file, Buffer.concat([Buffer.from('\uFEFF{"flow":"hello","name":"a"}\r\n\r\n'), latin]))
  const outcome = await place.jobboard(['post', '--from', 'jobs.ndjson', '--rejects', 'rest.ndjson'])
  expect(outcome).toMatchObject({ exitCode: 1, stdout: '1 posted, 1 not posted\n' })
  expect(outcome.stderr).toBe('line 3: it is not UTF-8: convert the file\n')
  expect(await names()).toEqual(['a'])
  expect(await readFile(join(place.cwd, 'rest.ndjson'))).toEqual(latin)
})

test('a source that cannot be read to its end says where to go on; a folder is refused', async () => {
  async function* pieces() {
    yield Buffer.from('{"flow":"hello","name":"a"}\n{"flow":"hel')
    throw new Error('the disk is gone')
  }
  expect(await place.jobboard(['post', '--from', '-'], { pieces: pieces() })).toEqual({
    exitCode: 1,
    stdout: '1 posted\n',
    stderr: '--from - cannot be read: the disk is gone: all lines before 2 were answered; go on with --from-line 2\n',
  })
  expect(await names()).toEqual(['a'])
  const folder = await place.jobboard(['post', '--from', '.'])
  expect(folder).toMatchObject({ exitCode: 2, stderr: 'jobboard: --from . cannot be read: it is a folder\n' })
})

test('an interruption says where to go on', async () => {
  const lines = Array.from({ length: 5_000 }, () => ({ flow: 'hello' }))
  await place.write('jobs.ndjson', lines.map((line) => JSON.stringify(line)).join('\n'))
  const interrupt = new AbortController()
  const going = board.wait().then(() => interrupt.abort())
  const outcome = await place.jobboard(['post', '--from', 'jobs.ndjson'], { interrupt: interrupt.signal })
  await going
  const next = Number(/--from-line (\d+)/.exec(outcome.stderr)?.[1] ?? 5_001)
  expect(await board.countJobs()).toBe(next - 1)
})

test('an interruption ends the wait for standard input', async () => {
  const going = place.start(['post', '--from', '-'])
  going.process.stdin.write('{"flow":"hello"}\n')
  await board.wait()
  going.process.kill('SIGINT')
  const { exitCode, stderr } = await going.ended
  expect([exitCode, stderr]).toEqual([130, 'interrupted: all lines before 2 were answered; go on with --from-line 2\n'])
})

variant('a reader of the output that is gone does not make the call complete', async () => {
  await place.write('jobs.ndjson', '{"flow":"hello"}\n'.repeat(20_000))
  const going = place.start(['post', '--from', 'jobs.ndjson', '--json'])
  going.process.stdout.destroy()
  const { exitCode, stderr } = await going.ended
  const next = Number(/: all lines before (\d+) were answered/.exec(stderr)?.[1])
  expect([exitCode, await board.countJobs()]).toEqual([1, next - 1])
  expect(next).toBeLessThan(20_000)
})

variant('with --resume, no line is left out when the board is gone', async () => {
  await using away = await startRedis()
  await using other = await createCliFolder({ board: `${away.uri}/0` })
  const uuid = (n: number) => `0190a9c0-0000-7000-8000-${String(n).padStart(12, '0')}`
  const lines = Array.from({ length: 30_000 }, (_, n) => JSON.stringify({ flow: 'hello', uuid: uuid(n) }))
  await other.write('jobs.ndjson', lines.join('\n'))
  const going = other.start(['post', '--from', 'jobs.ndjson', '--resume', '--json'])
  await going.says('"line":3')
  await away.stop()
  const { exitCode, stdout, stderr } = await going.ended
  expect(exitCode).toBe(1)
  const answered = [
    ...(jsonLines(stdout) as { line: number }[]).map(({ line }) => line),
    ...[...stderr.matchAll(/^line (\d+): /gm)].map(([, line]) => Number(line)),
  ]
  const next = Number(/go on with --from-line (\d+)/.exec(stderr)?.[1])
  expect(answered.sort((a, b) => a - b)).toEqual(Array.from({ length: next - 1 }, (_, index) => index + 1))
})

test('--rejects is opened before anything is posted, and is never the file that is read', async () => {
  const same = await postLines([{ flow: 'hello' }, '{"flow":'], '--rejects', './jobs.ndjson')
  expect(same).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('is the file that --from reads') })
  const none = await postLines([{ flow: 'hello' }, '{"flow":'], '--rejects', 'none/rest.ndjson')
  expect(none).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('cannot be written: ENOENT') })
  expect(await readFile(join(place.cwd, 'jobs.ndjson'), 'utf8')).toContain('"hello"')
  expect(await board.countJobs()).toBe(0)
  const full = await postLines(['{"flow":'], '--rejects', '/dev/full')
  expect(full).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('cannot be written: ENOSPC') })
})

test.each([
  [['post'], 'name the flow'],
  [['post', '--from', 'none.ndjson'], 'cannot be read'],
  [['post', 'hello', '--rejects', 'x'], '--rejects needs --from FILE'],
  [['post', '--from', '-', '--key', 'a'], '--key is for one job'],
  [['post', '--from', '-', '--key-for', '1h'], '--key-for is for one job'],
  [['post', 'hello', '--key-for', '1h'], '--key-for needs --key'],
  [['post', 'hello', '--key-on', 'replace'], '--key-on needs --key'],
  [['post', 'hello', '--key', 'a', '--key-on', 'again'], '--key-on must be'],
  [['post', 'hello', '--key', 'a', '--key-for', 'soon'], '--key-for'],
])('%j is refused', async (args, complaint) => {
  const outcome = await place.jobboard(args)
  expect(outcome.exitCode).toBe(2)
  expect(outcome.stderr).toContain(complaint)
})

test('a line that the board refuses by its state is refused alone', async () => {
  const trashed = await board.post('hello', {})
  await (await board.claim(trashed)).trash()
  const batch = await board.batch({ name: 'sealed' })
  await batch.seal()
  const lines = [{ name: 'a' }, { name: 'b', after: [trashed.uuid] }, { name: 'c', batch: batch.uuid }, { name: 'd' }]
  const outcome = await postLines(lines, 'hello', '--rejects', 'rest.ndjson')
  expect(outcome).toMatchObject({ exitCode: 1, stdout: '2 posted, 2 not posted\n' })
  expect(outcome.stderr).toMatch(/^line 2: .* is in the trash.*$/m)
  expect(outcome.stderr).toMatch(/^line 3: .* is sealed.*$/m)
  expect(await names()).toEqual(['a', 'd'])
})
