/** The inputs of a flow, as they come on the command line. */
import { MissingDependencies } from '../../core/errors.ts'
import { type AnyFlow, missingInputs } from '../../flow/index.ts'
import type { CliContext } from '../context.ts'

/** A dash is standard input. */
export async function readStoreText({ store }: { readonly store?: string }, context: CliContext): Promise<string> {
  return store === '-' ? context.readStdin() : (store ?? '{}')
}

/** Board and engine would say so too, but only once everything is open. @throws MissingDependencies */
export function checkStore(flow: AnyFlow, store: object): void {
  const missing = missingInputs(flow, store)
  if (missing.length === 0) return
  throw new MissingDependencies(`flow ${flow.name} requires ${missing.join(', ')}: add it to --store`)
}
