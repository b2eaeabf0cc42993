/**
 * The interface of tracing for boards and conductors: spans of posts, runs and tasks, and the trace context in a posting, by which the
 * process that runs a job refers to the span of its post. `src/telemetry/` has the implementation; without one, nothing of this is called.
 *
 * Only these three are traced. The loops of this library (claims, heartbeats, views, schedules) run outside of every span, also outside of
 * the span that was active where they were started: a loop that inherits a span adds to its trace for as long as the process lives.
 */

/** The identity of a span, in the form of W3C Trace Context. */
export interface TraceContext {
  readonly traceparent: string
  readonly tracestate?: string
}

/** The maximum length of a `tracestate`, as in the W3C's specification; a longer one is ignored. */
const MAX_TRACESTATE_LENGTH = 512
const TRACEPARENT_PATTERN = /^(?!ff)[\da-f]{2}-(?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16}-[\da-f]{2}$/
const PRINTABLE_ASCII_PATTERN = /^[ -~]+$/

/**
 * Parses the trace context of a posting, which another program may have written. Ignores an invalid `tracestate`, and returns undefined
 * without a valid `traceparent`: an invalid context must not make the job fail.
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

/** The fields of log lines by which they are found from a span. */
export interface SpanLogFields {
  readonly trace_id?: string
  readonly span_id?: string
}

/** The end of the work of a span. */
export interface SpanEnd {
  /** The class or the code of the error, if the work has failed. */
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

/** A span of a post, a run, or a task. */
export interface Span {
  /** The context that a posting keeps; undefined if nothing records spans, or if postings contain no context. */
  readonly context: TraceContext | undefined
  readonly logFields: SpanLogFields
  /** Calls `work` within the span: spans that are started there are its children. */
  within<T>(work: () => T): T
  /** Starts the span of a task within the span of its run. */
  startTask(task: TracedTask): Span
  /** Calls `work` outside of every span. */
  detach<T>(work: () => T): T
  end(how: SpanEnd): void
}

/** A call that posts one job, or several. */
export interface TracedPost {
  readonly board: string
  /** The flow; undefined if the jobs have several. */
  readonly flow: string | undefined
}

/** A run of a job. */
export interface TracedRun {
  readonly board: string
  readonly flow: string | undefined
  readonly uuid: string
  readonly run: number
  /** The context of the span of the post, if the posting contains one. */
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
