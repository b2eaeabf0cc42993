/** The inputs of a flow on the command line. */
import { MissingDependencies } from '../../core/errors.ts'
import { type AnyFlow, missingInputs } from '../../flow/index.ts'
import type { CliContext } from '../context.ts'

/** Returns the text of `--store`, or standard input for a dash. */
export async function readStoreText({ store }: { readonly store?: string }, context: CliContext): Promise<string> {
  return store === '-' ? context.readStdin() : (store ?? '{}')
}

/** Checks the inputs before anything is opened; board and engine check them again. @throws MissingDependencies */
export function checkStore(flow: AnyFlow, store: object): void {
  const missing = missingInputs(flow, store)
  if (missing.length === 0) return
  throw new MissingDependencies(`flow ${flow.name} requires ${missing.join(', ')}: add it to --store`)
}
