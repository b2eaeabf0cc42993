/**
 * Wraps a backend, so that its requests run outside of every span. The first caller starts the loops, connections and group commits that all
 * callers share: without this wrapper, they would belong to the trace of the first caller for as long as the board is open.
 */
import type { Tracer } from '../../core/tracing.ts'
import type { Backend } from '../contract/index.ts'

/** The parts of a backend that send requests, too. */
const PARTS: ReadonlySet<string | symbol> = new Set(['sections', 'batches'] satisfies (keyof Backend)[])

/** Returns the backend with all of its functions called outside of every span. */
export function detachedBackend(backend: Backend, tracer: Pick<Tracer, 'detach'>): Backend {
  return detachedObject(backend, tracer)
}

function detachedObject<T extends object>(target: T, tracer: Pick<Tracer, 'detach'>): T {
  const wrapped = new Map<unknown, unknown>()
  const wrap = (value: unknown, key: string | symbol): unknown => {
    if (typeof value === 'function')
      return (...args: readonly unknown[]) => tracer.detach(() => Reflect.apply(value, target, args))
    return PARTS.has(key) && typeof value === 'object' && value !== null ? detachedObject(value, tracer) : value
  }
  return new Proxy(target, {
    get: (_, key) => {
      const value: unknown = Reflect.get(target, key, target)
      if (typeof value !== 'function' && !PARTS.has(key)) return value
      if (!wrapped.has(value)) wrapped.set(value, wrap(value, key))
      return wrapped.get(value)
    },
  })
}
