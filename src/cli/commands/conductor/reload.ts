/** Reads the config file of a running `jobboard conductor` again, and applies what can change while it runs. */
import { availableParallelism } from 'node:os'
import type { Command } from 'commander'
import type { Conductor } from '../../../conductor/index.ts'
import { describeError } from '../../../core/failure.ts'
import type { Logger } from '../../../core/log.ts'
import type { CliContext, RereadSettings } from '../../context.ts'
import type { FlowModules } from '../../input/flows-module.ts'
import { definedOnly } from '../../input/shared-options.ts'

interface ReloadParts {
  readonly command: Command
  readonly context: CliContext
  /** The modules of flows, as they were loaded at the start. */
  readonly modules: Pick<FlowModules, 'flows' | 'schedules' | 'limits' | 'flowSettings'>
  /** The logger whose level is set. */
  readonly log: Logger
}

/** The keys that are applied at once; a change of any other takes a restart. */
const APPLIED = /^(conductor\.(concurrency|logLevel)|limits|flow-settings|schedules|tenants|owner)(\.|$)/

const DEFAULT_LOG_LEVEL = 'info'

/** Returns what SIGHUP does. A faulty file changes nothing. */
export function reloader({ command, context, modules, log }: ReloadParts): (conductor: Conductor) => Promise<void> {
  let current = context.configFile
  return async (conductor) => {
    let read: RereadSettings | undefined
    try {
      read = await current?.reread()
    } catch (error) {
      log.error({ err: error }, `the config file has mistakes, and nothing was changed: ${describeError(error)}`)
      return
    }
    if (!read || !current) {
      log.error('there is no config file any more, and nothing was changed')
      return
    }
    const { file, options } = read
    // What is typed comes before the file.
    const isTyped = (name: string) => command.getOptionValueSource(name) === 'cli'
    const concurrency = isTyped('concurrency') ? undefined : (options['concurrency'] ?? availableParallelism())
    const limits = file.limits(modules.limits)
    const flowSettings = file.flowSettings(modules.flowSettings)
    const schedules = await file.schedules(modules)
    const { changedKeys } = await import('../../input/config/changes.ts')
    const changed = changedKeys(current.config, file.config)
    await conductor.reconfigure(
      definedOnly({ concurrency: concurrency as number | undefined, limits, flowSettings, schedules }),
    )
    if (!isTyped('logLevel')) log.level = String(options['logLevel'] ?? DEFAULT_LOG_LEVEL)
    current = file
    const applied = changed.filter((key) => APPLIED.test(key))
    const needRestart = changed.filter((key) => !APPLIED.test(key))
    log.info({ conductor: conductor.name, applied }, 'the config file was read again')
    if (needRestart.length > 0)
      log.warn(
        { conductor: conductor.name, keys: needRestart },
        'these keys have changed, and need a restart to take effect',
      )
  }
}
