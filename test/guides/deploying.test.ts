/** The unit file of the guide is the one that `jobboard init` writes, systemd accepts it, and its times fit the conductor's. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { WRONG_USAGE } from '../../src/cli/context.ts'
import { describeProject, projectFiles } from '../../src/cli/init/project.ts'
import { toMilliseconds } from '../../src/core/time.ts'
import { readPage } from '../docs/pages.ts'
import { which } from '../support/install.ts'

const FILES = await projectFiles(describeProject({ name: 'crawler', typescript: false }))
const textOf = (path: string) => FILES.find((file) => file.path === path)?.text ?? ''
const UNIT = textOf('crawler.service')

/** Returns the settings of a unit by their sections. @throws Error for a line that systemd would ignore */
function parseUnit(text: string): Readonly<Record<string, Readonly<Record<string, string>>>> {
  const sections: Record<string, Record<string, string>> = {}
  let section = ''
  for (const line of text.split('\n')) {
    const [, title] = /^\[(\w+)\]$/.exec(line) ?? []
    const [, name, value = ''] = /^([A-Z]\w+)=(.*)$/.exec(line) ?? []
    const inside = sections[section]
    if (title !== undefined) {
      section = title
      sections[section] = {}
    } else if (name !== undefined && inside && !(name in inside)) inside[name] = value
    else if (line !== '' && !line.startsWith('#')) throw new Error(`not a setting, or one that is repeated: ${line}`)
  }
  return sections
}

test('the guide shows it', async () => {
  const { blocks } = await readPage('docs/guides/deploying.md')
  expect(blocks.filter(({ language }) => language === 'ini').map(({ code }) => code)).toContain(UNIT)
})

test('it leaves the conductor the time that jobboard.yaml gives it, and restarts it only when that can help', () => {
  const { Service = {}, Install } = parseUnit(UNIT)
  const { conductor } = parse(textOf('jobboard.yaml')) as { conductor: Record<string, '25s'> }
  const [drain, abort] = ['drainTimeout', 'abortTimeout'].map((name) => toMilliseconds(conductor[name] ?? '0s', name))
  expect(Number(Service['TimeoutStopSec']) * 1_000).toBeGreaterThan((drain ?? 0) + (abort ?? 0))
  expect(Service).toMatchObject({ Type: 'exec', KillMode: 'mixed', Restart: 'on-failure', OOMPolicy: 'continue' })
  expect(Service['RestartPreventExitStatus']?.split(' ').map(Number)).toEqual([WRONG_USAGE, 127])
  // Node.js compiles code while it runs.
  expect(Service).not.toHaveProperty('MemoryDenyWriteExecute')
  expect(Install).toEqual({ WantedBy: 'multi-user.target' })
})

test.each(['[Service]\nType exec', '[Service]\nType=exec\nType=simple', 'Type=exec'])('%j would be found', (text) => {
  expect(() => parseUnit(text)).toThrow('not a setting')
})

test('systemd accepts it, and rates its protection as good', async () => {
  const program = await which('systemd-analyze')
  if (program === undefined) {
    process.stderr.write(
      'systemd-analyze is not on this machine (Debian: apt-get install systemd): the unit is only parsed\n',
    )
    expect(Object.keys(parseUnit(UNIT))).toEqual(['Unit', 'Service', 'Install'])
    return
  }
  const folder = await mkdtemp(join(tmpdir(), 'jobboard-unit-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const analyze = async (text: string, ...args: readonly string[]) => {
    const file = join(folder, 'crawler.service')
    await writeFile(file, text)
    const { stdout, stderr } = await promisify(execFile)(program, [...args, file])
    return `${stdout}${stderr}`
  }
  expect(await analyze(UNIT, 'verify')).toBe('')
  // A misspelt setting is a warning, which this would find.
  expect(await analyze(UNIT.replace('KillMode', 'KilMode'), 'verify')).toContain('KilMode')
  // Levels go from 0 to 100: a service without protection has 96.
  await analyze(UNIT, 'security', '--offline=yes', '--no-pager', '--threshold=25')
})
