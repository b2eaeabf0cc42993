/** The packed package with tools of other people: Jest, a bundler, TypeScript's old resolution. With `npm run test:long` only. */
import { join } from 'node:path'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { count } from '../support/counts.ts'
import { type InstalledPackage, installPackage, type Packed, pack } from './packed.ts'
import { TEXTS } from './tools.ts'

describe.runIf(count({ test: false, long: true }))('with', () => {
  let packed: Packed
  let apps: Readonly<Record<'29' | '30', InstalledPackage>>

  beforeAll(async () => {
    packed = await pack()
    const beside = ['typescript@5.4.5', '@types/node@20.19.43']
    apps = {
      29: await installPackage(packed.tarball, { beside: ['jest@29.7.0', ...beside] }),
      30: await installPackage(packed.tarball, { beside: ['jest@30.2.0', 'express@5.3.0', 'fastify@5.12.8'] }),
    }
    // Each installation takes minutes on a busy machine.
  }, 1_800_000)
  afterAll(async () => {
    for (const app of Object.values(apps ?? {})) await app[Symbol.asyncDispose]()
    await packed?.[Symbol.asyncDispose]()
  })

  describe.each(['29', '30'] as const)('Jest %s', (version) => {
    test.each([
      ['a module', 'jobs.test.mjs', TEXTS.jestModule],
      ['a CommonJS file', 'jobs.test.cjs', TEXTS.jestCommonJs],
    ])('a test in %s opens a board, posts, and runs a conductor', async (_, name, text) => {
      const app = apps[version]
      await app.write(name, text)
      await app.write('environment.cjs', TEXTS.jestEnvironment)
      const settings = {
        testMatch: [`**/${name}`],
        transform: {},
        testTimeout: 300_000,
        ...(version === '29' ? { testEnvironment: './environment.cjs' } : {}),
      }
      await app.write('jest.config.json', JSON.stringify(settings))
      const line = 'npx --no-install jest --config jest.config.json 2>&1 || true'
      const said = await app.run(line, { env: { NODE_OPTIONS: '--experimental-vm-modules' } })
      expect(said).toMatch(/^Tests: +3 passed, 3 total$/m)
    })
  })

  test('Express, Fastify and Hono serve the dashboard as the guide mounts it', async () => {
    const { run, write } = apps['30']
    await write('web.mjs', TEXTS.web)
    expect(await run('node web.mjs')).toBe('express 200 200\nfastify 200 200\nhono 200 200\n')
  })

  test('esbuild: a bundle with an isolated task, whose module is an entry point, runs it in a child process', async () => {
    const { folder, run, write } = apps['30']
    await write('flows.ts', TEXTS.isolatedFlow)
    await write('main.ts', TEXTS.isolatedMain)
    await build({
      absWorkingDir: folder,
      entryPoints: ['main.ts', 'flows.ts'],
      outdir: 'bundled',
      bundle: true,
      splitting: true,
      format: 'esm',
      platform: 'node',
      external: ['jobboard'],
      logLevel: 'silent',
    })
    expect(await run('node bundled/main.js')).toBe('COMPLETE in another process\n')
  })

  test('TypeScript 5.4 and moduleResolution node10: types are found, and the program runs as CommonJS', async () => {
    const { folder, run, write } = apps['29']
    await write('old.ts', TEXTS.typed)
    const options = '--strict --target es2022 --lib es2022,esnext.disposable --esModuleInterop --outDir old'
    await run(`node_modules/.bin/tsc --module commonjs --moduleResolution node10 ${options} old.ts`)
    await write(join('old', 'package.json'), '{ "type": "commonjs" }')
    expect(await run(`node --no-warnings ${join(folder, 'old/old.js')}`)).toBe('Hello, Ada!\n')
  })
})
