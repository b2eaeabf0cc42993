/** The pages that get one started: what is typed there does what it says, in the order in which it stands there. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { openBoard } from 'jobboard'
import { expect, test } from 'vitest'
import { createCliFolder } from '../cli/workplace.ts'
import { MAIN } from '../support/build.ts'
import { readPage } from './pages.ts'

const PAGE = await readPage('docs/start/conductors.md')

const block = (language: string) => PAGE.blocks.find((each) => each.language === language)?.code ?? ''

test('the commands of a first conductor do what their comments say', async () => {
  await using place = await createCliFolder()
  await place.write('flows.mjs', block('js'))
  const bin = join(place.cwd, 'node_modules/.bin')
  await mkdir(bin)
  await symlink(MAIN, join(bin, 'jobboard'))
  // What npx does, without the second that it takes to start.
  const [places = '', ...lines] = block('sh').replaceAll('npx jobboard', 'jobboard').trim().split('\n')
  const [post = '', postRefused = '', jobs = '', conduct = '', show = '', track = '', trash = ''] = lines
  const options = { cwd: place.cwd, env: { ...process.env, PATH: `${bin}:${process.env['PATH']}` } }
  const run = async (line: string) =>
    (await promisify(execFile)('/bin/sh', ['-c', `${places}\n${line}`], options)).stdout

  const uuids = [(await run(post)).trim(), (await run(postRefused)).trim()]
  expect((await run(jobs)).match(/\bUNCLAIMED\b/g)).toHaveLength(2)

  await using board = await openBoard(`sqlite:${join(place.cwd, 'jobs.db')}`)
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
