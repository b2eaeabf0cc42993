/** Reads the config file `jobboard.yaml`, and checks it against its schema. Errors have file, line and column. */
import { readFile, realpath } from 'node:fs/promises'
import { relative } from 'node:path'
import { InvalidArgument } from '../../../core/errors.ts'
import { deploy, deploymentNames } from './deployment.ts'
import { YamlDocument } from './document.ts'
import { InvalidConfig, type Path } from './faults.ts'
import { toFaults } from './form-faults.ts'
import type { FoundConfig } from './nearest.ts'
import { CONFIG, type Config, DOCUMENT } from './schema.ts'
import { withoutEntries } from './walk.ts'

/** The file with one of its deployments, or without one. */
export interface ConfigFile {
  /**
   * The path of the file, absolute and without symbolic links; relative names in the file are resolved against its
   * folder.
   */
  readonly file: string
  /** The path for people. */
  readonly shown: string
  readonly deployment: string | undefined
  readonly config: Config
  /** Returns the place of a value: `jobboard.yaml:3:7`. */
  place(path: Path): string
  /** Returns the line of a value, and whether the deployment sets it. */
  origin(path: Path): { readonly line: number; readonly isDeployed: boolean }
  /** Returns an error about a place in the file: `jobboard.yaml:3:7: …` */
  problem(path: Path, message: string): InvalidArgument
}

/** A file that was read; each of its deployments can be looked at. */
export interface ReadConfig {
  readonly file: string
  readonly shown: string
  readonly deployments: readonly string[]
  /** @throws InvalidArgument for a deployment that does not exist; InvalidConfig with all mistakes of form */
  open(deployment: string | undefined): ConfigFile
  /**
   * Returns all mistakes of form, and the file without the entries that have them.
   *
   * @throws InvalidArgument for a deployment that does not exist
   */
  examine(deployment: string | undefined): ExaminedConfig
}

/** A file that may have mistakes of form. */
export interface ExaminedConfig {
  /** The mistakes, as `FILE:LINE:COLUMN: what`. */
  readonly faults: readonly string[]
  /** The paths of the mistakes in the file with this deployment. */
  readonly paths: readonly Path[]
  /** The file without the entries that have mistakes; undefined if nothing of it can be used. */
  readonly file: ConfigFile | undefined
}

/**
 * Reads a file that was named. Relative names in it are resolved against the folder of the file itself, also if a
 * symbolic link was named: the files beside a link need not belong to the author of the config file.
 *
 * @throws InvalidArgument for a file that cannot be read
 */
export async function readConfig(named: string, { cwd }: { cwd: string }): Promise<ReadConfig> {
  const unreadable = (cause: NodeJS.ErrnoException) => {
    const why = cause.code === 'ENOENT' ? 'does not exist' : `cannot be read: ${cause.message}`
    throw new InvalidArgument(`config file ${toDisplayPath(named, cwd)} ${why}; correct --config or JOBBOARD_CONFIG`, {
      cause,
    })
  }
  const file = await realpath(named).catch(unreadable)
  return parseConfig(await readFile(file, 'utf8').catch(unreadable), { file, shown: toDisplayPath(named, cwd) })
}

/** Parses a file that was found and read. */
export function parseFoundConfig({ file, real, text }: FoundConfig, { cwd }: { cwd: string }): ReadConfig {
  return parseConfig(text, { file: real, shown: toDisplayPath(file, cwd) })
}

function parseConfig(text: string, { file, shown }: Pick<ConfigFile, 'file' | 'shown'>): ReadConfig {
  const document = new YamlDocument(text, { shown })
  const { data } = document
  return {
    ...{ file, shown, deployments: deploymentNames(data) },
    open: (deployment) => {
      const { file: opened, faults } = examine(deployment)
      if (!opened || faults.length > 0) throw new InvalidConfig(faults)
      return opened
    },
    examine,
  }

  function examine(deployment: string | undefined): ExaminedConfig {
    if (data === undefined) return { faults: document.faults, paths: [], file: undefined }
    const faults = toFaults(DOCUMENT, data)
    const deployed = deploy(data, { name: deployment, shown })
    const place = (path: Path) => document.place(deployed.toFilePath(path))
    // A mistake in the file as it is written is also a mistake in the merged data: it is reported once.
    const known = new Set(faults.map(({ path }) => document.place(path)))
    const merged = toFaults(CONFIG, deployed.data)
    const all = [
      ...document.faults,
      ...faults.map(({ path, message }) => `${document.place(path)}: ${message}`),
      ...merged.filter(({ path }) => !known.has(place(path))).map(({ path, message }) => `${place(path)}: ${message}`),
    ]
    const paths = merged.map(({ path }) => path)
    const found = CONFIG.safeParse(withoutEntries(deployed.data, paths))
    return {
      ...{ faults: sortPlaces([...new Set(all)]), paths },
      file: found.success
        ? {
            ...{ file, shown, deployment, config: found.data, place },
            origin: (path) => {
              const filePath = deployed.toFilePath(path)
              return { line: document.line(filePath), isDeployed: filePath !== path }
            },
            problem: (path, message) => new InvalidArgument(`${place(path)}: ${message}`),
          }
        : undefined,
    }
  }
}

function toDisplayPath(file: string, cwd: string): string {
  const near = relative(cwd, file)
  return near.length < file.length ? near : file
}

/** Sorts `FILE:LINE:COLUMN: …` by line and column. */
export function sortPlaces(faults: readonly string[]): string[] {
  const place = (fault: string) => /:(\d+):(\d+): /.exec(fault)?.slice(1).map(Number) ?? [0, 0]
  return [...faults].sort((a, b) => {
    const [[lineA = 0, columnA = 0], [lineB = 0, columnB = 0]] = [place(a), place(b)]
    return lineA - lineB || columnA - columnB
  })
}
