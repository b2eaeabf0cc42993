/** A process is killed in the middle of a task; the next process repeats that task, and no other. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const folder = await mkdtemp(join(tmpdir(), 'jobboard-example-'))
const script = join(import.meta.dirname, 'run.ts')

async function run(number: number, ...more: string[]): Promise<void> {
  const args = ['--import', 'tsx', script, folder, String(number), ...more]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit'] })
  const [code, signal] = await once(child, 'exit')
  console.log(`run ${number} ended: ${signal ?? code}`)
}

try {
  await run(1, 'die')
  await run(2)
} finally {
  await rm(folder, { recursive: true })
}
