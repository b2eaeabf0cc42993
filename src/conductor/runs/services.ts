/**
 * The services of tasks (`ctx.services`): made once, before any job is claimed, and disposed of when nothing runs any
 * more. The conductor disposes of an object that its factory made; an object that was passed in is left to its creator.
 */
import { InvalidArgument } from '../../core/errors.ts'
import type { AnyFlow, ServicesOf } from '../../flow/index.ts'

/** An object, which is not disposed of; or a function that makes one, whose result is disposed of at the end. */
export type ServicesGiven<S> = S | (() => S | Promise<S>)

/** The option `services`, required where the compiler knows of a flow that needs some. */
export type ServicesFor<Flows extends readonly AnyFlow[]> =
  unknown extends ServicesOf<Flows> ? unknown : { readonly services: ServicesGiven<ServicesOf<Flows>> }

/** The services for tasks; disposing of it disposes of those that were made for it. */
export interface OpenServices extends AsyncDisposable {
  readonly services: unknown
}

/**
 * Calls the factory, or takes the given object.
 *
 * @throws the factory's error
 * @throws InvalidArgument when `given` is neither an object nor a function
 */
export async function openServices(
  given: unknown,
  { failed }: { failed: (error: unknown) => void },
): Promise<OpenServices> {
  if (given !== undefined && typeof given !== 'function' && (typeof given !== 'object' || given === null))
    throw new InvalidArgument('a conductor: services must be an object, or a function that makes one')
  if (typeof given !== 'function') return { services: given, [Symbol.asyncDispose]: async () => undefined }
  const services: unknown = await given()
  return { services, [Symbol.asyncDispose]: () => disposeAll(services, failed) }
}

/** Disposes of the whole object, or else of each value by itself: the last first, as it may need those before it. */
async function disposeAll(services: unknown, failed: (error: unknown) => void): Promise<void> {
  const each = isDisposable(services) ? [services] : Object.values(Object(services)).reverse().filter(isDisposable)
  for (const service of each) {
    try {
      await disposeService(service)
    } catch (error) {
      failed(error)
    }
  }
}

type MaybeDisposable = Partial<AsyncDisposable & Disposable>

function isDisposable(value: unknown): value is MaybeDisposable {
  const { [Symbol.asyncDispose]: later, [Symbol.dispose]: now }: MaybeDisposable = Object(value)
  return typeof later === 'function' || typeof now === 'function'
}

async function disposeService(service: MaybeDisposable): Promise<void> {
  const { [Symbol.asyncDispose]: later, [Symbol.dispose]: now } = service
  if (typeof later === 'function') await later.call(service)
  else now?.call(service)
}
