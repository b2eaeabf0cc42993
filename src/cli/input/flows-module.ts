/** The flows of a module that the command line names: JavaScript, or TypeScript if tsx is installed. */
import { execFile } from 'node:child_process'
import { stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, extname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { rejectOnAbort } from '../../core/async/abort.ts'
import { InvalidArgument, JobboardError } from '../../core/errors.ts'
import { collectExports, exportNamed } from '../../core/module-exports.ts'
import { isMisspelt } from '../../core/texts.ts'
import type { AnyFlow } from '../../flow/index.ts'
import type { CliContext } from '../context.ts'

const TYPESCRIPT_EXTENSIONS = ['.ts', '.mts', '.cts', '.tsx']

/** The working directory against which modules are resolved, and the check of modules before they are run. */
export type ModuleOptions = Pick<CliContext, 'cwd' | 'assertModule'>

/**
 * Returns every flow that the module exports: by a name, as default, or in a list.
 *
 * @param module a path or a package, both resolved against `cwd`
 * @param options.assertModule throws for a file that must not be run
 * @throws InvalidArgument if the module does not exist, has no flows, or is TypeScript without tsx
 * @throws JobboardError if the module itself throws, or never finishes loading
 */
export async function loadFlows(module: string, options: ModuleOptions): Promise<AnyFlow[]> {
  return (await loadFlowsAndServices(module, options)).flows
}

/** The exports of a flows module that its runner needs. */
export interface FlowsModule {
  readonly flows: AnyFlow[]
  /** The URL of the file, which child processes import. */
  readonly moduleUrl: URL
  /** The options with which another process of Node can import it; undefined if it needs none. */
  readonly execArgv?: readonly string[]
  /** The export `services`, as conductors take it: an object, or a function that makes one. */
  readonly services?: unknown
}

/**
 * Loads the flows of a module, and the `ctx.services` of its tasks.
 *
 * @throws as {@link loadFlows}; InvalidArgument for `services` that are neither an object nor a function
 */
export async function loadFlowsAndServices(module: string, options: ModuleOptions): Promise<FlowsModule> {
  const [{ exported, file, tsx }, { isFlow }] = await Promise.all([
    importModule(module, options),
    import('../../flow/index.ts'),
  ])
  const flows = collectExports(exported, isFlow)
  const place = { moduleUrl: pathToFileURL(file), ...(tsx === undefined ? {} : { execArgv: ['--import', tsx.href] }) }
  if (flows.length === 0) {
    throw new InvalidArgument(
      `module ${module} has no flows; export what linear() makes, as in: export const hello = linear('hello', …)`,
    )
  }
  const services = exportNamed(exported, 'services')
  if (services === undefined) return { flows, ...place }
  if (typeof services === 'function' || (typeof services === 'object' && services !== null))
    return { flows, services, ...place }
  throw new InvalidArgument(
    `module ${module}: services is ${JSON.stringify(services)}; export an object, or a function that makes one`,
  )
}

/** Returns the flow of a name in a module. @throws as {@link loadFlows} and {@link chooseFlow} */
export async function flowNamed(name: string, module: string, options: ModuleOptions): Promise<AnyFlow> {
  return chooseFlow(name, await loadFlows(module, options), module)
}

/**
 * Returns the module of `--flows`.
 *
 * @throws InvalidArgument if neither the command line nor the config file names one
 */
export function flowsOption({ flows }: { readonly flows?: string }, command: string): string {
  if (flows) return flows
  throw new InvalidArgument(
    `${command} needs the code of its flows: add --flows MODULE, or flows: MODULE to jobboard.yaml`,
  )
}

/**
 * Returns the exports of a module.
 *
 * @throws InvalidArgument if it does not exist, or is TypeScript without tsx; JobboardError if it throws, or never
 * finishes loading
 */
export async function loadModule(module: string, options: ModuleOptions): Promise<object> {
  return (await importModule(module, options)).exported
}

interface ImportedModule {
  readonly exported: object
  readonly file: string
  /** The URL of tsx, if it was loaded for the module. */
  readonly tsx: URL | undefined
}

async function importModule(module: string, options: ModuleOptions): Promise<ImportedModule> {
  const file = await resolveModule(module, options)
  await options.assertModule?.(module, file)
  const isTypeScript = TYPESCRIPT_EXTENSIONS.includes(extname(file))
  const tsx = isTypeScript ? await enableTypeScript(module, { ...options, file }) : undefined
  return { exported: await evaluate(module, file), file, tsx }
}

/**
 * Returns the newest flow of a name, which is the last, as conductors choose it.
 *
 * @throws InvalidArgument naming the existing flows
 */
export function chooseFlow(name: string, flows: readonly AnyFlow[], module: string): AnyFlow {
  const found = flows.findLast((flow) => flow.name === name)
  if (found) return found
  const names = [...new Set(flows.map((flow) => flow.name))]
  const similar = names.find((known) => isMisspelt(name, known))
  const hint = similar === undefined ? `; it has ${names.join(', ')}` : `; did you mean ${similar}?`
  throw new InvalidArgument(`module ${module} has no flow ${JSON.stringify(name)}${hint}`)
}

async function resolveModule(module: string, { cwd }: { cwd: string }): Promise<string> {
  const path = resolve(cwd, module)
  const found = await stat(path).catch(() => undefined)
  if (found?.isFile()) return path
  if (found)
    throw new InvalidArgument(`${module} is a folder; name the module in it, as in ${join(module, 'flows.js')}`)
  try {
    return requireFrom(cwd).resolve(module)
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
    const why = cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause)
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
