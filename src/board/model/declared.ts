/**
 * The declarations of a flow about its jobs: the resources that a job owns, its key, and the limits that it keeps, as functions of its store.
 *
 * | where | resources, limits | key |
 * |---|---|---|
 * | posted with the flow's code | the union of what the flow declares and what the caller names | the declared one; another is refused |
 * | a schedule that is put with the flow's code | the same, for the store of the schedule | the key of the schedule, by its `overlap` |
 * | posted by name | what the caller names | what the caller names |
 * | claimed by a conductor | what is missing is added, before the flow runs | not checked |
 *
 * `limits: 'none'` of a caller stays: such a job keeps no limit at all, not even the limit of its flow.
 */
import { InvalidArgument, JobboardError } from '../../core/errors.ts'
import { nameFault } from '../../core/texts.ts'
import { type AnyFlow, evaluateDeclarations, type PostingDefaults } from '../../flow/index.ts'
import { type KeyOptions, mergeKeys, toKeyFields, toKeyOptions } from './key.ts'
import { type LimitCost, parseLimits, type StoredLimits, toLimitCosts } from './limits.ts'
import { makePosting, type PostOptions } from './posting/post-options.ts'
import type { Posting } from './posting/posting.ts'
import { parseResources, type Resources, toResourceWants } from './resources.ts'

/** The declarations of a flow for the store of one job. */
export interface Declared {
  readonly resources?: Resources
  readonly limits?: readonly LimitCost[]
  readonly key?: KeyOptions
}

/** The resources and limits of a job whose posting lacked some of them. */
export type AddedDeclarations = Pick<Posting, 'resources' | 'limits'>

type PostDefaults = Omit<PostingDefaults, 'resources' | 'mutex' | 'key' | 'limits' | 'retry'>

/** Returns the defaults of a flow that are options of a post. */
function toPostDefaults({
  resources: _,
  mutex: __,
  key: ___,
  limits: ____,
  retry: _____,
  ...defaults
}: PostingDefaults): PostDefaults {
  return defaults
}

/** The fields that decide which resources and limits a job has. */
type Locks = Pick<Posting, 'resources' | 'limits' | 'details'>

/**
 * Returns what the flow declares for a store.
 *
 * @param store the store, as the flow's schema returned it
 * @throws InvalidArgument, with the name of the flow, for a function that throws, and for a value that is not valid
 */
export function toDeclared(flow: AnyFlow, store: object): Declared {
  const { resources, mutex, key, limits } = evaluateDeclarations(flow, { ...store })
  const wanted = resources === undefined ? {} : parsed(flow, 'resources', () => parseDeclaredResources(resources))
  const alone = { exclusive: mutex === undefined ? [] : [mutex] }
  return {
    ...wanted,
    ...(mutex === undefined
      ? {}
      : parsed(flow, 'mutex', () => ({ resources: mergeResources(wanted.resources, alone) }))),
    ...(limits === undefined ? {} : parsed(flow, 'limits', () => parseDeclaredLimits(limits))),
    ...(key === undefined ? {} : parsed(flow, 'key', () => parseDeclaredKey(key))),
  }
}

/**
 * Checks the options that a flow declares for all its jobs, except the options that it computes from a store: otherwise each of its jobs would be
 * refused when it is posted or claimed.
 *
 * @throws InvalidArgument, with the name of the flow
 */
export function assertFixedPosting(flow: AnyFlow): void {
  const fixed = Object.entries(flow.posting ?? {}).filter(([, value]) => typeof value !== 'function')
  const posting: PostingDefaults = Object.fromEntries(fixed)
  toDeclared({ ...flow, posting }, {})
  try {
    makePosting({ ...toPostDefaults(posting), name: flow.name, details: { flow: flow.name, store: {} } })
  } catch (error) {
    if (!(error instanceof JobboardError)) throw error
    throw new InvalidArgument(`flow ${flow.name}: posting: ${error.message.replace(/^job [\da-f-]{36}: /, '')}`, {
      cause: error,
    })
  }
}

/**
 * Returns the options of a post, with the defaults of the flow and what it declares.
 *
 * @throws InvalidArgument for a key other than the declared one, or with another window or `on`; InvalidPosting for resources or limits of the caller
 * that are not valid
 */
export function withFlowPosting(flow: AnyFlow, store: object, options: PostOptions): PostOptions {
  const declared = toDeclared(flow, store)
  const { resources, limits } = options
  return {
    ...toPostDefaults(flow.posting ?? {}),
    ...options,
    ...(declared.resources ? { resources: mergeResources(parseResources(resources), declared.resources) } : {}),
    ...(declared.limits ? { limits: mergeLimits(parseLimits(limits), declared.limits) } : {}),
    ...(declared.key === undefined ? {} : { key: mergeKeys(flow.name, options.key, declared.key) }),
  }
}

/**
 * Returns the resources and limits that the job must have, if its posting lacks some that the flow declares; undefined if it lacks none.
 *
 * @throws InvalidPosting where together they are too many
 */
export function missingDeclarations(posting: Locks, declared: Declared): AddedDeclarations | undefined {
  const { resources, limits } = declared
  const lacksResources = resources !== undefined && !hasResources(posting, resources)
  const lacksLimits = limits !== undefined && !hasLimits(posting, limits)
  if (!lacksResources && !lacksLimits) return undefined
  return {
    ...(lacksResources ? { resources: mergeResources(posting.resources, resources) } : {}),
    ...(lacksLimits ? { limits: mergeLimits(posting.limits, limits) } : {}),
  }
}

function hasResources(posting: Locks, declared: Resources): boolean {
  const { exclusive, shared } = toResourceWants(posting)
  const alone = new Set(exclusive)
  const any = new Set([...exclusive, ...shared])
  const { exclusive: declaredAlone = [], shared: declaredShared = [] } = declared
  return declaredAlone.every((name) => alone.has(name)) && declaredShared.every((name) => any.has(name))
}

function hasLimits(posting: Locks, declared: readonly LimitCost[]): boolean {
  if (posting.limits === 'none') return true
  const costs = new Map(toLimitCosts(posting).map(({ key, cost }) => [key, cost]))
  return declared.every(({ key, cost }) => (costs.get(key) ?? 0) >= cost)
}

/** Returns the union. A name that either wants exclusively is exclusive. @throws InvalidPosting for too many names */
function mergeResources(some: Resources | undefined, others: Resources): Resources {
  const union = (mode: keyof Resources) => [...new Set([...(some?.[mode] ?? []), ...(others[mode] ?? [])])]
  const exclusive = union('exclusive')
  const shared = union('shared').filter((name) => !exclusive.includes(name))
  return parseResources({ exclusive, shared }) ?? {}
}

/** Returns the union; a key of both has the greater cost. @throws InvalidPosting for too many keys */
function mergeLimits(some: StoredLimits | undefined, others: readonly LimitCost[]): StoredLimits {
  if (some === 'none') return some
  const costs = new Map<string, number>()
  for (const { key, cost } of [...(some ?? []), ...others]) costs.set(key, Math.max(cost, costs.get(key) ?? 0))
  return parseLimits([...costs].map(([key, cost]) => ({ key, cost }))) ?? []
}

/** Parses a declared value, and adds the flow and the option to the error. */
function parsed(flow: AnyFlow, what: string, parse: () => Declared): Declared {
  try {
    return parse()
  } catch (error) {
    if (!(error instanceof JobboardError)) throw error
    throw new InvalidArgument(`flow ${flow.name}: posting.${what} is not valid: ${error.message}`, { cause: error })
  }
}

function parseDeclaredResources(value: unknown): Declared {
  // An object of a class, such as a Map, has no field that could be wrong: its names would be ignored.
  const isPlain = [Object.prototype, null].includes(Object.getPrototypeOf(Object(value)))
  if (value === null || !isPlain) throw new InvalidArgument('resources must be { exclusive, shared }')
  const resources = parseResources(value)
  return resources ? { resources } : {}
}

function parseDeclaredLimits(value: unknown): Declared {
  const limits = value === 'none' || value === null ? undefined : parseLimits(value)
  if (limits !== undefined && limits !== 'none') return { limits }
  if (Array.isArray(value)) return {}
  throw new InvalidArgument("limits must be an array of keys, or of { key, cost }, such as ['api/stripe']")
}

function parseDeclaredKey(value: unknown): Declared {
  const isOptions = typeof value === 'object' && value !== null
  if (!isOptions && (typeof value !== 'string' || value === ''))
    throw new InvalidArgument(`a key must be a non-empty string, got ${value === '' ? 'an empty one' : typeof value}`)
  // A value of another type is refused by name.
  const key = toKeyOptions(value as string | KeyOptions)
  const fault = nameFault(key.name)
  if (fault !== undefined) throw new InvalidArgument(`a key ${fault}`)
  toKeyFields(key)
  return { key }
}
