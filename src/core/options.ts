/** Checks of options at run time: a caller may have no compiler, or may pass a variable that hides an extra property. */
import { InvalidArgument } from './errors.ts'
import { suggestion } from './spelling.ts'

/** The names of all options. The type is a record, so that the compiler finds a name that is missing here. */
export type KnownOptions<Options extends object> = Readonly<Record<keyof Options, true>>

/**
 * Refuses unknown options: a misspelt option must not be ignored silently.
 *
 * @param what the function or the thing that has the options, for the error
 * @throws InvalidArgument for a value that is not an object, or has an unknown option
 * @example assertOptions(options, { board: true, flows: true }, 'startConductor')
 */
export function assertOptions<Options extends object>(
  options: unknown,
  known: KnownOptions<Options>,
  what: string,
): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    throw new InvalidArgument(`${what}: the options must be an object, as in { ${Object.keys(known)[0]}: … }`)
  for (const name of Object.keys(options)) {
    if (!Object.hasOwn(known, name))
      throw new InvalidArgument(`${what} has no option ${JSON.stringify(name)}${suggestion(name, Object.keys(known))}`)
  }
}
