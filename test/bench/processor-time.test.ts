import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { processorTime } from './processor-time.ts'

const BUSY = 'const begin = process.cpuUsage().user; while (process.cpuUsage().user - begin < 200_000);'

test.runIf(process.platform === 'linux')(
  'the processor time of a process includes that of children, alive or ended',
  async () => {
    const script = `${BUSY} console.log('busy'); process.stdin.on('end', () => process.exit()).resume()`
    const child = spawn(process.execPath, ['-e', script], { stdio: ['pipe', 'pipe', 'inherit'] })
    const before = await processorTime(process.pid)
    await once(child.stdout, 'data')
    const alive = await processorTime(process.pid)
    child.stdin.end()
    await once(child, 'close')
    const ended = await processorTime(process.pid)
    // Linux rounds each part down to a hundredth of a second.
    expect(alive).toBeGreaterThanOrEqual((before ?? Number.NaN) + 150)
    expect(ended).toBeGreaterThanOrEqual((before ?? Number.NaN) + 150)
  },
)

test('a process that is not there has no processor time', async () => {
  expect(await processorTime(0)).toBeUndefined()
})
