/** The command `jobboard completion`: prints a script that completes command lines in a shell. */
import type { Command } from 'commander'
import type { RunAction } from '../action.ts'
import { SHELL_CHOICES } from '../input/choices.ts'

export function defineCompletion(program: Command, run: RunAction): void {
  program
    .command('completion')
    .summary('print a script that completes command lines')
    .description(
      'Prints a script for the shell, which then completes commands, options, their values and file names on Tab.',
    )
    .argument('<shell>', `one of ${SHELL_CHOICES.join(', ')}`)
    .addHelpText(
      'after',
      `
Examples:
  $ source <(jobboard completion bash)
  $ jobboard completion zsh > "\${fpath[1]}/_jobboard"
  $ jobboard completion fish > ~/.config/fish/completions/jobboard.fish`,
    )
    .action(
      run(async (context, command: Command) =>
        (await import('../actions/completion.ts')).completion(command.args[0] ?? '', { program }, context),
      ),
    )
}
