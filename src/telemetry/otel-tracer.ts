/** Starts spans with a tracer of OpenTelemetry. */
import { packageVersion } from '../core/package-version.ts'
import type {
  Span,
  SpanEnd,
  SpanLogFields,
  TraceContext,
  TracedPost,
  TracedRun,
  TracedTask,
  Tracer,
} from '../core/tracing.ts'
import {
  CREATED,
  ERROR_TYPE,
  MESSAGE_COUNT,
  MESSAGE_ID,
  namePost,
  nameRun,
  nameTask,
  OUTCOME,
  SCOPE_NAME,
  SPAN_KIND,
  STATUS_ERROR,
} from './conventions.ts'
import type {
  OpenTelemetryApi,
  OtelAttributes,
  OtelContext,
  OtelSpan,
  OtelSpanContext,
  OtelTracer,
  OtelTracerProvider,
} from './open-telemetry-api.ts'

/**
 * The relation of a run's span to the span of its post. `link` (the default): a run is a trace of its own, with a link to the post. `parent`:
 * the first run is in the trace of the post, and later ones have a link. `none`: postings contain no context.
 */
export type Propagation = 'link' | 'parent' | 'none'

interface TracingParts {
  readonly api: OpenTelemetryApi
  readonly tracer: OtelTracer
}

export class ApiTracer implements Tracer {
  readonly #parts: TracingParts
  readonly #propagation: Propagation

  constructor({
    api,
    provider,
    propagation,
  }: {
    readonly api: OpenTelemetryApi
    readonly provider: OtelTracerProvider
    readonly propagation: Propagation
  }) {
    this.#parts = { api, tracer: provider.getTracer(SCOPE_NAME, packageVersion()) }
    this.#propagation = propagation
  }

  /** Starts the span of a post, as a child of the span that is active at its caller. */
  startPost(post: TracedPost): Span {
    const { api, tracer } = this.#parts
    const { name, attributes } = namePost(post)
    const span = tracer.startSpan(name, { kind: SPAN_KIND.producer, attributes }, api.context.active())
    return new ApiSpan(span, { ...this.#parts, hidesContext: this.#propagation === 'none' })
  }

  startRun(run: TracedRun): Span {
    const { api, tracer } = this.#parts
    const { name, attributes } = nameRun(run)
    const posted = this.#propagation === 'none' || !run.posted ? undefined : toSpanContext(api, run.posted)
    const isChild = posted && this.#propagation === 'parent' && run.run === 1
    const links = posted && !isChild ? [{ context: posted }] : []
    const parent = isChild ? api.trace.setSpanContext(api.ROOT_CONTEXT, posted) : api.ROOT_CONTEXT
    const span = tracer.startSpan(name, { kind: SPAN_KIND.consumer, attributes, links, root: !isChild }, parent)
    return new ApiSpan(span, this.#parts)
  }

  within<T>(context: TraceContext, work: () => T): T {
    const { api } = this.#parts
    const parent = toSpanContext(api, context)
    return api.context.with(parent ? api.trace.setSpanContext(api.ROOT_CONTEXT, parent) : api.ROOT_CONTEXT, work)
  }

  detach<T>(work: () => T): T {
    const { api } = this.#parts
    return api.context.with(api.ROOT_CONTEXT, work)
  }
}

class ApiSpan implements Span {
  readonly #span: OtelSpan
  readonly #parts: TracingParts
  readonly #hidesContext: boolean
  #inside: OtelContext | undefined

  constructor(span: OtelSpan, { hidesContext = false, ...parts }: TracingParts & { readonly hidesContext?: boolean }) {
    this.#span = span
    this.#parts = parts
    this.#hidesContext = hidesContext
  }

  get context(): TraceContext | undefined {
    const context = this.#span.spanContext()
    if (this.#hidesContext || !this.#parts.api.isSpanContextValid(context)) return undefined
    return toTraceContext(context)
  }

  get logFields(): SpanLogFields {
    const context = this.#span.spanContext()
    if (!this.#parts.api.isSpanContextValid(context)) return {}
    return { trace_id: context.traceId, span_id: context.spanId }
  }

  within<T>(work: () => T): T {
    return this.#parts.api.context.with(this.#toInside(), work)
  }

  startTask(task: TracedTask): Span {
    const { name, attributes } = nameTask(task)
    const span = this.#parts.tracer.startSpan(name, { kind: SPAN_KIND.internal, attributes }, this.#toInside())
    return new ApiSpan(span, this.#parts)
  }

  detach<T>(work: () => T): T {
    const { api } = this.#parts
    return api.context.with(api.ROOT_CONTEXT, work)
  }

  end({ errorType, message, outcome, uuid, created, count }: SpanEnd): void {
    const attributes: OtelAttributes = {
      ...(errorType === undefined ? {} : { [ERROR_TYPE]: errorType }),
      ...(outcome === undefined ? {} : { [OUTCOME]: outcome }),
      ...(uuid === undefined ? {} : { [MESSAGE_ID]: uuid }),
      ...(created === undefined ? {} : { [CREATED]: created }),
      ...(count === undefined ? {} : { [MESSAGE_COUNT]: count }),
    }
    this.#span.setAttributes(attributes)
    if (errorType !== undefined)
      this.#span.setStatus({ code: STATUS_ERROR, ...(message === undefined ? {} : { message }) })
    this.#span.end()
  }

  /** Returns the context within this span. It inherits nothing from the caller's context. */
  #toInside(): OtelContext {
    const { api } = this.#parts
    this.#inside ??= api.trace.setSpan(api.ROOT_CONTEXT, this.#span)
    return this.#inside
  }
}

function toTraceContext({ traceId, spanId, traceFlags, traceState }: OtelSpanContext): TraceContext {
  const traceparent = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`
  const tracestate = traceState?.serialize() ?? ''
  return tracestate === '' ? { traceparent } : { traceparent, tracestate }
}

/** Returns the context of a span of another process; undefined if it is not valid, as in a version of the format with other fields. */
function toSpanContext(api: OpenTelemetryApi, { traceparent, tracestate }: TraceContext): OtelSpanContext | undefined {
  const [, traceId = '', spanId = '', flags = ''] = traceparent.split('-')
  const context = {
    ...{ traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true },
    ...(tracestate === undefined ? {} : { traceState: api.createTraceState(tracestate) }),
  }
  return api.isSpanContextValid(context) ? context : undefined
}
