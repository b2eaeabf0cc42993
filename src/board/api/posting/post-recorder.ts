/** Records posts: a span for each call that posts, and the number of jobs that were created. */
import { failureOf, toErrorType } from '../../../core/failure.ts'
import type { Logger } from '../../../core/log.ts'
import { Meter } from '../../../core/metrics.ts'
import type { Span, TraceContext } from '../../../core/tracing.ts'
import type { AnyFlow } from '../../../flow/index.ts'
import type { Telemetry } from '../../../telemetry/index.ts'
import type { Job } from '../../jobs/job.ts'

/** A job as `post` returns it: see `PostedJob`. */
type Recorded = Pick<Job, 'uuid' | 'details'> & { readonly created: boolean }

export class PostRecorder {
  readonly #telemetry: Telemetry
  readonly #board: string
  readonly #meter: Meter | undefined

  constructor({
    telemetry,
    board,
    log,
  }: { readonly telemetry: Telemetry; readonly board: string; readonly log: Logger }) {
    const { metrics } = telemetry
    this.#telemetry = telemetry
    this.#board = board
    const onTooMany = (label: string) =>
      log.warn({ label }, 'metrics: jobs of very many flows are posted; further ones count as other')
    this.#meter = metrics && new Meter({ sinks: [metrics], onTooMany })
  }

  /** Posts a job within a span. `post` gets the context of the span, which the posting carries. */
  async one<J extends Recorded>(
    flow: AnyFlow | string,
    post: (trace: TraceContext | undefined) => Promise<J>,
  ): Promise<J> {
    const name = typeof flow === 'string' ? flow : flow?.name
    const span = this.#telemetry.tracer?.startPost({ board: this.#board, flow: name })
    return recordEnd(span, async () => {
      const job = await post(span?.context)
      this.count(job)
      return { result: job, end: { uuid: job.uuid, created: job.created } }
    })
  }

  /** Posts many jobs within one span, whose context all of the postings carry. `post` calls {@link count} for each job. */
  async many<T>(post: (trace: TraceContext | undefined, count: (job: Recorded) => void) => Promise<T>): Promise<T> {
    const span = this.#telemetry.tracer?.startPost({ board: this.#board, flow: undefined })
    let created = 0
    const count = (job: Recorded) => {
      if (job.created) created += 1
      this.count(job)
    }
    return recordEnd(span, async () => ({ result: await post(span?.context, count), end: { count: created } }))
  }

  /** Counts a job, if it was created. */
  count({ created, details }: Recorded): void {
    if (created) this.#meter?.record('jobboard_jobs_posted_total', 1, { flow: details.flow ?? 'none' })
  }
}

async function recordEnd<T>(
  span: Span | undefined,
  work: () => Promise<{ readonly result: T; readonly end: Parameters<Span['end']>[0] }>,
): Promise<T> {
  try {
    const { result, end } = await work()
    span?.end(end)
    return result
  } catch (error) {
    span?.end({ errorType: toErrorType(failureOf(error)) })
    throw error
  }
}
