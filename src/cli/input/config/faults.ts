/** Mistakes in `jobboard.yaml`, and the declarations in which they are found. */
import { InvalidArgument, JobboardError } from '../../../core/errors.ts'
import { suggestion } from '../../../core/texts.ts'
import { redactUri } from '../../../core/uri.ts'

/** The keys that lead to a value. */
export type Path = readonly PropertyKey[]

/** A mistake at a value. */
export interface Fault {
  readonly path: Path
  readonly message: string
}

/** All mistakes of a file; each is a line of its own on the command line. */
export class InvalidConfig extends InvalidArgument {
  /** Each with its place: `jobboard.yaml:3:7: …` */
  readonly faults: readonly string[]

  constructor(faults: readonly string[]) {
    super(faults.join('\n'))
    this.faults = faults
  }
}

export function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? text
}

/** Returns what is wrong with the name of a board, or of logbooks, that the file does not have. It may be a malformed URI with a password. */
export function noEntryMessage(
  kind: 'board' | 'persistence',
  { name, names, shown }: { readonly name: string; readonly names: readonly string[]; readonly shown: string },
): string {
  const isLikeUri = /[/@]/.test(name)
  const hint = isLikeUri ? '; a URI begins with a scheme and a colon, as in postgres://' : suggestion(name, names)
  return `there is no ${kind} ${JSON.stringify(redactUri(name))} in ${shown}${hint}`
}

/** A limit, a schedule, or settings that the file declares. */
export interface Declaration<T> {
  /** The place to which its errors belong. */
  readonly path: Path
  /** Makes what is declared. @throws InvalidArgument without a place */
  readonly make: () => T
  /** Returns the place of an error of this message inside of the declaration. */
  readonly refine?: (message: string) => Path
}

/** Makes what all declarations say. @throws InvalidArgument with the place */
export function makeAll<T>(
  declarations: readonly Declaration<T>[],
  file: { readonly problem: (path: Path, message: string) => Error },
): T[] {
  return declarations.map(({ path, make, refine }) => {
    try {
      return make()
    } catch (error) {
      throw error instanceof JobboardError ? file.problem(refine?.(error.message) ?? path, error.message) : error
    }
  })
}
