/** Defaults for a flow that come from a configuration, in place of what its code says. */
import { brand } from '../atoms/brand.ts'
import type { AnyFlow } from './flow.ts'
import { checkKeepLogbooks, type KeepLogbooks } from './keep-logbooks.ts'
import { checkPostingDefaults, type PostingDefaults } from './posting-defaults.ts'

type PlainLimits = readonly (string | { readonly key: string; readonly cost?: number })[]

/** The settings of a flow in a configuration. */
export interface FlowDefaults extends Omit<PostingDefaults, 'resources' | 'limits' | 'key' | 'retry' | 'mutex'> {
  /** The resources of its jobs, besides the resources that its code declares. */
  readonly resources?: { readonly exclusive?: readonly string[]; readonly shared?: readonly string[] }
  /** The limits of its jobs, besides the limits that its code declares. */
  readonly limits?: PlainLimits
  readonly keepLogbooks?: KeepLogbooks
  readonly keepResults?: boolean
}

/** Returns the flow with defaults: they replace the defaults of its code, except resources and limits, which are added. @throws InvalidArgument */
export function withFlowDefaults(flow: AnyFlow, defaults: FlowDefaults): AnyFlow {
  const { resources, limits, keepLogbooks, keepResults, ...posting } = defaults
  const declared = flow.posting
  return brand('flow', {
    ...flow,
    posting: checkPostingDefaults(flow.name, {
      ...declared,
      ...posting,
      ...(resources ? { resources: addResources(declared?.resources, resources) } : {}),
      ...(limits ? { limits: addLimits(declared?.limits, limits) } : {}),
    }),
    keepLogbooks: keepLogbooks === undefined ? flow.keepLogbooks : checkKeepLogbooks(flow.name, keepLogbooks),
    keepResults: keepResults ?? flow.keepResults,
  })
}

type Store = Readonly<Record<string, unknown>>

function addResources(
  declared: PostingDefaults['resources'],
  added: NonNullable<FlowDefaults['resources']>,
): PostingDefaults['resources'] {
  return (store: Store) => {
    const own = typeof declared === 'function' ? declared(store) : declared
    const union = (mode: 'exclusive' | 'shared') => [...(own?.[mode] ?? []), ...(added[mode] ?? [])]
    const exclusive = union('exclusive')
    return { exclusive, shared: union('shared').filter((name) => !exclusive.includes(name)) }
  }
}

function addLimits(declared: PostingDefaults['limits'], added: PlainLimits): PostingDefaults['limits'] {
  return (store: Store) => {
    const own = typeof declared === 'function' ? declared(store) : declared
    return [...(own ?? []), ...added]
  }
}
