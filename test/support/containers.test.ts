/** What each kind of server is as a container: the same ports and settings as the program's. */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { askEngine } from './install.ts'
import { postgresContainer } from './postgres.ts'
import { redisContainer } from './redis.ts'
import { sentinelContainer } from './redis-sentinel.ts'
import { shellCommand } from './server-container.ts'
import { contentsOf } from './settings-files.ts'
import { zooKeeperContainer } from './zookeeper-container.ts'

test('ZooKeeper: its number, its settings and the flags of its Java', () => {
  const settings = { tickTime: 500, 'server.2': '127.0.0.1:3:4:participant;127.0.0.1:5' }
  const files = { '/tmp/jaas.conf': 'Server {};' }
  const container = zooKeeperContainer({ port: 5, settings, java: ['-Dreadonlymode.enabled=true'], id: 2 }, files)
  expect(container).toMatchObject({ image: 'zookeeper:3.9', command: ['zkServer.sh', 'start-foreground'] })
  expect(container.setup).toBe('echo 2 > /data/myid')
  expect(container.environment?.['JVMFLAGS']).toContain('-XX:+UseSerialGC -Dreadonlymode.enabled=true')
  expect(container.files).toEqual({
    ...files,
    '/conf/zoo.cfg': 'tickTime=500\nserver.2=127.0.0.1:3:4:participant;127.0.0.1:5\ndataDir=/data\n',
  })
})

test('Postgres: settings, no password, and files that only its user may read', () => {
  const files = { '/tmp/tls/server.key': 'KEY' }
  const container = postgresContainer(7, { ssl_key_file: '/tmp/tls/server.key' }, files)
  expect(container).toMatchObject({ image: 'postgres:15', files, environment: { POSTGRES_HOST_AUTH_METHOD: 'trust' } })
  expect(container.command).toEqual([
    ...['docker-entrypoint.sh', 'postgres', '-c', 'listen_addresses=127.0.0.1', '-c', 'port=7'],
    ...['-c', 'ssl_key_file=/tmp/tls/server.key'],
  ])
  expect(container.setup?.split('\n')).toEqual([
    "chmod 755 '/tmp/tls'",
    "chown postgres '/tmp/tls/server.key'",
    "chmod 600 '/tmp/tls/server.key'",
  ])
  expect(postgresContainer(7, {}, {}).setup).toBe('')
})

test('Redis: settings as flags, and its data where the image keeps them', () => {
  const container = redisContainer(9, { appendonly: 'yes', 'cluster-port': '10' }, {})
  expect(container).toMatchObject({ image: 'redis:7', files: {} })
  expect(container.command).toEqual([
    ...['redis-server', '--bind', '127.0.0.1', '--port', '9', '--dir', '/data', '--save', ''],
    ...['--appendonly', 'yes', '--cluster-port', '10'],
  ])
})

test('Redis Sentinel: a configuration that it can rewrite, beside its data', () => {
  const { command, files, image } = sentinelContainer({ port: 11, master: 12 })
  expect({ command, image }).toEqual({
    command: ['redis-server', '/data/sentinel.conf', '--sentinel'],
    image: 'redis:7',
  })
  expect(files?.['/data/sentinel.conf']).toContain('port 11\nbind 127.0.0.1\ndir /data\n')
  expect(files?.['/data/sentinel.conf']).toContain('sentinel monitor boards 127.0.0.1 12 1\n')
})

describe('files', () => {
  let folder: string

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'jobboard-files-'))
    await writeFile(join(folder, 'ca.pem'), 'CERTIFICATE')
  })

  afterAll(async () => {
    await rm(folder, { recursive: true, force: true })
  })

  test('that settings name go along, and nothing else does', async () => {
    const ca = join(folder, 'ca.pem')
    const settings = { 'tls-ca-cert-file': ca, dir: folder, other: join(folder, 'missing'), save: '', port: 1 }
    expect(await contentsOf(settings)).toEqual({ [ca]: 'CERTIFICATE' })
  })

  test('of set-up are made before the server takes the place of the shell', async () => {
    const file = join(folder, 'myid')
    const [program = '', ...args] = shellCommand({
      name: 'Server',
      image: 'server:1',
      command: [process.execPath, '-p', 'process.argv.slice(1).join()', 'a b', '$HOME'],
      setup: `echo 3 > '${file}'`,
    })
    const { stdout } = await promisify(execFile)(program, args)
    expect(stdout).toBe('a b,$HOME\n')
    expect(await readFile(file, 'utf8')).toBe('3\n')
  })
})

describe('an engine', () => {
  test.each<[boolean, string, number, string]>([
    [
      true,
      'of this machine',
      200,
      JSON.stringify({ Name: hostname(), SecurityOptions: ['name=seccomp,profile=builtin'] }),
    ],
    [true, 'of this machine that says nothing of security', 200, JSON.stringify({ Name: hostname() })],
    [
      false,
      'without root, whose network is its own',
      200,
      JSON.stringify({ Name: hostname(), SecurityOptions: ['name=rootless'] }),
    ],
    [false, 'in a virtual machine', 200, JSON.stringify({ Name: 'docker-desktop', SecurityOptions: [] })],
    [false, 'that fails', 500, JSON.stringify({ Name: hostname() })],
    [false, 'that is something else', 200, '<html>'],
    [false, 'that answers with nothing', 200, 'null'],
  ])('is used (%s): one %s', async (used, _what, status, body) => {
    const engine = createServer((_, answer) => answer.writeHead(status).end(body)).listen(0, '127.0.0.1')
    await once(engine, 'listening')
    const { port } = Object(engine.address()) as { port: number }
    try {
      expect(await askEngine(`tcp://127.0.0.1:${port}`)).toBe(used)
    } finally {
      engine.close()
    }
  })

  test('that is not there is not used', async () => {
    expect(await askEngine('unix:///nowhere/docker.sock')).toBe(false)
  })
})
