/** The common part of the three patterns: the flow's name, version and retry, and the checks of its parts. */
import { Duplicate, InvalidArgument } from '../../core/errors.ts'
import { assertOptions, type KnownOptions } from '../../core/options.ts'
import { isName, listNeeds, namesProvided } from '../atoms/atom.ts'
import { assertIsolate, type Isolate } from '../atoms/isolation.ts'
import { type AnyRetry, isRetry, nameAfterFlow } from '../atoms/retry.ts'
import { isTask } from '../atoms/task.ts'
import { type AnyFlow, type AnyPart, type Input, isFlow, isInput } from './flow.ts'
import { checkKeepLogbooks, type KeepLogbooks } from './keep-logbooks.ts'
import { checkPostingDefaults, type PostingDefaults } from './posting-defaults.ts'

/**
 * The name of a flow, its retry, and the defaults of its jobs.
 *
 * @typeParam Rt the type of the retry
 * @typeParam S the type of the store, as the flow's schema returns it
 */
export interface FlowOptions<Rt = AnyRetry, S = Readonly<Record<string, unknown>>> {
  /** The name under which the flow is posted. */
  readonly name: string
  /** The version; `'1.0'` by default. */
  readonly version?: string
  /** The retry, which decides what happens when something in the flow fails; without one, the outer flow's retry decides. */
  readonly retry?: Rt | undefined
  /**
   * The defaults for `post` with this flow, and what each of its jobs locks: `{ maxAttempts: 5, resources: ({ repo }) => ({ exclusive: [repo] }) }`.
   */
  readonly posting?: PostingDefaults<S> | undefined
  /**
   * The time for which the logbooks of its jobs are kept after their last change, whatever conductors say (`removeLogbooksAfter`): a duration, 0, or
   * `'forever'`. It is written into each logbook with the first run of its job. Not used for a flow inside of another.
   */
  readonly keepLogbooks?: KeepLogbooks | undefined
  /**
   * Whether the board keeps the results of its jobs, up to 64 KiB each, so that `board.result` finds them without the logbooks; false by default.
   * They go when the history of the board forgets the job. Not used for a flow inside of another.
   */
  readonly keepResults?: boolean | undefined
  /** Runs the tasks of the flow, and of the flows in it, in child processes, unless a task or an inner flow says otherwise. */
  readonly isolate?: Isolate | undefined
}

export const FLOW_OPTIONS: KnownOptions<FlowOptions> = {
  name: true,
  version: true,
  retry: true,
  posting: true,
  keepLogbooks: true,
  keepResults: true,
  isolate: true,
}

type FlowHead = Pick<
  AnyFlow,
  'name' | 'version' | 'retry' | 'posting' | 'keepLogbooks' | 'keepResults' | 'isolate' | 'schema'
>

/** @throws InvalidArgument naming the invalid option */
export function checkFlowHead(
  nameOrOptions: string | FlowOptions<unknown, never>,
  store: Pick<Input<never>, 'schema'>,
  { pattern, known }: { pattern: AnyFlow['pattern']; known: KnownOptions<FlowOptions> },
): FlowHead {
  const head = typeof nameOrOptions === 'string' ? { name: nameOrOptions } : (nameOrOptions ?? {})
  const { name, version = '1.0', retry, posting, isolate }: Partial<FlowOptions<unknown, never>> = head
  const { keepLogbooks, keepResults = false }: Partial<FlowOptions<unknown, never>> = head
  if (!isName(name))
    throw new InvalidArgument(`a flow needs a name of whole characters: ${pattern}('hello', input<…>(), firstTask, …)`)
  if (typeof nameOrOptions === 'object') assertOptions(nameOrOptions, known, `flow ${name}`)
  if (!isName(version)) throw new InvalidArgument(`flow ${name}: version must be a non-empty string, such as '1.0'`)
  if (retry !== undefined && !isRetry(retry))
    throw new InvalidArgument(`flow ${name}: retry must be a retry, as times(…), retry(…) and others make it`)
  if (!isInput(store))
    throw new InvalidArgument(`flow ${name}: the second argument must be input<…>(), followed by the tasks`)
  assertIsolate(isolate, `flow ${name}`)
  if (typeof keepResults !== 'boolean') throw new InvalidArgument(`flow ${name}: keepResults must be true or false`)
  return {
    name,
    version,
    isolate: typeof isolate === 'object' ? Object.freeze({ ...isolate }) : isolate,
    retry: retry && nameAfterFlow(name, retry),
    posting: checkPostingDefaults(name, posting),
    keepLogbooks: checkKeepLogbooks(name, keepLogbooks),
    keepResults,
    schema: store.schema,
  }
}

/** @throws InvalidArgument for a value that is not a part; Duplicate for two atoms of one name */
export function checkFlowParts({ name, retry }: FlowHead, parts: readonly unknown[]): readonly AnyPart[] {
  if (parts.length === 0 && !retry)
    throw new InvalidArgument(
      `flow ${name} has no tasks: name them after its input, as in linear('hello', input<…>(), greet)`,
    )
  for (const [index, part] of parts.entries()) {
    if (isRetry(part))
      throw new InvalidArgument(
        `flow ${name}: number ${index + 1} in its list is a retry; it goes to the flow's options, as in { name: '${name}', retry }`,
      )
    if (!isTask(part) && !isFlow(part))
      throw new InvalidArgument(`flow ${name}: number ${index + 1} in its list is not a task; task(…) makes one`)
  }
  const checked = parts as readonly AnyPart[]
  assertUniqueNames(name, { retry, parts: checked })
  return Object.freeze([...checked])
}

function assertUniqueNames(
  flow: string,
  { retry, parts }: { retry: AnyRetry | undefined; parts: readonly AnyPart[] },
): void {
  const names = new Set(retry ? [retry.name] : [])
  const add = (name: string, kind: string) => {
    if (names.has(name))
      throw new Duplicate(
        `flow ${flow}: two of its ${kind}s are named ${name}; give each its own name: the logbook identifies atoms by name`,
      )
    names.add(name)
  }
  const left = [...parts].reverse()
  for (let part = left.pop(); part; part = left.pop()) {
    if (part.kind === 'task') add(part.name, 'task')
    else {
      if (part.retry) add(part.retry.name, 'retrie')
      left.push(...part.atoms.toReversed())
    }
  }
}

/** Returns the names that a part needs from its flow, and whether each is optional. */
export function listPartNeeds(
  part: AnyPart | AnyRetry,
): readonly { readonly name: string; readonly optional: boolean }[] {
  if (part.kind !== 'flow') return listNeeds(part)
  return [
    ...part.requires.map((name) => ({ name, optional: false })),
    ...(part.optional ?? []).map((name) => ({ name, optional: true })),
  ]
}

export function listProvidedByPart(part: AnyPart): readonly string[] {
  return part.kind === 'flow' ? part.provides : namesProvided(part.provides)
}

type FlowInputs = Pick<AnyFlow, 'requires' | 'optional' | 'provides'>

/**
 * Returns the names that a flow needs from outside, and the names that it provides.
 *
 * @param siblings the siblings whose results a part sees
 */
export function computeInputs(
  { retry, parts }: { retry: AnyRetry | undefined; parts: readonly AnyPart[] },
  siblings: 'earlier' | 'none' | 'others',
): FlowInputs {
  const requires = new Set<string>()
  const optional = new Set<string>()
  const ask = (part: AnyPart | AnyRetry, isThere: (name: string) => boolean) => {
    for (const need of listPartNeeds(part)) {
      if (!isThere(need.name)) (need.optional ? optional : requires).add(need.name)
    }
  }
  if (retry) ask(retry, () => false)
  const before = new Set(namesProvided(retry?.provides))
  const all = indexProviders(parts)
  for (const part of parts) {
    const others = (name: string) => (all.get(name) ?? []).some((other) => other !== part)
    ask(part, (name) => before.has(name) || (siblings === 'others' && others(name)))
    if (siblings === 'earlier') for (const name of listProvidedByPart(part)) before.add(name)
  }
  const may = [...optional].filter((name) => !requires.has(name))
  return {
    requires: Object.freeze([...requires]),
    optional: may.length > 0 ? Object.freeze(may) : undefined,
    provides: Object.freeze([...new Set([...namesProvided(retry?.provides), ...all.keys()])]),
  }
}

/** Returns the parts that provide each name. */
export function indexProviders(parts: readonly AnyPart[]): ReadonlyMap<string, readonly AnyPart[]> {
  const providers = new Map<string, AnyPart[]>()
  for (const part of parts) {
    for (const name of listProvidedByPart(part)) {
      const known = providers.get(name)
      if (known) known.push(part)
      else providers.set(name, [part])
    }
  }
  return providers
}
