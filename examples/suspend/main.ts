/** Suspends a flow and resumes it later; and runs another one step by step. */
import { Engine, type FlowLog, input, linear, openPersistence, task } from 'jobboard'

const step = (name: string) => task(name, { execute: () => console.log(`  ${name}`) })
const flow = linear('journey', input(), step('pack'), step('travel'), step('unpack'))

await using persistence = await openPersistence('memory:')

function acquire(run: number): Promise<FlowLog> {
  return persistence.acquire({
    book: { uuid: 'journey', name: 'a journey' },
    flow: { uuid: 'journey', name: flow.name, version: flow.version },
    run,
    claim: `claim ${run}`,
  })
}

const engine = new Engine({ flow, log: await acquire(1) })
engine.on('atom', ({ atom, to }) => {
  if (atom === 'travel' && to === 'RUNNING') engine.suspend()
})
console.log((await engine.run()).state)

const states: string[] = []
for await (const state of new Engine({ flow, log: await acquire(2) }).runIter()) states.push(state)
console.log(states.join(' '))
