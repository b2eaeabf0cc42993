/** The metrics of a conductor: what they count, over HTTP; and that nothing is recorded where they are off. */
import { expect, onTestFinished, test } from 'vitest'
import { createDeferred } from '../../src/core/async/abort.ts'
import {
  type ConductorOptions,
  input,
  linear,
  openBoard,
  prometheus,
  schedule,
  startConductor,
  task,
} from '../../src/index.ts'
import { checkMetrics, promtool } from '../support/promtool.ts'

async function openSetup(options: Partial<ConductorOptions> = {}) {
  const board = await openBoard('memory:')
  onTestFinished(() => board.close())
  const [begun, over] = [createDeferred(), createDeferred()]
  const flow = linear(
    'import',
    input<{ how: string }>(),
    task('work', {
      requires: ['how'],
      execute: async ({ how }: { how: string }, { signal }) => {
        if (how === 'fail') throw new Error('it fails')
        if (how !== 'wait') return
        begun.resolve()
        await over.promise
        signal.throwIfAborted()
      },
    }),
  )
  const conductor = await startConductor({
    ...{
      board,
      persistence: 'memory:',
      flows: [flow],
      concurrency: 3,
      health: { port: 0 },
      metrics: true,
      release: '2.1',
    },
    ...options,
  })
  onTestFinished(() => conductor.stop())
  const read = async () => {
    const response = await fetch(`${conductor.healthUrl}/metrics`)
    return { status: response.status, type: response.headers.get('content-type'), text: await response.text() }
  }
  /** Returns the lines of these instruments. */
  const lines = async (...names: readonly string[]) =>
    (await read()).text.split('\n').filter((line) => names.some((name) => line.startsWith(`jobboard_${name}`)))
  return { board, flow, conductor, begun, over, read, lines }
}

test('count jobs by flow and outcome, and say what runs now', async () => {
  const { board, flow, begun, over, read, lines } = await openSetup()
  for (const how of ['done', 'done']) await (await board.post(flow, { how })).wait()
  await (await board.post(flow, { how: 'fail' }, { maxAttempts: 1 })).wait()
  const cancelled = await board.post(flow, { how: 'wait' })
  await begun.promise
  expect(await lines('running', 'slots', 'ready', 'session', 'jobs_claimed')).toEqual([
    ...[
      'jobboard_slots 3',
      'jobboard_running{board="memory:",flow="import"} 1',
      'jobboard_ready 1',
      'jobboard_session_connected{board="memory:"} 1',
    ],
    'jobboard_jobs_claimed_total{board="memory:",flow="import",queue="default"} 4',
  ])
  await board.cancel(cancelled)
  over.resolve()
  await cancelled.wait()
  await expect
    .poll(() => lines('runs_total'))
    .toEqual([
      'jobboard_runs_total{board="memory:",flow="import",outcome="done"} 2',
      'jobboard_runs_total{board="memory:",flow="import",outcome="trashed"} 1',
      'jobboard_runs_total{board="memory:",flow="import",outcome="cancelled"} 1',
    ])
  expect(await lines('wait_seconds_count', 'run_seconds_count')).toEqual([
    'jobboard_wait_seconds_count{board="memory:",flow="import",queue="default"} 4',
    'jobboard_run_seconds_count{board="memory:",flow="import",outcome="done"} 2',
    'jobboard_run_seconds_count{board="memory:",flow="import",outcome="trashed"} 1',
    'jobboard_run_seconds_count{board="memory:",flow="import",outcome="cancelled"} 1',
  ])
  const { status, type, text } = await read()
  expect({ status, type }).toEqual({ status: 200, type: 'text/plain; version=0.0.4; charset=utf-8' })
  expect(text).toMatch(/^jobboard_info\{release="2\.1",version="\d.*",node="\d.*",tz=".*"\} 1$/m)
})

test('of a conductor that has stopped say so, for as long as the application serves them', async () => {
  const telemetry = prometheus()
  const { conductor } = await openSetup({ telemetry })
  const lines = () => telemetry.text().match(/^jobboard_(ready|slots|session_connected)\b.*$/gm)
  expect(lines()).toEqual(['jobboard_slots 3', 'jobboard_ready 1', 'jobboard_session_connected{board="memory:"} 1'])
  await conductor.stop()
  expect(lines()).toEqual(['jobboard_slots 0', 'jobboard_ready 0', 'jobboard_session_connected{board="memory:"} 0'])
})

test('count the jobs of schedules, and how late they are', async () => {
  const fired = createDeferred()
  const { conductor, lines } = await openSetup({
    schedules: [schedule('often', { every: '1s' }, 'import', { how: 'done' })],
  })
  conductor.on('fired', () => fired.resolve())
  await fired.promise
  const [counted] = await lines('schedule_fired')
  expect(counted).toMatch(/^jobboard_schedule_fired_total\{schedule="often"\} \d+$/)
  expect(await lines('schedule_late_seconds_count')).toHaveLength(1)
})

test.skipIf(!promtool)('are accepted by promtool', async () => {
  const { board, flow, read } = await openSetup()
  await (await board.post(flow, { how: 'done' })).wait()
  expect(await checkMetrics((await read()).text)).toBe('')
})

test('are not there unless they are asked for', async () => {
  const { read } = await openSetup({ metrics: false })
  expect(await read()).toMatchObject({ status: 404, text: expect.stringContaining('/metrics of a conductor with') })
})

test.each([
  ['text', 'metrics must be true, false, or an object'],
  [{ maxNames: 0 }, 'maxNames must be a whole number from 1, got 0'],
  [{ maxName: 1 }, 'metrics has no option "maxName"'],
])('of a wrong kind are refused: %j', async (metrics, says) => {
  await expect(openSetup({ metrics: metrics as never })).rejects.toThrow(says)
})
