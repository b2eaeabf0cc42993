/** A conductor's process is killed between any two tasks of a flow, and another one goes on where it was. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openBoard, startConductor } from 'jobboard'
import { expect, test } from 'vitest'
import { compiled } from '../../support/compiled.ts'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'
import { crashFlow, type Execution } from './crash-flow.ts'
import { temporaryFolder } from './demo.ts'

const PROGRAM = join(import.meta.dirname, 'crash-conductor.ts')

/**
 * What was executed by the run that died (1) and the one after it (2), and whose result each task was given. No task is
 * repeated once its success was written down, and its result is still there; one that was under way when its process
 * died is executed once more.
 */
const CRASH_SCENARIOS = {
  'before write 1': ['a2', 'b2 of a2', 'c2 of b2'],
  'after write 1': ['a2', 'b2 of a2', 'c2 of b2'],
  'before write 2': ['a1', 'a2', 'b2 of a2', 'c2 of b2'],
  'after write 2': ['a1', 'b2 of a1', 'c2 of b2'],
  'before write 3': ['a1', 'b1 of a1', 'b2 of a1', 'c2 of b2'],
  'after write 3': ['a1', 'b1 of a1', 'c2 of b1'],
  'before write 4': ['a1', 'b1 of a1', 'c1 of b1', 'c2 of b1'],
  'after write 4': ['a1', 'b1 of a1', 'c1 of b1'],
}

test('a finished task is never repeated, wherever a conductor is killed', async () => {
  const told = await Promise.all(Object.keys(CRASH_SCENARIOS).map(async (kill) => [kill, await tell(kill)]))
  expect(Object.fromEntries(told)).toEqual(CRASH_SCENARIOS)
})

async function tell(kill: string): Promise<string[]> {
  const folder = await temporaryFolder()
  const journal = join(folder, 'journal')
  const logbooks = `directory:${join(folder, 'logbooks')}`
  const uri = `zookeeper://${zookeeperHosts}${namespace('crash')}?sessionTimeout=`
  // On a busy machine the second conductor could lose a short session, and would need another run.
  await using board = await openBoard(`${uri}30s`)
  const job = await board.post(crashFlow, { journal, start: 'nothing' })

  const [when = '', , number = ''] = kill.split(' ')
  const doomed = spawn(process.execPath, [await compiled(PROGRAM), `${uri}3s`, logbooks, when, number], {
    stdio: 'inherit',
  })
  expect(await once(doomed, 'exit'), kill).toEqual([null, 'SIGKILL'])

  await using _nextOwner = await startConductor({ board, persistence: logbooks, flows: [crashFlow] })
  expect(await job.wait()).toBe('COMPLETE')
  const lines = (await readFile(journal, 'utf8')).trim().split('\n')
  return lines.map((line) => describe(JSON.parse(line) as Execution))
}

function describe({ made, given }: Execution): string {
  return given === 'nothing' ? made : `${made} of ${given}`
}
