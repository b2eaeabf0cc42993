/** What `jobboard completion` does: writes down for a shell what commander knows. */
import type { Command } from 'commander'
import { bashScript } from '../completion/bash.ts'
import { fishScript } from '../completion/fish.ts'
import { type Branch, branchesOf } from '../completion/tree.ts'
import { zshScript } from '../completion/zsh.ts'
import type { CliContext } from '../context.ts'
import { DONE, type ExitCode } from '../exit-codes.ts'
import { oneOf } from '../options.ts'
import { printLines } from '../output.ts'
import { SHELL_WORDS } from '../words.ts'

const SCRIPTS: Readonly<Record<(typeof SHELL_WORDS)[number], (branches: readonly Branch[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
}

/** @throws InvalidArgument for another shell */
export async function completion(
  shell: string,
  { program }: { readonly program: Command },
  context: CliContext,
): Promise<ExitCode> {
  const script = SCRIPTS[oneOf('the shell', SHELL_WORDS)(shell)]
  await printLines(context, script(branchesOf(program)).trimEnd().split('\n'))
  return DONE
}
