/** The command line on boards that are not for everybody: credentials by URI and by environment, TLS by URI. */
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { afterAll, afterEach, beforeEach, describe, expect } from 'vitest'
import { createAuthority } from '../support/certificates.ts'
import { zookeeperHosts } from '../support/namespace.ts'
import { startSecureZooKeeper } from '../support/zookeeper-secure.ts'
import { usual as test, variant } from '../variant.ts'
import { type CliFolder, createCliFolder, FLOWS, killRemaining } from './workplace.ts'

let place: CliFolder

beforeEach(async () => {
  place = await createCliFolder()
  await place.write('flows.js', FLOWS)
})
afterEach(async () => place[Symbol.asyncDispose]())
afterAll(killRemaining)

const ADA = { JOBBOARD_ZOOKEEPER_AUTH: 'ada:hunter2' }

describe.skipIf(!zookeeperHosts)('a board of one user', () => {
  test('is theirs, by environment as by URI, and closed to others', async () => {
    const posted = await place.jobboard(['post', 'hello', '--name', 'mine'], { env: ADA })
    expect(posted).toMatchObject({ exitCode: 0, stderr: '' })
    const board = place.board.replace('zookeeper://', 'zookeeper://ada:hunter2@')
    const byUri = await place.jobboard(['jobs'], { env: { JOBBOARD_BOARD: board } })
    expect(byUri).toMatchObject({ exitCode: 0, stderr: '' })
    expect(byUri.stdout).toContain('mine')

    for (const env of [{}, { JOBBOARD_ZOOKEEPER_AUTH: 'ada:hunter3' }]) {
      for (const args of [['jobs'], ['trash', 'list'], ['post', 'hello']]) {
        const { exitCode, stdout, stderr } = await place.jobboard(args, { env })
        expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
        expect(stderr).toContain('; on a command line, user:password in JOBBOARD_ZOOKEEPER_AUTH')
        const given = Object.keys(env).length > 0
        expect(stderr).toContain(given ? 'wrong user or password?' : 'no credentials were given')
        expect(stderr).toMatch(
          /^jobboard: opening zookeeper:.*: the ACL does not allow it; open the board with [^\n]+\n$/,
        )
      }
    }
    const verbose = await place.jobboard(['jobs', '--verbose'], { env: { JOBBOARD_ZOOKEEPER_AUTH: 'ada:hunter3' } })
    expect(verbose.stderr).toContain('caused by NoAuth')
    expect(verbose.stderr).not.toContain('hunter')
  })

  test('gets the credentials of the environment only where the file that leads to it, or the board, was named', async () => {
    await place.jobboard(['post', 'hello', '--name', 'mine'], { env: ADA })
    await place.write('jobboard.yaml', `board: main\nboards:\n  main: ${place.board}\n`)
    const { exitCode, stderr } = await place.bare(['jobs'], { env: ADA })
    expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: expect.stringContaining('no credentials were given') })
    const named: readonly (readonly [args: readonly string[], env: object])[] = [
      [['--board', 'main'], {}],
      [['--board', place.board], {}],
      [['--config', 'jobboard.yaml'], {}],
      [[], { JOBBOARD_BOARD: 'main' }],
      [[], { JOBBOARD_CONFIG: 'jobboard.yaml' }],
    ]
    for (const [args, env] of named)
      expect(await place.bare(['jobs', ...args], { env: { ...ADA, ...env } })).toMatchObject({
        exitCode: 0,
        stdout: expect.stringContaining('mine'),
      })
    const entry = `{ uri: '${place.board}', auth: '\${JOBBOARD_ZOOKEEPER_AUTH}' }`
    await place.write('jobboard.yaml', `board: main\nboards:\n  main: ${entry}\n`)
    expect(await place.bare(['jobs'], { env: ADA })).toMatchObject({ exitCode: 0, stderr: '' })
  })

  test('keeps logbooks that a found file chose from the credentials of a board that was named', async () => {
    const logbooks = place.board.replace(place.path, `${place.path}-logbooks`)
    await place.bare(['run', 'hello', '--flows', 'flows.js', '--store', '{"name":"Ada"}', '--persistence', logbooks], {
      env: ADA,
    })
    await place.write('jobboard.yaml', `persistence: ${logbooks}\n`)
    const list = (env: object) => place.bare(['logbook', 'list'], { env: { ...ADA, ...env } })
    expect(await list({ JOBBOARD_BOARD: place.board })).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('no credentials were given'),
    })
    expect(await list({ JOBBOARD_PERSISTENCE: logbooks })).toMatchObject({ exitCode: 0, stderr: '' })
  })

  test('has a conductor that does not say the password, and runs what was posted', async () => {
    const board = place.board.replace('zookeeper://', 'zookeeper://ada:hunter2@')
    const env = { JOBBOARD_BOARD: board }
    await place.jobboard(['post', 'hello', '--store', '{"name":"Ada"}'], { env })
    const conductor = place.start(['conductor', '--flows', 'flows.js', '--log-level', 'trace', '--board', board])
    await conductor.says('Ctrl-C stops it')
    await expect.poll(async () => (await place.jobboard(['jobs', '--json'], { env })).stdout).toBe('')
    conductor.process.kill('SIGTERM')
    const { exitCode, stdout, stderr } = await conductor.ended
    expect(exitCode).toBe(0)
    expect(stdout).toContain('zookeeper://ada:***@')
    expect(`${stdout}${stderr}`).not.toContain('hunter')
  })

  test('takes a user and a password', async () => {
    const { exitCode, stderr } = await place.jobboard(['jobs'], { env: { JOBBOARD_ZOOKEEPER_AUTH: 'hunter2' } })
    expect({ exitCode, stderr }).toEqual({
      exitCode: 2,
      stderr: 'jobboard: JOBBOARD_ZOOKEEPER_AUTH must be user:password\n',
    })
  })

  variant('may be behind TLS, and where that fails the reason comes before the time is over', async () => {
    await using authority = await createAuthority()
    await using server = await startSecureZooKeeper({ authority, clientAuth: 'need', users: {} })
    const { cert, key } = await authority.issue({ commonName: 'operator' })
    await place.write('ca.pem', authority.cert)
    await place.write('cert.pem', cert)
    await place.write('key.pem', key)
    const file = (name: string) => `${place.cwd}/${name}.pem`
    const board = `zookeepers://${server.secureHosts}/demo?ca=${file('ca')}`
    const whole = `${board}&cert=${file('cert')}&key=${file('key')}`
    expect(await place.jobboard(['post', 'hello', '--board', whole], { env: ADA })).toMatchObject({ exitCode: 0 })
    expect((await place.jobboard(['jobs', '--board', whole], { env: ADA })).stdout).toContain('hello')
    const { exitCode, stderr } = await place.jobboard(['jobs', '--board', board, '--timeout', '10m'], { env: ADA })
    expect(exitCode).toBe(1)
    expect(stderr).toMatch(/^jobboard: localhost:\d+: .* it may want a certificate of this client[^\n]+\n$/)
  })
})

describe('the password of Postgres in the environment', () => {
  /** A server that asks for the password as it is, and refuses all. */
  async function passwordAsker() {
    const passwords: string[] = []
    const server = createServer((socket) => {
      socket.on('error', () => undefined)
      socket.once('data', () => {
        socket.write(Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3]))
        socket.once('data', (message) => {
          passwords.push(message.subarray(5, -1).toString())
          const refusal = 'SFATAL\0C28P01\0Mpassword authentication failed\0\0'
          const head = Buffer.from([0x45, 0, 0, 0, refusal.length + 4])
          socket.end(Buffer.concat([head, Buffer.from(refusal)]))
        })
      })
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    return { port, passwords, [Symbol.asyncDispose]: async () => void server.close() }
  }

  variant('is not sent to a server that only a found file chooses', async () => {
    await using server = await passwordAsker()
    const sentBy = async (args: readonly string[], file: string, more: Record<string, string> = {}) => {
      await place.write('jobboard.yaml', file)
      server.passwords.length = 0
      const env = { JOBBOARD_BOARD: '', JOBBOARD_PERSISTENCE: '', PGPASSWORD: 'hunter2', ...more }
      const running = place.start(args, { env })
      running.process.stdin.end()
      expect((await running.ended).exitCode).toBe(1)
      return new Set(server.passwords)
    }
    const withUser = (credentials: string) => `postgres://${credentials}127.0.0.1:${server.port}/jobs`
    for (const uri of [withUser('ada@'), withUser(''), withUser('ada@b@'), withUser('@@')]) {
      expect(await sentBy(['jobs'], `board: ${uri}\n`, { PGUSER: 'ada' })).toEqual(new Set(['']))
      expect(await sentBy(['logbook', 'list'], `persistence: ${uri}\n`, { PGUSER: 'ada' })).toEqual(new Set(['']))
    }
    const uri = withUser('ada@')
    expect(await sentBy(['jobs', '--board', uri], '{}\n')).toEqual(new Set(['hunter2']))
    expect(await sentBy(['jobs', '--config', 'jobboard.yaml'], `board: ${uri}\n`)).toEqual(new Set(['hunter2']))
    const asked = withUser(`ada:\${PGPASSWORD}@`)
    expect(await sentBy(['jobs'], `board: ${asked}\n`)).toEqual(new Set(['hunter2']))
  })
})
