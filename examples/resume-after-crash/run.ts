/** Runs the flow from where its logbook ends: `run.ts LOGBOOKS RUN [die]`. */
import { Engine, openPersistence } from 'jobboard'
import { buildFlow } from './flow.ts'

const [folder = '', run = '1', die] = process.argv.slice(2)
const flow = buildFlow(() => {
  if (die) process.kill(process.pid, 'SIGKILL')
})

await using persistence = await openPersistence(`directory:${folder}`)
// On a board each claim has a run number. An owner with a lower one can no longer write to the logbook.
await using log = await persistence.acquire({
  book: { uuid: 'build-7', name: 'build no. 7' },
  flow: { uuid: 'build-7', name: flow.name, version: flow.version },
  run: Number(run),
  claim: `claim ${run}`,
})
const { state } = await new Engine({ flow, log }).run()
console.log(`run ${run}: the flow is a ${state}`)
