/** The context of the span that posts a job is in its posting, for as long as there is a job. */
import { expect, test } from 'vitest'
import type { Span, Tracer } from '../../../src/core/tracing.ts'
import { all, claimed, refresh } from '../../board/jobs.ts'
import type { Place } from '../board.ts'

const CONTEXT = {
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  tracestate: 'vendor=value,other=one',
}

/** Returns a tracer whose spans all have the context, with the ends of these spans. */
export function fakeTracer(context: Span['context'] = CONTEXT) {
  const ends: Parameters<Span['end']>[0][] = []
  const span: Span = {
    ...{ context, logFields: {} },
    within: (work) => work(),
    startTask: () => span,
    detach: (work) => work(),
    end: (how) => void ends.push(how),
  }
  const tracer: Tracer = {
    startPost: () => span,
    startRun: () => span,
    within: (_, work) => work(),
    detach: (work) => work(),
  }
  return { tracer, ends }
}

export function tracingContract({ open }: Place): void {
  test('the context of the post reaches the owner, of every job of a call; other postings have none', async () => {
    const { tracer, ends } = fakeTracer()
    const [traced, plain] = await Promise.all([open({ telemetry: { tracer } }), open()])
    await traced.post('flow', {}, { name: 'one' })
    await traced.postMany([{ flow: 'flow', store: {}, name: 'many' }])
    await plain.post('flow', {}, { name: 'plain' })
    await refresh(plain)
    expect((await claimed(plain, 'one')).posting).toMatchObject(CONTEXT)
    expect((await claimed(plain, 'many')).posting).toMatchObject(CONTEXT)
    const { posting } = await claimed(plain, 'plain')
    expect([posting.traceparent, posting.tracestate]).toEqual([undefined, undefined])
    expect(ends).toMatchObject([{ created: true }, { count: 1 }])
  })

  test('the context survives the trash', async () => {
    const [traced, plain] = await Promise.all([open({ telemetry: fakeTracer() }), open()])
    await traced.post('flow', {}, { name: 'job' })
    await refresh(plain)
    await (await claimed(plain, 'job')).trash()
    const [entry] = await all(plain.trashed())
    if (entry) await plain.restore(entry)
    await refresh(plain)
    expect((await claimed(plain, 'job')).posting).toMatchObject(CONTEXT)
  })
}
