/**
 * What tasks find as `ctx.services`: made once, before anything is claimed, and disposed of when nothing runs any more.
 * Who makes it ends it: what a factory made is the conductor's, an object that was given stays its giver's.
 */
import { InvalidArgument } from '../core/errors.ts'
import type { AnyFlow, ServicesOf } from '../flow/index.ts'

/** An object, left as it is; or a function that makes one, which is disposed of at the end. */
export type ServicesGiven<S> = S | (() => S | Promise<S>)

/** Asks for `services` where the compiler knows of a flow that needs some. */
export type ServicesFor<Flows extends readonly AnyFlow[]> =
  unknown extends ServicesOf<Flows> ? unknown : { readonly services: ServicesGiven<ServicesOf<Flows>> }

/** What is there to be given to tasks; disposing of it ends what was made for it. */
export interface OpenServices extends AsyncDisposable {
  readonly services: unknown
}

/**
 * @throws what the factory throws
 * @throws InvalidArgument for what is neither an object nor a function
 */
export async function openServices(
  given: unknown,
  { failed }: { failed: (error: unknown) => void },
): Promise<OpenServices> {
  if (given !== undefined && typeof given !== 'function' && (typeof given !== 'object' || given === null))
    throw new InvalidArgument('a conductor: services is an object, or a function that makes one')
  if (typeof given !== 'function') return { services: given, [Symbol.asyncDispose]: async () => undefined }
  const services: unknown = await given()
  return { services, [Symbol.asyncDispose]: () => disposeAll(services, failed) }
}

/** Either they are disposable together, or each by itself: then the last first, as they may need those before them. */
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
