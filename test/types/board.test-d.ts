/** What the compiler must accept and refuse at `post`. Checked by `tsc --noEmit`; nothing here is ever run. */
import { type AnyFlow, type Context, type Flow, input, type JobBoard, linear, task } from '../../src/index.ts'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
declare function same<A, B>(answer: Same<A, B>): void

declare const board: JobBoard

const greet = task('greet', { requires: ['name'], execute: ({ name }: { name: string }) => name })
const hello = linear('hello', input<{ name: string }>(), greet)

declare const any: AnyFlow | string

export const posts = [
  board.post(hello, { name: 'Ada' }, { priority: 'HIGH' }),
  // @ts-expect-error the misspelt field is what the compiler names, not one of several signatures
  board.post(hello, { nam: 'Ada' }),
  // @ts-expect-error name is a string
  board.post(hello, { name: 3 }),
  // @ts-expect-error name is missing
  board.post(hello, {}),
  // @ts-expect-error the whole store is missing
  board.post(hello),
  // @ts-expect-error no such priority
  board.post(hello, { name: 'Ada' }, { priority: 'URGENT' }),

  // Where only the name is known, and where nothing is, any object will do.
  board.post('hello', { anything: 1 }),
  board.post(any, { anything: 1 }),
  // @ts-expect-error a store is an object
  board.post('hello', 3),
]
export const generic = <I extends object>(flow: Flow<I>, store: I) => board.post(flow, store)

// One signature, so that the compiler has one error to tell.
same<Parameters<JobBoard['post']>['length'], 2 | 3>(true)

// A task can pass its fence on as it is.
same<Context['fence'], bigint>(true)
