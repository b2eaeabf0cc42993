/** The log of a daemon for people: through pino-pretty, without what a terminal would take for commands. */
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { openLogStream } from '../../../src/cli/output/log-format.ts'
import { openBoard } from '../../../src/index.ts'
import { usual as test, variant } from '../../variant.ts'
import { type CliFolder, createCliFolder, FLOWS } from '../workplace.ts'

describe('the format auto', () => {
  const at = (columns: number | undefined) => ({
    env: {},
    stderr: { columns, write: () => undefined, flush: async () => undefined, failed: new AbortController().signal },
  })

  test('is for people on a terminal, and JSON elsewhere', async () => {
    expect(await openLogStream('auto', at(80))).toBeDefined()
    expect(await openLogStream('auto', at(undefined))).toBeUndefined()
    expect(await openLogStream('json', at(80))).toBeUndefined()
  })
})

describe('jobboard conductor', () => {
  let place: CliFolder

  beforeEach(async () => {
    place = await createCliFolder()
    await place.write('flows.mjs', FLOWS)
  })
  afterEach(() => place[Symbol.asyncDispose]())

  const burst = ['conductor', '--flows', './flows.mjs', '--burst']

  test('logs for people with --log-format pretty; names of jobs cannot control the terminal', async () => {
    await using board = await openBoard(place.board)
    await board.post('hello', { name: 'Ada' }, { name: 'clear \u001b[2J screen' })
    await board.post('refused', {})
    const { exitCode, stderr } = await place.spawned([...burst, '--log-format', 'pretty'])
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 1 })
    expect(stderr).toMatch(/^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: conductor started$/m)
    expect(stderr).toContain(String.raw`INFO (clear \x1b[2J screen): job consumed`)
    expect(stderr).toContain('the paper')
    expect(stderr).not.toContain('\u001b')
  })

  variant('logs JSON lines in a pipe, and where the file says so', async () => {
    const lines = async (args: readonly string[] = []) => {
      const { exitCode, stderr } = await place.spawned([...burst, ...args])
      expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 })
      return stderr.trimEnd().split('\n')
    }
    await using board = await openBoard(place.board)
    await board.post('hello', { name: 'Ada' }, { name: 'greeting' })
    const all = await lines()
    expect(all.flatMap((line) => JSON.parse(line).name ?? [])).toEqual(['greeting'])
    // A second "name" in a line would be found by one program and not by another.
    for (const line of all) expect(line.split('"name":').length).toBeLessThanOrEqual(2)
    const settled = all.map((line) => JSON.parse(line)).find(({ msg }) => msg === 'job consumed')
    expect(settled).toMatchObject({ name: 'greeting', flow: 'hello' })
    await place.write('jobboard.yaml', 'conductor: { logFormat: pretty }\n')
    expect((await lines())[0]).toMatch(/^\[\d\d:/)
    for (const line of await lines(['--log-format', 'json'])) expect(JSON.parse(line)).toMatchObject({ level: 30 })
  })
})
