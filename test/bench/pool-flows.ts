/** The flows of `bench -- pool`: the process of the conductor and its children import them. */
import { createHash } from 'node:crypto'
import { type Context, input, linear, task } from 'jobboard'
import { now } from './part-child.ts'

/** The time that a task which computes for ever has to stop. */
export const GRACE_MS = 200
/** SHA-256 digests in a task that computes: about a second of processor time. */
const DIGESTS = 700_000

/** Returns after a fixed amount of work, not after a time: what disturbs it makes it late. */
function compute(): string {
  let digest = Buffer.alloc(32)
  for (let n = 0; n < DIGESTS; n += 1) digest = createHash('sha256').update(digest).digest()
  return digest.toString('hex')
}

/** Reports that it computes, and computes for ever. */
async function spin(_: object, ctx: Context): Promise<never> {
  ctx.progress(0)
  // The report is on its way before the event loop is blocked.
  await new Promise((resolve) => setImmediate(resolve))
  while (true) Math.random()
}

const one = (isolate: boolean | { fresh: true }) => task('one', { isolate, execute: () => undefined })

export const isolated = linear('isolated', input(), one(true))
export const here = linear('here', input(), one(false))
export const fresh = linear('fresh', input(), one({ fresh: true }))

export const spinning = linear('spinning', input(), task('spin', { isolate: { grace: GRACE_MS }, execute: spin }))

const before = task('before', { provides: 'at', execute: () => now() })
const begun = (isolate: boolean) =>
  task('begun', { requires: ['at'], isolate, execute: ({ at }: { at: number }) => now() - at })
/** The result of `begun`: how long it took from the end of the task before until it began. */
export const beginning = linear('beginning', input(), before, begun(true))
export const beginningHere = linear('beginning here', input(), before, begun(false))

export const computing = linear('computing', input(), task('compute', { isolate: true, execute: compute }))
export const computingHere = linear('computing here', input(), task('compute', { execute: compute }))
