/** Whatever is typed wrong, or is not there, gets one line that names it and says what to do, and the right exit code. */
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openBoard } from '../../../src/index.ts'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'
import { freePort } from '../../support/ports.ts'
import { connected } from '../../zookeeper/clients.ts'
import { type CliFolder, createCliFolder, FLOWS, jsonLines, killRemaining, type Outcome } from '../workplace.ts'

const UUID = '0199c0de-0000-7000-8000-000000000001'

let place: CliFolder

beforeEach(async () => {
  place = await createCliFolder()
  await place.write('flows.js', FLOWS)
})
afterEach(async () => place[Symbol.asyncDispose]())
afterAll(killRemaining)

function oneLine({ stderr, stdout }: Outcome): string {
  expect(stdout).toBe('')
  expect(stderr).toMatch(/^jobboard: [^\n]+\n$/)
  expect(stderr).not.toMatch(/\bat .*:\d+:\d+/)
  return stderr.slice('jobboard: '.length, -1)
}

describe('wrong usage: exit code 2', () => {
  const cases: readonly (readonly [args: readonly string[], says: string])[] = [
    [['dance'], "unknown command 'dance'"],
    [['list'], "unknown command 'list'; see jobboard --help\n"],
    [['limits', 'pause', 'api'], "unknown command 'pause'; see jobboard limits --help\n"],
    [['batch', 'show', '0199c0de', '--follow'], "unknown option '--follow'; see jobboard batch show --help\n"],
    [['trash', 'lost'], "unknown command 'lost'; did you mean list?"],
    [['jobs', '--borad', 'x'], "unknown option '--borad'; did you mean --board?"],
    [['jobs', 'one', 'two'], "too many arguments for 'jobs'. Expected 0 arguments but got 2; see jobboard jobs --help"],
    [
      ['post', 'hello', '{"name":"Ada"}'],
      'Expected 1 argument but got 2; give the inputs with --store; see jobboard post --help',
    ],
    [['jobs', '--priority', 'urgent'], '--priority must be one of VERY_HIGH, HIGH, NORMAL, LOW, VERY_LOW'],
    [['post', 'hello', '--size', 'huge'], '--size must be one of small, medium, large'],
    [['pause', '--queue', 'a', '--queue', 'b'], '--queue is given twice, with a and b: name one'],
    [['post', 'hello', '--queue', 'a,b'], 'queue "a,b" must not contain *, commas, ='],
    [
      ['conductor', '--flows', 'flows.js', '--queue', 'urgent=0'],
      'the weight of queue "urgent" must be a whole number',
    ],
    [['jobs', '--timeout', 'soon'], '--timeout: "soon" is not a duration; write milliseconds or a number with ms, s'],
    [['jobs', '--board', 'nonsense'], 'board nonsense: there is no jobboard.yaml here or above'],
    [['jobs', '--board', 'non sense'], 'board: "non sense" is not a URI; write zookeeper://127.0.0.1:2181/demo'],
    [
      ['jobs', '--board', 'ftp://ada:hunter2@files/x'],
      'board ftp://ada:***@files/x: unknown scheme ftp:; write sqlite:./jobs.db',
    ],
    [['jobs', '--board', 'zookeeper:///x'], 'zookeeper:///x: no hosts; write zookeeper://127.0.0.1:2181/path'],
    [
      ['jobs', '--board', 'zookeeper://h/x?tik=2s'],
      'zookeeper://h/x?tik=2s: unknown parameter "tik"; the parameters are',
    ],
    [['jobs', '--board', 'zookeeper://hunter2@h/x'], 'zookeeper://***@h/x: the part before the hosts must be user:'],
    [
      ['jobs', '--board', 'zookeeper://ada:hun/ter2@h/x'],
      'board zookeeper://ada:***@h/x: there is an @ after the hosts; in',
    ],
    [
      ['jobs', '--board', 'zookeeper://ada:1?hunter2@h/x'],
      'board zookeeper://ada:***@h/x: there is an @ after the hosts',
    ],
    [
      ['jobs', '--board', 'zookeeper://ada:hunter2@h:x/x'],
      '"h:x" is not the address of a ZooKeeper server; write host:port',
    ],
    [
      ['jobs', '--board', 'zookeeper://ada:hunter2@h/x?login=krb'],
      'zookeeper://ada:***@h/x?login=krb: login must be digest',
    ],
    [['jobs', '--board', 'zookeeper://h/x?login=sasl'], 'zookeeper://h/x?login=sasl: login needs credentials'],
    [['jobs', '--board', 'zookeeper://h/x?acl=mine'], 'zookeeper://h/x?acl=mine: acl must be creator or open'],
    [['jobs', '--board', 'zookeeper://h/x?ca=x'], 'zookeeper://h/x?ca=x: ca needs TLS; write zookeepers://'],
    [
      ['jobs', '--board', 'zookeepers://h/x?ca=none.pem&passphrase=hunter2'],
      'passphrase=***: ca must name a file in PEM',
    ],
    [['jobs', '--board', 'zookeepers://h/x?ca=flows.js'], 'ca=flows.js: ca must name a file in PEM'],
    [['jobs', '--board', 'zookeeper://h/x?tick=0s'], 'zookeeper://h/x?tick=0s: tick must be longer than 0'],
    [['jobs', '--board', 'zookeeper://h/x?tick=hour'], 'tick: "hour" is not a duration'],
    [['jobs', '--board', 'memory:'], 'board memory: would end with this command; name one that is shared'],
    [['post'], 'name the flow, or a file with --from'],
    [['post', '', '--store', '{}'], 'the name of the flow must not be empty'],
    [['post', 'hello', '--max-attempts', '0'], '--max-attempts must be a whole number from 1 to 1000000, got 0'],
    [
      ['post', 'hello', '--max-attempts', '1000001'],
      '--max-attempts must be a whole number from 1 to 1000000, got 1000001',
    ],
    [
      ['post', 'hello', '--max-attempts', '{"password":"hunter2"}'],
      '--max-attempts must be a whole number from 1 to 1000000\n',
    ],
    [['post', 'hello', '--priority', '{"password":"hunter2"}'], '--priority must be one of VERY_HIGH, HIGH'],
    [['post', 'hello', '--uuid', '42'], "--uuid must be a UUID, got '42'"],
    [['post', 'hello', '--store', '{"password": hunter2}'], '--store is not JSON; quote it for the shell'],
    [
      ['post', 'hello', '--store', '{"id": 12345678901234567890}'],
      '--store has a number that JavaScript cannot represent',
    ],
    [['post', 'hello', '--store', '["hunter2"]'], "--store must be a JSON object with the flow's inputs"],
    [['post', 'hello', '--stoer={"password":"hunter2"}'], "unknown option '--stoer'"],
    [['post', 'hello', '--flows', 'flows.js'], 'flow hello requires name: add it to --store'],
    [['post', 'hallo', '--flows', 'flows.js'], 'module flows.js has no flow "hallo"; did you mean hello?'],
    [['post', 'dance', '--flows', 'flows.js'], 'module flows.js has no flow "dance"; it has refused, hello'],
    [
      ['jobs', '--priority', 'hihg'],
      '--priority must be one of VERY_HIGH, HIGH, NORMAL, LOW, VERY_LOW; did you mean HIGH?',
    ],
    [['show'], "missing required argument 'uuid'; see jobboard show --help\n"],
    [['show', '42'], '42 is not a uuid; give a uuid, or four characters or more of its beginning or end'],
    [['show', UUID, '--persistence', 'memory:'], 'logbooks in memory: are visible in their own process only'],
    [['show', UUID, '--persistence', 'mysql:x'], 'the scheme mysql: is not known for logbooks; use'],
    [['conductor'], 'conductor needs the code of its flows: add --flows MODULE'],
    [['conductor', '--flows', 'flows.js', '--concurrency', 'all'], '--concurrency must be a whole number from 1'],
    [['conductor', '--flows', 'flows.js', '--size', 'huge'], '--size must be one of small, medium, large'],
    [['conductor', '--flows', 'flows.js', '--max-idle-time', 'soon'], '--max-idle-time: "soon" is not a duration'],
    [
      ['conductor', '--flows', 'flows.js', '--unaccepted-after', 'soon'],
      '--unaccepted-after: "soon" is not a duration',
    ],
    [['conductor', '--flows', 'flows.js', '--health', 'here'], '--health must be a port, or host:port'],
    [['conductor', '--flows', 'flows.js', '--log-level', 'loud'], '--log-level must be one of trace, debug, info'],
    [['conductor', '--flows', 'flows.js', '--drain-timeout', '-1'], '--drain-timeout: "-1" is not a duration'],
  ]
  test.each(cases)('%j', async (args, says) => {
    const outcome = await place.jobboard(args)
    expect(`${oneLine(outcome)}\n`).toContain(says)
    expect(outcome.stderr).not.toContain('hunter2')
    expect(outcome.exitCode).toBe(2)
  })

  test('no board', async () => {
    for (const args of [['jobs'], ['post', 'hello'], ['show', UUID], ['trash', 'list']]) {
      const outcome = await place.bare(args)
      expect(oneLine(outcome)).toContain('no board was named: give --board URI or set JOBBOARD_BOARD')
      expect(outcome.exitCode).toBe(2)
    }
  })

  test('a conductor without logbooks', async () => {
    const outcome = await place.bare(['conductor', '--flows', 'flows.js', '--board', place.board])
    expect(oneLine(outcome)).toContain('no logbooks were named: give --persistence URI or set JOBBOARD_PERSISTENCE')
    expect(outcome.exitCode).toBe(2)
  })

  test('no command: the help, on standard error', async () => {
    for (const args of [[], ['trash']]) {
      const { exitCode, stdout, stderr } = await place.jobboard(args)
      expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
      expect(stderr).toContain('Usage: jobboard')
    }
  })

  test('nothing was posted by any of it', async () => {
    await place.jobboard(['post', 'hello', '--flows', 'flows.js', '--store', '{}'])
    await place.jobboard(['post', 'hello', '--max-attempts', '1000001'])
    await using board = await openBoard(place.board)
    expect(await board.countJobs()).toBe(0)
  })
})

describe('failed: exit code 1', () => {
  test('there is no listener on the port', async () => {
    const board = `zookeeper://127.0.0.1:${await freePort()}/demo`
    const outcome = await place.bare(['jobs', '--board', board, '--timeout', '300ms'])
    expect(oneLine(outcome)).toMatch(/^cannot open zookeeper:\S+ within 300ms: .*ECONNREFUSED .*; start a server there/)
    expect(oneLine(outcome)).toContain(board)
    expect(outcome.exitCode).toBe(1)
  })

  test('the server accepts the connection and sends nothing', async () => {
    const silent = createServer()
    silent.listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const board = `zookeeper://127.0.0.1:${(silent.address() as AddressInfo).port}/demo`
    for (const args of [['jobs'], ['conductor', '--flows', 'flows.js', '--persistence', place.persistence]]) {
      const outcome = await place.bare([...args, '--board', board, '--timeout', '300'])
      expect(oneLine(outcome)).toContain(`cannot open ${board} within 300 ms: no answer in this time; start a server`)
      expect(outcome.exitCode).toBe(1)
    }
    silent.close()
  })

  test('a job that is nowhere', async () => {
    await place.jobboard(['post', 'hello'])
    const without = await place.bare(['show', UUID, '--board', place.board])
    expect(oneLine(without)).toContain(`job ${UUID} is not on ${place.board} nor in its trash; if it is done,`)
    expect(without.exitCode).toBe(1)
    await place.write('logbooks/here', '')
    const outcome = await place.jobboard(['show', UUID])
    expect(oneLine(outcome)).toContain(`and ${place.persistence} has no logbook of it; check the uuid`)
    expect(outcome.exitCode).toBe(1)
  })

  test('a folder that is not there, or none', async () => {
    await place.jobboard(['post', 'hello'])
    const missing = await place.jobboard(['show', UUID])
    const [none, nowhere] = missing.stderr.split('\n')
    expect(none).toBe(
      `jobboard: there are no logbooks in ${place.persistence}: no such folder; the first conductor that uses this location creates them`,
    )
    expect(nowhere).toContain(`and ${place.persistence} has no logbook of it; check the uuid`)
    expect(missing.exitCode).toBe(1)
    const persistence = `directory:${place.cwd}/flows.js`
    const file = await place.jobboard(['conductor', '--flows', 'flows.js', '--persistence', persistence])
    expect(oneLine(file)).toContain('flows.js: it is a file, or a link to nothing; name a folder')
    expect(file.exitCode).toBe(1)
  })

  test('a posting that is too large', async () => {
    const store = JSON.stringify({ text: 'hunter2'.repeat(100_000) })
    const outcome = await place.jobboard(['post', 'hello', '--store', '-'], { stdin: store })
    expect(oneLine(outcome)).toMatch(
      /^job \S+ \(hello\) has \d+ bytes, at most \d+ are allowed on this board; store large data elsewhere/,
    )
    expect(outcome.stderr).not.toContain('hunter2')
    expect(outcome.exitCode).toBe(1)
  })

  test('a path without a board, which a look does not make', async () => {
    const board = `${place.board}-elsewhere`
    for (const args of [['jobs'], ['show', UUID], ['trash', 'list'], ['jobs', '--json']]) {
      const outcome = await place.bare([...args, '--board', board])
      expect(oneLine(outcome)).toBe(
        `there is no board at ${place.path}-elsewhere; check the URI, or post a job to make one`,
      )
      expect(outcome.exitCode).toBe(1)
    }
  })

  test('a path in ZooKeeper that is no board', async () => {
    await using zookeeper = await connected({ hosts: zookeeperHosts })
    const path = namespace('cli')
    await zookeeper.create(path, Buffer.from('somebody else was here'))
    const outcome = await place.jobboard(['jobs', '--board', `zookeeper://${zookeeperHosts}${path}`])
    expect(oneLine(outcome)).toContain(`${path} exists and is not a jobboard board`)
    expect(outcome.exitCode).toBe(1)
  })

  test('two conductors of one name', async () => {
    const args = ['conductor', '--flows', 'flows.js', '--name', 'twin']
    const first = place.start(args)
    await first.says('conductor twin')
    const second = await place.jobboard([...args, '--log-level', 'silent'])
    expect(oneLine(second)).toContain('twin')
    expect(second.exitCode).toBe(1)
    first.process.kill('SIGTERM')
    expect((await first.ended).exitCode).toBe(0)
  })
})

test('a malformed znode is named, the others are listed, and the conductor does them', async () => {
  const { stdout: uuid } = await place.jobboard(['post', 'hello', '--store', '{"name":"Ada"}'])
  await using zookeeper = await connected({ hosts: zookeeperHosts })
  const { path } = await zookeeper.create(`${place.path}/job`, Buffer.from('\x1b[2Jgarbage'), { sequential: true })

  const { exitCode, stdout, stderr } = await place.jobboard(['jobs', '--json'])
  expect(exitCode).toBe(1)
  expect(jsonLines(stdout)).toMatchObject([{ uuid: uuid.trim() }])
  expect(stderr).toMatch(new RegExp(`^jobboard: ${path} .*; it is not claimed here, remove or repair it\n$`))

  await using board = await openBoard(place.board)
  const job = await board.find(uuid.trim())
  const conductor = place.start(['conductor', '--flows', 'flows.js'])
  expect(await job.wait()).toBe('COMPLETE')
  conductor.process.kill('SIGTERM')
  expect((await conductor.ended).exitCode).toBe(0)
  expect((await zookeeper.getData(path)).data).toEqual(new Uint8Array(Buffer.from('\x1b[2Jgarbage')))
})

test('--verbose shows the stack, and what caused it', async () => {
  await place.write('throws.mjs', 'throw new TypeError("no paper")')
  const { stderr, exitCode } = await place.jobboard(['--verbose', 'conductor', '--flows', 'throws.mjs'])
  expect(exitCode).toBe(1)
  const [first, second] = stderr.split('\n')
  expect(first).toBe('jobboard: module throws.mjs cannot be loaded: TypeError: no paper')
  expect(second).toBe('JobboardError: module throws.mjs cannot be loaded: TypeError: no paper')
  expect(stderr).toMatch(/^ {4}at .*:\d+:\d+\)?$/m)
  expect(stderr).toMatch(/^caused by TypeError: no paper\n {4}at .*throws\.mjs:1:7$/m)
})
