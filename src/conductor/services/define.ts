/**
 * Defines the services of tasks (`ctx.services`), with a scope, a health check and dependencies on each other.
 *
 * | scope | is made | is disposed of |
 * |---|---|---|
 * | `process` | once in each process, before the conductor claims or the child takes work | when nothing runs any more |
 * | `job` | for each run of a job, before its flow begins; in a child process, for each task | when no code of the run executes any more |
 *
 * Services are made in the order of the object, so a service can use the services above it and no cycle is possible. They are disposed of in the
 * reverse order. There is no container and no reflection: a service is a function, and the compiler checks what it needs.
 */
import { InvalidArgument } from '../../core/errors.ts'
import { assertOptions } from '../../core/options.ts'
import { type Duration, toMilliseconds } from '../../core/time.ts'
import type { Context } from '../../flow/index.ts'

/** The lifetime of a service: one for the process, or one for each run of a job. */
export type ServiceScope = 'process' | 'job'

/** The context of the run for which a service of scope `job` is made. `signal` fires when the run has to stop. */
export type ServiceContext = Pick<Context, 'job' | 'schedule' | 'batch' | 'run' | 'fence' | 'signal'>

/** The options of `service`. */
export interface ServiceOptions<S> {
  /** Whether one is made for the process (the default), or for each run of a job. */
  readonly scope?: ServiceScope
  /**
   * Rejects when the service cannot be used. A conductor calls it every ten seconds for services of the process; while one is unhealthy, it
   * claims no jobs, and `/readyz` names the service.
   */
  readonly health?: (service: S) => unknown
  /** Disposes of the service; by default its `Symbol.asyncDispose` or `Symbol.dispose` is called, if it has one. */
  readonly dispose?: (service: S) => unknown
  /** The time limit for making the service, and for disposing of it: a service that takes longer is left behind; 30 s by default. */
  readonly timeout?: Duration
}

/**
 * The definition of one service.
 *
 * @typeParam N the services that it needs
 * @typeParam S the service itself
 */
export interface ServiceDefinition<in N, out S> {
  readonly make: (services: N, context: ServiceContext) => S | Promise<S>
  readonly scope: ServiceScope
  readonly timeoutMs: number
  health?(service: unknown): unknown
  dispose?(service: unknown): unknown
}

export type Definitions = Readonly<Record<string, ServiceDefinition<never, unknown>>>

type MadeBy<D extends Definitions> = {
  readonly [K in keyof D]: D[K] extends ServiceDefinition<never, infer S> ? S : never
}

/** The definitions. A definition that needs a service which is not defined has an error text as its type. */
type Fulfilled<D extends Definitions> = {
  readonly [K in keyof D]: D[K] extends ServiceDefinition<infer N, unknown>
    ? MadeBy<D> extends N
      ? D[K]
      : `service ${K & string} needs services that are not defined here`
    : never
}

/** The mark of defined services: a registered symbol, so that two copies of the library in one process recognize each other's. */
const MARK = Symbol.for('jobboard.services')
declare const SERVICES: unique symbol

/** Defined services, which are not made yet. */
export interface DefinedServices<S> {
  /** The type of the services, for the compiler. */
  readonly [SERVICES]?: S
  /** @internal */
  readonly definitions: Definitions
}

/** Returns whether the value was made by `defineServices`, of this or of another copy of the library. */
export function isDefinedServices(value: unknown): value is DefinedServices<unknown> {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, MARK)
}

/** Returns the services with the mark by which they are recognized. */
export function toDefinedServices<S>(
  definitions: Iterable<readonly [string, Definitions[string]]>,
): DefinedServices<S> {
  return Object.freeze(Object.defineProperty({ definitions: Object.fromEntries(definitions) }, MARK, { value: true }))
}

/** The time limit for making a service, and for disposing of it. */
export const DEFAULT_TIMEOUT = '30s'

/**
 * Defines one service: a function that makes it, or a promise of it, from the services above it.
 *
 * @param make its first parameter needs a type annotation if it is used: the services that this one needs
 * @throws InvalidArgument
 * @example service(({ db }: { db: Pool }, { job }) => new Tenant(db, job?.details['tenant']), { scope: 'job' })
 */
export function service<S, N = unknown>(
  make: (services: N, context: ServiceContext) => S | Promise<S>,
  options: ServiceOptions<NoInfer<S>> = {},
): ServiceDefinition<N, S> {
  if (typeof make !== 'function') throw new InvalidArgument('service: the first argument must be a function')
  assertOptions<ServiceOptions<S>>(options, { scope: true, health: true, dispose: true, timeout: true }, 'service')
  const { scope = 'process', health, dispose, timeout = DEFAULT_TIMEOUT } = options
  if (scope !== 'process' && scope !== 'job')
    throw new InvalidArgument(`service: scope must be 'process' or 'job', got ${JSON.stringify(scope)}`)
  for (const [name, value] of Object.entries({ health, dispose })) {
    if (value !== undefined && typeof value !== 'function')
      throw new InvalidArgument(`service: ${name} must be a function`)
  }
  if (health && scope === 'job') throw new InvalidArgument("service: health is for services of scope 'process'")
  return {
    ...{ make, scope, timeoutMs: toMilliseconds(timeout, 'timeout') },
    // The functions get what `make` returned.
    ...(health && { health: (value: unknown) => health(value as S) }),
    ...(dispose && { dispose: (value: unknown) => dispose(value as S) }),
  }
}

/**
 * Defines the services of a process. Pass the result as the option `services`, or export it as `services` from the module of the flows.
 *
 * @throws InvalidArgument
 * @example
 * export const services = defineServices({
 *   db: service(() => connect(process.env.DATABASE), { health: (db) => db.ping() }),
 *   tenant: service(({ db }: { db: Database }, { job }) => db.schema(job?.details['tenant']), { scope: 'job' }),
 * })
 */
export function defineServices<D extends Definitions>(definitions: D & Fulfilled<D>): DefinedServices<MadeBy<D>> {
  if (typeof definitions !== 'object' || definitions === null)
    throw new InvalidArgument('defineServices: the argument must be an object, as in { db: service(() => connect()) }')
  for (const [name, definition] of Object.entries<Partial<ServiceDefinition<never, unknown>>>(definitions)) {
    if (typeof definition?.make !== 'function' || definition.scope === undefined)
      throw new InvalidArgument(`defineServices: ${name} must be what service(…) returns`)
  }
  return toDefinedServices(Object.entries(definitions))
}

/**
 * Returns the services with some of them replaced by the given objects, which are not disposed of: for tests.
 *
 * @throws InvalidArgument for a name that is not defined
 * @example withServices(services, { db: fakeDatabase })
 */
export function withServices<S>(
  defined: DefinedServices<S>,
  replaced: { readonly [K in keyof S]?: S[K] },
): DefinedServices<S> {
  const known = Object.keys(defined.definitions)
  const definitions: Record<string, ServiceDefinition<never, unknown>> = { ...defined.definitions }
  for (const [name, value] of Object.entries(replaced)) {
    if (!known.includes(name))
      throw new InvalidArgument(`withServices: there is no service ${name}; the services are ${known.join(', ')}`)
    definitions[name] = service(() => value, { dispose: () => undefined })
  }
  return toDefinedServices(Object.entries(definitions))
}
