/**
 * A process of its own that writes to the flow it is told to, and tells at once what was acknowledged. Its parent sends
 * {@link Order}s and gets a {@link Report} for each thing that happens.
 */
import { writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { describeError } from '../../../src/core/failure.ts'
import { type FlowLog, openPersistence } from '../../../src/persistence/index.ts'
import { atom, requestOf } from '../flows.ts'

export interface Order {
  readonly uuid: string
  readonly run: number
  /** Stop after so many writes; otherwise go on until refused. */
  readonly writes?: number
}

export type Report =
  | { readonly told: 'ready' | 'acquiring' }
  | { readonly told: 'acquired'; readonly atoms: string[] }
  | { readonly told: 'acknowledged'; readonly atom: string }
  | { readonly told: 'refused'; readonly code: unknown; readonly message: string }
  | { readonly told: 'finished' }

/** Straight to the pipe: what is acknowledged must be told even if the process is killed the moment after. */
function tell(report: Report): void {
  const line = `${JSON.stringify(report)}\n`
  // A pipe that its reader has no time for is full, and does not block.
  while (!written(line)) Atomics.wait(NEVER_CHANGES, 0, 0, 1)
}

const NEVER_CHANGES = new Int32Array(new SharedArrayBuffer(4))

/** A line is short enough for a pipe to take all of it or nothing. */
function written(line: string): boolean {
  try {
    writeSync(1, line)
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EAGAIN') return false
    throw error
  }
}

/** As many as a small parallel engine has on the way. */
const AT_ONCE = 3

async function execute(order: Order): Promise<void> {
  tell({ told: 'acquiring' })
  try {
    await using log = await persistence.acquire(requestOf(order.uuid, order.run))
    tell({ told: 'acquired', atoms: log.flow.atoms.map(({ name }) => name) })
    let next = 0
    const writers = Array.from({ length: AT_ONCE }, async () => {
      while (next < (order.writes ?? Number.POSITIVE_INFINITY)) await writeOne(log, `r${order.run}-${next++}`)
    })
    const outcomes = await Promise.allSettled(writers)
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
    tell({ told: 'finished' })
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    tell({ told: 'refused', code, message: describeError(error) })
  }
}

async function writeOne(log: FlowLog, name: string): Promise<void> {
  await log.write({ atoms: [atom(name, { result: name.repeat(50) })] })
  tell({ told: 'acknowledged', atom: name })
}

const [uri = ''] = process.argv.slice(2)
const persistence = await openPersistence(uri)
tell({ told: 'ready' })
for await (const line of createInterface({ input: process.stdin })) await execute(JSON.parse(line) as Order)
await persistence.close()
