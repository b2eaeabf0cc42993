/** `jobboard board copy`: moves a board and its logbooks from a file, while people watch what it prints. */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { createDeferred } from '../../src/core/async/abort.ts'
import { input, linear, task } from '../../src/flow/index.ts'
import { openBoard, startConductor } from '../../src/index.ts'
import { namespace, zookeeperHosts } from '../support/namespace.ts'
import { type CliFolder, createCliFolder, killRemaining } from './workplace.ts'

let place: CliFolder
let file: string

beforeEach(async () => {
  place = await createCliFolder()
  file = `sqlite:${join(place.cwd, 'jobs.db')}`
})
afterEach(() => place[Symbol.asyncDispose]())
afterAll(killRemaining)

/** A flow of two tasks, which notes what it does; with `onHeld`, the second one calls it and goes on until its owner stops. */
function twoTasks(done: string[], onHeld?: () => void) {
  const first = task('first', {
    provides: 'greeting',
    requires: ['name'],
    execute: ({ name }: { name: string }) => {
      done.push('first')
      return `Hello, ${name}`
    },
  })
  const second = task('second', {
    requires: ['greeting'],
    execute: async ({ greeting }: { greeting: string }, { signal }) => {
      done.push(`second: ${greeting}`)
      if (!onHeld) return
      onHeld()
      await once(signal, 'abort')
      throw signal.reason
    },
  })
  return linear('work', input<{ name: string }>(), first, second)
}

test('a job that was moved from a file to an ensemble is continued there, from its logbook', async () => {
  const target = `zookeeper://${zookeeperHosts}${namespace('moved')}`
  const books = `zookeeper://${zookeeperHosts}${namespace('moved-books')}`
  const done: string[] = []
  let uuid = ''
  {
    const held = createDeferred()
    await using board = await openBoard(file)
    await using conductor = await startConductor({
      board,
      persistence: file,
      flows: [twoTasks(done, () => held.resolve())],
    })
    ;({ uuid } = await board.post('work', { name: 'Ada' }))
    await held.promise
    conductor.abort()
  }
  expect(await place.bare(['board', 'copy', file, target])).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining(
      `is not paused: its jobs would run on both boards; run jobboard pause --board '${file}' first`,
    ),
  })
  expect((await place.bare(['pause', '--board', file])).exitCode).toBe(0)
  expect(await place.bare(['board', 'copy', file, target, '--dry-run'])).toMatchObject({
    exitCode: 0,
    stdout: expect.stringContaining('jobs: 1 on the source\n'),
  })
  const logbooks = ['--logbooks-from', file, '--logbooks-to', books]
  expect(await place.bare(['board', 'copy', file, target, ...logbooks])).toMatchObject({
    exitCode: 0,
    stdout: expect.stringMatching(/jobs: 1 copied; 1 on the source, 1 on the target\nlogbooks: 1 copied\n$/),
    stderr: `board ${target} is paused; jobboard resume --board '${target}' lets its jobs run\n`,
  })
  const again = await place.bare(['board', 'copy', file, target, ...logbooks, '--json'])
  const lines = again.stdout.split('\n').filter(Boolean)
  expect(lines.map((line) => JSON.parse(line))).toEqual(
    expect.arrayContaining([
      { kind: 'jobs', copied: 0, present: 1, skipped: 0, source: 1, target: 1 },
      { kind: 'logbooks', copied: 1, skipped: 0 },
    ]),
  )
  expect((await place.bare(['resume', '--board', target])).exitCode).toBe(0)
  await using board = await openBoard(target)
  await using _conductor = await startConductor({ board, persistence: books, flows: [twoTasks(done)] })
  expect(await (await board.find(uuid)).wait()).toBe('COMPLETE')
  expect(done).toEqual(['first', 'second: Hello, Ada', 'second: Hello, Ada'])
  expect(await board.findEnded(uuid)).toMatchObject({ runs: 2 })
})

test('a copy that is interrupted says how to go on', async () => {
  await using board = await openBoard(file)
  await board.postMany(Array.from({ length: 20 }, () => ({ flow: 'flow', store: {} })))
  await board.pause()
  const target = `sqlite:${join(place.cwd, `${randomUUID()}.db`)}`
  const outcome = await place.bare(['board', 'copy', file, target], { interrupt: AbortSignal.abort() })
  expect(outcome).toMatchObject({
    exitCode: 130,
    stderr: 'interrupted: run the same command again, and it copies the rest\n',
  })
  expect((await place.bare(['board', 'copy', file, target])).exitCode).toBe(0)
})

test('bad input is exit code 2', async () => {
  await (await openBoard(file)).close()
  expect((await place.bare(['pause', '--board', file])).exitCode).toBe(0)
  for (const [args, message] of [
    [['board', 'copy', 'memory:', file], 'would end with this command'],
    [['board', 'copy', file, 'nowhere:'], 'unknown scheme'],
    [['board', 'copy', file, file, '--logbooks-from', file], '--logbooks-from and --logbooks-to belong together'],
    [['board', 'copy', file, file, '--wait', 'long'], '--wait'],
  ] as const)
    expect(await place.bare(args)).toMatchObject({ exitCode: 2, stderr: expect.stringContaining(message) })
})
