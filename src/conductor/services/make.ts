/** Makes services in the order of their definitions, and disposes of them in the reverse order. */
import { abortAfter, followSignals, rejectOnAbort } from '../../core/async/abort.ts'
import { InvalidArgument, Timeout } from '../../core/errors.ts'
import { formatDuration } from '../../core/time.ts'
import type { DefinedServices, ServiceContext, ServiceDefinition, ServiceScope } from './define.ts'

/** The context of a service that is made for a process. */
export const PROCESS_CONTEXT: Omit<ServiceContext, 'signal'> = {
  job: undefined,
  schedule: undefined,
  batch: undefined,
  run: 0,
  fence: 0n,
}

export interface MakeOptions {
  readonly scope: ServiceScope
  readonly context: ServiceContext
  /** The services of the process, which the services of a job may need. */
  readonly known?: Readonly<Record<string, unknown>>
  readonly onError: (error: unknown) => void
}

/** Services that were made. Disposing of it disposes of them, and never rejects. */
export interface MadeServices extends AsyncDisposable {
  readonly services: Readonly<Record<string, unknown>>
}

/**
 * Makes the services of one scope.
 *
 * @throws the error of a service that cannot be made, or the reason of `context.signal`; the services that were made before are disposed of
 */
export async function makeServices(
  { definitions }: DefinedServices<unknown>,
  options: MakeOptions,
): Promise<MadeServices> {
  const { scope, context, known, onError } = options
  const services: Record<string, unknown> = { ...known }
  const undo: (() => unknown)[] = []
  const dispose = async () => {
    for (const each of undo.splice(0).reverse()) {
      try {
        await each()
      } catch (error) {
        onError(error)
      }
    }
  }
  const view = visibleServices(services, { definitions, scope })
  try {
    for (const [name, definition] of Object.entries(definitions)) {
      if (definition.scope !== scope) continue
      const value = await makeService(name, definition, { view: view(name), context, onError })
      services[name] = value
      undo.push(() => disposeInTime(() => disposeOne(definition, value), { name, timeoutMs: definition.timeoutMs }))
    }
  } catch (error) {
    await dispose()
    throw error
  }
  return { services: services, [Symbol.asyncDispose]: dispose }
}

type AnyDefinition = ServiceDefinition<never, unknown>

async function makeService(
  name: string,
  definition: AnyDefinition,
  {
    view,
    context,
    onError,
  }: { readonly view: object; readonly context: ServiceContext; readonly onError: (error: unknown) => void },
): Promise<unknown> {
  const { timeoutMs } = definition
  using stop = followSignals([context.signal])
  using _limit = abortAfter(stop, timeoutMs, () => {
    const time = formatDuration(timeoutMs)
    return new Timeout(`service ${name} was not made within ${time}; make it faster, or set its timeout`)
  })
  // The compiler has checked the parameter where the services were defined.
  const making = (async () => definition.make(view as never, context))()
  try {
    return await rejectOnAbort(making, stop)
  } catch (error) {
    // A service that is made too late is not used by any task.
    if (stop.aborted) making.then((late) => disposeOne(definition, late)).catch(onError)
    throw error
  }
}

/** Returns a function that returns, for a service, an object with the services above it. A property with the name of a later one throws. */
function visibleServices(
  target: Record<string, unknown>,
  {
    definitions,
    scope,
  }: { readonly definitions: Readonly<Record<string, AnyDefinition>>; readonly scope: ServiceScope },
): (name: string) => object {
  return (name) =>
    new Proxy(target, {
      get: (services, property) => {
        const needed = String(property)
        if (Object.hasOwn(services, needed) || typeof property === 'symbol') return Reflect.get(services, property)
        const known = definitions[needed]
        if (!known) throw new InvalidArgument(`service ${name} needs service ${needed}, which is not defined`)
        if (known.scope !== scope)
          throw new InvalidArgument(
            `service ${name} of the process needs service ${needed}, which is made for each job: give ${name} the scope 'job', too`,
          )
        throw new InvalidArgument(
          `service ${name} needs service ${needed}, which is defined below it: move ${needed} above ${name}; two services that need ` +
            'each other must be one',
        )
      },
    })
}

type MaybeDisposable = Partial<AsyncDisposable & Disposable>

async function disposeOne({ dispose }: AnyDefinition, service: unknown): Promise<void> {
  if (dispose) await dispose(service)
  else if (isDisposable(service)) await disposeService(service)
}

/**
 * Waits for the disposal of a service within a time. One that hangs must keep neither the slot of its job nor the end of the process.
 *
 * @throws what the disposal throws; Timeout
 */
export async function disposeInTime(
  disposal: () => Promise<void>,
  { name, timeoutMs }: { readonly name: string; readonly timeoutMs: number },
): Promise<void> {
  using stop = followSignals([])
  using _limit = abortAfter(stop, timeoutMs, () => {
    const time = formatDuration(timeoutMs)
    return new Timeout(
      `service ${name} was not disposed of within ${time}, and is left behind; correct it, or set its timeout`,
    )
  })
  await rejectOnAbort(disposal(), stop)
}

/** Returns whether the value has `Symbol.asyncDispose` or `Symbol.dispose`. */
export function isDisposable(value: unknown): value is MaybeDisposable {
  const { [Symbol.asyncDispose]: later, [Symbol.dispose]: now }: MaybeDisposable = Object(value)
  return typeof later === 'function' || typeof now === 'function'
}

/** Disposes of an object in its own way. @throws what that throws */
export async function disposeService(service: MaybeDisposable): Promise<void> {
  const { [Symbol.asyncDispose]: later, [Symbol.dispose]: now } = service
  if (typeof later === 'function') await later.call(service)
  else now?.call(service)
}
