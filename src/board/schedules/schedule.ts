/** Declares a schedule in a program: `schedule('nightly', { cron: '30 2 * * *' }, report, { region: 'eu' })`. */
import { InvalidArgument, InvalidPosting, MissingDependencies } from '../../core/errors.ts'
import { assertOptions, defined, type KnownOptions } from '../../core/options.ts'
import { type AnyFlow, checkStore, type Flow, missingInputs } from '../../flow/index.ts'
import { type ScheduleSpec, toOccurrences, toStoredSpec } from '../../schedule/internal.ts'
import { withFlowPosting } from '../model/declared.ts'
import { makePosting, type PostOptions } from '../model/posting/post-options.ts'
import { givenKeys } from '../settings/rules.ts'
import { type SchedulePolicyOptions, toPolicies } from './policies.ts'
import type { JobTemplate, ScheduleRecord } from './record.ts'

/** The policies of a schedule, and the options of its jobs. */
export interface ScheduleOptions extends SchedulePolicyOptions {
  /** Options of its jobs, as for `board.post`. */
  readonly post?: Pick<PostOptions, SchedulePostOption>
  /** The tenants: there is a schedule for each name, with the id `ID/NAME`; the value replaces parts of the store. */
  readonly tenants?: Readonly<Record<string, object>>
  /**
   * The version of the declaration; 0 by default. A declaration with a lower version than the schedule on the board changes nothing: so old
   * processes do not undo a deployment that is under way.
   */
  readonly version?: number
  /**
   * Whether the schedule posts jobs; true by default. `false` pauses it until the declaration says true again. A pause by an operator stays. An operator
   * can resume a schedule with `false`: then it stays active until its declaration changes.
   */
  readonly enabled?: boolean
}

type SchedulePostOption =
  | 'name'
  | 'details'
  | 'priority'
  | 'queue'
  | 'size'
  | 'resources'
  | 'limits'
  | 'expiresAfter'
  | 'deadline'
  | 'onOwnerLost'
  | 'maxAttempts'
  | 'backOff'
  | 'resultTtl'

/** A schedule as a program declares it; {@link schedule} makes it. */
export interface DeclaredSchedule {
  readonly id: string
  readonly spec: ScheduleSpec
  readonly flow: AnyFlow | string
  readonly store: object
  readonly options: ScheduleOptions
}

/** The declaration of a schedule, as its record keeps it. */
export type ScheduleDefinition = Pick<ScheduleRecord, 'spec' | 'job' | 'policies'> & { readonly tenant?: string }

const KNOWN_CHANGES: KnownOptions<Omit<ScheduleChanges, 'spec' | 'store'>> = {
  ...{ catchUp: true, window: true, max: true, overlap: true, jitter: true, times: true, pauseAfterFailures: true },
}
const KNOWN: KnownOptions<ScheduleOptions> = {
  ...KNOWN_CHANGES,
  ...{ post: true, tenants: true, version: true, enabled: true },
}
const KNOWN_POST: KnownOptions<Pick<PostOptions, SchedulePostOption>> = {
  ...{ name: true, details: true, priority: true, queue: true, size: true, resources: true, limits: true },
  ...{ expiresAfter: true, deadline: true, onOwnerLost: true, maxAttempts: true, backOff: true, resultTtl: true },
}
const ID_PATTERN = /^[\p{L}\p{N}][\p{L}\p{N} ._:@-]*(\/[\p{L}\p{N} ._:@-]+)?$/u
const MAX_ID_LENGTH = 200

/**
 * Declares a schedule. Give it to `startConductor({ schedules })` or `board.schedules.put`.
 *
 * @param id unique on the board: letters, digits, and `._:@-`
 * @throws InvalidArgument for an invalid id or option; the spec and the store are checked when the schedule is put
 * @example schedule('nightly', { cron: '30 2 * * 1-5', zone: 'Europe/Berlin' }, report, { region: 'eu' }, { overlap: 'skip' })
 */
export function schedule<I extends object>(
  id: string,
  spec: ScheduleSpec,
  flow: Flow<I> | string,
  store: NoInfer<I>,
  options: ScheduleOptions = {},
): DeclaredSchedule {
  assertScheduleId(id)
  const what = `schedule ${id}`
  if (typeof flow !== 'string' && Object(flow).kind !== 'flow')
    throw new InvalidArgument(`${what}: flow must be a flow or the name of one, followed by the store`)
  assertOptions(options, KNOWN, what)
  assertOptions(options.post ?? {}, KNOWN_POST, `${what}: post`)
  for (const tenant of Object.keys(options.tenants ?? {})) assertScheduleId(`${id}/${tenant}`)
  const { version = 0, enabled = true } = options
  if (!Number.isSafeInteger(version) || version < 0)
    throw new InvalidArgument(`${what}: version must be a whole number from 0, got ${version}`)
  if (typeof enabled !== 'boolean') throw new InvalidArgument(`${what}: enabled must be true or false`)
  const declared = { id, spec, flow, store, options }
  toPolicies(spec, options, what)
  return declared
}

/** Checks the id of a schedule. @throws InvalidArgument */
export function assertScheduleId(id: string): void {
  if (typeof id === 'string' && id.length <= MAX_ID_LENGTH && ID_PATTERN.test(id)) return
  throw new InvalidArgument(
    `the id of a schedule must be up to ${MAX_ID_LENGTH} letters, digits, spaces and ._:@-, with at most one / before a tenant, got ` +
      JSON.stringify(id),
  )
}

/**
 * Returns the definitions of a declaration, one for each tenant.
 *
 * @throws InvalidArgument for an invalid spec; InvalidPosting for a store that the schema of the flow refuses; MissingDependencies for a store
 *   that lacks an input
 */
export async function toDefinitions(
  declared: DeclaredSchedule,
): Promise<readonly (ScheduleDefinition & { readonly id: string })[]> {
  const { id, store, options } = declared
  const policies = toPolicies(declared.spec, options, `schedule ${id}`)
  const spec = toStoredSpec(declared.spec)
  await withScheduleId(id, () => toOccurrences(spec, { now: Date.now() }))
  const define = async (each: { readonly id: string; readonly store: object; readonly tenant?: string }) => {
    const job = await toJobTemplate(declared, each)
    return { id: each.id, spec, policies, job, ...defined({ tenant: each.tenant }) }
  }
  if (!options.tenants) return [await define({ id, store })]
  const tenants = Object.entries(options.tenants)
  return Promise.all(
    tenants.map(([tenant, own]) => define({ id: `${id}/${tenant}`, store: { ...store, ...own }, tenant })),
  )
}

/** The fields that an edit changes; the others stay. */
export interface ScheduleChanges extends Omit<ScheduleOptions, 'post' | 'tenants' | 'version' | 'enabled'> {
  readonly spec?: ScheduleSpec
  /** Replaces the whole store. */
  readonly store?: object
}

/** Returns the definition of a schedule with changes. @throws InvalidArgument, InvalidPosting */
export function withChanges(
  id: string,
  { spec, job, policies, tenant }: ScheduleRecord,
  { spec: newSpec = spec, store, ...options }: ScheduleChanges,
): ScheduleDefinition {
  assertOptions(options, KNOWN_CHANGES, `schedule ${id}`)
  const { windowMs: window, jitterMs: jitter, ...others } = policies
  const merged = { ...defined({ window, jitter }), ...others, ...options }
  const changed = toPolicies(newSpec, merged, `schedule ${id}`)
  const details = store === undefined ? job.details : { ...job.details, store }
  const { name, priority, queue, maxAttempts } = job
  // It is checked as a posting: a job that cannot be posted is refused now.
  makePosting({ name, priority, ...defined({ queue }), maxAttempts, details })
  return { spec: toStoredSpec(newSpec), job: { ...job, details }, policies: changed, ...defined({ tenant }) }
}

async function toJobTemplate(
  { flow, options }: DeclaredSchedule,
  { id, store }: { readonly id: string; readonly store: object },
): Promise<JobTemplate> {
  const checked = typeof flow === 'string' ? store : await checkJobStore(flow, { id, store })
  const work = typeof flow === 'string' ? { flow } : { flow: flow.name, version: flow.version }
  if (work.flow === '') throw new InvalidPosting(`schedule ${id}: the name of the flow must not be empty`)
  // The overlap of the schedule decides the key of its jobs.
  const { key: _, ...post } =
    typeof flow === 'string' ? { ...options.post, key: undefined } : withFlowPosting(flow, checked, { ...options.post })
  const details = { ...post.details, ...work, store }
  // A posting is made of it to check it: otherwise the error would appear only when the job is due.
  const posting = makePosting({ ...post, name: post.name ?? work.flow, details })
  const {
    priority,
    queue,
    maxAttempts,
    name,
    resources,
    limits,
    expiresAfter,
    deadline,
    onOwnerLost,
    backOff,
    resultTtl,
  } = posting
  const explicit = givenKeys({ ...options.post })
  return {
    ...{ name, details: posting.details, priority, maxAttempts },
    ...defined({ queue, resources, limits, expiresAfter, deadline, onOwnerLost, backOff, resultTtl }),
    ...(explicit.length > 0 ? { explicit } : {}),
  }
}

/** Returns the store as the flow's schema returns it. @throws InvalidPosting, MissingDependencies */
async function checkJobStore(
  flow: AnyFlow,
  { id, store }: { readonly id: string; readonly store: object },
): Promise<object> {
  const missing = flow.schema ? [] : missingInputs(flow, store)
  if (missing.length > 0)
    throw new MissingDependencies(
      `schedule ${id}: flow ${flow.name} requires ${missing.join(', ')}: add it to the store`,
    )
  if (!flow.schema) return store
  try {
    return await checkStore(flow, store)
  } catch (error) {
    if (!(error instanceof InvalidArgument)) throw error
    throw new InvalidPosting(`schedule ${id}: ${error.message}`, { cause: error })
  }
}

/** Adds the id of the schedule to errors about its spec. */
export async function withScheduleId<T>(id: string, compute: () => Promise<T>): Promise<T> {
  try {
    return await compute()
  } catch (error) {
    throw error instanceof InvalidArgument
      ? new InvalidArgument(`schedule ${id}: ${error.message}`, { cause: error })
      : error
  }
}
