/** Mistakes in `jobboard.yaml`. */
import { InvalidArgument } from '../../../core/errors.ts'

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
