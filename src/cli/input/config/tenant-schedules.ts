/**
 * The schedules that tenants of `jobboard.yaml` have of their own. The entry of a tenant replaces the common entry of this id for this tenant as a
 * whole: the two are not merged, since parts of two rules would not fit.
 */
import type { DeclaredSchedule } from '../../../board/index.ts'
import { InvalidArgument } from '../../../core/errors.ts'
import { suggestion } from '../../../core/texts.ts'
import type { AnyFlow } from '../../../flow/index.ts'
import type { KnownModules } from '../../context.ts'
import type { ConfigFile } from './config-file.ts'
import {
  type OwnScheduleSection,
  RULES,
  refinePath,
  type ScheduleSection,
  scheduleMaker,
  schedulesOf,
  type Tenants,
  tenantsOf,
} from './declarations.ts'
import { type Declaration, makeAll, type Path } from './faults.ts'
import type { ConfigValues } from './values.ts'

/** An entry of a tenant for a schedule. */
interface OwnEntry {
  readonly tenant: string
  readonly id: string
  readonly section: OwnScheduleSection
  readonly path: Path
}

/** Returns the entries of all tenants. @throws InvalidArgument for a value */
export function ownEntriesOf(values: ConfigValues): readonly OwnEntry[] {
  return Object.entries(tenantsOf(values)).flatMap(([tenant, { schedules = {} }]) =>
    Object.entries(schedules).map(([id, section]) => {
      return { tenant, id, section, path: ['tenants', tenant, 'schedules', id] }
    }),
  )
}

/**
 * Returns all schedules: of the file, of its tenants, and those that modules export and the file does not replace.
 *
 * @throws InvalidArgument with the place
 */
export async function allSchedules(
  values: ConfigValues,
  { known, file }: { readonly known: KnownModules; readonly file: ConfigFile },
): Promise<readonly DeclaredSchedule[]> {
  const tenants = tenantsOf(values)
  const sections = values.section('schedules') ?? {}
  const exported = (known.schedules ?? []).filter(({ id }) => !Object.hasOwn(sections, id))
  const common = [...exported, ...makeAll(await schedulesOf(values, known), file).flat()]
  const own = makeAll(await tenantSchedulesOf(values, known), file)
  return [...common.flatMap((each) => splitByTenants(each, tenants)), ...own.flat()]
}

/**
 * Returns the declarations of the tenants' entries. An entry that has only `enabled` makes none, and neither does an entry whose common
 * schedule is exported by modules that were not loaded.
 */
export async function tenantSchedulesOf(
  values: ConfigValues,
  { flows, schedules: exported }: KnownModules,
): Promise<Declaration<readonly DeclaredSchedule[]>[]> {
  const entries = ownEntriesOf(values)
  if (entries.length === 0) return []
  const tenants = tenantsOf(values)
  const sections = values.section('schedules') ?? {}
  const declare = await scheduleMaker(values, flows)
  return entries.map(({ tenant, id, section, path }) => {
    const make = () => {
      const common = findCommon(id, { sections, exported, tenants })
      if (common === 'unknown' && section.flow === undefined) return []
      if (common === undefined || common === 'unknown') assertHasFlow(id, { section, sections, exported })
      else if (!common.tenants.includes(tenant))
        throw new InvalidArgument(
          `schedule ${id}: the common schedule is not for ${tenant}; add ${tenant} to its tenants, or choose another name here`,
        )
      if (isSwitch(section)) return []
      if (!RULES.some((rule) => section[rule] !== undefined))
        throw new InvalidArgument(
          `schedule ${id} of tenant ${tenant} has none of ${RULES.join(', ')}: it replaces the common schedule as a whole; add its rule, or write only enabled: false`,
        )
      const flow = section.flow ?? (typeof common === 'object' ? common.flow : '')
      const store = { ...tenants[tenant]?.store, ...section.store }
      return [declare(id, { section, flow, store, tenant })]
    }
    // An error about the common schedule belongs to the entry as a whole, and not to its rule.
    const refine = (message: string) =>
      message.includes('common schedule') ? path : refinePath({ id, path, section, message })
    return { path, make, refine }
  })
}

/** The schedule that an entry of a tenant replaces. */
interface CommonSchedule {
  readonly flow: AnyFlow | string
  readonly tenants: readonly string[]
}

/** Returns the common schedule; undefined if there is none, and `unknown` if modules that were not loaded may export it. */
function findCommon(
  id: string,
  {
    sections,
    exported,
    tenants,
  }: {
    readonly sections: Readonly<Record<string, ScheduleSection>>
    readonly exported: readonly DeclaredSchedule[] | undefined
    readonly tenants: Tenants
  },
): CommonSchedule | 'unknown' | undefined {
  const section = Object.hasOwn(sections, id) ? sections[id] : undefined
  if (section?.flow !== undefined) {
    const { flow, tenants: asked = [] } = section
    return { flow, tenants: asked === 'all' ? Object.keys(tenants) : asked }
  }
  if (!exported) return 'unknown'
  const found = exported.find((each) => each.id === id)
  // A section that changes a schedule which no module exports is reported at that section.
  if (!found) return section ? 'unknown' : undefined
  return { flow: found.flow, tenants: Object.keys(found.options.tenants ?? {}) }
}

/** @throws InvalidArgument for an entry without a flow that has no common schedule */
function assertHasFlow(
  id: string,
  {
    section,
    sections,
    exported = [],
  }: {
    readonly section: OwnScheduleSection
    readonly sections: object
    readonly exported?: readonly DeclaredSchedule[] | undefined
  },
): void {
  if (section.flow !== undefined) return
  const known = [...Object.keys(sections), ...exported.map((each) => each.id)]
  throw new InvalidArgument(
    `schedule ${id}: there is no common schedule of this name; give it a flow, or correct the name${suggestion(id, known)}`,
  )
}

/** Returns whether an entry only says whether the common schedule posts jobs for the tenant. */
function isSwitch(section: OwnScheduleSection): boolean {
  return section.enabled !== undefined && Object.keys(section).length === 1
}

/** Returns a common schedule without the tenants that replace it, and with a declaration of its own for each tenant whose entry has only `enabled`. */
function splitByTenants(declared: DeclaredSchedule, tenants: Tenants): readonly DeclaredSchedule[] {
  const { id, options } = declared
  if (!options.tenants) return [declared]
  const stores = Object.entries(options.tenants).map(([tenant, store]) => {
    const own = Object.hasOwn(tenants, tenant) ? (tenants[tenant]?.schedules ?? {}) : {}
    return { tenant, store, section: Object.hasOwn(own, id) ? own[id] : undefined }
  })
  const common = stores.filter(({ section }) => section === undefined)
  const switched = stores.flatMap(({ tenant, store, section }) =>
    section?.enabled !== undefined && isSwitch(section)
      ? [{ ...declared, options: { ...options, tenants: { [tenant]: store }, enabled: section.enabled } }]
      : [],
  )
  if (common.length === 0) return switched
  const kept = Object.fromEntries(common.map(({ tenant, store }) => [tenant, store]))
  return [{ ...declared, options: { ...options, tenants: kept } }, ...switched]
}
