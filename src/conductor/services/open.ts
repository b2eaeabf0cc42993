/**
 * The services of tasks (`ctx.services`), as the option `services` gives them.
 *
 * | given | made | disposed of |
 * |---|---|---|
 * | an object | by its creator | by its creator |
 * | a function | once, before any job is claimed | when nothing runs any more: the object itself, or else each of its values |
 * | `defineServices(…)` | by scope: see `define.ts` | by scope |
 */
import { InvalidArgument } from '../../core/errors.ts'
import { toMilliseconds } from '../../core/time.ts'
import type { AnyFlow, ServicesOf } from '../../flow/index.ts'
import { DEFAULT_TIMEOUT, type DefinedServices, isDefinedServices, type ServiceContext } from './define.ts'
import { disposeInTime, disposeService, isDisposable, makeServices, PROCESS_CONTEXT } from './make.ts'

/**
 * An object, which is not disposed of; a function that makes one, whose result is disposed of at the end; or services with scopes, as
 * `defineServices` makes them.
 */
export type ServicesGiven<S> = S | (() => S | Promise<S>) | DefinedServices<S>

/** The option `services`, required where the compiler knows of a flow that needs some. */
export type ServicesFor<Flows extends readonly AnyFlow[]> =
  unknown extends ServicesOf<Flows> ? unknown : { readonly services: ServicesGiven<ServicesOf<Flows>> }

/** A service of the process whose health can be checked. */
export interface CheckableService {
  readonly name: string
  /** @throws the reason why the service cannot be used */
  check(): Promise<void>
}

/** The services of a process; disposing of it disposes of those that were made for it. */
export interface OpenServices extends AsyncDisposable {
  readonly checkable: readonly CheckableService[]
  /** The services of the process. */
  readonly shared: unknown
  /**
   * Makes the services for one run of a job, with those of the process. Disposing of the result disposes of those that were made for the
   * run. Undefined if there are no such services: then a run begins without a further turn of the event loop.
   *
   * @throws the error of a service that cannot be made; the reason of the signal
   */
  readonly forRun?: ((context: ServiceContext) => Promise<RunServices>) | undefined
}

/** The services for one run. */
export interface RunServices extends AsyncDisposable {
  readonly services: unknown
}

/** Returns the services for one run. @throws the error of a service that cannot be made; the reason of the signal */
export function servicesForRun(
  { shared, forRun }: Pick<OpenServices, 'shared' | 'forRun'>,
  context: ServiceContext,
): RunServices | Promise<RunServices> {
  return forRun?.(context) ?? { services: shared, [Symbol.asyncDispose]: NOTHING_TO_DISPOSE }
}

export interface OpenServicesOptions {
  /** Called with the error of a service that cannot be disposed of. */
  readonly failed: (error: unknown) => void
  /** Stops services that are being made. */
  readonly signal?: AbortSignal | undefined
}

const NEVER_FIRES = new AbortController().signal
const NOTHING_TO_DISPOSE = async () => undefined

/**
 * Makes the services of the process, or takes the given object.
 *
 * @throws the error of the function, or of a service that cannot be made
 * @throws InvalidArgument when `given` is neither an object nor a function
 */
export async function openServices(
  given: unknown,
  { failed, signal = NEVER_FIRES }: OpenServicesOptions,
): Promise<OpenServices> {
  if (isDefinedServices(given)) return openDefined(given, { failed, signal })
  if (given !== undefined && typeof given !== 'function' && (typeof given !== 'object' || given === null))
    throw new InvalidArgument(
      'a conductor: services must be an object, a function that makes one, or defineServices(…)',
    )
  const services: unknown = typeof given === 'function' ? await given() : given
  return {
    checkable: [],
    shared: services,
    [Symbol.asyncDispose]: async () => {
      if (typeof given === 'function') await disposeAll(services, failed)
    },
  }
}

async function openDefined(
  given: DefinedServices<unknown>,
  { failed, signal }: { readonly failed: (error: unknown) => void; readonly signal: AbortSignal },
): Promise<OpenServices> {
  const made = await makeServices(given, { scope: 'process', context: { ...PROCESS_CONTEXT, signal }, onError: failed })
  const entries = Object.entries(given.definitions)
  const isPerRun = entries.some(([, { scope }]) => scope === 'job')
  return {
    checkable: entries.flatMap(([name, { health }]) =>
      health ? [{ name, check: async () => void (await health(made.services[name])) }] : [],
    ),
    shared: made.services,
    forRun: isPerRun
      ? (context) => makeServices(given, { scope: 'job', context, known: made.services, onError: failed })
      : undefined,
    [Symbol.asyncDispose]: () => made[Symbol.asyncDispose](),
  }
}

/** Disposes of the whole object, or else of each value by itself: the last first, as it may need those before it. */
async function disposeAll(services: unknown, failed: (error: unknown) => void): Promise<void> {
  const each = isDisposable(services)
    ? [['services', services] as const]
    : Object.entries(Object(services))
        .reverse()
        .flatMap(([name, service]) => (isDisposable(service) ? [[name, service] as const] : []))
  const timeoutMs = toMilliseconds(DEFAULT_TIMEOUT, 'timeout')
  for (const [name, service] of each) {
    try {
      await disposeInTime(() => disposeService(service), { name, timeoutMs })
    } catch (error) {
      failed(error)
    }
  }
}
