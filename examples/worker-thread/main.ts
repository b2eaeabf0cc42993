/** A task that computes in a worker thread, so that the event loop is free for other jobs of the process. */
import { Worker } from 'node:worker_threads'
import { input, linear, openBoard, startConductor, task } from 'jobboard'

/** Resolves with what the thread reports. The signal ends the thread in the middle of its work. */
async function inThread<T>(program: URL, data: unknown, signal: AbortSignal): Promise<T> {
  const worker = new Worker(program, { workerData: data })
  const end = () => void worker.terminate()
  signal.addEventListener('abort', end, { once: true })
  try {
    return await new Promise<T>((resolve, reject) => {
      worker.once('message', resolve)
      worker.once('error', reject)
      worker.once('exit', () => reject(signal.reason ?? new Error('the thread ended without a result')))
      if (signal.aborted) end()
    })
  } finally {
    signal.removeEventListener('abort', end)
    await worker.terminate()
  }
}

const count = task('count', {
  requires: ['below'],
  execute: async ({ below }: { below: number }, { signal }) => {
    const primes = await inThread<number>(new URL('./primes.mjs', import.meta.url), below, signal)
    console.log(`${primes} primes below ${below}`)
  },
})
const primes = linear('primes', input<{ below: number }>(), count)

await using board = await openBoard('memory:')
await using _conductor = await startConductor({ board, persistence: 'memory:', flows: [primes] })
const job = await board.post(primes, { below: 10_000 })
console.log(await job.wait())

// A computation that would take years ends at its deadline.
const endless = await board.post(primes, { below: Number.MAX_SAFE_INTEGER }, { deadline: '100ms', maxAttempts: 1 })
console.log(await endless.wait())
