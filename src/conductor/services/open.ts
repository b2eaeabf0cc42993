/**
 * Opens the services of tasks (`ctx.services`) from the option `services`.
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

/** The services of a process. Disposing of it disposes of the services that were made here. */
export interface OpenServices extends AsyncDisposable {
  readonly checkable: readonly CheckableService[]
  /** The services of the process. */
  readonly shared: unknown
  /**
   * Makes the services for one run of a job, with the services of the process. Disposing of the result disposes of the services that were made
   * for the run. Undefined if no service is made for each run: then a run begins without a further turn of the event loop.
   *
   * @throws the error of a service that cannot be made; the reason of the signal
   */
  readonly forRun?: ((context: ServiceContext) => Promise<RunServices>) | undefined
}

/** The services of one run of a job. Disposing of it disposes of the services that were made for the run. */
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
  readonly onError: (error: unknown) => void
  /** Stops the making of services. */
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
  option: unknown,
  { onError, signal = NEVER_FIRES }: OpenServicesOptions,
): Promise<OpenServices> {
  if (isDefinedServices(option)) return openDefined(option, { onError, signal })
  if (option !== undefined && typeof option !== 'function' && (typeof option !== 'object' || option === null))
    throw new InvalidArgument(
      'a conductor: services must be an object, a function that makes one, or defineServices(…)',
    )
  const services: unknown = typeof option === 'function' ? await option() : option
  return {
    checkable: [],
    shared: services,
    [Symbol.asyncDispose]: async () => {
      if (typeof option === 'function') await disposeAll(services, onError)
    },
  }
}

async function openDefined(
  defined: DefinedServices<unknown>,
  { onError, signal }: { readonly onError: (error: unknown) => void; readonly signal: AbortSignal },
): Promise<OpenServices> {
  const opened = await makeServices(defined, { scope: 'process', context: { ...PROCESS_CONTEXT, signal }, onError })
  const entries = Object.entries(defined.definitions)
  const isPerRun = entries.some(([, { scope }]) => scope === 'job')
  return {
    checkable: entries.flatMap(([name, { health }]) =>
      health ? [{ name, check: async () => void (await health(opened.services[name])) }] : [],
    ),
    shared: opened.services,
    forRun: isPerRun
      ? (context) => makeServices(defined, { scope: 'job', context, known: opened.services, onError })
      : undefined,
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  }
}

/**
 * Disposes of the object if it can be disposed of, otherwise of each of its values. The last value comes first, because it may need those
 * before it.
 */
async function disposeAll(services: unknown, onError: (error: unknown) => void): Promise<void> {
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
      onError(error)
    }
  }
}
