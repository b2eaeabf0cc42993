/** Options objects: how they are checked at run time, and how optional properties are left out. */
import { InvalidArgument } from './errors.ts'
import { suggestion } from './texts.ts'

/** The names of all options. The type is a record, so that the compiler finds a name that is missing here. */
export type KnownOptions<Options extends object> = Readonly<Record<keyof Options, true>>

/**
 * Refuses unknown options: a misspelt option must not be ignored silently. The compiler does not find each: a caller may have
 * none, or may pass a variable that hides an extra property.
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

/** The properties of `T` that can be undefined are optional. */
export type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>
}

/**
 * Returns a copy without the properties that are undefined: with `exactOptionalPropertyTypes`, an optional property is absent
 * and never undefined, and an encoding without undefined returns the same record.
 *
 * @example board.claimNext({ max, ...defined({ timeout, signal }) })
 */
export function defined<T extends object>(values: T): Defined<T> {
  const kept: Partial<T> = {}
  // A loop, because it is as fast as conditional spreads, and `Object.entries` is not: requests are made with this.
  for (const name of Object.keys(values) as (keyof T)[]) if (values[name] !== undefined) kept[name] = values[name]
  return kept as object as Defined<T>
}

/** Checks an optional boolean. @throws InvalidArgument */
export function assertBoolean(value: unknown, what: string): void {
  if (value !== undefined && typeof value !== 'boolean') throw new InvalidArgument(`${what} must be true or false`)
}

/** Checks an optional string. @throws InvalidArgument */
export function assertText(value: unknown, what: string): void {
  if (value !== undefined && typeof value !== 'string') throw new InvalidArgument(`${what} must be a string`)
}
