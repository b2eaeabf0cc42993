/** `jobboard exporter`: what it answers of boards, from the real command line, and what it does while a board is away. */
import { afterAll, afterEach, beforeEach, expect } from 'vitest'
import { input, linear, openBoard, schedule, startConductor, task } from '../../src/index.ts'
import { freePort } from '../support/ports.ts'
import { checkMetrics, promtool } from '../support/promtool.ts'
import { startRedis } from '../support/redis.ts'
import { usual as test, variant } from '../variant.ts'
import { type CliFolder, createCliFolder, killRemaining } from './workplace.ts'

/** An exporter of its own process opens its boards after it listens. */
const PATIENT = { timeout: 30_000 }

let place: CliFolder

beforeEach(async () => {
  place = await createCliFolder()
})
afterEach(() => place[Symbol.asyncDispose]())
afterAll(killRemaining)

/** Starts an exporter; `read` returns its lines of some gauges, without their common prefix. */
async function startExporter(args: readonly string[] = []) {
  const running = place.start(['exporter', '--port', '0', ...args])
  await running.says('Ctrl-C stops it')
  const [, url = ''] = / at (\S+)\/metrics;/.exec(running.heard()) ?? []
  const text = async () => (await fetch(`${url}/metrics`)).text()
  const read = async (...gauges: readonly string[]) =>
    (await text())
      .split('\n')
      .filter((line) => gauges.some((gauge) => line.startsWith(`jobboard_board_${gauge}{`)))
      .map((line) => line.replace('jobboard_board_', ''))
  const stop = async () => {
    running.process.kill('SIGINT')
    return (await running.ended).exitCode
  }
  return { running, url, text, read, stop }
}

test('answers the jobs by flow and state, the trash, conductors and schedules', async () => {
  await using board = await openBoard(place.board)
  for (let n = 0; n < 3; n += 1) await board.post('import', { n })
  await board.post('import', {}, { delay: '1h' })
  const first = await board.post('other', {})
  await board.post('other', {}, { after: [first] })
  await using _claim = await board.claim(first)
  const doomed = await board.post('import', {})
  await board.cancel(doomed)
  await board.limits.set('flow/import', { concurrency: 0 })
  await board.schedules.put(schedule('nightly', { cron: '30 2 * * *' }, 'import', {}))
  await board.schedules.pause('nightly')
  const { url, text, read, stop } = await startExporter()
  const label = `board="zookeeper:${place.path}"`
  await expect.poll(() => read('up'), PATIENT).toEqual([`up{${label}} 1`])
  expect(await read('length', 'paused', 'complete')).toEqual([
    `paused{${label}} 0`,
    `length{${label}} 6`,
    `complete{${label},part="jobs"} 1`,
    `complete{${label},part="trash"} 1`,
  ])
  expect((await read('jobs')).filter((line) => !line.endsWith(' 0')).sort()).toEqual([
    `jobs{${label},flow="import",state="delayed"} 1`,
    `jobs{${label},flow="import",state="limited"} 3`,
    `jobs{${label},flow="other",state="blocked"} 1`,
    `jobs{${label},flow="other",state="running"} 1`,
  ])
  expect(await read('limit_waiting', 'trash', 'schedules', 'schedules_late')).toEqual([
    `limit_waiting{${label},kind="flow"} 3`,
    `trash{${label},flow="import"} 1`,
    `schedules{${label},state="paused"} 1`,
    `schedules_late{${label}} 0`,
  ])
  const oldest = (await read('oldest_waiting_seconds')).find((line) => line.includes('flow="import"'))
  expect(Number(oldest?.split(' ').at(-1))).toBeGreaterThan(0)
  if (promtool) expect(await checkMetrics(await text())).toBe('')
  expect(await (await fetch(`${url}/healthz`)).json()).toEqual({
    boards: [{ board: `zookeeper:${place.path}`, opened: true }],
  })
  expect((await fetch(`${url}/jobs`)).status).toBe(404)
  expect(await stop()).toBe(0)
})

variant('conductors and their slots are counted', async () => {
  await using board = await openBoard(place.board)
  await using _conductor = await startConductor({
    board,
    persistence: 'memory:',
    flows: [linear('hello', input(), task('greet', { execute: () => undefined }))],
    concurrency: 3,
  })
  const { read, stop } = await startExporter()
  const label = `board="zookeeper:${place.path}"`
  await expect
    .poll(() => read('conductors', 'slots', 'slots_taken'), PATIENT)
    .toEqual([`conductors{${label},state="idle"} 1`, `slots{${label}} 3`, `slots_taken{${label}} 0`])
  await stop()
})

variant('of several boards, one that is away has nothing but that; it is read when it is there', async () => {
  await using _board = await openBoard(place.board)
  const port = await freePort()
  const away = `redis://127.0.0.1:${port}/0?prefix=cli`
  const args = ['--board', place.board, '--board', away]
  const { running, read, stop } = await startExporter(args)
  expect(running.heard()).toContain(`exporter of zookeeper:${place.path}, redis:cli at http://127.0.0.1:`)
  const here = `up{board="zookeeper:${place.path}"} 1`
  await expect.poll(() => read('up').then((lines) => lines.sort()), PATIENT).toEqual(['up{board="redis:cli"} 0', here])
  expect((await read('length')).filter((line) => line.includes('redis'))).toEqual([])
  await using redis = await startRedis({ port })
  await using _there = await openBoard(`${redis.uri}/0?prefix=cli`)
  await expect.poll(() => read('up').then((lines) => lines.sort()), PATIENT).toEqual(['up{board="redis:cli"} 1', here])
  await stop()
})

variant('a board that is not there is read once somebody has made it', async () => {
  const { running, read, stop } = await startExporter()
  let complaints = ''
  running.process.stderr.on('data', (chunk) => {
    complaints += String(chunk)
  })
  const label = `board="zookeeper:${place.path}"`
  const complaint = `zookeeper:${place.path}: NotFound: there is no board at`
  await expect.poll(() => complaints, PATIENT).toContain(complaint)
  expect(await read('up')).toEqual([`up{${label}} 0`])
  await using _board = await openBoard(place.board)
  await expect.poll(() => read('up'), PATIENT).toEqual([`up{${label}} 1`])
  expect(await stop()).toBe(0)
})

variant('an address that is taken, and a board of another user, end it with one line', async () => {
  await using _board = await openBoard(place.board)
  const { url, stop } = await startExporter()
  const taken = await place.spawned(['exporter', '--port', new URL(url).port])
  expect(taken).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('cannot listen on 127.0.0.1 port') })
  await stop()
  const path = `${place.path}-theirs`
  await using _theirs = await openBoard(
    place.board.replace('zookeeper://', 'zookeeper://ada:hunter2@').replace(place.path, path),
  )
  const refused = await place.spawned(['exporter', '--port', '0', '--board', place.board.replace(place.path, path)])
  expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('JOBBOARD_ZOOKEEPER_AUTH') })
})
