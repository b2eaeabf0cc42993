/** Options that somebody without a compiler has passed, or somebody with one in a variable. */
import { InvalidArgument } from './errors.ts'
import { suggestion } from './spelling.ts'

/** Every option there is: a record, so that the compiler finds the one that was forgotten here. */
export type KnownOptions<Options extends object> = Readonly<Record<keyof Options, true>>

/**
 * Refuses an option that nobody reads: a misspelt one must not be ignored in silence.
 *
 * @param what whose options they are, for the error
 * @throws InvalidArgument for what is no object, or has an option that is not known
 * @example assertOptions(options, { board: true, flows: true }, 'startConductor')
 */
export function assertOptions<Options extends object>(
  options: unknown,
  known: KnownOptions<Options>,
  what: string,
): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    throw new InvalidArgument(`${what}: its options have to be an object, as in { ${Object.keys(known)[0]}: … }`)
  for (const name of Object.keys(options)) {
    if (!Object.hasOwn(known, name))
      throw new InvalidArgument(`${what} has no option ${JSON.stringify(name)}${suggestion(name, Object.keys(known))}`)
  }
}
