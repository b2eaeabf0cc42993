/** The commands `jobboard config …`: show, check and describe the config file. They need no board. */
import { dirname } from 'node:path'
import type { Command } from 'commander'
import { InvalidArgument } from '../../core/errors.ts'
import { type CliContext, DONE, type ExitCode, type RunAction } from '../context.ts'
import { askedDeployment, type ConfigOptions, locateConfig } from '../input/config/settings.ts'
import { eachAsJson, type FlagTable, type FlagValues, withFlags } from '../input/flags.ts'
import { printDrawn, printJson, printLines } from '../output/output.ts'

const SHOW_FLAGS = {
  '--effective': 'print defaults, too',
  '--json': eachAsJson('value'),
} satisfies FlagTable

type ShowOptions = ConfigOptions & FlagValues<typeof SHOW_FLAGS>

const CHECK_FLAGS = {
  '--all': 'check each deployment, and all boards and logbooks: their variables must be set',
} satisfies FlagTable

type CheckOptions = ConfigOptions & FlagValues<typeof CHECK_FLAGS>

export function defineConfig(program: Command, run: RunAction): void {
  const config = program
    .command('config')
    .summary('show and check the config file')
    .description('Shows and checks jobboard.yaml. No board is opened.')
    .helpCommand(false)
  withFlags(config.command('show'), SHOW_FLAGS)
    .summary('show the values that apply, and where they come from')
    .description(
      'Prints each value with its origin: the file and its line, a deployment, a variable of the environment, or an option. Secrets are hidden.',
    )
    .addHelpText(
      'after',
      '\nExamples:\n  $ jobboard config show\n  $ jobboard config show --effective --deployment production',
    )
    .action(run(show))
  withFlags(config.command('check'), CHECK_FLAGS)
    .summary('check the config file')
    .description(
      'Checks the whole file, and prints each mistake with its file, line and column. Loads the modules of flows, and checks that schedules and defaults name flows that they export. The exit code is 2 if there is a mistake. Conductors check the file, too, before they claim.',
    )
    .addHelpText(
      'after',
      '\nExamples:\n  $ jobboard config check --deployment staging\n  $ jobboard config check --all',
    )
    .action(run(check))
  config
    .command('schema')
    .summary('print the JSON Schema of the config file')
    .description(
      'Prints the JSON Schema of the config file, for editors. It is also the file schema.json of the package.',
    )
    .addHelpText('after', '\nExample:\n  $ jobboard config schema > jobboard.schema.json')
    .action(run(schema))
}

async function show(options: ShowOptions, context: CliContext): Promise<ExitCode> {
  const located = await locateConfig(options, context)
  const deployment = askedDeployment(options, context.env)
  if (!located && deployment !== undefined) throw noFileError()
  const file = located?.read.open(deployment)
  const { describeOrigin, listValues, withAutoModules } = await import('../input/config/origins.ts')
  const listed = listValues(file, { env: context.env, typed: { ...options }, withDefaults: Boolean(options.effective) })
  const { values, faults } = await withAutoModules(listed, file ? dirname(file.file) : context.cwd)
  if (options.json) await printJson(context, values)
  else if (values.length === 0) await printLines(context, ['nothing is set'])
  else {
    const rows = values.map(({ origin, ...rest }) => ({ ...rest, origin: describeOrigin(origin) }))
    await printDrawn(context, ({ configTable }, screen) => configTable(rows, screen))
  }
  if (faults.length === 0) return DONE
  const { InvalidConfig } = await import('../input/config/faults.ts')
  throw new InvalidConfig(faults)
}

async function check(options: CheckOptions, context: CliContext): Promise<ExitCode> {
  const located = await locateConfig(options, context)
  if (!located) throw noFileError()
  const { read, wasFound } = located
  const [{ findFaults, toSelected }, { InvalidConfig }, { assertTrusted }] = await Promise.all([
    import('../input/config/check.ts'),
    import('../input/config/faults.ts'),
    import('../input/config/resolver.ts'),
  ])
  const { cwd, env } = context
  const { loadFlowsAndServices } = await import('../input/flows-module.ts')
  // All modules are named by the file alone.
  const assertModule = (module: string, file: string) => assertTrusted(module, { file, named: new Set([module]) })
  const loading = wasFound ? { ...context, assertModule } : context
  const checked = { cwd, env, loadFlows: (modules: readonly string[]) => loadFlowsAndServices(modules, loading) }
  const asked = askedDeployment(options, env)
  const chosen = options.all ? [undefined, ...read.deployments] : [asked]
  const selected = options.all ? ('all' as const) : toSelected(options, env)
  const faults = new Set<string>()
  for (const deployment of chosen) {
    for (const fault of await findFaults(read.examine(deployment), { ...checked, selected })) faults.add(fault)
  }
  if (faults.size > 0) throw new InvalidConfig([...faults])
  const names = chosen.flatMap((name) => name ?? [])
  const which =
    names.length === 0 ? '' : `, with ${names.length === 1 ? 'deployment' : 'deployments'} ${names.join(', ')}`
  await printLines(context, [`${read.shown} has no mistakes${which}`])
  return DONE
}

async function schema(_options: ConfigOptions, context: CliContext): Promise<ExitCode> {
  const { toJsonSchema } = await import('../input/config/schema.ts')
  await printLines(context, JSON.stringify(toJsonSchema(), undefined, 2).split('\n'))
  return DONE
}

function noFileError(): InvalidArgument {
  return new InvalidArgument('there is no jobboard.yaml here or above; give --config FILE')
}
