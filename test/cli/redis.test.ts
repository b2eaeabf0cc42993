/** Every command does on Redis what it does elsewhere. */
import { afterAll, beforeAll, expect } from 'vitest'
import { openBoard } from '../../src/index.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { usual as test, variant } from '../variant.ts'
import { createCliFolder, FLOWS, killRemaining } from './workplace.ts'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis({ config: { appendonly: 'yes' } })
})
afterAll(async () => {
  killRemaining()
  await server.stop()
})

variant('post, jobs, conductor, show, trash list', async () => {
  await using place = await createCliFolder({ board: `${server.uri}/0?prefix=cli` })
  await place.write('flows.js', FLOWS)
  expect(await place.jobboard(['jobs'])).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('there is no board'),
  })

  const posted = async (args: readonly string[]) => {
    const { exitCode, stdout, stderr } = await place.jobboard(['post', ...args])
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    return stdout.trim()
  }
  const good = await posted(['hello', '--flows', 'flows.js', '--store', '{"name":"Ada"}', '--priority', 'high'])
  const bad = await posted(['refused', '--max-attempts', '5'])
  // ZooKeeper's credentials are none of Redis' business.
  const table = await place.jobboard(['jobs'], { env: { JOBBOARD_ZOOKEEPER_AUTH: 'ada:secret' } })
  expect(table).toMatchObject({ exitCode: 0, stderr: '' })
  expect(table.stdout).toMatch(new RegExp(`${good}  hello +UNCLAIMED  HIGH .*\\n${bad}  refused  UNCLAIMED`))

  await using board = await openBoard(place.board)
  const ends = await Promise.all([good, bad].map((uuid) => board.find(uuid)))
  const conductor = place.start(['conductor', '--flows', 'flows.js', '--name', 'worker-1', '--concurrency', '2'])
  await conductor.says(`conductor worker-1 runs hello, refused from ${place.board}`)
  expect(await Promise.all(ends.map((job) => job.wait()))).toEqual(['COMPLETE', 'TRASHED'])
  conductor.process.kill('SIGTERM')
  expect((await conductor.ended).exitCode).toBe(0)

  expect((await place.jobboard(['jobs'])).stdout).toBe(`no jobs on ${place.board}\n`)
  expect((await place.jobboard(['show', good])).stdout).toContain(`logbook ${good}  hello  SUCCESS`)
  expect((await place.jobboard(['show', bad])).stdout).toContain(`job ${bad}  refused  TRASHED`)
  expect((await place.jobboard(['trash', 'list'])).stdout).toMatch(
    new RegExp(`${bad}  refused .* worker-1  NonRetryable`),
  )
  expect(await place.jobboard(['doctor'])).toMatchObject({
    exitCode: 0,
    stdout: expect.stringMatching(/all is well\n$/),
  })
})

test('a refused login says where the password goes', async () => {
  const uri = `${server.uri.replace('//', '//ada:wrong@')}/0`
  await using place = await createCliFolder({ board: uri })
  const { exitCode, stderr } = await place.jobboard(['jobs'])
  expect(exitCode).toBe(1)
  expect(stderr).toContain('does not accept the credentials')
  expect(stderr).toContain('user:password in the URI in JOBBOARD_BOARD')
  expect(stderr).not.toContain('wrong')
})

test('the doctor says what a Redis would lose', async () => {
  await using forgetful = await startRedis({ config: { maxmemory: '64mb', 'maxmemory-policy': 'allkeys-lru' } })
  await using place = await createCliFolder({ board: `${forgetful.uri}/0` })
  await using _board = await openBoard(place.board)
  const { exitCode, stdout } = await place.jobboard(['doctor'])
  expect(exitCode).toBe(1)
  expect(stdout).toMatch(/ok +server +Redis \d+\.\d+\.\d+\n/)
  expect(stdout).toMatch(/error +memory .* of 64, and keys are evicted when it is full \(allkeys-lru\)/)
  expect(stdout).toContain('set maxmemory-policy noeviction')
  expect(stdout).toMatch(/warning +disk .*\n.*set appendonly yes/)
})

test('a database that the server does not have is refused: nothing is posted into another', async () => {
  await using place = await createCliFolder({ board: `${server.uri}/99?prefix=none` })
  const { exitCode, stdout, stderr } = await place.jobboard(['post', 'hello'])
  expect([exitCode, stdout]).toEqual([2, ''])
  expect(stderr).toBe(
    `jobboard: ${server.uri}/99?prefix=none: this server has no database 99 (ERR DB index is out of range)\n`,
  )
})

test.each(['redis://127.0.0.1:1/0', 'postgres://ada:secret@127.0.0.1:1/jobs'])(
  '%s: it is said why it cannot be opened',
  async (uri) => {
    await using place = await createCliFolder({ board: uri })
    const { exitCode, stderr } = await place.jobboard(['jobs', '--timeout', '3s'])
    expect([exitCode, stderr]).toEqual([1, expect.stringMatching(/ within 3s: connect ECONNREFUSED 127\.0\.0\.1:1; /)])
    expect(stderr).not.toContain('secret')
  },
)

test('doctor: of a replica, on which no board can be opened, it says what it is', async () => {
  await using replica = await startRedis({ config: { replicaof: `127.0.0.1 ${server.port}` } })
  await using place = await createCliFolder({ board: `${replica.uri}/0?prefix=cli` })
  const { exitCode, stdout } = await place.jobboard(['doctor', '--timeout', '2s'])
  expect(exitCode).toBe(1)
  expect(stdout).toMatch(/^error {4}server .* is a replica, which takes no writes\n.*name the master/)
})
