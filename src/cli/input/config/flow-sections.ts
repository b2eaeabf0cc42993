/** Makes defaults and settings of flows from the sections `flow-defaults` and `flow-settings` of `jobboard.yaml`. */
import type { DeclaredSchedule, DeclaredSettings, PostOptions } from '../../../board/index.ts'
import type { Duration } from '../../../core/time.ts'
import type { FlowDefaults } from '../../../flow/index.ts'
import { definedOnly, parseDuration } from '../shared-options.ts'
import type { Declaration, Path } from './faults.ts'
import type { Config } from './schema.ts'
import type { ConfigValues } from './values.ts'

export type PostSection = NonNullable<NonNullable<Config['schedules']>[string]['post']>
type FlowSection = NonNullable<Config['flow-defaults']>[string]
type SettingsSection = NonNullable<Config['flow-settings']>[string]

/** Returns the defaults of each flow. */
export function flowDefaultsOf(values: ConfigValues): Readonly<Record<string, FlowDefaults>> {
  const sections = Object.entries(values.section('flow-defaults') ?? {})
  return Object.fromEntries(sections.map(([flow, section]) => [flow, toFlowDefaults(section)]))
}

/**
 * Returns the defaults of flows as the options of a schedule's jobs, which are checked: flows and posts check them only when they are used.
 */
export async function flowDefaultsAsSchedules(values: ConfigValues): Promise<Declaration<DeclaredSchedule>[]> {
  const { schedule } = await import('../../../board/index.ts')
  return Object.entries(values.section('flow-defaults') ?? {}).map(([flow, section]) => {
    const { keepLogbooks: _, keepResults: __, ...post } = section
    const refine = (message: string): Path => {
      const [word = ''] = /^\w+/.exec(message) ?? []
      return ['flow-defaults', flow, ...(Object.hasOwn(section, word) ? [word] : [])]
    }
    const make = () => schedule<object>('defaults', { every: '1d' }, flow, {}, { post: toPostOptions(post) })
    return { path: ['flow-defaults', flow], make, refine }
  })
}

/**
 * Returns the settings of flows, by flow or pattern.
 *
 * @throws InvalidArgument for a value
 */
export function flowSettingsOf(
  values: ConfigValues,
): Declaration<readonly [flow: string, settings: DeclaredSettings]>[] {
  return Object.entries(values.section('flow-settings') ?? {}).map(([flow, section]) => {
    const refine = (message: string): Path => {
      const [word = ''] = /^\w+/.exec(message.replace(`settings of flow ${flow}: `, '')) ?? []
      return ['flow-settings', flow, ...(Object.hasOwn(section, word) ? [word] : [])]
    }
    return { path: ['flow-settings', flow], make: () => [flow, toSettings(section)], refine }
  })
}

function toSettings({ delay, removeTrashAfter, keepLogbooks, ...others }: SettingsSection): DeclaredSettings {
  return {
    ...toFlowDefaults(definedOnly({ keepLogbooks })),
    ...toPostOptions(others),
    ...(delay === undefined ? {} : { delay: toDuration(delay) }),
    ...(removeTrashAfter === undefined ? {} : { removeTrashAfter: toDuration(removeTrashAfter) }),
  } as DeclaredSettings
}

function toFlowDefaults({ keepLogbooks, keepResults, ...posting }: FlowSection): FlowDefaults {
  return {
    ...(toPostOptions(posting) as FlowDefaults),
    ...definedOnly({ keepResults }),
    ...(keepLogbooks === undefined
      ? {}
      : { keepLogbooks: keepLogbooks === 'forever' ? keepLogbooks : toDuration(keepLogbooks) }),
  }
}

export function toPostOptions({ backOff, expiresAfter, deadline, resultTtl, ...others }: PostSection): PostOptions {
  return {
    ...definedOnly(others),
    ...(expiresAfter === undefined ? {} : { expiresAfter: toDuration(expiresAfter) }),
    ...(deadline === undefined ? {} : { deadline: toDuration(deadline) }),
    ...(resultTtl === undefined ? {} : { resultTtl: toDuration(resultTtl) }),
    ...(backOff === undefined
      ? {}
      : {
          backOff: {
            ...definedOnly({ factor: backOff.factor, jitter: backOff.jitter }),
            ...(backOff.first === undefined ? {} : { first: toDuration(backOff.first) }),
            ...(backOff.max === undefined ? {} : { max: toDuration(backOff.max) }),
          },
        }),
    // The schema checks the words and numbers.
  } as PostOptions
}

/** Parses a duration of the file; the caller adds the place to its errors. @throws InvalidArgument */
export function toDuration(value: string | number): Duration {
  return parseDuration(String(value), 'it')
}
