/** Makes limits and schedules from the sections of `jobboard.yaml` that declare them; `flow-sections.ts` makes what is declared of flows. */
import type { DeclaredLimit, DeclaredSchedule, ScheduleOptions } from '../../../board/index.ts'
import { InvalidArgument } from '../../../core/errors.ts'
import { suggestion } from '../../../core/texts.ts'
import type { AnyFlow } from '../../../flow/index.ts'
import type { ScheduleSpec } from '../../../schedule/index.ts'
import type { KnownModules } from '../../context.ts'
import { withPostDefaults } from '../flows-module.ts'
import { definedOnly, parseRate } from '../shared-options.ts'
import type { Declaration, Path } from './faults.ts'
import { flowDefaultsOf, type PostSection, toDuration, toPostOptions } from './flow-sections.ts'
import type { Config } from './schema.ts'
import type { ConfigValues } from './values.ts'
import { substituteDeep } from './variables.ts'

type LimitSection = NonNullable<Config['limits']>[string]
export type ScheduleSection = NonNullable<Config['schedules']>[string]
/** A schedule of one tenant: without `tenants`, otherwise as in the section `schedules`. */
export type OwnScheduleSection = Omit<ScheduleSection, 'tenants'>
export type Tenants = Readonly<
  Record<
    string,
    {
      readonly store?: object | undefined
      readonly schedules?: Readonly<Record<string, OwnScheduleSection>> | undefined
      readonly limit?: LimitSection | undefined
    }
  >
>

type NamedLimit = readonly [key: string, limit: DeclaredLimit]

/** Returns the tenants by name. */
export function tenantsOf(values: ConfigValues): Tenants {
  const tenants = values.section('tenants') ?? []
  if (Array.isArray(tenants)) return Object.fromEntries(tenants.map((name) => [name, {}]))
  return Object.fromEntries(Object.entries(tenants).map(([name, tenant]) => [name, tenant ?? {}]))
}

/**
 * Returns the limits of the section, and the limit of each tenant that has one, with the key `tenant/NAME`.
 *
 * @throws InvalidArgument for a value
 */
export function limitsOf(values: ConfigValues): Declaration<NamedLimit>[] {
  const limits = values.section('limits') ?? {}
  const ofKeys = Object.entries(limits).map(([key, limit]): Declaration<NamedLimit> => {
    return { path: ['limits', key], make: () => [key, toLimit(limit, `limit ${key}`)] }
  })
  const ofTenants = Object.entries(tenantsOf(values)).flatMap(([name, { limit }]): Declaration<NamedLimit>[] => {
    if (!limit) return []
    const key = `tenant/${name}`
    const make = (): NamedLimit => {
      if (!Object.hasOwn(limits, key)) return [key, toLimit(limit, `limit ${key}`)]
      throw new InvalidArgument(`limit ${key} is there twice: in limits, and in tenants; remove one`)
    }
    return [{ path: ['tenants', name, 'limit'], make }]
  })
  return [...ofKeys, ...ofTenants]
}

function toLimit({ rate, burst, ...others }: LimitSection, what: string): DeclaredLimit {
  const rest = definedOnly(others) as DeclaredLimit
  if (rate === undefined && burst !== undefined)
    throw new InvalidArgument(`${what}: burst belongs to rate: add it, as in rate: 100/1m`)
  if (rate === undefined) return rest
  return {
    ...rest,
    rate: { ...parseRate(rate, `${what}: rate`), ...definedOnly({ burst: burst as number | undefined }) },
  }
}

/**
 * Returns the declarations of the section `schedules`: one for each schedule. Each of them makes one schedule, or one for each of its tenants. A section
 * without a flow changes the schedule of this id that a module exports; it makes none where the modules were not loaded.
 *
 * @throws InvalidArgument for a value
 */
export async function schedulesOf(
  values: ConfigValues,
  { flows, schedules }: KnownModules,
): Promise<Declaration<readonly DeclaredSchedule[]>[]> {
  const tenants = tenantsOf(values)
  const declare = await scheduleMaker(values, flows)
  return Object.entries(values.section('schedules') ?? {}).map(([id, section]) => {
    const path = ['schedules', id]
    const make = () => {
      const { flow, store = {} } = section
      if (flow === undefined) return schedules ? [changeExported(id, section, schedules)] : []
      const named = chooseTenants(id, { section, tenants })
      if (!named) return [declare(id, { section, flow, store })]
      return named.map((tenant) =>
        declare(id, { section, flow, store, tenant, replaced: tenants[tenant]?.store ?? {} }),
      )
    }
    return { path, make, refine: (message: string) => refinePath({ id, path, section, message }) }
  })
}

/** What a schedule is made of. */
interface ScheduleParts {
  readonly section: OwnScheduleSection
  /** The name of the flow, or a flow that a module exports. */
  readonly flow: AnyFlow | string
  readonly store: object
  /** The tenant, whose name takes the place of `{tenant}`, and the parts of the store that it replaces. */
  readonly tenant?: string
  readonly replaced?: object
}

/** Returns a function that makes a schedule; it throws InvalidArgument without a place. */
export async function scheduleMaker(
  values: ConfigValues,
  flows: readonly AnyFlow[],
): Promise<(id: string, parts: ScheduleParts) => DeclaredSchedule> {
  const defaults = flowDefaultsOf(values)
  const { schedule } = await import('../../../board/index.ts')
  return (id, { section, flow: named, store, tenant, replaced = {} }) => {
    const flow = typeof named === 'string' ? (flows.findLast((each) => each.name === named) ?? named) : named
    // A flow whose code is known has its defaults.
    const own = typeof flow === 'string' && Object.hasOwn(defaults, flow) ? defaults[flow] : undefined
    const fill = <T>(value: T) =>
      tenant === undefined ? value : (substituteDeep(value, (text) => text.replaceAll('{tenant}', tenant)) as T)
    const { post, ...options } = toOptions(section, fill(section.post))
    return schedule<object>(id, toSpec(id, section), flow, fill(store), {
      ...options,
      ...(own || post ? { post: withPostDefaults({ ...post }, own) } : {}),
      ...(tenant === undefined ? {} : { tenants: { [tenant]: fill({ ...replaced }) } }),
    })
  }
}

/** Returns the schedule of this id that a module exports, with the changes of the section. @throws InvalidArgument if there is none */
function changeExported(
  id: string,
  section: ScheduleSection,
  schedules: readonly DeclaredSchedule[],
): DeclaredSchedule {
  const exported = schedules.find((each) => each.id === id)
  if (!exported) {
    const known = schedules.map((each) => each.id)
    throw new InvalidArgument(
      `schedule ${id}: no module of flows exports it; give it a flow, or export it${suggestion(id, known)}`,
    )
  }
  if (section.tenants !== undefined)
    throw new InvalidArgument(`schedule ${id}: it has tenants and no flow; add its flow, or remove tenants`)
  const hasRule = RULES.some((rule) => section[rule] !== undefined)
  const options = toOptions(section, section.post)
  return {
    ...exported,
    ...(hasRule ? { spec: toSpec(id, section) } : {}),
    store: { ...exported.store, ...section.store },
    options: {
      ...exported.options,
      ...options,
      ...(options.post ? { post: { ...exported.options.post, ...options.post } } : {}),
    },
  }
}

/** Returns the place of a schedule's value that an error is about: errors begin with its name, or are about the rule. */
export function refinePath({
  id,
  path,
  section,
  message,
}: {
  readonly id: string
  readonly path: Path
  readonly section: OwnScheduleSection
  readonly message: string
}): Path {
  const about = message.startsWith(`schedule ${id}: `) ? message.slice(`schedule ${id}: `.length) : message
  const [word = ''] = /^\w+/.exec(about) ?? []
  const keys = Object.keys(section)
  if (!keys.includes(word) && Object.hasOwn(section.post ?? {}, word)) return [...path, 'post', word]
  const key = keys.includes(word) ? word : RULES.find((rule) => keys.includes(rule))
  return [...path, ...(key === undefined ? [] : [key])]
}

/** Returns the tenants of a schedule; undefined for one without. @throws InvalidArgument */
function chooseTenants(
  id: string,
  { section, tenants }: { readonly section: ScheduleSection; readonly tenants: Tenants },
): readonly string[] | undefined {
  const { tenants: asked } = section
  if (asked === undefined) return undefined
  const known = Object.keys(tenants)
  if (known.length === 0)
    throw new InvalidArgument(`schedule ${id}: tenants: the file has none; add tenants: [NAME], or remove tenants here`)
  if (asked === 'all') return known
  const unknown = asked.find((name) => !known.includes(name))
  if (unknown !== undefined)
    throw new InvalidArgument(`schedule ${id}: tenants: there is no ${unknown}${suggestion(unknown, known)}`)
  return asked
}

export const RULES = ['cron', 'every', 'rrule', 'at'] as const

function toSpec(id: string, section: OwnScheduleSection): ScheduleSpec {
  const { cron, every, rrule, at, offset, from, zone, start, end, exclude } = section
  const given = RULES.filter((rule) => section[rule] !== undefined)
  if (given.length !== 1)
    throw new InvalidArgument(
      `schedule ${id} must have one of ${RULES.join(', ')}, ${given.length === 0 ? 'and has none' : `and has ${given.join(', ')}`}`,
    )
  if (every === undefined && (offset !== undefined || from !== undefined))
    throw new InvalidArgument(`schedule ${id}: offset and from belong to every, as in every: 5m`)
  const bounds = definedOnly({ zone, start, end, exclude })
  if (every !== undefined)
    return {
      ...{ every: toDuration(every), ...bounds },
      ...(offset === undefined ? {} : { offset: toDuration(offset) }),
      ...(from === undefined ? {} : { from: 'completion' }),
    }
  return { ...definedOnly({ cron, rrule, at }), ...bounds } as ScheduleSpec
}

function toOptions(section: OwnScheduleSection, post: PostSection | undefined): ScheduleOptions {
  const { catchUp, window, max, overlap, jitter, times, pauseAfterFailures, version, enabled } = section
  return {
    ...definedOnly({ catchUp, max, overlap, times, pauseAfterFailures, version, enabled }),
    ...(window === undefined ? {} : { window: toDuration(window) }),
    ...(jitter === undefined ? {} : { jitter: toDuration(jitter) }),
    ...(post === undefined ? {} : { post: toPostOptions(post) }),
    // The schema checks the words and numbers.
  } as ScheduleOptions
}
