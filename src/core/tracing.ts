/**
 * What boards and conductors need of tracing: spans around a post, a run and a task, and the identity of a span that a posting carries to the
 * process that runs the job. `src/telemetry/` has the implementation; without one, nothing of this is called.
 *
 * Only these three are traced. The loops of this library (claims, heartbeats, views, schedules) run outside of every span, also outside of the
 * one that was active where they were started: a loop that inherits it adds to that one trace for as long as the process lives.
 */

/** The identity of a span, in the form of W3C Trace Context. */
export interface TraceContext {
  readonly traceparent: string
  readonly tracestate?: string
}

/** The maximum length of a `tracestate`, which is that of the W3C; a longer one is left out. */
const MAX_TRACESTATE_LENGTH = 512
const TRACEPARENT_PATTERN = /^(?!ff)[\da-f]{2}-(?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16}-[\da-f]{2}$/
const PRINTABLE_ASCII_PATTERN = /^[ -~]+$/

/**
 * Returns the trace context of a record that anybody may have written. What is invalid is left out, and a context without a valid
 * `traceparent` as a whole: it must not cost a job.
 */
export function parseTraceContext({
  traceparent,
  tracestate,
}: {
  readonly traceparent?: unknown
  readonly tracestate?: unknown
}): TraceContext | undefined {
  if (typeof traceparent !== 'string' || !TRACEPARENT_PATTERN.test(traceparent)) return undefined
  const isValidState =
    typeof tracestate === 'string' &&
    tracestate.length <= MAX_TRACESTATE_LENGTH &&
    PRINTABLE_ASCII_PATTERN.test(tracestate)
  return isValidState ? { traceparent, tracestate } : { traceparent }
}

/** The fields by which log lines are found from a span. */
export interface SpanLogFields {
  readonly trace_id?: string
  readonly span_id?: string
}

/** How the work of a span has ended. */
export interface SpanEnd {
  /** The class or the code of the error, if it has failed. */
  readonly errorType?: string | undefined
  /** The text of the error, if it may be shown. */
  readonly message?: string | undefined
  /** The outcome of a run, as in the metrics. */
  readonly outcome?: string | undefined
  /** The uuid of the job that was posted. */
  readonly uuid?: string | undefined
  /** Whether a post has created its job. */
  readonly created?: boolean | undefined
  /** The number of jobs that were posted. */
  readonly count?: number | undefined
}

/** A span: of a post, a run, or a task. */
export interface Span {
  /** Undefined where nothing records spans. */
  readonly context: TraceContext | undefined
  readonly logFields: SpanLogFields
  /** Calls `work` within the span: spans that are started there are its children. */
  within<T>(work: () => T): T
  /** Starts the span of a task; of the span of a run. */
  startTask(task: TracedTask): Span
  /** Calls `work` outside of every span. */
  detach<T>(work: () => T): T
  end(how: SpanEnd): void
}

/** A post: of one job, or of several by one call. */
export interface TracedPost {
  readonly board: string
  /** The flow; undefined where the jobs may have several. */
  readonly flow: string | undefined
}

/** A run of a job. */
export interface TracedRun {
  readonly board: string
  readonly flow: string | undefined
  readonly uuid: string
  readonly run: number
  /** The context of the span that has posted the job, if it had one. */
  readonly posted: TraceContext | undefined
}

/** A call of a task or of a retry. */
export interface TracedTask {
  readonly flow: string
  readonly task: string
  readonly step: 'execute' | 'revert' | 'decide'
}

/** Starts spans. Never throws. */
export interface Tracer {
  startPost(post: TracedPost): Span
  startRun(run: TracedRun): Span
  /** Calls `work` within a span of another process. */
  within<T>(context: TraceContext, work: () => T): T
  /** Calls `work` outside of every span. */
  detach<T>(work: () => T): T
}

/** Calls `work` outside of every span, if there is tracing. */
export function detached<T>(tracer: Pick<Tracer, 'detach'> | undefined, work: () => T): T {
  return tracer ? tracer.detach(work) : work()
}
