/** Asking before something is changed that may not be what was meant. */
import { InvalidArgument } from '../../core/errors.ts'
import type { CliContext } from '../context.ts'
import { escapeUnprintable } from '../output/render/text.ts'

export interface Confirmation {
  /** The option `--yes`: nothing is asked. */
  readonly yes?: boolean | undefined
  /** Without a terminal to ask on: `refuse` throws, `proceed` goes on. */
  readonly offTerminal: 'refuse' | 'proceed'
}

/**
 * Asks on the terminal whether to do what `question` says; any answer but y or yes is a no.
 *
 * @throws InvalidArgument where there is no terminal and `offTerminal` is `refuse`, naming `--yes`
 * @example if (!(await confirmed('cancel 3 jobs?', { yes, offTerminal: 'refuse' }, context))) return DONE
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
