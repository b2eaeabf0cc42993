/** Imports a user's module that the command line names: JavaScript, or TypeScript if tsx is installed. */
import { execFile } from 'node:child_process'
import { stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, extname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { rejectOnAbort } from '../../core/async/abort.ts'
import { InvalidArgument, isError, JobboardError } from '../../core/errors.ts'
import type { CliContext } from '../context.ts'
import { declaredFiles, findPackage } from './package-flows.ts'

const TYPESCRIPT_EXTENSIONS = ['.ts', '.mts', '.cts', '.tsx']

/** The working directory against which modules are resolved, and the check of modules before they are run. */
export type ModuleOptions = Pick<CliContext, 'cwd' | 'assertModule' | 'configFile'>

/**
 * Returns the exports of a module.
 *
 * @throws InvalidArgument if it does not exist, or is TypeScript without tsx; JobboardError if it throws, or never
 * finishes loading
 */
export async function loadModule(module: string, options: ModuleOptions): Promise<object> {
  const [file, ...others] = await findModule(module, options)
  if (file !== undefined && others.length === 0) return (await importFile({ module, file }, options)).exported
  throw new InvalidArgument(`package ${module} names several modules of flows: name the file of one module instead`)
}

export interface ImportedModule {
  readonly exported: object
  /** The URL of tsx, if it was loaded for the module. */
  readonly tsx: URL | undefined
}

/**
 * Imports the file of a module.
 *
 * @param located.module the name of the module, for errors
 * @throws as {@link loadModule}
 */
export async function importFile(
  { module, file }: { readonly module: string; readonly file: string },
  options: ModuleOptions,
): Promise<ImportedModule> {
  await options.assertModule?.(module, file)
  const isTypeScript = TYPESCRIPT_EXTENSIONS.includes(extname(file))
  const tsx = isTypeScript ? await enableTypeScript(module, { ...options, file }) : undefined
  return { exported: await evaluate(module, file), tsx }
}

/** Returns the file of a module, or the files of a package that names several, without running them. @throws InvalidArgument if there is none */
export async function findModule(module: string, { cwd }: { cwd: string }): Promise<readonly string[]> {
  const path = resolve(cwd, module)
  const found = await stat(path).catch(() => undefined)
  if (found?.isFile()) return [path]
  if (found)
    throw new InvalidArgument(`${module} is a folder; name the module in it, as in ${join(module, 'flows.js')}`)
  const named = await findPackage(module, cwd)
  const declared = named && (await declaredFiles(named))
  if (declared) return declared
  try {
    return [requireFrom(cwd).resolve(module)]
  } catch (error) {
    const { code } = error as { code?: unknown }
    if (code === 'ERR_PACKAGE_PATH_NOT_EXPORTED') {
      throw new InvalidArgument(`package ${module} has no entry point; name its file instead`, {
        cause: error,
      })
    }
    throw new InvalidArgument(`module ${module} does not exist: no such file relative to ${cwd}, and no such package`, {
      cause: error,
    })
  }
}

/** Loads tsx from the module's folder, and returns its URL: the working directory may belong to another user, and tsx is run. */
async function enableTypeScript(
  module: string,
  { file, assertModule }: ModuleOptions & { readonly file: string },
): Promise<URL> {
  let tsx: string
  try {
    tsx = createRequire(file).resolve('tsx')
  } catch (cause) {
    throw new InvalidArgument(
      `module ${module} is TypeScript, and tsx is not installed in ${dirname(file)}; run npm install tsx there, or name the JavaScript`,
      { cause },
    )
  }
  await assertModule?.(module, tsx)
  // This is permanent, like `node --import tsx`: a flow may load more of its modules when it runs. The API of tsx for
  // programs, tsx/esm/api, cannot be resolved from here: a require finds its CommonJS half, which does not work.
  const url = pathToFileURL(tsx)
  await import(url.href)
  return url
}

async function evaluate(module: string, file: string): Promise<object> {
  using stuck = whenEventLoopEmpty()
  try {
    return await rejectOnAbort(import(pathToFileURL(file).href), stuck.signal)
  } catch (cause) {
    if (stuck.signal.aborted)
      throw new JobboardError(`module ${module} never finishes loading: a top-level await never resolves`)
    const why = isError(cause) ? `${cause.name}: ${cause.message}` : String(cause)
    const place = cause instanceof SyntaxError ? await locateSyntaxError(file) : ''
    throw new JobboardError(`module ${module} cannot be loaded: ${place}${why}`, { cause })
  }
}

/** The time limit for Node's check of a file. */
const MAX_CHECK_MS = 10_000

/**
 * Returns `FILE:LINE: ` of a syntax error. The error of an import() does not have it: Node shows it only if the error
 * ends the process, so this function runs Node's check of the file. The error of TypeScript has it.
 */
async function locateSyntaxError(file: string): Promise<string> {
  const said = await new Promise<string>((resolve) => {
    execFile(process.execPath, ['--check', file], { timeout: MAX_CHECK_MS }, (_, __, stderr) => resolve(stderr))
  })
  const place = /^(?:file:\/\/)?(\/.+|[A-Za-z]:[\\/].+):(\d+)$/m.exec(said)
  if (place) return `${place[1]}:${place[2]}: `
  return TYPESCRIPT_EXTENSIONS.includes(extname(file)) ? '' : 'in a module that it imports: '
}

/**
 * Returns a signal that aborts when the event loop is empty: Node would end the process, because nothing that is
 * awaited can come any more.
 */
function whenEventLoopEmpty(): Disposable & { readonly signal: AbortSignal } {
  const idle = new AbortController()
  const abort = () => idle.abort()
  process.once('beforeExit', abort)
  return { signal: idle.signal, [Symbol.dispose]: () => process.off('beforeExit', abort) }
}

function requireFrom(cwd: string): NodeJS.Require {
  return createRequire(join(cwd, 'noop.js'))
}
