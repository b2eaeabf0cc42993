/** The scripts that `jobboard completion` prints, run by the shells that they are for. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type CliFolder, createCliFolder } from '../workplace.ts'

let place: CliFolder

beforeAll(async () => {
  place = await createCliFolder()
  for (const shell of SHELLS) await place.write(shell, (await place.bare(['completion', shell])).stdout)
  await place.write('flows.mjs', '')
})
afterAll(async () => place[Symbol.asyncDispose]())

const SHELLS = ['bash', 'zsh', 'fish'] as const

/** How each is asked what could stand for the last word. */
const ASK: Readonly<Record<(typeof SHELLS)[number], readonly string[]>> = {
  bash: [
    'bash',
    '-c',
    `source ./bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _jobboard; printf "%s\\n" "\${COMPREPLY[@]}"`,
    'bash',
  ],
  zsh: [
    'zsh',
    '-fc',
    `compdef() { }
     _describe() { for each in $offered; do offer "\${each%%:*}"; done }
     compadd() { shift; for each; do offer "$each"; done }
     _files() { for each in *; do offer "$each"; done }
     offer() { [[ "$1" == "\${words[CURRENT]}"* ]] && print -r -- "$1" }
     source ./zsh; words=("$@"); CURRENT=$#; _jobboard; true`,
    'zsh',
  ],
  fish: ['fish', '-Nc', `source ./fish; complete -C "$argv" | string replace -r '\\t.*' ''; true`, '--'],
}

async function offered(shell: (typeof SHELLS)[number], words: readonly string[]): Promise<string[]> {
  const [program = '', ...args] = ASK[shell]
  const { stdout } = await promisify(execFile)(program, [...args, 'jobboard', ...words], { cwd: place.cwd })
  return stdout.split('\n').filter((line) => line !== '')
}

const LINES: readonly (readonly [words: readonly string[], offers: readonly string[]])[] = [
  [['p'], ['post', 'pause']],
  [
    ['trash', ''],
    ['list', 'show', 'restore', 'purge'],
  ],
  [['--board', 'x', 'logb'], ['logbook']],
  [
    ['jobs', '--priority', 'VERY'],
    ['VERY_HIGH', 'VERY_LOW'],
  ],
  [
    ['conductor', '--size', 'small', '--size', ''],
    ['small', 'medium', 'large'],
  ],
  [['post', 'hello', '--flows', 'fl'], ['flows.mjs']],
  [['logbook', 'destroy', '--fo'], ['--force']],
  [['cancel', '0199c0de', '--rea'], ['--reason']],
  [
    ['completion', ''],
    ['bash', 'zsh', 'fish'],
  ],
]

function isHere(shell: string): boolean {
  return (process.env['PATH'] ?? '').split(':').some((folder) => existsSync(`${folder}/${shell}`))
}

/** Bash is everywhere. */
const HERE = SHELLS.filter((shell) => shell === 'bash' || isHere(shell))

describe.each(HERE)('%s', (shell) => {
  test.each(LINES)('%j', async (words, offers) => {
    expect((await offered(shell, words)).sort()).toEqual([...offers].sort())
  })
})

test('every script knows every command', async () => {
  const { stdout } = await place.bare(['--help'])
  const [, list = ''] = stdout.split('\nCommands:\n')
  const commands = [...(list.split('\n\n')[0]?.matchAll(/^ {2}([a-z]+)/gm) ?? [])].map(([, name = '']) => name)
  expect(commands.length).toBeGreaterThan(15)
  for (const shell of SHELLS) {
    const script = (await place.bare(['completion', shell])).stdout
    for (const name of commands.filter((name) => name !== 'help')) expect(script).toContain(name)
  }
})

test('another shell is refused', async () => {
  expect(await place.bare(['completion', 'powershell'])).toEqual({
    exitCode: 2,
    stdout: '',
    stderr: 'jobboard: the shell must be one of bash, zsh, fish\n',
  })
})
