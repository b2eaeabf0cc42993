/** The life of jobs from the command line, with the real program and real servers. */
import { afterAll, expect } from 'vitest'
import { redactUri } from '../../src/core/uri.ts'
import { openBoard } from '../../src/index.ts'
import { createDatabase } from '../support/postgres-database.ts'
import { usual as test, testRows, variant } from '../variant.ts'
import { type CliFolder, createCliFolder, FLOWS, jsonLines, killRemaining } from './workplace.ts'

afterAll(killRemaining)

testRows([['ZooKeeper'], ['Postgres']], ([kind]) => kind === 'ZooKeeper')(
  'post, jobs, conductor, show, trash list, on %s',
  async (kind) => {
    await using server = kind === 'Postgres' ? await createDatabase() : undefined
    await using place = await createCliFolder(server ? { board: `${server.uri}?board=cli` } : {})
    const printed = redactUri(place.board)
    await place.write('flows.js', FLOWS)

    const good = await posted(place, [
      'hello',
      '--flows',
      'flows.js',
      '--store',
      '{"name":"Ada"}',
      '--priority',
      'high',
    ])
    const bad = await posted(place, ['refused', '--name', 'to be\nrefused', '--max-attempts', '5', '--size', 'LARGE'])

    const table = await place.jobboard(['jobs'])
    expect(table).toMatchObject({ exitCode: 0, stderr: '' })
    const [titles, first, second, ...rest] = table.stdout.trimEnd().split('\n')
    expect(titles).toMatch(/^UUID +NAME +STATE +QUEUE +PRIORITY +RUNS +AGE +OWNER$/)
    expect(first).toMatch(new RegExp(`^${good}  hello +UNCLAIMED  default +HIGH +0 +\\d+s +-$`))
    expect(second).toMatch(new RegExp(`^${bad}  to be\\\\nrefused  UNCLAIMED  large +NORMAL +0 +\\d+s +-$`))
    expect(rest).toEqual([])

    const waiting = await place.jobboard(['show', good])
    expect(waiting).toMatchObject({ exitCode: 0, stderr: expect.stringContaining('no logbooks in directory:') })
    expect(waiting.stdout).toContain('no logbook: no run of it has begun')

    await using board = await openBoard(place.board)
    const ends = await Promise.all([good, bad].map((uuid) => board.find(uuid)))
    const conductor = place.start(['conductor', '--flows', 'flows.js', '--name', 'worker-1', '--concurrency', '2'])
    await conductor.says(`conductor worker-1 runs hello, refused from ${printed}, logbooks in ${place.persistence}`)
    expect(await Promise.all(ends.map((job) => job.wait()))).toEqual(['COMPLETE', 'TRASHED'])
    conductor.process.kill('SIGTERM')
    const stopped = await conductor.ended
    expect(stopped.exitCode).toBe(0)
    // Others see a job leave the board a moment before its slot is free here.
    expect(stopped.stdout).toMatch(
      /^conductor worker-1 runs .*; Ctrl-C stops it\nconductor worker-1 (stops; nothing runs|claims nothing more .*)\n$/,
    )
    const logged = stopped.stderr
      .trim()
      .split('\n')
      .map((line): { msg: string; job?: string } => JSON.parse(line))
    expect(logged.map(({ msg }) => msg)).toEqual(expect.arrayContaining(['conductor started', 'conductor stopped']))
    expect(
      logged
        .filter(({ msg }) => msg.startsWith('job '))
        .map(({ job }) => job)
        .sort(),
    ).toEqual([good, bad].sort())

    expect(await place.jobboard(['jobs'])).toEqual({ exitCode: 0, stdout: `no jobs on ${printed}\n`, stderr: '' })

    const done = await place.jobboard(['show', good])
    expect(done).toMatchObject({ exitCode: 0, stderr: '' })
    expect(done.stdout).toContain(`job ${good} has left the board; this is what its logbook says`)
    expect(done.stdout).toContain(`logbook ${good}  hello  SUCCESS\n  flow      hello 2.1\n  run       1\n`)
    expect(done.stdout).toMatch(/^greet {2}SUCCESS {2}/m)
    expect(done.stdout).toMatch(/^print {2}SUCCESS {2}/m)

    const drawn = await place.jobboard(['show', good, '--graph', '--flows', 'flows.js'])
    expect(drawn).toMatchObject({ exitCode: 0, stderr: '' })
    expect(drawn.stdout).toMatch(
      /^flowchart TD\n {2}n0\["greet"\]:::SUCCESS\n {2}n1\["print"\]:::SUCCESS\n {2}n0 --> n1\n/,
    )
    const dot = await place.jobboard(['show', good, '--graph', '--flows', 'flows.js', '--format', 'dot'])
    expect(dot.stdout).toContain('tooltip="SUCCESS"')
    const withoutCode = await place.jobboard(['show', good, '--graph'])
    // Conductors have written the flow to the board.
    expect(withoutCode).toMatchObject({ exitCode: 0, stdout: drawn.stdout })

    const trashed = await place.jobboard(['show', bad])
    expect(trashed.exitCode).toBe(0)
    expect(trashed.stdout).toContain(`job ${bad}  to be\\nrefused  TRASHED\n`)
    expect(trashed.stdout).toMatch(/^ {2}reason +NonRetryable: the paper.+is out$/m)
    expect(trashed.stdout).toMatch(/^refuse +REVERTED .*NonRetryable: the paper/m)

    const list = await place.jobboard(['trash', 'list'])
    expect(list).toMatchObject({ exitCode: 0, stderr: '' })
    expect(list.stdout).toMatch(
      new RegExp(
        `^UUID +NAME +QUEUE +AGE +BY +REASON\n${bad}  to be\\\\nrefused  large +\\d+s +worker-1  NonRetryable`,
      ),
    )
  },
)

test('a job that waits, and one that runs', async () => {
  await using place = await createCliFolder()
  await place.write('flows.js', FLOWS)
  const uuid = await posted(place, ['hello', '--store', '{"name":"Ada","secret":"hunter2"}'])
  await using board = await openBoard(place.board, { who: 'somebody' })
  const waiting = await place.bare(['show', uuid, '--board', place.board])
  expect(waiting.stdout).toContain(`job ${uuid}  hello  UNCLAIMED\n  flow      hello\n  store     name, secret\n`)
  expect(waiting.stdout).not.toContain('hunter2')

  await using claim = await board.claim(await board.find(uuid))
  const running = await place.bare(['--board', place.board, 'show', uuid])
  expect(running.stdout).toContain(`job ${uuid}  hello  CLAIMED\n`)
  expect(running.stdout).toContain('  owner     somebody\n')
  expect(running.stdout).toMatch(/^\S+Z +somebody +running +-$/m)
  expect((await place.jobboard(['jobs', '--unclaimed'])).stdout).toBe(`no jobs on ${place.board}\n`)

  await claim.abandon({ failed: true, reason: 'no paper' })
  const failed = await place.bare(['--board', place.board, 'show', uuid])
  expect(failed.stdout).toMatch(/^\S+Z +somebody +failed +no paper$/m)
})

variant('two signals stop a conductor whose task takes no end, and the job goes back', async () => {
  await using place = await createCliFolder()
  await place.write(
    'endless.js',
    `import { input, linear, task } from 'jobboard'
     const wait = task('wait', { execute: (_, ctx) => new Promise((_, reject) => {
       console.log('running')
       ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason))
     }) })
     export const endless = linear('endless', input(), wait)`,
  )
  const uuid = await posted(place, ['endless'])
  const conductor = place.start(['conductor', '--flows', './endless.js', '--drain-timeout', '1h'])
  await conductor.says('running')
  conductor.process.kill('SIGINT')
  // As npm passes it on: the same key, pressed once.
  conductor.process.kill('SIGINT')
  await conductor.says('claims nothing more and waits up to 1h for 1 job; Ctrl-C again gives it back')
  conductor.process.kill('SIGTERM')
  await conductor.says('gives 1 job back to the board')
  expect((await conductor.ended).exitCode).toBe(0)
  const [job] = jsonLines((await place.jobboard(['jobs', '--json'])).stdout)
  expect(job).toMatchObject({ uuid, state: 'UNCLAIMED', runs: 1 })
  const { stdout } = await place.jobboard(['show', uuid])
  expect(stdout).toMatch(/^wait +RUNNING/m)
  expect(stdout).toMatch(
    /^no run is active: its last owner was stopped\. .*; wait was stopped in the middle and begins again$/m,
  )
})

test('the store can come on standard input', async () => {
  await using place = await createCliFolder()
  await place.write('flows.js', FLOWS)
  const args = ['post', 'hello', '--flows', 'flows.js', '--store', '-']
  expect(await place.jobboard(args, { stdin: '{"name":"Ada"}' })).toMatchObject({ exitCode: 0, stderr: '' })
})

async function posted(place: CliFolder, args: readonly string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await place.jobboard(['post', ...args])
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  expect(stdout).toMatch(/^[0-9a-f-]{36}\n$/)
  return stdout.trim()
}

variant('a conductor that ends by itself, serves a size, and answers how it is', async () => {
  await using place = await createCliFolder()
  await place.write('flows.js', FLOWS)
  const small = await posted(place, ['hello', '--flows', 'flows.js', '--store', '{"name":"Ada"}', '--size', 'small'])
  const medium = await posted(place, ['hello', '--flows', 'flows.js', '--store', '{"name":"Bob"}'])
  const jobsOf = ({ stderr }: { stderr: string }) =>
    stderr
      .trim()
      .split('\n')
      // Sizes are deprecated, as a warning of Node.js says.
      .filter((line) => line.startsWith('{'))
      .flatMap((line) => (JSON.parse(line) as { job?: string }).job ?? [])
  const burst = await place.spawned([
    'conductor',
    '--flows',
    'flows.js',
    '--burst',
    '--size',
    'small',
    '--size',
    'large',
  ])
  expect([burst.exitCode, jobsOf(burst)]).toEqual([0, [small]])
  const one = await place.spawned(['conductor', '--flows', 'flows.js', '--max-jobs', '1', '--max-idle-time', '1h'])
  expect([one.exitCode, jobsOf(one)]).toEqual([0, [medium]])

  const idle = place.start(['conductor', '--flows', 'flows.js', '--health', '0'])
  await idle.says('health at ')
  idle.process.kill('SIGTERM')
  const { exitCode, stdout } = await idle.ended
  expect(exitCode).toBe(0)
  expect(stdout).toMatch(/, health at http:\/\/127\.0\.0\.1:\d+\/healthz; Ctrl-C stops it\n/)
})
