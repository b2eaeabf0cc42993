/** The spans of posts, runs and tasks: how they belong together, and that nothing else is traced. */
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import {
  type ConductorOptions,
  input,
  linear,
  openBoard,
  openTelemetry,
  type Propagation,
  startConductor,
  task,
} from '../../src/index.ts'
import { compiled } from '../support/compiled.ts'
import { linksOf, openSdk } from '../telemetry/sdk.ts'
import { services, traced } from './isolation/traced-flows.ts'

async function openSetup({
  propagation,
  ...options
}: Partial<ConductorOptions> & { readonly propagation?: Propagation } = {}) {
  const sdk = openSdk()
  const telemetry = openTelemetry(sdk.api, propagation ? { propagation } : {})
  const board = await openBoard('memory:', { telemetry })
  onTestFinished(() => board.close())
  const flow = linear(
    'import',
    input<{ how: string }>(),
    task('work', {
      requires: ['how'],
      execute: async ({ how }: { how: string }, { log, run }) => {
        await sdk.tracer.startActiveSpan('user', async (span) => {
          await Promise.resolve()
          span.end()
        })
        log.info('at work')
        if (how === 'fail' || (how === 'fail once' && run === 1)) throw new TypeError('it fails with a secret')
      },
      revert: () => undefined,
    }),
  )
  const lines: Record<string, unknown>[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const start = () =>
    startConductor({ ...{ board, persistence: 'memory:', flows: [flow], telemetry, log }, ...options })
  // As an application might, whose start is traced.
  const conductor = await sdk.tracer.startActiveSpan('start', async (span) => {
    const started = await start()
    span.end()
    return started
  })
  onTestFinished(() => conductor.stop())
  /** Posts within a span of a request, and waits for the end. */
  const post = (how: string) =>
    sdk.tracer.startActiveSpan('request', async (span) => {
      const job = await board.post(flow, { how }, { maxAttempts: 2, backOff: { first: 0 } })
      span.end()
      await job.wait()
      return job
    })
  const ended = async (name: string, count = 1) => {
    await expect.poll(() => sdk.spans().filter((span) => span.name === name).length).toBe(count)
    return sdk.spans().filter((span) => span.name === name)
  }
  return { ...sdk, board, flow, conductor, lines, post, ended }
}

const idOf = (span: { spanContext(): { spanId: string } } | undefined) => span?.spanContext().spanId

test('a run is a trace of its own with a link to its post, and what a task traces is within it', async () => {
  const { post, ended, find, spans } = await openSetup()
  const job = await post('done')
  const [run] = await ended('run import')
  const [posted, request, work, user] = ['post import', 'request', 'execute work', 'user'].map(find)
  expect(posted?.parentSpanContext?.spanId).toBe(idOf(request))
  expect(run?.parentSpanContext).toBeUndefined()
  expect(run?.spanContext().traceId).not.toBe(posted?.spanContext().traceId)
  expect(linksOf(run, spans())).toEqual(['post import'])
  expect(work?.parentSpanContext?.spanId).toBe(idOf(run))
  expect(user?.parentSpanContext?.spanId).toBe(idOf(work))
  expect(posted?.attributes).toMatchObject({
    'messaging.system': 'jobboard',
    'messaging.operation.name': 'post',
    'messaging.operation.type': 'send',
    'messaging.destination.name': 'import',
    'messaging.message.id': job.uuid,
    'jobboard.created': true,
  })
  expect(run?.attributes).toMatchObject({
    'messaging.operation.type': 'process',
    'messaging.message.id': job.uuid,
    'jobboard.run': 1,
    'jobboard.outcome': 'done',
  })
})

test('no span is a child of what was active at the start of the conductor, or at a post', async () => {
  const { post, ended, find, spans } = await openSetup()
  await post('done')
  await post('done')
  await ended('run import', 2)
  const outer = [idOf(find('start'))]
  const children = spans().filter(({ parentSpanContext }) => outer.includes(parentSpanContext?.spanId))
  expect(children).toEqual([])
  const names = spans().map(({ name }) => name)
  expect([...new Set(names)].sort()).toEqual(['execute work', 'post import', 'request', 'run import', 'start', 'user'])
})

test('listeners and hooks run outside of every span', async () => {
  const active: unknown[] = []
  const { api, post, ended, conductor } = await openSetup({
    hooks: { settled: () => void active.push(api.trace.getActiveSpan()) },
  })
  conductor.on('started', () => active.push(api.trace.getActiveSpan()))
  await post('done')
  await ended('run import')
  await expect.poll(() => active.length).toBe(2)
  expect(active).toEqual([undefined, undefined])
})

test('with parent, the first run is in the trace of its post, and a later one has a link', async () => {
  const { post, ended, find, spans } = await openSetup({ propagation: 'parent' })
  await post('fail once')
  const [first, second] = await ended('run import', 2)
  expect(first?.parentSpanContext?.spanId).toBe(idOf(find('post import')))
  expect(linksOf(first, spans())).toEqual([])
  expect(second?.parentSpanContext).toBeUndefined()
  expect(linksOf(second, spans())).toEqual(['post import'])
})

test('with none, runs know nothing of their posts', async () => {
  const { post, ended, board } = await openSetup({ propagation: 'none' })
  await post('done')
  const [run] = await ended('run import')
  expect([run?.links, run?.parentSpanContext]).toEqual([[], undefined])
  expect(board.connected).toBe(true)
})

test('a failed task and a failed run say so; of the error of a task, only its class', async () => {
  const { post, ended, find, spans } = await openSetup()
  await post('fail')
  const runs = await ended('run import', 2)
  expect(runs.map(({ attributes }) => attributes['jobboard.outcome'])).toEqual(['failed', 'trashed'])
  expect(runs.map(({ status }) => status.code)).toEqual([2, 2])
  expect(find('execute work')).toMatchObject({ status: { code: 2 }, attributes: { 'error.type': 'TypeError' } })
  expect(find('revert work')).toMatchObject({ status: { code: 0 } })
  const tasks = spans().filter(({ name }) => name.endsWith('work'))
  expect(JSON.stringify(tasks.map(({ status, attributes, events }) => ({ status, attributes, events })))).not.toContain(
    'secret',
  )
})

test('where failures on the board are named only, so is the failure of a run', async () => {
  const { post, ended } = await openSetup({ failuresOnBoard: 'named' })
  await post('fail')
  const [run] = await ended('run import', 2)
  expect(run?.attributes['error.type']).toBe('TypeError')
  expect(run?.status.message).not.toContain('secret')
})

test('log lines name the span that they belong to', async () => {
  const { post, ended, find, lines } = await openSetup()
  await post('done')
  const [run] = await ended('run import')
  const fieldsOf = (span: typeof run) => {
    const { traceId, spanId } = span?.spanContext() ?? {}
    return { trace_id: traceId, span_id: spanId }
  }
  expect(lines.find(({ msg }) => msg === 'at work')).toMatchObject(fieldsOf(find('execute work')))
  expect(lines.find(({ msg }) => msg === 'job consumed')).toMatchObject(fieldsOf(run))
  expect(lines.find(({ msg }) => msg === 'conductor started')).not.toHaveProperty('trace_id')
})

test('many posts by one call have one span, which counts them', async () => {
  const { board, flow, ended, spans } = await openSetup()
  const results = await board.postMany(['done', 'done', 'done'].map((how) => ({ flow, store: { how } })))
  expect(results).toHaveLength(3)
  const runs = await ended('run import', 3)
  const [posted] = await ended('post several flows')
  expect(posted?.attributes['messaging.batch.message_count']).toBe(3)
  for (const run of runs) expect(linksOf(run, spans())).toEqual(['post several flows'])
})

test('the metrics of a conductor and its board go to the meter', async () => {
  const { post, ended, metrics } = await openSetup({ concurrency: 3 })
  await post('done')
  await ended('run import')
  const read = await metrics()
  expect(read.get('jobboard.jobs_posted')?.dataPoints).toMatchObject([{ attributes: { flow: 'import' }, value: 1 }])
  expect(read.get('jobboard.runs')?.dataPoints).toMatchObject([
    { attributes: { flow: 'import', outcome: 'done' }, value: 1 },
  ])
  expect(read.get('jobboard.slots')?.dataPoints).toMatchObject([{ value: 3 }])
  expect(read.get('jobboard.ready')?.dataPoints).toMatchObject([{ value: 1 }])
})

test('an isolated task runs within its span in the child, and its log lines name it', async () => {
  const { api, find, ended } = await openSetup()
  const telemetry = openTelemetry(api)
  await using board = await openBoard('memory:', { telemetry })
  const lines: Record<string, unknown>[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const module = await compiled(fileURLToPath(new URL('./isolation/traced-flows.ts', import.meta.url)), {
    library: 'built',
  })
  await using _conductor = await startConductor({
    ...{ board, persistence: 'memory:', flows: [traced], services, log, telemetry },
    pool: { module, max: 1 },
  })
  const { results } = await board.result(await board.post(traced, {}), { flow: traced })
  await ended('run traced')
  const { traceId, spanId } = find('execute look')?.spanContext() ?? {}
  expect(results.seen).toEqual({ pid: expect.any(Number), traceId, spanId, isRemote: true })
  expect(results.seen.pid).not.toBe(process.pid)
  expect(lines.find(({ msg }) => msg === 'in a child')).toMatchObject({ trace_id: traceId, span_id: spanId })
})
