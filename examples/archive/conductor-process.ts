/**
 * A conductor in a process of its own. The demo that started it sends its options, and the request to stop. It also
 * stops when the demo has ended.
 */
import { describeError, startConductor } from 'jobboard'
import type { Assignment, Order } from './conductors.ts'
import { archiveFlow } from './flow.ts'
import { archivePool } from './isolated-flow.ts'
import { printableText } from './printable.ts'

// Ctrl-C in a terminal reaches every process that was started from it. The demo decides what it means.
process.on('SIGINT', () => undefined)

/** Receives orders from the beginning: one may come before the conductor has started. */
const stop = new AbortController()
const abort = new AbortController()
process.on('SIGTERM', () => stop.abort())

const assignment = await new Promise<Assignment | undefined>((resolve) => {
  process.on('message', (message: Assignment | Order) => {
    if (typeof message === 'object') return resolve(message)
    if (message === 'abort') abort.abort()
    stop.abort()
  })
  const deserted = () => {
    stop.abort()
    resolve(undefined)
  }
  process.on('disconnect', deserted)
  if (!process.connected) deserted()
})
if (assignment) await conduct(assignment)
if (process.connected) process.disconnect()

async function conduct({ board, persistence, flow, concurrency, isolate }: Assignment): Promise<void> {
  const { signal } = stop
  try {
    const flows = [archiveFlow(flow)]
    const pool = isolate ? { pool: archivePool(flow) } : {}
    await using conductor = await startConductor({ board, persistence, flows, concurrency, signal, ...pool })
    abort.signal.addEventListener('abort', () => conductor.abort())
    if (abort.signal.aborted) conductor.abort()
    if (process.connected) process.send?.('ready')
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve))
  } catch (error) {
    if (signal.aborted) return
    process.stderr.write(`conductor ${process.pid}: ${printableText(describeError(error))}\n`)
    process.exitCode = 1
  }
}
