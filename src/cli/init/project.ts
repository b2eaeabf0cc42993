/** A new project of `jobboard init`: its name, its board, and the files that it begins with, made from `templates/`. */
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { InvalidArgument } from '../../core/errors.ts'
import { parseUri, type ResourceUri } from '../../core/uri.ts'
import { hasBuiltInSqlite } from '../../sqlite/index.ts'

/** The properties of a project. */
export interface Project {
  /** The name of its package. */
  readonly name: string
  /** The name without its scope: of the unit file, of folders on servers, and of the board. */
  readonly shortName: string
  readonly board: string
  readonly persistence: string
  /** The package of the board's driver, if it needs one. */
  readonly driver: 'pg' | 'ioredis' | '@photostructure/sqlite' | undefined
  /** The command with which `npm run dev` shows the board; undefined for a board on servers of its own. */
  readonly dev: { readonly command: string; readonly what: string } | undefined
  readonly typescript: boolean
}

export interface ProjectFile {
  /** The path in the project. */
  readonly path: string
  readonly text: string
}

/** The folder of the templates: the same one for `src/` and for `dist/`. */
const TEMPLATES = new URL('../../../templates/', import.meta.url)

/** The pattern of npm's names of packages that are in no scope. */
const PACKAGE_NAME = /^[a-z0-9][a-z0-9._-]*$/
const MAX_PACKAGE_NAME_LENGTH = 214
/** Names that npm refuses for a project with this dependency. */
const TAKEN_NAMES: readonly string[] = ['jobboard', 'node_modules', 'favicon.ico']

const DRIVERS: Readonly<Record<string, Project['driver']>> = {
  sqlite: '@photostructure/sqlite',
  zookeeper: undefined,
  zookeepers: undefined,
  postgres: 'pg',
  postgresql: 'pg',
  redis: 'ioredis',
  rediss: 'ioredis',
  'redis+unix': 'ioredis',
  'redis+sentinel': 'ioredis',
  'rediss+sentinel': 'ioredis',
  'redis+cluster': 'ioredis',
  'rediss+cluster': 'ioredis',
}

/** The board of `jobboard dev`. */
const DEV_BOARD = 'sqlite:./.jobboard/jobs.db'
const DEV_PORT = 2181
const DEV_FILE = { command: 'jobboard dev', what: 'the dashboard of the board: Ctrl-C ends it' }
const DEV_SERVER = {
  command: `jobboard dev --zookeeper --port ${DEV_PORT}`,
  what: 'a ZooKeeper for trials: Ctrl-C stops it and deletes its data',
}

/**
 * Checks name and board of a project, and completes them.
 *
 * @throws InvalidArgument for a name that npm refuses; for a board that is not shared, or whose URI has a password
 */
export function describeProject(given: {
  readonly name: string
  readonly board?: string
  readonly typescript: boolean
}): Project {
  const { name, typescript } = given
  assertPackageName(name)
  const shortName = name.replace(/^@[^/]+\//, '')
  const board = given.board ?? DEV_BOARD
  const uri = parseUri(board, 'board')
  assertBoard(uri)
  return {
    ...{ name, shortName, board, typescript },
    persistence: logbooksFor(board, uri),
    driver: uri.scheme === 'sqlite' && hasBuiltInSqlite() ? undefined : DRIVERS[uri.scheme],
    dev: board === DEV_BOARD ? DEV_FILE : isLocalZooKeeper(uri) ? DEV_SERVER : undefined,
  }
}

/** Returns the URI of the logbooks: beside the board if it can have them. */
function logbooksFor(board: string, { scheme }: ResourceUri): string {
  if (scheme.startsWith('postgres')) return withoutBoard(board)
  return scheme === 'sqlite' ? (board.split('?', 1)[0] ?? board) : 'directory:./logbooks'
}

function isLocalZooKeeper({ scheme, authority }: ResourceUri): boolean {
  return scheme === 'zookeeper' && /^(127\.0\.0\.1|localhost):2181$/.test(authority)
}

function assertPackageName(name: string): void {
  const [, scope = 'scope', short = ''] = /^(?:@([^/]*)\/)?(.*)$/s.exec(name) ?? []
  const isName = [scope, short].every((part) => PACKAGE_NAME.test(part)) && name.length <= MAX_PACKAGE_NAME_LENGTH
  if (isName && !TAKEN_NAMES.includes(name)) return
  const why = isName ? 'npm does not take it for this project' : 'it has other characters than a-z, 0-9, . _ and -'
  throw new InvalidArgument(
    `${JSON.stringify(name)} cannot be the name of the project's package: ${why}; give another, as in --name my-jobs`,
  )
}

function assertBoard({ scheme, credentials, printable }: ResourceUri): void {
  if (!Object.hasOwn(DRIVERS, scheme)) {
    const schemes = Object.keys(DRIVERS).join(', ')
    throw new InvalidArgument(
      `board ${printable}: a project needs a board that several processes share; the schemes are ${schemes}`,
    )
  }
  if (credentials?.password === undefined) return
  throw new InvalidArgument(
    `board ${printable}: leave the password out, because jobboard.yaml is for everybody who has the project; set it in JOBBOARD_BOARD where the project runs`,
  )
}

/** Returns the URI of the database: logbooks in it need no name of a board. */
function withoutBoard(uri: string): string {
  const [place = '', query = ''] = uri.split('?', 2)
  const parameters = query.split('&').filter((parameter) => parameter !== '' && !parameter.startsWith('board='))
  return parameters.length === 0 ? place : `${place}?${parameters.join('&')}`
}

/** Returns the files of the project. */
export async function projectFiles(project: Project): Promise<ProjectFile[]> {
  const { shortName, typescript, persistence, dev } = project
  const language = typescript ? 'typescript' : 'javascript'
  const [flows, test] = typescript ? ['flows.ts', 'flows.test.ts'] : ['flows.js', 'flows.test.js']
  const values = {
    NAME: project.name,
    UNIT: shortName,
    BOARD: toYaml(project.board),
    PERSISTENCE: toYaml(persistence),
    FLOWS: flows,
    TEST: test,
    SERVER: dev
      ? `npm run dev       # ${dev.what}`
      : `npx jobboard doctor  # checks the board of jobboard.yaml, and the logbooks`,
    LOGBOOKS: toUnitLines(persistence, shortName),
  }
  const template = async (path: string, file: string): Promise<ProjectFile> => {
    const text = await readFile(fileURLToPath(new URL(file, TEMPLATES)), 'utf8')
    return { path, text: text.replace(/__([A-Z]+)__/g, (found, name) => values[name as keyof typeof values] ?? found) }
  }
  return Promise.all([
    { path: 'package.json', text: `${JSON.stringify(toManifest(project, { flows, test }), undefined, 2)}\n` },
    template(flows, `${language}/${flows}`),
    template(test, `${language}/${test}`),
    ...(typescript ? [template('tsconfig.json', 'typescript/tsconfig.json')] : []),
    template('jobboard.yaml', 'project/jobboard.yaml'),
    template('Dockerfile', 'project/Dockerfile'),
    template('.dockerignore', 'project/dockerignore'),
    template('.gitignore', 'project/gitignore'),
    template(`${shortName}.service`, 'project/service'),
    template('README.md', 'project/README.md'),
  ])
}

/** Returns the lines of the unit file for what is kept on the machine: the service may write to its own folder only. */
function toUnitLines(persistence: string, unit: string): string {
  if (persistence.startsWith('directory:')) return `Environment=JOBBOARD_PERSISTENCE=directory:%S/${unit}/logbooks\n`
  if (!persistence.startsWith('sqlite:')) return '# JOBBOARD_PERSISTENCE, too, if the logbooks need a password.\n'
  const uri = `sqlite:%S/${unit}/jobs.db`
  return `Environment=JOBBOARD_BOARD=${uri} JOBBOARD_PERSISTENCE=${uri}\n`
}

/** Returns a text as YAML reads it. */
function toYaml(text: string): string {
  // Quoted, a text is JSON, which is YAML, too. `${` would be a variable.
  const safe = text.replaceAll('${', '$$${')
  return /^[\w/.:@?=&,+%-]+$/.test(safe) ? safe : JSON.stringify(safe)
}

function toManifest({ name, driver, dev, typescript }: Project, files: { flows: string; test: string }) {
  const own = createRequire(import.meta.url)('../../../package.json') as {
    readonly version: string
    readonly engines: Readonly<Record<string, string>>
    readonly devDependencies: Readonly<Record<string, string>>
  }
  // The versions with which this package is tested.
  const tested = (...names: readonly string[]) =>
    Object.fromEntries(names.map((each) => [each, `^${own.devDependencies[each]}`]))
  return {
    name,
    version: '0.1.0',
    private: true,
    type: 'module',
    engines: own.engines,
    scripts: {
      start: 'jobboard conductor',
      test: typescript ? `tsc && node --import tsx --test ${files.test}` : `node --test ${files.test}`,
      ...(dev ? { dev: dev.command } : {}),
    },
    dependencies: {
      jobboard: `^${own.version}`,
      ...(driver === undefined ? {} : tested(driver)),
      ...(typescript ? tested('tsx') : {}),
    },
    devDependencies: tested('pino-pretty', ...(typescript ? ['@types/node', 'typescript'] : [])),
  }
}
