/**
 * A conductor that dies at a write to the logbook: just before it, or just after. Between two tasks there is exactly one
 * write, which says that the first is done and the second begins.
 */
import { openPersistence, type Persistence, startConductor } from 'jobboard'
import { crashFlow } from './crash-flow.ts'

type FlowLog = Awaited<ReturnType<Persistence['acquire']>>

const [board = '', logbooks = '', when, number] = process.argv.slice(2)
const persistence = await openPersistence(logbooks)
const acquire = persistence.acquire.bind(persistence)
let writes = 0

persistence.acquire = async (request) => {
  const log = await acquire(request)
  const write = log.write.bind(log)
  log.write = async (...transition: Parameters<FlowLog['write']>) => {
    writes += 1
    if (when === 'before' && writes === Number(number)) await die()
    await write(...transition)
    if (when === 'after' && writes === Number(number)) await die()
  }
  return log
}

async function die(): Promise<never> {
  process.kill(process.pid, 'SIGKILL')
  return new Promise(() => undefined)
}

await startConductor({ board, persistence, flows: [crashFlow] })
