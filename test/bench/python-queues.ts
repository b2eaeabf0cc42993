/** Celery and RQ on a Redis: their workers, and a client that posts tasks and waits for the results. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { ROOT } from '../support/build.ts'
import { startGuarded } from '../support/guarded-process.ts'
import { exists, type Provision, provide } from '../support/install.ts'
import type { RedisServer } from '../support/redis.ts'
import { PYTHON } from '../support/taskflow.ts'

const SCRIPT = join(ROOT, 'test/bench/pool_queues.py')
const PACKAGES = '/usr/lib/python3/dist-packages'

const PYTHON_QUEUES: Provision = {
  name: 'python-queues',
  packages: ['python3-celery', 'python3-rq'],
  installed: async () => {
    const needed = [PYTHON, ...['celery', 'rq', 'redis'].map((name) => `${PACKAGES}/${name}`)]
    return (await Promise.all(needed.map(exists))).every((there) => there)
  },
}

export interface PythonQueue extends AsyncDisposable {
  /** With its version. */
  readonly what: string
  /** Posts so many tasks that do nothing, and waits for their results. Returns tasks per second. */
  rate(tasks: number): Promise<number>
}

/**
 * Installs Celery and RQ where they are missing and may be installed.
 *
 * @returns whether they are there; they are not where JOBBOARD_SKIP names `python-queues`
 * @throws Error saying what to install otherwise
 */
export async function providePythonQueues(): Promise<boolean> {
  return (await provide(PYTHON_QUEUES, { here: true })) !== 'skip'
}

/** Starts a Celery worker with two processes, or two RQ workers, in a database of the server that nothing else uses. */
export async function startPythonQueue(
  name: 'celery' | 'rq',
  { redis, database }: { readonly redis: RedisServer; readonly database: number },
): Promise<PythonQueue> {
  const uri = `${redis.uri}/${database}`
  // What ends the worker is SIGTERM: SIGKILL would leave the processes that it has forked.
  const workers = await Promise.all(
    Array.from({ length: name === 'celery' ? 1 : 2 }, () =>
      startGuarded([PYTHON, SCRIPT, `${name}-worker`, uri], { logFile: '/dev/null', lastSignal: 'SIGTERM' }),
    ),
  )
  const client = spawn(PYTHON, [SCRIPT, name, uri], { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface({ input: client.stdout })
  const ended = once(client, 'exit')
  const nextLine = async (): Promise<string> => {
    const [line] = await Promise.race([once(lines, 'line'), ended])
    if (typeof line === 'string') return line
    throw new Error(`the client of ${name} ended without a result`)
  }
  const stop = async () => {
    client.kill('SIGKILL')
    for (const worker of workers) worker.signal('SIGTERM')
    await Promise.all([ended, ...workers.map((worker) => worker.ended)])
  }
  try {
    await nextLine()
  } catch (error) {
    await stop()
    throw error
  }
  return {
    what: name === 'celery' ? 'Celery, prefork, two processes' : 'RQ, two workers, a process per task',
    rate: async (tasks) => {
      const said = nextLine()
      client.stdin.write(`${tasks}\n`)
      return tasks / Number(await said)
    },
    [Symbol.asyncDispose]: stop,
  }
}
