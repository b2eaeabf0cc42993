/** For random flows with deciders and failures: however often they are killed, suspended, and left, they end the same. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { StorageFailure } from '../../../src/core/errors.ts'
import { Engine } from '../../../src/engine/index.ts'
import { type AnyFlow, compile } from '../../../src/flow/index.ts'
import type { FlowDetail, FlowLog } from '../../../src/persistence/index.ts'
import { dyingAt, TaskRecorder } from '../../engine/workshop.ts'
import { count } from '../../support/counts.ts'
import { flowOf, plansWithDeciders } from './plans.ts'

/** What befalls one engine, when so much of it has happened; then the next takes over. */
interface Fault {
  readonly kind: 'killed' | 'killed unheard' | 'suspended' | 'left'
  readonly after: number
}

const faults: fc.Arbitrary<readonly Fault[]> = fc.array(
  fc.record({
    kind: fc.constantFrom('killed' as const, 'killed unheard' as const, 'suspended' as const, 'left' as const),
    after: fc.integer({ min: 1, max: 6 }),
  }),
  { minLength: 1, maxLength: 12 },
)

interface Settings {
  readonly concurrency: number
  readonly deferReverts: boolean
  readonly neverResolve?: boolean
}

async function tell(
  plan: Parameters<typeof flowOf>[0],
  { mishaps = [], ...settings }: Settings & { readonly mishaps?: readonly Fault[] },
): Promise<FlowDetail> {
  await using shop = new TaskRecorder()
  let heard: () => void = () => undefined
  const flow = flowOf(plan, () => heard())
  for (let run = 0; run < 100; run += 1) {
    const log = await shop.acquire(flow)
    if (['SUCCESS', 'REVERTED', 'FAILURE'].includes(log.flow.state)) return log.flow
    // Not always as many at once: whoever takes over may be another conductor.
    const concurrency = run % 2 === 1 ? 3 : settings.concurrency
    await injectFault(mishaps[run], {
      flow,
      log,
      settings: { ...settings, concurrency },
      hear: (told) => (heard = told),
    })
  }
  throw new Error('it never ends')
}

async function injectFault(
  mishap: Fault | undefined,
  { flow, log, settings, hear }: { flow: AnyFlow; log: FlowLog; settings: Settings; hear: (told: () => void) => void },
): Promise<void> {
  const { kind, after = 0 } = mishap ?? {}
  const killed = kind === 'killed' || kind === 'killed unheard'
  const engine = new Engine({ flow, log: killed ? dyingAt(after, log, { done: kind === 'killed' }) : log, ...settings })
  let left = after
  hear(() => {
    left -= 1
    if (kind === 'suspended' && left === 0) engine.suspend()
  })
  try {
    if (kind !== 'left') await engine.run()
    else {
      let steps = 0
      for await (const _state of engine.runIter()) {
        steps += 1
        if (steps > after) break
      }
    }
  } catch (error) {
    if (!(error instanceof StorageFailure)) throw error
  }
  await engine.idle
}

/**
 * What has to be the same. In a flow that is reverted, it depends on the hour what was left out, and what never began; and
 * where retries revert no more than their own flow, what is left: of two parts that have no order and both fail, the one that
 * fails first decides how much is reverted, and after a resume that may be the other one.
 */
function summarize({ state, atoms }: FlowDetail, { deferReverts }: Settings): unknown {
  const gone = ['PENDING', 'IGNORE', ...(deferReverts ? [] : ['SUCCESS'])]
  const essence = (atom: FlowDetail['atoms'][number]) =>
    state === 'REVERTED' && gone.includes(atom.state) ? ['REVERTED', undefined] : [atom.state, atom.result]
  return { state, atoms: atoms.map((atom) => [atom.name, ...essence(atom)]).sort() }
}

test.each([
  { concurrency: 1, deferReverts: true },
  { concurrency: 4, deferReverts: true },
  { concurrency: 1, deferReverts: false },
  { concurrency: 4, deferReverts: false },
])('with $concurrency at once, deferReverts $deferReverts', (settings) =>
  fc.assert(
    fc.asyncProperty(plansWithDeciders, faults, async (plan, mishaps) => {
      const calm = await tell(plan, settings)
      expect(['SUCCESS', 'REVERTED']).toContain(calm.state)
      expect(summarize(await tell(plan, { ...settings, mishaps }), settings)).toEqual(summarize(calm, settings))
    }),
    { numRuns: count({ test: 100, long: 5_000 }) },
  ),
)

test.each([1, 4])(
  'whatever becomes of the flow meanwhile, with %i at once, nothing of it is left in between',
  (concurrency) =>
    fc.assert(
      fc.asyncProperty(fc.array(plansWithDeciders, { minLength: 2, maxLength: 4 }), faults, async (plans, mishaps) => {
        await using shop = new TaskRecorder()
        let heard: () => void = () => undefined
        const flows = plans.map((plan) => flowOf(plan, () => heard()))
        for (let run = 0; run < 40; run += 1) {
          const flow = flows[Math.min(run, flows.length - 1)]
          if (!flow) return
          const log = await shop.acquire(flow)
          if (log.flow.state === 'SUCCESS' || log.flow.state === 'REVERTED') return
          const neverResolve = run < flows.length - 1 && run % 2 === 0
          const settings = { concurrency, deferReverts: true, neverResolve }
          await injectFault(mishaps[run], { flow, log, settings, hear: (told) => (heard = told) })
          const { state, atoms } = await shop.detail()
          const known = atoms.filter(({ name }) => compile(flow).byName.has(name)).map((atom) => atom.state)
          if (state === 'SUCCESS') expect(['SUCCESS', 'IGNORE']).toEqual(expect.arrayContaining(known))
          if (state === 'REVERTED') expect(['PENDING', 'REVERTED', 'IGNORE']).toEqual(expect.arrayContaining(known))
        }
        throw new Error('it never ends')
      }),
      { numRuns: count({ test: 150, long: 5_000 }) },
    ),
)
