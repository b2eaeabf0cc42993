/**
 * A conductor in a process of its own. The demo that started it tells it what to do, and when to stop; it also stops when
 * the demo is gone.
 */
import { once } from 'node:events'
import { describeError, startConductor } from 'jobboard'
import type { Assignment, Order } from './conductors.ts'
import { archiveFlow } from './flow.ts'
import { printableText } from './printable.ts'

// Ctrl-C in a terminal reaches every process that was started from it. It is for the demo to say what it means.
process.on('SIGINT', () => undefined)

const [assignment]: Assignment[] = await once(process, 'message')
if (assignment) await conduct(assignment)

async function conduct({ board, persistence, flow, concurrency }: Assignment): Promise<void> {
  try {
    const conductor = await startConductor({ board, persistence, flows: [archiveFlow(flow)], concurrency })
    process.on('message', (order: Order) => {
      if (order === 'abort') conductor.abort()
      void conductor.stop()
    })
    for (const end of ['disconnect', 'SIGTERM']) process.on(end, () => void conductor.stop())
    if (process.connected) process.send?.('ready')
    else void conductor.stop()
    await conductor.stopped
  } catch (error) {
    process.stderr.write(`conductor ${process.pid}: ${printableText(describeError(error))}\n`)
    process.exitCode = 1
  }
  if (process.connected) process.disconnect()
}
