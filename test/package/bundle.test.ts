/** An application whose bundle contains the package, although the bundler does not copy its files. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ROOT } from '../support/build.ts'

let folder: string

beforeAll(async () => {
  // Within this package, so that the bundle finds the drivers.
  await mkdir(join(ROOT, '.test'), { recursive: true })
  folder = await mkdtemp(join(ROOT, '.test/bundle-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const APPLICATION = `
import { openBoard, openPersistenceOver } from '${ROOT}/src/index.ts'

async function main() {
  const board = await openBoard('memory:')
  await board.post('flow', {})
  console.log(board.uri)
  await board.close()
  const driver = { query: async () => ({ rows: [] }) }
  for (const open of [() => openBoard('redis://127.0.0.1:1/0'), () => openPersistenceOver(driver)])
    await open().catch(({ code, message }) => console.log(code, message))
}
main()
`

test.each([
  ['a module', 'esm', 'mjs'],
  ['a CommonJS file', 'cjs', 'cjs'],
] as const)(
  'works as %s with boards that need no files; others say that jobboard must be external',
  async (...kind) => {
    const [, format, extension] = kind
    const [source, bundle] = [join(folder, 'application.ts'), join(folder, `application.${extension}`)]
    await writeFile(source, APPLICATION)
    const outcome = {
      bundle: true,
      outfile: bundle,
      format,
      packages: 'external',
      platform: 'node',
      target: 'node20',
    } as const
    await build({ entryPoints: [source], logLevel: 'silent', ...outcome })
    const { stdout } = await promisify(execFile)(process.execPath, [bundle])
    const [memory, redis, logbooks] = stdout.trim().split('\n')
    expect(memory).toContain('memory:')
    expect(redis).toMatch(/^JOBBOARD_INVALID_STATE cannot read \.\.\/scripts\/commit\.lua .* mark jobboard as external/)
    expect(logbooks).toMatch(
      /^JOBBOARD_INVALID_STATE cannot read \.\/migrations\/1-tables\.sql .* mark jobboard as external/,
    )
  },
)
