/** What the compiler must accept and refuse in flows. Checked by `tsc --noEmit`; nothing here is ever run. */
import { type AnyFlow, type AnyTask, type Flow, input, linear, type Task, task } from '../../src/flow/index.ts'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
declare function same<A, B>(answer: Same<A, B>): void
declare function typeOf<T>(value: T): { is<U>(answer: Same<T, U>): void }

declare function post<I>(flow: Flow<I>, store: NoInfer<I>): void
declare function runFlow<I, R>(flow: Flow<I, R>, store: NoInfer<I>): Promise<{ results: R }>

// --- One task -----------------------------------------------------------------------------------------------------

const greet = task('greet', {
  requires: ['name'],
  provides: 'text',
  execute: async ({ name }: { name: string }, ctx) => `Hello, ${name}, in run ${ctx.run}!`,
})
const print = task('print', { requires: ['text'], execute: async ({ text }: { text: string }) => console.log(text) })
const now = task('now', { provides: 'now', execute: () => 3 })
same<typeof greet, Task<{ name: string }, 'text', string>>(true)
same<typeof now, Task<{ [K in never]: unknown }, 'now', number>>(true)

task('reports of itself', {
  execute: async (_args, { checkpoint, progress }) => {
    typeOf(checkpoint.last).is<unknown>(true)
    // @ts-expect-error what was saved has to be checked
    checkpoint.last.row
    typeOf(checkpoint.save({ row: 7 })).is<Promise<void>>(true)
    // @ts-expect-error it is set by saving
    checkpoint.last = 7
    progress(0.5)
    progress(0.5, 'page 3')
    // @ts-expect-error a message is a text
    progress(0.5, 3)
  },
  revert: (_args, { checkpoint }) => typeOf(checkpoint.last).is<unknown>(true),
})

task('revert knows the types', {
  requires: ['path'],
  provides: 'size',
  execute: async ({ path }: { path: string }) => path.length,
  revert: ({ path }, { result, failure, failures, run }) => {
    typeOf(path).is<string>(true)
    typeOf(result).is<number | undefined>(true)
    return [failure?.message, failures.length, run]
  },
})

task('unannotated is unknown', {
  requires: ['path'],
  execute: async (args) => {
    typeOf(args).is<{ path: unknown }>(true)
    // @ts-expect-error unknown, not any
    const path: string = args.path
    // @ts-expect-error not even declared
    return [path, args.other]
  },
})

task('nothing required, nothing there', {
  execute: async (args) => {
    // @ts-expect-error there are no arguments
    return args.path
  },
})

// @ts-expect-error text is not what requires names
task('undeclared', { requires: ['name'], execute: async ({ text }: { text: string }) => text })
// @ts-expect-error text is in no requires at all
task('undeclared', { execute: async ({ text }: { text: string }) => text })
task('undeclared', {
  // @ts-expect-error text is missing in requires
  requires: ['name'],
  execute: async ({ name, text }: { name: string; text: string }) => name + text,
})
// @ts-expect-error requires may be empty, but then there are no arguments
task('undeclared', { requires: [], execute: async ({ text }: { text: string }) => text })
// @ts-expect-error a task does something
task('lazy', { requires: ['name'] })

// A task can be made from another.
const greetAgain = task('greet again', { ...greet })
same<typeof greetAgain, typeof greet>(true)

// A task is called in a test of its own like any function.
export const called = greet.execute({ name: 'Ada' }, {} as never)
// @ts-expect-error with its arguments
export const refused = greet.execute({ name: 3 }, {} as never)

// --- Tasks in a flow ----------------------------------------------------------------------------------------------

const length = task('length', {
  requires: ['text'],
  provides: 'length',
  execute: ({ text }: { text: string }) => text.length,
})
const wantsNumber = task('wants number', { requires: ['text'], execute: ({ text }: { text: number }) => text })
const wantsTwo = task('wants two', {
  requires: ['text', 'length'],
  execute: ({ text, length }: { text: string; length: number }) => text.at(length),
})
const wider = task('wider', { requires: ['text'], execute: ({ text }: { text: string | number }) => text })

const hello = linear('hello', input<{ name: string }>(), greet, print, length, wantsTwo, wider, now)
same<typeof hello, Flow<{ name: string }, { text: string; length: number; now: number }, unknown>>(true)

const noInputs = linear('no inputs', input(), now)
same<typeof noInputs, Flow<{ [K in never]: never }, { now: number }, unknown>>(true)
linear({ name: 'versioned', version: '2.0' }, input<{ name: string }>(), greet, print)

// @ts-expect-error text is a string there
linear('wrong type', input<{ name: string }>(), greet, wantsNumber)
// @ts-expect-error text is a string there
linear('wrong type from the input', input<{ text: string }>(), wantsNumber)
// @ts-expect-error nobody provides text
linear('missing provider', input<{ name: string }>(), print)
// @ts-expect-error text comes too late
linear('order', input<{ name: string }>(), print, greet)
// @ts-expect-error length is missing, text is there
linear('half', input<{ name: string }>(), greet, wantsTwo)
// @ts-expect-error the input says that name may be absent
linear('optional', input<{ name?: string }>(), greet)
// @ts-expect-error no task
linear('a string', input<{ name: string }>(), greet, 'print')
// @ts-expect-error the input comes first
linear('no input', greet, print)
// @ts-expect-error a store is an object
linear('no object', input<string>(), now)

// The text of an error has to be readable: these are the types that the argument would have to have.
type Parameter<F> = F extends (...args: infer P) => unknown ? P : never
type TaskAfterGreet<T extends AnyTask> = Parameter<typeof linear<{ name: string }, [typeof greet, T]>>[3]
same<
  TaskAfterGreet<Task<{ size: number; kind: string }, never, void>>,
  | 'neither the input nor a task before this one provides: size'
  | 'neither the input nor a task before this one provides: kind'
>(true)
same<
  TaskAfterGreet<typeof wantsNumber>,
  { 'provided with another type than required': { text: { provided: string; required: number } } }
>(true)

// The last provider of a name counts, and the store shadows them all.
const shout = task('shout', { requires: ['text'], provides: 'text', execute: ({ text }: { text: string }) => [text] })
const wantsList = task('wants list', { requires: ['text'], execute: ({ text }: { text: string[] }) => text })
const shouted = linear('shouted', input<{ name: string }>(), greet, shout, wantsList)
same<typeof shouted, Flow<{ name: string }, { text: string[] }, unknown>>(true)
// @ts-expect-error text is a list by then
linear('shouted', input<{ name: string }>(), greet, shout, print)
linear('shadowed', input<{ name: string; text: number }>(), greet, wantsNumber)

// Flows that are longer than a recursion of the compiler would be deep, and flows made of a list.
// biome-ignore format: one line says it better
const long = linear('long', input<{ name: string }>(), greet, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, print, now)
same<typeof long, Flow<{ name: string }, { text: string; now: number }, unknown>>(true)
const list: AnyTask[] = [
  greet,
  task('written into a list', {
    requires: ['text'],
    execute: ({ text }: { text: string }, ctx) => text.length + ctx.run,
    revert: ({ text }, { result }) => {
      typeOf(text).is<string>(true)
      typeOf(result).is<number | undefined>(true)
    },
  }),
]
const listed = linear('listed', input<{ name: string }>(), ...list)
same<typeof listed, Flow<{ name: string }, Record<string, unknown>, unknown>>(true)
const anyTask: AnyTask = greet
const mixed = linear('mixed', input<{ name: string }>(), anyTask, greet, print)
same<typeof mixed, Flow<{ name: string }, { text: string }, unknown>>(true)

// --- Flows in use -------------------------------------------------------------------------------------------------

post(hello, { name: 'Ada' })
// @ts-expect-error name is a string
post(hello, { name: 3 })
// @ts-expect-error name is missing
post(hello, {})
// @ts-expect-error and nothing else
post(hello, { name: 'Ada', nickname: 'A' })

runFlow(hello, { name: 'Ada' }).then(({ results }) => typeOf(results.length).is<number>(true), console.error)

const anyFlow: AnyFlow = hello
const someFlow: Flow = hello
export const flows: AnyFlow[] = [hello, long, anyFlow, someFlow]
// @ts-expect-error a flow is frozen
anyFlow.name = 'other'
// @ts-expect-error another store
const other: Flow<{ path: string }> = hello
post(other, { path: '' })
