/** The work of `jobboard completion`: writes a completion script for a shell from commander's command tree. */
import type { Command } from 'commander'
import type { CliContext } from '../context.ts'
import { DONE, type ExitCode } from '../exit-codes.ts'
import { SHELL_CHOICES } from '../input/choices.ts'
import { choiceParser } from '../input/shared-options.ts'
import { bashScript } from '../output/completion/bash.ts'
import { fishScript } from '../output/completion/fish.ts'
import { type CompletionCommand, toCompletionTree } from '../output/completion/tree.ts'
import { zshScript } from '../output/completion/zsh.ts'
import { printLines } from '../output/output.ts'

const SCRIPT_WRITERS: Readonly<
  Record<(typeof SHELL_CHOICES)[number], (branches: readonly CompletionCommand[]) => string>
> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
}

/** Prints the completion script of a shell. @throws InvalidArgument for an unknown shell */
export async function completion(
  shell: string,
  { program }: { readonly program: Command },
  context: CliContext,
): Promise<ExitCode> {
  const script = SCRIPT_WRITERS[choiceParser('the shell', SHELL_CHOICES)(shell)]
  await printLines(context, script(toCompletionTree(program)).trimEnd().split('\n'))
  return DONE
}
