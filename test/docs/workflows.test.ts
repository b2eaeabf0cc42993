/** The workflow files say what GitHub understands, and run what there is. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { ROOT } from '../support/build.ts'

interface Workflow {
  readonly on: unknown
  readonly permissions: unknown
  readonly jobs: Readonly<Record<string, Job>>
}

interface Job {
  readonly 'runs-on': string
  readonly strategy?: { readonly matrix: { readonly node: readonly number[] } }
  readonly steps: readonly Step[]
}

interface Step {
  readonly uses?: string
  readonly run?: string
  readonly with?: Readonly<Record<string, unknown>>
  readonly env?: Readonly<Record<string, unknown>>
}

const FOLDER = join(ROOT, '.github/workflows')
const FILES = await readdir(FOLDER)

test.each(FILES)('%s can be read, and each step does one thing', async (file) => {
  const { on, jobs } = parse(await readFile(join(FOLDER, file), 'utf8'), { strict: true, uniqueKeys: true }) as Workflow
  expect(on).toBeTruthy()
  expect(Object.keys(jobs)).not.toHaveLength(0)
  for (const job of Object.values(jobs)) {
    expect(job['runs-on']).toMatch(/^ubuntu-\d\d\.\d\d$/)
    for (const { uses, run } of job.steps) expect([uses, run].filter((part) => part !== undefined)).toHaveLength(1)
  }
})

test.each(FILES)(
  '%s runs only actions that cannot be changed, and gives packages neither a token nor a say',
  async (file) => {
    const { jobs, permissions } = parse(await readFile(join(FOLDER, file), 'utf8')) as Workflow
    expect(permissions).toEqual({ contents: 'read' })
    for (const step of Object.values(jobs).flatMap(({ steps }) => steps)) {
      if (step.uses !== undefined) expect(step.uses).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40}$/)
      if (step.uses?.startsWith('actions/checkout@')) expect(step.with).toMatchObject({ 'persist-credentials': false })
      if (step.run?.startsWith('npm ci')) expect(step.env).toMatchObject({ npm_config_ignore_scripts: 'true' })
    }
  },
)

test('every change is tested on every Node.js, as .ci/run does', async () => {
  const { jobs } = parse(await readFile(join(FOLDER, 'ci.yml'), 'utf8')) as Workflow
  expect(jobs['test']?.strategy?.matrix.node).toEqual([20, 22, 24])
  const runs = jobs['test']?.steps.flatMap(({ run }) => (run?.startsWith('npm') ? [run] : []))
  const script = await readFile(join(ROOT, '.ci/run'), 'utf8')
  expect(runs).toEqual(script.split('\n').filter((line) => line.startsWith('npm')))
})
