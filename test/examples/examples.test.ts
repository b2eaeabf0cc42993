/** Each example prints what is in its `output.txt`, and stands in the list of examples. */
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, expect, onTestFinished } from 'vitest'
import { ensureBuilt, ROOT } from '../support/build.ts'
import { TYPESCRIPT } from '../support/typescript.ts'
import { usual as test, testRows, variant } from '../variant.ts'
import { outputOf, printedBy } from './printed.ts'

const EXAMPLES = join(ROOT, 'examples')
/** Tested apart: the demo, which takes options; what takes a server; what is a test itself; and what has processes. */
const ELSEWHERE = [
  'isolated',
  'checkpoint',
  'archive',
  'saga',
  'deployments',
  'testing-a-flow',
  'resume-after-crash',
  'web-service',
]

const names = (await readdir(EXAMPLES, { withFileTypes: true }))
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name)

beforeAll(ensureBuilt)

test.each(names.filter((name) => !ELSEWHERE.includes(name)))('examples/%s prints what it says', async (name) => {
  expect(await printedBy(name)).toBe(await outputOf(name))
})

testRows([['isolated'], ['checkpoint'], ['resume-after-crash']], ([name]) => name === 'resume-after-crash')(
  'examples/%s prints what it says, in a process of its own',
  async (name) => {
    const args = [...TYPESCRIPT, join(EXAMPLES, name, 'main.ts')]
    const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { cwd: ROOT })
    expect({ stdout, stderr }).toEqual({ stdout: await outputOf(name), stderr: '' })
  },
)

testRows<[string, NodeJS.ProcessEnv, string]>(
  [
    ['in .jobboard/jobs.db, also a second time', {}, '.jobboard'],
    ['where the variables say', { JOBBOARD_BOARD: 'sqlite:./other/jobs.db', JOBBOARD_PERSISTENCE: 'memory:' }, 'other'],
  ],
  ([, , file]) => file === '.jobboard',
)('examples/web-service prints what it says, with its board %s', async (_, env, file) => {
  const cwd = await mkdtemp(join(tmpdir(), 'jobboard-web-service-'))
  onTestFinished(() => rm(cwd, { recursive: true, force: true }))
  const { JOBBOARD_BOARD: _board, JOBBOARD_PERSISTENCE: _persistence, ...others } = process.env
  const args = [...TYPESCRIPT, join(EXAMPLES, 'web-service/main.ts')]
  for (let run = 0; run < 2; run += 1) {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { cwd, env: { ...others, ...env } })
    expect({ stdout, stderr }).toEqual({ stdout: await outputOf('web-service'), stderr: '' })
  }
  expect(await readdir(cwd)).toEqual([file])
})

variant("the tests of examples/testing-a-flow pass, with Node's own runner", async () => {
  const file = join(EXAMPLES, 'testing-a-flow/newsletter.test.ts')
  // Inside of one of its tests the runner would only tell the other about it.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const args = ['--import', 'tsx', '--test', '--test-reporter=tap', file]
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: ROOT, env })
  const results = stdout.split('\n').filter((line) => /^(not )?ok /.test(line))
  expect(`${results.join('\n')}\n`).toBe(await outputOf('testing-a-flow'))
})

test('the list of examples has every one of them, and no other', async () => {
  const list = await readFile(join(EXAMPLES, 'README.md'), 'utf8')
  const listed = [...list.matchAll(/^\| \[`([\w-]+)`\]\(\1\/[\w.-]+\) \|/gm)].map(([, name]) => name)
  expect(listed.sort()).toEqual(names.sort())
})
