/** A fault that no task's promise leads to ends `jobboard conductor` in order: one line, one job charged, the others not. */
import { afterAll, describe, expect } from 'vitest'
import { type JobBoard, openBoard } from '../../src/index.ts'
import { zookeeperHosts } from '../support/namespace.ts'
import { usual as test, testRows, variant } from '../variant.ts'
import { type CliFolder, createCliFolder, killRemaining } from './workplace.ts'

afterAll(killRemaining)

const FLOWS = `
import { input, linear, task } from 'jobboard'

const stopped = (signal) => new Promise((_, refuse) => signal.addEventListener('abort', () => refuse(signal.reason)))
const of = (name, execute) => linear(name, input(), task('quiet-' + name, { execute: () => undefined }), task('task-' + name, { execute }))

export const patient = of('patient', (_, { signal }) => stopped(signal))
export const unstoppable = of('unstoppable', () => new Promise(() => undefined))
export const rejection = of('rejection', (_, { signal }) => {
  void Promise.reject(new Error('nobody awaits this'))
  return stopped(signal)
})
export const later = of('later', async (_, { signal }) => {
  const floating = async () => {
    await new Promise((done) => setImmediate(done))
    throw new RangeError('after an await')
  }
  void floating()
  return stopped(signal)
})
export const timer = of('timer', (_, { signal }) => {
  setTimeout(() => { throw new TypeError('thrown in a timer') }, 1)
  return stopped(signal)
})
export const twice = of('twice', (_, { signal }) => {
  setTimeout(() => { throw new Error('the first') }, 1)
  setTimeout(() => { throw new Error('the second') }, 1)
  return stopped(signal)
})
export const text = of('text', (_, { signal }) => {
  void Promise.reject('only a text')
  return stopped(signal)
})
export const outside = of('outside', async (_, { signal }) => {
  process.kill(process.pid, 'SIGHUP')
  return stopped(signal)
})
process.on('SIGHUP', () => { throw new Error('of no job') })
`

interface Line {
  readonly level: number
  readonly msg: string
  readonly job?: string
  readonly task?: string
  readonly err?: { readonly message: string; readonly stack?: string }
}

/** Runs a conductor with a neighbour that runs already, posts a job of this flow, and resolves when the process has ended. */
async function crashed(
  flow: string,
  neighbour: 'patient' | 'unstoppable',
  check: (seen: {
    board: JobBoard
    place: CliFolder
    uuid: string
    beside: string
    lines: readonly Line[]
  }) => Promise<void>,
): Promise<void> {
  await using place = await createCliFolder()
  await place.write('flows.js', FLOWS)
  await using board = await openBoard(place.board)
  const beside = await board.post(neighbour, {})
  const running = new Promise<void>((claimed) => board.on('claimed', () => claimed()))
  const conductor = place.start(['conductor', '--flows', 'flows.js', '--concurrency', '3', '--abort-timeout', '300ms'])
  await running
  const job = await board.post(flow, {}, { backOff: { first: '1h' } })
  const { exitCode, stderr } = await conductor.ended
  const lines = stderr
    .trim()
    .split('\n')
    .map((line): Line => JSON.parse(line))
  expect(exitCode).toBe(1)
  await check({ board, place, uuid: job.uuid, beside: beside.uuid, lines })
}

async function attemptsOf(place: CliFolder, uuid: string): Promise<{ ended?: string; reason?: string }[]> {
  await using fresh = await openBoard(place.board)
  return (await fresh.find(uuid)).attempts.map(({ ended, reason }) => ({
    ...(ended ? { ended } : {}),
    ...(reason ? { reason } : {}),
  }))
}

describe.skipIf(!zookeeperHosts)('a fault in a daemon', () => {
  testRows(
    [
      ['rejection', 'patient', 'nobody awaits this'],
      ['later', 'patient', 'after an await'],
      ['timer', 'unstoppable', 'thrown in a timer'],
      ['text', 'patient', 'only a text'],
    ] as const,
    ([flow]) => flow === 'rejection',
  )(
    'of %s is one line with job, task and stack; its job has failed, a %s neighbour is uncharged',
    async (flow, neighbour, message) => {
      await crashed(flow, neighbour, async ({ place, uuid, beside, lines }) => {
        const fatal = lines.filter(({ level }) => level === 60)
        expect(fatal).toMatchObject([{ job: uuid, name: flow, run: 1, task: `task-${flow}` }])
        expect(fatal[0]?.err?.message).toContain(message)
        expect(fatal[0]?.err?.stack).toContain(flow === 'text' ? 'Error' : 'flows.js')
        expect(await attemptsOf(place, uuid)).toEqual([{ ended: 'failed', reason: expect.stringContaining(message) }])
        expect(await attemptsOf(place, beside)).toEqual([
          { ended: 'returned', reason: expect.stringContaining('shut down') },
        ])
      })
    },
  )

  variant('that comes from no job charges none', async () => {
    await crashed('outside', 'patient', async ({ place, uuid, beside, lines }) => {
      const fatal = lines.filter(({ level }) => level === 60)
      expect(fatal).toMatchObject([{ err: { message: 'of no job', stack: expect.stringContaining('flows.js') } }])
      expect(fatal[0]).not.toHaveProperty('job')
      expect((await attemptsOf(place, uuid)).map(({ ended }) => ended)).toEqual(['returned'])
      expect((await attemptsOf(place, beside)).map(({ ended }) => ended)).toEqual(['returned'])
    })
  })

  test('that is followed by another is logged once as fatal', async () => {
    await crashed('twice', 'patient', async ({ place, uuid, lines }) => {
      expect(lines.filter(({ level }) => level === 60).map(({ err }) => err?.message)).toEqual(['the first'])
      expect((await attemptsOf(place, uuid)).map(({ ended }) => ended)).toEqual(['failed'])
    })
  })
})
