/** The command `jobboard completion`: prints a script that completes command lines in a shell. */
import type { Command } from 'commander'
import { type CliContext, DONE, type ExitCode, type RunAction } from '../context.ts'
import { SHELL_CHOICES } from '../input/choices.ts'
import { oneOf } from '../input/flags.ts'
import { printLines } from '../output/output.ts'

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
    .action(run((_options, context, { args: [shell = ''] }) => completion(shell, { program, context })))
}

/** Prints the completion script of a shell. @throws InvalidArgument for an unknown shell */
async function completion(
  shell: string,
  { program, context }: { readonly program: Command; readonly context: CliContext },
): Promise<ExitCode> {
  const [{ bashScript }, { fishScript }, { toCompletionTree }, { zshScript }] = await Promise.all([
    import('../output/completion/bash.ts'),
    import('../output/completion/fish.ts'),
    import('../output/completion/tree.ts'),
    import('../output/completion/zsh.ts'),
  ])
  const writers = { bash: bashScript, zsh: zshScript, fish: fishScript }
  const script = writers[oneOf(SHELL_CHOICES)('the shell')(shell)]
  await printLines(context, script(toCompletionTree(program)).trimEnd().split('\n'))
  return DONE
}
