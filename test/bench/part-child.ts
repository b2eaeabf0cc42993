/** The process's side of a part of a measurement. */
import { once } from 'node:events'
import { createInterface } from 'node:readline'

/** Milliseconds that processes of one machine agree on. */
export const now = (): number => performance.timeOrigin + performance.now()

/**
 * Prints that it is ready, does its part when it receives a line, and prints in a line of JSON what came of it.
 *
 * @param part receives a function whose promise resolves with the next line of input: a part can run until then
 */
export async function whenTold(part: (end: () => Promise<unknown>) => Promise<unknown>): Promise<void> {
  const input = createInterface({ input: process.stdin })
  // The parent process has ended.
  const alone = () => process.exit(1)
  input.on('close', alone)
  console.log('ready')
  await once(input, 'line')
  const before = process.cpuUsage()
  const said = await part(() => once(input, 'line'))
  const { user, system } = process.cpuUsage(before)
  console.log(JSON.stringify({ said, cpu: user + system }))
  input.off('close', alone)
  input.close()
}

/**
 * Prints `ready`, then does one round for each line of its input, and prints in a line of JSON what came of it. Exits when the parent process
 * has ended.
 */
export async function repeatWhenTold(round: () => Promise<unknown>): Promise<void> {
  console.log('ready')
  for await (const _line of createInterface({ input: process.stdin })) {
    const before = process.cpuUsage()
    const said = await round()
    const { user, system } = process.cpuUsage(before)
    console.log(JSON.stringify({ said, cpu: user + system }))
  }
  process.exit(1)
}

/** Does something so many times, at least so many milliseconds apart. */
export async function apart(count: number, gap: number, step: (n: number) => Promise<unknown>): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    const pause = new Promise((resolve) => setTimeout(resolve, gap))
    await Promise.all([step(n), pause])
  }
}

/** Does `step` `count` times, at most `width` of them side by side. */
export async function sideBySide(count: number, width: number, step: (n: number) => Promise<unknown>): Promise<void> {
  let next = 0
  const lane = async () => {
    while (next < count) await step(next++)
  }
  await Promise.all(Array.from({ length: Math.min(width, count) }, lane))
}
