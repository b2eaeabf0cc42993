/** The modules of hooks that the config file names, beside the modules of flows. */
import type { ConductorHooks, ErrorHandler } from '../../conductor/index.ts'
import { InvalidArgument } from '../../core/errors.ts'
import { exportNamed } from '../../core/module-exports.ts'
import { loadModule, type ModuleOptions } from './import-module.ts'
import { definedOnly } from './shared-options.ts'

/** The exports `hooks` and `onError` of a module. */
export interface HookExports {
  readonly hooks: ConductorHooks | undefined
  readonly onError: readonly ErrorHandler[]
}

/** Returns the exports of a module about what conductors do beside running flows. @throws InvalidArgument for one of a wrong type */
export function hookExports(module: string, exported: object): HookExports {
  const hooks = exportNamed(exported, 'hooks')
  if (hooks !== undefined && (typeof hooks !== 'object' || hooks === null))
    throw new InvalidArgument(`module ${module}: hooks must be an object, as in { settled: (event) => … }`)
  const onError = [exportNamed(exported, 'onError') ?? []].flat()
  if (!onError.every((handler) => typeof handler === 'function'))
    throw new InvalidArgument(
      `module ${module}: onError must be a function of a failure and its run, or a list of such functions`,
    )
  return { hooks: hooks as ConductorHooks | undefined, onError: onError as ErrorHandler[] }
}

/**
 * Adds what modules of hooks export to what the modules of flows export: their hooks run, and their `onError` is asked, after those of the flows'
 * modules.
 *
 * @throws InvalidArgument for a module that exports neither
 */
export async function withHooksOf<M extends Partial<HookExports>>(
  modules: readonly string[],
  { flows, options }: { readonly flows: M; readonly options: ModuleOptions },
): Promise<M & Partial<HookExports>> {
  let { hooks, onError = [] } = flows
  const { mergeHooks } = await import('../../conductor/internal.ts')
  for (const module of new Set(modules)) {
    const found = hookExports(module, await loadModule(module, options))
    if (!found.hooks && found.onError.length === 0)
      throw new InvalidArgument(
        `module ${module} exports neither hooks nor onError; export one, or remove it from hooks`,
      )
    onError = [...new Set([...onError, ...found.onError])]
    if (found.hooks) hooks = hooks && hooks !== found.hooks ? mergeHooks([hooks, found.hooks]) : found.hooks
  }
  return { ...flows, ...definedOnly({ hooks, onError }) }
}
