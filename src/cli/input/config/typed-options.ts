/** The options of every command as they were typed, and the settings that they and the config file result in. */
import type { CliContext, FileSettings } from '../../context.ts'
import type { ChosenBoard } from '../board-flags.ts'
import type { SharedOptions } from '../shared-options.ts'

/** The options of every command, as they were typed: `--board` may be repeated. */
export interface TypedOptions extends Omit<SharedOptions, 'board'> {
  readonly board?: string | readonly string[]
}

export interface ResolvedSettings {
  /** The options of every command, as a user would type them. */
  readonly options: Readonly<Record<string, unknown>>
  /** The options of one command, by its name; resolved on request, because those of other commands may be invalid. */
  readonly own: (command: string) => Readonly<Record<string, unknown>>
  /** The boards of a conductor, if they are several. */
  readonly boards?: readonly ChosenBoard[]
  /** The credentials of the first of several boards, for the logbooks of all. */
  readonly logbookAuth?: string
  /** The boards of the file, if it names several and the user named none. */
  readonly boardChoices?: readonly string[]
  /** The environment with the settings of the file: secrets are not put on a command line. */
  readonly env: CliContext['env']
  /** Throws for untrusted modules of a file that no user named: they are run only if this user or root owns them. */
  readonly assertModule?: CliContext['assertModule']
  /** The choices of a file that no user named, for which credentials of the environment would be used. */
  readonly chosenByFile?: CliContext['chosenByFile']
  /** The settings of the file that are not options; undefined without a file. */
  readonly configFile?: FileSettings
}

/** Returns the values of an option that may be repeated. */
export function toList(given: string | readonly string[] | undefined): readonly string[] {
  return typeof given === 'string' ? (given === '' ? [] : [given]) : (given ?? [])
}
