/** Confirmation before a change that may be a mistake. */
import { InvalidArgument } from '../../core/errors.ts'
import type { CliContext } from '../context.ts'
import { escapeUnprintable } from '../output/render/text.ts'

export interface Confirmation {
  /** The option `--yes`: proceed without a question. */
  readonly yes?: boolean | undefined
  /** The action without a terminal to ask on: `refuse` throws, `proceed` continues. */
  readonly offTerminal: 'refuse' | 'proceed'
}

/**
 * Asks on the terminal whether to do what `question` says; any answer but y or yes is a no.
 *
 * @throws InvalidArgument naming `--yes`, if there is no terminal and `offTerminal` is `refuse`
 * @example if (!(await confirm('cancel 3 jobs?', { yes, offTerminal: 'refuse' }, context))) return DONE
 */
export async function confirm(
  question: string,
  { yes = false, offTerminal }: Confirmation,
  context: CliContext,
): Promise<boolean> {
  if (yes) return true
  if (!context.ask) {
    if (offTerminal === 'proceed') return true
    throw new InvalidArgument(`${escapeUnprintable(question)} There is no terminal to ask on; add --yes`)
  }
  const answer = await context.ask(`${escapeUnprintable(question)} [y/N] `)
  if (/^y(es)?$/i.test(answer.trim())) return true
  context.stderr.write('nothing was changed\n')
  return false
}
