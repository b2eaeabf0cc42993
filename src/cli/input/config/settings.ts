/**
 * Resolves the settings of a command. Each source overrides the ones after it: the command line, the environment, the chosen deployment of
 * the config file, the rest of the file. A name on the command line or in the environment is looked up in the file.
 */
import { resolve } from 'node:path'
import { InvalidArgument } from '../../../core/errors.ts'
import type { CliContext } from '../../context.ts'
import type { ReadConfig } from './config-file.ts'
import { FILE_NAME, findNearestConfig } from './nearest.ts'
import { type ResolvedSettings, type TypedOptions, toList } from './typed-options.ts'

/** The options of every command that decide which file is read, and how. */
export interface ConfigOptions extends TypedOptions {
  readonly config?: string
  readonly deployment?: string
}

/** The config file that the options and the environment name, or that was found. */
interface LocatedConfig {
  readonly read: ReadConfig
  /** Whether the file was found in the working directory or above, and no user named it. */
  readonly wasFound: boolean
}

/** Reads the config file, if there is one. @throws InvalidArgument for a file that cannot be read, or must not be trusted */
export async function locateConfig(
  options: ConfigOptions,
  { cwd, env }: Pick<CliContext, 'cwd' | 'env'>,
): Promise<LocatedConfig | undefined> {
  const asked = options.config || env['JOBBOARD_CONFIG']
  const found = asked ? undefined : await findNearestConfig(cwd)
  if (!asked && !found) return undefined
  // The parser is loaded only if there is a file: loading it takes longer than many commands.
  const { parseFoundConfig, readConfig } = await import('./config-file.ts')
  if (found) return { read: parseFoundConfig(found, { cwd }), wasFound: true }
  return { read: await readConfig(resolve(cwd, asked ?? ''), { cwd }), wasFound: false }
}

/** Returns the name of the deployment that is asked for. */
export function askedDeployment(options: ConfigOptions, env: CliContext['env']): string | undefined {
  return options.deployment || env['JOBBOARD_DEPLOYMENT'] || undefined
}

/**
 * Resolves the settings of a command.
 *
 * @param context.isChecked whether the whole file is checked, and not only what the command uses
 * @throws InvalidArgument for an invalid file, and for a name that is not in it
 */
export async function resolveSettings(
  options: ConfigOptions,
  context: Pick<CliContext, 'cwd' | 'env'> & { readonly isChecked?: boolean },
): Promise<ResolvedSettings> {
  const { env } = context
  const located = await locateConfig(options, context)
  const deployment = askedDeployment(options, env)
  if (!located) {
    if (deployment === undefined) return settingsWithoutFile(options, env)
    throw new InvalidArgument(
      `deployment ${deployment}: there is no ${FILE_NAME} here or above that defines it; give --config FILE`,
    )
  }
  const { read, wasFound } = located
  const { assertTrusted, SettingsResolver } = await import('./resolver.ts')
  if (context.isChecked) {
    const { assertValid, toSelected } = await import('./check.ts')
    await assertValid(read.examine(deployment), { ...context, selected: toSelected(options, env) })
  }
  const resolver = new SettingsResolver(read.open(deployment), { env, wasFound })
  const configFile = resolver.fileSettings(() => resolveSettings(options, context))
  const settled = resolver.resolve(options)
  if (!wasFound) return { ...settled, configFile }
  const assertModule = (module: string, file: string) => assertTrusted(module, { file, named: resolver.modules })
  return { ...settled, configFile, assertModule }
}

/** Resolves settings without a file. @throws InvalidArgument for a name, which only a file could define */
function settingsWithoutFile(options: TypedOptions, env: CliContext['env']): ResolvedSettings {
  const boards = toList(options.board || env['JOBBOARD_BOARD'])
  const persistence = options.persistence || env['JOBBOARD_PERSISTENCE']
  const named = [...boards.map((board) => ['board', board] as const), ['persistence', persistence] as const]
  for (const [what, value] of named) {
    // A malformed URI is reported by the function that opens it.
    if (value === undefined || !/^[\w.-]+$/.test(value)) continue
    throw new InvalidArgument(
      `${what} ${value}: there is no ${FILE_NAME} here or above that defines this name; give a URI, or --config FILE`,
    )
  }
  const settled = { own: () => ({}), env }
  if (boards.length < 2) return { ...settled, options: {} }
  return { ...settled, options: { board: boards[0] }, boards: boards.map((uri) => ({ uri })) }
}
