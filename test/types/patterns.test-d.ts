/** What the compiler must accept and refuse in retries, and in unordered, graph and nested flows. Nothing here is run. */
import {
  type Flow,
  forEach,
  graph,
  input,
  linear,
  type PostingDefaults,
  parameterizedForEach,
  type StandardSchema,
  task,
  times,
  unordered,
} from '../../src/flow/index.ts'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
declare function same<A, B>(answer: Same<A, B>): void

const make = task('make', { provides: 'text', execute: () => 'x' })
const length = task('length', {
  requires: ['text'],
  provides: 'length',
  execute: ({ text }: { text: string }) => text.length,
})
const wantsNumber = task('wants number', { requires: ['text'], execute: ({ text }: { text: number }) => text })

// --- Arguments ----------------------------------------------------------------------------------------------------

const bound = task('bound', {
  requires: ['a', 'b'],
  optional: ['c'],
  rebind: { a: 'text' },
  inject: { b: 3 },
  execute: ({ a, b, c = 1 }: { a: string; b: number; c?: number }) => a.length + b + c,
})
linear('bound', input(), make, bound)
// @ts-expect-error text is a string there
linear('bound', input<{ text: number }>(), bound)
// @ts-expect-error c is a number where it is there
linear('bound', input<{ c: string }>(), make, bound)
// @ts-expect-error nobody provides text, to which a is bound
linear('bound', input<{ a: string }>(), bound)
// @ts-expect-error b is a number
task('injected', { requires: ['b'], inject: { b: 'x' }, execute: ({ b }: { b: number }) => b })
// @ts-expect-error there is no argument d
task('bound to nothing', { requires: ['b'], rebind: { d: 'x' }, execute: ({ b }: { b: number }) => b })
// @ts-expect-error c is in neither requires nor optional
task('undeclared', { requires: ['b'], execute: ({ b, c }: { b: number; c?: number }) => [b, c] })

// --- Results ------------------------------------------------------------------------------------------------------

const pair = task('pair', { provides: ['text', 'size'], execute: (): [string, number] => ['x', 1] })
const keys = task('keys', { provides: { keys: ['text'] }, execute: () => ({ text: 'x', other: 1 }) })
const parts = linear('parts', input(), pair, length)
same<typeof parts, Flow<{ [K in never]: never }, { text: string; size: number; length: number }, unknown>>(true)
linear('keys', input(), keys, length)
// @ts-expect-error the first of the list is a string
linear('parts', input(), pair, wantsNumber)
// @ts-expect-error the object's text is a string
linear('keys', input(), keys, wantsNumber)

// --- Patterns -----------------------------------------------------------------------------------------------------

const both = unordered('both', input<{ text: string }>(), length, make)
same<typeof both, Flow<{ text: string }, { length: number; text: string }, unknown>>(true)
// @ts-expect-error parts that stand side by side do not see each other
unordered('both', input(), make, length)
// @ts-expect-error text is a string there
unordered('both', input<{ text: string }>(), length, wantsNumber)

graph('in any order', input(), length, make)
// @ts-expect-error nobody provides text
graph('missing', input(), length)
// @ts-expect-error text is a string there
graph('mistyped', input(), wantsNumber, make)

linear('nested', input(), make, both)
const nested = linear('nested', input(), linear('inner', input(), make), length)
same<typeof nested, Flow<{ [K in never]: never }, { text: string; length: number }, unknown>>(true)
// @ts-expect-error the inner flow's input is missing
linear('nested', input(), both)
// @ts-expect-error the inner flow makes a string
linear('nested', input(), linear('inner', input(), make), wantsNumber)

// --- Retries ------------------------------------------------------------------------------------------------------

const attempt = task('attempt', { requires: ['n'], execute: ({ n }: { n: number }) => n })
const retried = linear({ name: 'retried', retry: times(3, { provides: 'n' }) }, input(), attempt)
same<typeof retried, Flow<{ [K in never]: never }, { n: number }, unknown>>(true)
unordered({ name: 'retried', retry: forEach([1, 2], { provides: 'n' }) }, input(), attempt)
graph({ name: 'retried', retry: forEach([1, 2], { provides: 'n' }) }, input(), attempt)
// @ts-expect-error it provides strings
linear({ name: 'retried', retry: forEach(['a'], { provides: 'n' }) }, input(), attempt)
// @ts-expect-error it provides nothing
linear({ name: 'retried', retry: times(3) }, input(), attempt)
const hosts = parameterizedForEach<string, 'host', 'hosts'>({ from: 'hosts', provides: 'host' })
linear({ name: 'hosts', retry: hosts }, input<{ hosts: string[] }>(), make)
// @ts-expect-error nobody provides hosts
linear({ name: 'hosts', retry: hosts }, input(), make)

// --- Schemas ------------------------------------------------------------------------------------------------------

declare const schema: StandardSchema<{ text: number }, { text: string }>
const checked = linear('checked', input(schema), length)
same<typeof checked, Flow<{ text: number }, { length: number }, unknown>>(true)
// @ts-expect-error tasks see what the schema makes of it
linear('checked', input(schema), wantsNumber)

// --- What a flow declares of its jobs ------------------------------------------------------------------------------

type Publish = { repo: string; size: number }
const publish = task('publish', { requires: ['repo'], execute: ({ repo }: { repo: string }) => repo })
const declaring = linear(
  {
    name: 'declaring',
    posting: {
      maxAttempts: 5,
      resources: ({ repo, size }) => {
        same<typeof repo, string>(true)
        same<typeof size, number>(true)
        return size > 3 ? { exclusive: [repo] } : undefined
      },
      key: ({ repo }) => repo,
      limits: ({ repo }) => [repo, { key: 'points', cost: 2 }],
    },
  },
  input<Publish>(),
  publish,
)
same<typeof declaring, Flow<Publish, { [K in never]: never }, unknown>>(true)
unordered({ name: 'at once', posting: { key: ({ repo }) => repo } }, input<Publish>(), publish)
graph({ name: 'graph', links: [], posting: { limits: ({ repo }) => [repo] } }, input<Publish>(), publish)
linear(
  { name: 'with a retry', retry: times(3, { provides: 'attempt' }), posting: { key: ({ repo }) => repo } },
  input<Publish>(),
  publish,
)
linear({ name: 'values', posting: { resources: { shared: ['db'] }, key: 'one', limits: ['a'] } }, input(), make)

declare const transforming: StandardSchema<{ repo?: string }, { repo: string }>
linear(
  // The store is that which the schema returns.
  { name: 'checked', posting: { key: ({ repo }) => repo.toLowerCase() } },
  input(transforming),
  publish,
)
linear(
  {
    name: 'strange',
    // @ts-expect-error the store has no branch
    posting: { key: ({ branch }) => branch },
  },
  input<Publish>(),
  publish,
)
linear(
  {
    name: 'strange',
    // @ts-expect-error a size is no key
    posting: { key: ({ size }) => size },
  },
  input<Publish>(),
  publish,
)
linear(
  {
    name: 'strange',
    // @ts-expect-error a promise is not a value
    posting: { limits: async ({ repo }) => [repo] },
  },
  input<Publish>(),
  publish,
)
linear(
  {
    name: 'strange',
    posting: {
      resources: (store) => {
        // @ts-expect-error the store is not changed
        store.repo = 'x'
        return { exclusive: [store.repo] }
      },
    },
  },
  input<Publish>(),
  publish,
)
const unknownStore: PostingDefaults = {
  key: ({ repo }) => {
    same<typeof repo, unknown>(true)
    return String(repo)
  },
}
linear({ name: 'unknown store', posting: unknownStore }, input<Publish>(), publish)
