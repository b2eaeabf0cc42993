/** The command `jobboard init`: writes a project that runs. */
import { basename, relative, resolve } from 'node:path'
import type { Command } from 'commander'
import { type CliContext, DONE, type ExitCode, type RunAction } from '../context.ts'
import { type FlagTable, type OptionsOf, withFlags } from '../input/flags.ts'
import { printLines } from '../output/output.ts'

const FLAGS = {
  '--name <name>': "the project's name (default: that of the folder)",
  '--typescript': 'write TypeScript, which runs with tsx',
  '--force': 'replace files that exist',
} satisfies FlagTable

type InitCommandOptions = OptionsOf<typeof FLAGS>

export function defineInit(program: Command, run: RunAction): void {
  withFlags(program.command('init'), FLAGS)
    .summary('write a new project')
    .description(
      'Writes a project into FOLDER: a flow, its test, jobboard.yaml, a Dockerfile, a unit file of systemd, and a README ' +
        'with the commands to run it. It changes no file: if one of these exists, nothing is written. --board is the board ' +
        'of the project, without a password (default: sqlite:./.jobboard/jobs.db, a file, as of `jobboard dev`).',
    )
    .argument('[folder]', 'the folder; it is created if it does not exist', '.')
    .addHelpText(
      'after',
      '\nExamples:\n  $ jobboard init my-jobs\n  $ jobboard init --typescript --board postgres://jobs@127.0.0.1/jobs?board=mail',
    )
    .action(run(init))
}

/**
 * Writes the project.
 *
 * @throws InvalidArgument for a name or a board that a project cannot have, and for files that are in the way
 * @throws JobboardError if the folder cannot be written to
 */
async function init(
  options: InitCommandOptions,
  context: CliContext,
  { processedArgs: [given] }: Command,
): Promise<ExitCode> {
  const [{ describeProject, projectFiles }, { writeProject }] = await Promise.all([
    import('../init/project.ts'),
    import('../init/write-project.ts'),
  ])
  const folder = resolve(context.cwd, String(given))
  const { name = basename(folder), board, typescript = false, force = false } = options
  const project = describeProject({ name, typescript, ...(board === undefined ? {} : { board }) })
  const files = await projectFiles(project)
  await writeProject(folder, files, { force })
  const shown = relative(context.cwd, folder)
  await printLines(context, [
    `${project.name}: wrote ${files.map(({ path }) => path).join(', ')}`,
    'Next:',
    ...(shown === '' ? [] : [`  cd ${quoteForShell(shown)}`]),
    ...['  npm install', '  npm test'],
    ...(project.dev ? [`  npm run dev  # ${project.dev.what}`] : []),
    '  npm start  # in another shell: a conductor, which runs jobs',
    `  npx jobboard post hello --store '{"name":"Ada"}'  # in a third one`,
  ])
  return DONE
}

/** Returns the word as a shell reads it. */
function quoteForShell(word: string): string {
  return /^[\w./@-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`
}
