/** What the demo says to what cannot work: one line that says what to do, an exit code, and no stack trace. */
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { assertFolder, readOptions, UsageError } from '../../../examples/archive/options.ts'
import { assertEmpty } from '../../../examples/archive/output.ts'
import { freePort } from '../../support/ports.ts'
import { usual as test, testRows, variant } from '../../variant.ts'
import { Demo, temporaryFolder } from './demo.ts'

describe('the command line', () => {
  test.each([
    { args: ['one', 'two'], says: /^one DIR at a time/ },
    { args: ['--nope'], says: /'--nope'; npm run demo -- --help/ },
    { args: ['--out'], says: /--out.*; npm run demo -- --help/ },
    { args: ['--concurrency', 'many'], says: /^--concurrency has to be a whole number from 1 to 64, not many$/ },
    { args: ['--conductors', '0', '--board', 'zookeeper://h'], says: /^--conductors has to be a whole number/ },
    {
      args: ['--conductors', '3', '--board', 'memory:'],
      says: /^--conductors 3 needs a board that processes can share/,
    },
    {
      args: ['--conductors', '3', '--board', 'zookeeper://h', '--persistence', 'memory:'],
      says: /^--conductors 3 needs logbooks that processes can share/,
    },
  ])('$args', ({ args, says }) => {
    expect(() => readOptions(args)).toThrow(UsageError)
    expect(() => readOptions(args)).toThrow(says)
  })

  test('--board precedes JOBBOARD_BOARD, and without both the board is a file', () => {
    const env = { JOBBOARD_BOARD: 'redis://h/0' }
    expect(readOptions(['--board', 'sqlite:./a.db'], env)).toMatchObject({ board: 'sqlite:./a.db' })
    expect(readOptions([], env)).toMatchObject({ board: 'redis://h/0' })
    expect(readOptions(['--conductors', '3'], { JOBBOARD_BOARD: '' })).toMatchObject({ board: undefined })
  })

  test('options that npm has taken', () => {
    const env = { npm_config_conductors: 'true' }
    expect(() => readOptions(['3'], env)).toThrow(
      'npm has kept --conductors for itself: put -- before the options, as in npm run demo -- DIR --conductors …',
    )
  })

  test('an output folder that is not empty, or a file', async () => {
    const folder = await temporaryFolder()
    await writeFile(join(folder, 'file'), 'file')
    await expect(assertEmpty(folder)).rejects.toThrow(/^--out .* is not empty: name a folder/)
    await expect(assertEmpty(join(folder, 'file'))).rejects.toThrow(/file cannot be used .*: name another with --out/)
    await assertEmpty(join(folder, 'nothing yet'))
  })

  test('a file where a folder should be', async () => {
    const folder = await temporaryFolder()
    await writeFile(join(folder, 'file'), 'file')
    await expect(assertFolder(join(folder, 'file'))).rejects.toThrow(/file is a file: name the folder it is in/)
  })

  test('help shows every option', async () => {
    const demo = new Demo(['--help'])
    expect(await demo.exitCode()).toBe(0)
    for (const option of [
      '--out',
      '--board',
      '--persistence',
      '--conductors',
      '--concurrency',
      '--isolate',
      '--verbose',
    ])
      expect(demo.output).toContain(`  ${option} `)
  })
})

describe('the demo itself', () => {
  testRows<[string, string[], RegExp]>(
    [
      ['no default folder', [], /node_modules\/pino is not there: run npm ci, or name/],
      ['no such folder', ['no\nwhere'], /no\\nwhere is not there: name a folder/],
      ['one board for many', ['input', '--conductors', '3', '--board', 'memory:'], /, as in --board sqlite:/],
      ['no such board', ['input', '--board', 'pigeon:'], /unknown scheme pigeon:; write/],
      [
        'no such logbooks',
        ['input', '--out', 'out', '--persistence', 'stone:'],
        /the scheme stone: is not known for logbooks; use/,
      ],
    ],
    ([what]) => what === 'no such folder',
  )('%s', async (_, args, says) => {
    expect(await complaint(args, { code: 2 })).toMatch(says)
  })

  variant('a server that does not answer', async () => {
    const board = `zookeeper://127.0.0.1:${await freePort()}/demo?sessionTimeout=500ms`
    expect(await complaint(['input', '--board', board], { code: 1 })).toMatch(/no ZooKeeper session at .*ECONNREFUSED/)
  })

  test('shows where it came from when asked to', async () => {
    const demo = new Demo(['/nowhere', '--verbose'])
    expect(await demo.exitCode()).toBe(2)
    expect(demo.errors).toMatch(/nowhere is not there.*\n +at /)
  })
})

async function complaint(args: readonly string[], expected: { code: number }): Promise<string> {
  const cwd = await temporaryFolder()
  await mkdir(join(cwd, 'input'))
  await writeFile(join(cwd, 'input/file'), 'file')
  const demo = new Demo(args, { cwd })
  expect(await demo.exitCode()).toBe(expected.code)
  // A busy machine is slow enough to show its progress.
  expect(demo.output.replaceAll('getting ready\n', '')).toBe('')
  const lines = demo.errors.trim().split('\n')
  expect(lines).toHaveLength(1)
  // Nothing was begun that would be in the way of the next try.
  expect((await readdir(cwd)).filter((name) => name !== 'input' && name !== 'out')).toEqual([])
  return lines.join()
}
