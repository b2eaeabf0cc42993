/** The flows of a module that the command line names: JavaScript, or TypeScript where tsx is at hand. */
import { execFile } from 'node:child_process'
import { stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, extname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { rejectOnAbort } from '../../core/async/abort.ts'
import { InvalidArgument, JobboardError } from '../../core/errors.ts'
import { isMisspelt } from '../../core/spelling.ts'
import { type AnyFlow, isFlow } from '../../flow/index.ts'
import type { CliContext } from '../context.ts'

const TYPESCRIPT_EXTENSIONS = ['.ts', '.mts', '.cts', '.tsx']

/** Where modules are looked for, and which of them are not to be run. */
export type ModuleOptions = Pick<CliContext, 'cwd' | 'assertModule'>

/**
 * Every flow that the module exports: by a name, as default, or in a list.
 *
 * @param module a path or a package, both seen from `cwd`
 * @param options.assertModule throws for a file that is not to be run
 * @throws InvalidArgument when it is not there, has no flows, or is TypeScript without tsx
 * @throws JobboardError when the module itself throws, or is never done
 */
export async function loadFlows(module: string, options: ModuleOptions): Promise<AnyFlow[]> {
  return (await loadFlowsAndServices(module, options)).flows
}

/** What a flows module gives to whoever runs its flows. */
export interface FlowsModule {
  readonly flows: AnyFlow[]
  /** Its export `services`, as conductors take it: an object, or a function that makes one. */
  readonly services?: unknown
}

/**
 * Loads the flows of a module, and what its tasks find as `ctx.services`.
 *
 * @throws as {@link loadFlows}; InvalidArgument for `services` that are neither an object nor a function
 */
export async function loadFlowsAndServices(module: string, options: ModuleOptions): Promise<FlowsModule> {
  const exported = await loadModule(module, options)
  const flows = collectFlows(exported)
  if (flows.length === 0) {
    throw new InvalidArgument(
      `module ${module} has no flows; export what linear() makes, as in: export const hello = linear('hello', …)`,
    )
  }
  const services = findServices(exported)
  if (services === undefined) return { flows }
  if (typeof services === 'function' || (typeof services === 'object' && services !== null)) return { flows, services }
  throw new InvalidArgument(
    `module ${module}: services is ${JSON.stringify(services)}; export an object, or a function that makes one`,
  )
}

/** The flow of that name in the module. @throws as {@link loadFlows} and {@link chooseFlow} */
export async function flowNamed(name: string, module: string, options: ModuleOptions): Promise<AnyFlow> {
  return chooseFlow(name, await loadFlows(module, options), module)
}

/** @throws InvalidArgument where no module is named, here or in the config file */
export function flowsOption({ flows }: { readonly flows?: string }, command: string): string {
  if (flows) return flows
  throw new InvalidArgument(
    `${command} needs the code of its flows: add --flows MODULE, or flows: MODULE to jobboard.yaml`,
  )
}

/**
 * What a module exports.
 *
 * @throws InvalidArgument when it is not there, or is TypeScript without tsx; JobboardError when it throws, or is never done
 */
export async function loadModule(module: string, options: ModuleOptions): Promise<object> {
  const file = await locate(module, options)
  await options.assertModule?.(module, file)
  if (TYPESCRIPT_EXTENSIONS.includes(extname(file))) await enableTypeScript(module, { ...options, file })
  return evaluate(module, file)
}

/** The newest of that name, as conductors choose it: the last. @throws InvalidArgument naming those that are there */
export function chooseFlow(name: string, flows: readonly AnyFlow[], module: string): AnyFlow {
  const found = flows.findLast((flow) => flow.name === name)
  if (found) return found
  const names = [...new Set(flows.map((flow) => flow.name))]
  const similar = names.find((known) => isMisspelt(name, known))
  const hint = similar === undefined ? `; it has ${names.join(', ')}` : `; did you mean ${similar}?`
  throw new InvalidArgument(`module ${module} has no flow ${JSON.stringify(name)}${hint}`)
}

async function locate(module: string, { cwd }: { cwd: string }): Promise<string> {
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
      throw new InvalidArgument(`package ${module} does not say where it begins; name its file instead`, {
        cause: error,
      })
    }
    throw new InvalidArgument(`module ${module} is not there: no such file seen from ${cwd}, and no such package`, {
      cause: error,
    })
  }
}

/** Looks for tsx beside the module: the working directory may belong to somebody else, and what is found is run. */
async function enableTypeScript(
  module: string,
  { file, assertModule }: ModuleOptions & { readonly file: string },
): Promise<void> {
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
  // As `node --import tsx` does it, for good: a flow may load more of its modules when it runs. What tsx offers to
  // programs, tsx/esm/api, cannot be resolved from here: a require finds its CommonJS half, which does not work.
  await import(pathToFileURL(tsx).href)
}

async function evaluate(module: string, file: string): Promise<object> {
  using stuck = whenEventLoopEmpty()
  try {
    return await rejectOnAbort(import(pathToFileURL(file).href), stuck.signal)
  } catch (cause) {
    if (stuck.signal.aborted)
      throw new JobboardError(`module ${module} is never done loading: what it awaits at its top level never comes`)
    const why = cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause)
    const place = cause instanceof SyntaxError ? await locateSyntaxError(file) : ''
    throw new JobboardError(`module ${module} cannot be loaded: ${place}${why}`, { cause })
  }
}

/** How long, in milliseconds, Node may take to look at a file. */
const MAX_CHECK_MS = 10_000

/**
 * Returns `FILE:LINE: ` of a syntax error. The error of an import() does not have it: Node shows it only where the error ends
 * the process, so Node is asked to look at the file. Of TypeScript the error itself has it.
 */
async function locateSyntaxError(file: string): Promise<string> {
  const said = await new Promise<string>((resolve) => {
    execFile(process.execPath, ['--check', file], { timeout: MAX_CHECK_MS }, (_, __, stderr) => resolve(stderr))
  })
  const place = /^(?:file:\/\/)?(\/.+|[A-Za-z]:[\\/].+):(\d+)$/m.exec(said)
  if (place) return `${place[1]}:${place[2]}: `
  return TYPESCRIPT_EXTENSIONS.includes(extname(file)) ? '' : 'in a module that it imports: '
}

/** Fires where Node would end the process, because nothing can come any more that somebody waits for. */
function whenEventLoopEmpty(): Disposable & { readonly signal: AbortSignal } {
  const idle = new AbortController()
  const abort = () => idle.abort()
  process.once('beforeExit', abort)
  return { signal: idle.signal, [Symbol.dispose]: () => process.off('beforeExit', abort) }
}

/** What a CommonJS module exports is on its default. The same flow may be there twice, under a name and as default. */
function collectFlows(exports: object): AnyFlow[] {
  const values: unknown[] = Object.values(exports)
  const { default: main }: { default?: unknown } = exports
  if (typeof main === 'object' && main !== null && !isFlow(main)) values.push(...Object.values(main))
  return [...new Set(values.flat().filter(isFlow))]
}

/** What a CommonJS module exports may be on its default only. */
function findServices(exports: object): unknown {
  const { services, default: main }: { services?: unknown; default?: unknown } = exports
  if (services !== undefined || typeof main !== 'object' || main === null || isFlow(main)) return services
  return (main as { services?: unknown }).services
}

function requireFrom(cwd: string): NodeJS.Require {
  return createRequire(join(cwd, 'noop.js'))
}
