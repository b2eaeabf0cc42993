/** What the README shows is so: its programs and commands run as they stand there, and its links lead somewhere. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { openBoard } from 'jobboard'
import { describe, expect, onTestFinished, test } from 'vitest'
import { CONDUCTOR_OPTIONS } from '../src/conductor/options.ts'
import { workplace } from './cli/workplace.ts'
import { ensureBuilt, MAIN, ROOT } from './support/build.ts'

const README = await readFile(join(ROOT, 'README.md'), 'utf8')

/** The code of that language in the README, in order. */
function blocks(language: string): string[] {
  return [...README.matchAll(new RegExp(`^\`\`\`${language}\n([\\s\\S]*?)^\`\`\``, 'gm'))].map(([, code]) => code ?? '')
}

describe('programs run and say what their comments say', () => {
  const [quickStart = '', ownLoop = ''] = blocks('ts')
  test.each([
    ['the quick start', quickStart, 'Hello, Ada!\nCOMPLETE\n'],
    ["one's own loop", ownLoop, "{ path: 'cat.png' }\nconsumed\n"],
  ])('%s', async (_, code, says) => {
    expect(code).toContain(" } from 'jobboard'\n")
    await ensureBuilt()
    // Inside the package, so that its own name resolves.
    const folder = await mkdtemp(join(ROOT, '.test-readme-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    await writeFile(join(folder, 'program.mts'), code)
    const { stdout, stderr } = await promisify(execFile)(process.execPath, ['--import', 'tsx', 'program.mts'], {
      cwd: folder,
    })
    expect({ stdout, stderr }).toEqual({ stdout: says, stderr: '' })
  })

  test('there are no others', () => {
    expect(blocks('ts')).toHaveLength(2)
  })
})

test('the commands do what their comments say', async () => {
  await using place = await workplace()
  const [flows = ''] = blocks('js')
  await place.write('flows.mjs', flows)
  await mkdir(join(place.cwd, 'node_modules/.bin'))
  await symlink(MAIN, join(place.cwd, 'node_modules/.bin/jobboard'))
  const [script = ''] = blocks('sh')
  const [places = '', ...lines] = script.replace('zookeeper://127.0.0.1:2181/demo', place.board).trim().split('\n')
  const [post = '', postRefused = '', jobs = '', conduct = '', show = '', track = '', trash = ''] = lines
  const options = { cwd: place.cwd, env: { ...process.env, npm_config_loglevel: 'silent' } }
  const run = async (line: string) =>
    (await promisify(execFile)('/bin/sh', ['-c', `${places}\n${line}`], options)).stdout

  const uuids = [(await run(post)).trim(), (await run(postRefused)).trim()]
  expect((await run(jobs)).match(/\bUNCLAIMED\b/g)).toHaveLength(2)

  await using board = await openBoard(place.board)
  const posted = await Promise.all(uuids.map((uuid) => board.find(uuid)))
  const conductor = spawn('/bin/sh', ['-c', `${places}\n${conduct}`], {
    ...options,
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const said: string[] = []
  createInterface({ input: conductor.stdout }).on('line', (line) => said.push(line))
  expect(await Promise.all(posted.map((job) => job.wait()))).toEqual(['COMPLETE', 'TRASHED'])
  // As Ctrl-C does, the whole group.
  process.kill(-(conductor.pid ?? Number.NaN), 'SIGINT')
  await once(conductor, 'close')
  expect(said).toContain('Hello, Ada!')

  const shown = await run(show.replace('UUID', uuids[0] ?? ''))
  expect(shown).toMatch(/^greet +SUCCESS/m)
  expect(shown).toMatch(/^print +SUCCESS/m)
  const tracked = await run(track.replace('UUID', uuids[0] ?? ''))
  expect(tracked).toMatch(/^job \S+ {2}done$/m)
  expect(tracked).toMatch(/^greet +SUCCESS +"Hello, Ada!"$/m)
  expect(await run(trash)).toContain('NonRetryable: out of paper')
})

test('links lead to files that are there, and come with the package', async () => {
  const { files } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { files: string[] }
  const docs = (await readdir(join(ROOT, 'docs'), { recursive: true })).map((name) => join('docs', name))
  const pages = docs.filter((name) => name.endsWith('.md') && !files.includes(`!${name}`))
  const links: string[] = []
  for (const page of ['README.md', ...pages]) {
    const text = await readFile(join(ROOT, page), 'utf8')
    for (const [, link = ''] of text.matchAll(/\]\(([^)#]+)[^)]*\)/g)) {
      if (!link.includes(':')) links.push(relative(ROOT, resolve(ROOT, dirname(page), link)))
    }
  }
  expect(links.length).toBeGreaterThan(10)
  await Promise.all(links.map((link) => access(join(ROOT, link))))
  expect(links.filter((link) => !files.some((file) => link === file || link.startsWith(`${file}/`)))).toEqual([])
})

test('the reference of options has every option of conductors', async () => {
  const reference = await readFile(join(ROOT, 'docs/reference/options.md'), 'utf8')
  const [, section = ''] = reference.split('## `startConductor(options)` and `runConductor(options)`')
  const [table = ''] = section.split('\n## ')
  const named = [...table.matchAll(/^\| (`[^|]*`) \|/gm)].flatMap(([, names = '']) => names.match(/\w+/g) ?? [])
  expect(named.sort()).toEqual([...Object.keys(CONDUCTOR_OPTIONS), 'started', 'stopping'].sort())
})
