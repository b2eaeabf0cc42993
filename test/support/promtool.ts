/** Prometheus' checks of metrics and rules: `promtool`, of Debian's package. */
import { execFile, spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { type Provision, provide } from './install.ts'

const run = promisify(execFile)

const PROMTOOL: Provision = {
  name: 'prometheus',
  packages: ['prometheus'],
  installed: () =>
    run('promtool', ['--version']).then(
      () => true,
      () => false,
    ),
}

/** Empty where JOBBOARD_SKIP says to do without. */
export const promtool = (await provide(PROMTOOL, { here: true })) === 'skip' ? '' : 'promtool'

/** Returns what promtool says of a file with alert rules. @throws the error of promtool, with what it said */
export async function checkRules(file: string): Promise<string> {
  return (await run(promtool, ['check', 'rules', file])).stdout
}

/** Returns what promtool says of a file with tests of alert rules. @throws the error of promtool, with what it said */
export async function testRules(file: string): Promise<string> {
  return (await run(promtool, ['test', 'rules', file])).stdout
}

/** Returns what promtool says of metrics in the text format, which is nothing if they are well. */
export async function checkMetrics(metrics: string): Promise<string> {
  const checking = spawn(promtool, ['check', 'metrics'], { stdio: ['pipe', 'pipe', 'pipe'] })
  checking.stdin.end(metrics)
  const [out, errors] = await Promise.all([text(checking.stdout), text(checking.stderr)])
  return out + errors
}
