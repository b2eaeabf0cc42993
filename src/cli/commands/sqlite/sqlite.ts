/** The commands `jobboard sqlite check`, `backup` and `compact`: what an operator does with the file of a board. */
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { InvalidArgument } from '../../../core/errors.ts'
import { parseUri } from '../../../core/uri.ts'
import { type CliContext, DONE, type ExitCode, FAILED, type RunAction } from '../../context.ts'
import { printLines } from '../../output/output.ts'
import { escapeUnprintable } from '../../output/render/text.ts'

const FILE = ['<file>', 'the file, or the URI of a board in it'] as const

export function defineSqlite(program: Command, run: RunAction): void {
  const sqlite = program
    .command('sqlite')
    .summary('check, back up and compact the file of a board')
    .description('Commands for the file of an SQLite board. They may run while other processes use the file.')
  sqlite
    .command('check')
    .description('Looks for damage in the file. The exit code is 0 for a sound file, and 1 for a damaged one.')
    .argument(...FILE)
    .addHelpText('after', '\nExample:\n  $ jobboard sqlite check .jobboard/jobs.db')
    .action(run(check))
  sqlite
    .command('backup')
    .description('Writes a copy of the file, as it is at one moment.')
    .argument(...FILE)
    .argument('<copy>', 'the new file')
    .addHelpText('after', '\nExample:\n  $ jobboard sqlite backup .jobboard/jobs.db backup.db')
    .action(run(backUp))
  sqlite
    .command('compact')
    .description('Gives the free space of the file back to the disk. Processes that use the file wait meanwhile.')
    .argument(...FILE)
    .addHelpText('after', '\nExample:\n  $ jobboard sqlite compact .jobboard/jobs.db')
    .action(run(compact))
}

async function check(_options: object, context: CliContext, { args: [file = ''] }: Command): Promise<ExitCode> {
  const { checkFile } = await import('../../../sqlite/index.ts')
  const path = toPath(file, context)
  const damage = await checkFile(path)
  if (damage.length === 0) await printLines(context, [`${escapeUnprintable(path)} is sound`])
  else await printLines(context, [`${escapeUnprintable(path)} is damaged; restore it from a backup`, ...damage])
  return damage.length === 0 ? DONE : FAILED
}

async function backUp(
  _options: object,
  context: CliContext,
  { args: [file = '', copy = ''] }: Command,
): Promise<ExitCode> {
  const { backUpFile } = await import('../../../sqlite/index.ts')
  const [from, to] = [toPath(file, context), resolve(context.cwd, copy)]
  await backUpFile(from, to)
  await printLines(context, [`${escapeUnprintable(from)} was copied to ${escapeUnprintable(to)}`])
  return DONE
}

async function compact(_options: object, context: CliContext, { args: [file = ''] }: Command): Promise<ExitCode> {
  const { compactFile } = await import('../../../sqlite/index.ts')
  const path = toPath(file, context)
  const { before, after } = await compactFile(path)
  await printLines(context, [`${escapeUnprintable(path)} had ${before} bytes, and has ${after} now`])
  return DONE
}

/** Returns the path of the file. @throws InvalidArgument for the URI of another board */
function toPath(file: string, { cwd }: CliContext): string {
  if (!/^[a-z][a-z0-9+.-]+:/i.test(file)) return resolve(cwd, file)
  const { scheme, path, printable } = parseUri(file, 'board')
  if (scheme !== 'sqlite')
    throw new InvalidArgument(`${printable} is not in a file; name a file, or a URI such as sqlite:./jobs.db`)
  return resolve(cwd, path)
}
