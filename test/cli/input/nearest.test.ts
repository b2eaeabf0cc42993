/** A config file decides what code is run: whose may be believed. */
import { chmod, chown, lchown, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { FILE_NAME, findNearestConfig } from '../../../src/cli/input/config/nearest.ts'
import { createCliFolder, FLOWS } from '../workplace.ts'

async function folders(): Promise<{ above: string; below: string }> {
  const above = await realpath(await mkdtemp(join(tmpdir(), 'jobboard-nearest-')))
  onTestFinished(() => rm(above, { recursive: true }))
  const below = join(above, 'a/b')
  await mkdir(below, { recursive: true })
  return { above, below }
}

/** `nobody`, of many systems. */
const OTHER = 65_534

const found = async (cwd: string) => (await findNearestConfig(cwd))?.file

test('the nearest is taken, of those here and above', async () => {
  const { above, below } = await folders()
  expect(await findNearestConfig(below)).toBeUndefined()
  await writeFile(join(above, FILE_NAME), '')
  expect(await found(below)).toBe(join(above, FILE_NAME))
  await mkdir(join(below, FILE_NAME))
  await symlink('nowhere', join(above, 'a', FILE_NAME))
  expect(await found(below)).toBe(join(above, FILE_NAME))
  await rm(join(below, FILE_NAME), { recursive: true })
  await writeFile(join(below, FILE_NAME), 'here')
  expect(await findNearestConfig(below)).toEqual({
    file: join(below, FILE_NAME),
    real: join(below, FILE_NAME),
    text: 'here',
  })
})

test('a link of ours is followed, and the file that it leads to is returned', async () => {
  const { above, below } = await folders()
  await writeFile(join(above, 'shared.yaml'), 'shared')
  await symlink(join(above, 'shared.yaml'), join(below, FILE_NAME))
  expect(await findNearestConfig(below)).toEqual({
    file: join(below, FILE_NAME),
    real: join(above, 'shared.yaml'),
    text: 'shared',
  })
})

test('one that everybody can write to, or in a folder of that kind, is not believed', async () => {
  const { above, below } = await folders()
  const file = join(above, FILE_NAME)
  await writeFile(file, '')
  for (const mode of [0o666, 0o602]) {
    await chmod(file, mode)
    await expect(findNearestConfig(below)).rejects.toThrow(
      `${file} can be written by other users: name it with --config ${file}, or remove it`,
    )
  }
  await chmod(file, 0o644)
  await chmod(above, 0o777)
  await expect(findNearestConfig(below)).rejects.toThrow(`${above} can be written by other users, who could replace`)
  // As /tmp is: nobody else can replace what is ours.
  await chmod(above, 0o1777)
  expect(await found(below)).toBe(file)
  await writeFile(join(below, 'shared.yaml'), '')
  await chmod(below, 0o777)
  await rm(file)
  await symlink(join(below, 'shared.yaml'), file)
  await expect(findNearestConfig(above)).rejects.toThrow(`${below} can be written by other users, who could replace`)
})

// Only root may give a file to somebody else.
describe.runIf(process.getuid?.() === 0)('what another user has put there is not believed', () => {
  test('a file', async () => {
    const { above, below } = await folders()
    const file = join(above, FILE_NAME)
    await writeFile(file, '')
    await chown(file, OTHER, OTHER)
    await expect(findNearestConfig(below)).rejects.toThrow(
      `${file} belongs to another user: name it with --config ${file}`,
    )
  })

  test('a link to a file of ours', async () => {
    const { above, below } = await folders()
    await mkdir(join(above, 'home'))
    await writeFile(join(above, 'home', FILE_NAME), 'flows: ./flows.mjs')
    const file = join(above, FILE_NAME)
    await symlink(join(above, 'home', FILE_NAME), file)
    await lchown(file, OTHER, OTHER)
    await expect(findNearestConfig(below)).rejects.toThrow(
      `${file} belongs to another user: name it with --config ${file}`,
    )
  })

  test('a file of ours in a folder of theirs', async () => {
    const { above, below } = await folders()
    await writeFile(join(above, FILE_NAME), '')
    await chown(above, OTHER, OTHER)
    await expect(findNearestConfig(below)).rejects.toThrow(
      `${above} belongs to another user, who could replace what is in it`,
    )
  })

  test('one that a group can write to, unless the group has no other member', async () => {
    const { above, below } = await folders()
    const file = join(above, FILE_NAME)
    await writeFile(file, '')
    await chmod(file, 0o664)
    await chown(file, 0, 0)
    expect(await found(below)).toBe(file)
    // The group of `nobody`, and one that there is not.
    for (const group of [OTHER, 54_321]) {
      await chown(file, 0, group)
      await expect(findNearestConfig(below)).rejects.toThrow(`${file} can be written by other users`)
    }
  })
})

describe('modules that a found config file names', () => {
  async function place(config = 'flows: ./flows.mjs\n') {
    const place = await createCliFolder()
    onTestFinished(() => place[Symbol.asyncDispose]())
    await place.write('home/jobboard.yaml', config)
    await place.write('home/flows.mjs', FLOWS)
    const run = ['run', 'hello', '--store', '{"name":"Ada"}', '--quiet']
    return { ...place, run, home: join(place.cwd, 'home') }
  }
  const EVIL = 'throw new Error("the module of somebody else was run")'

  test('are seen from the folder of the file itself, not from that of a link to it', async () => {
    const { cwd, home, run, bare, write } = await place()
    await write('project/flows.mjs', EVIL)
    await symlink(join(home, FILE_NAME), join(cwd, 'project', FILE_NAME))
    for (const options of [{ cwd: join(cwd, 'project') }, { env: { JOBBOARD_CONFIG: `project/${FILE_NAME}` } }])
      expect(await bare(run, options)).toMatchObject({ exitCode: 0, stdout: 'text  "Hello, Ada"\n' })
  })

  test.runIf(process.getuid?.() === 0)(
    'are not run where they belong to another user, or others can change them',
    async () => {
      const { cwd, home, run, bare, write } = await place()
      const flows = join(home, 'flows.mjs')
      const refusal = async (why: string, options: object = { cwd: home }) => {
        const { exitCode, stderr } = await bare(run, options)
        expect([exitCode, stderr]).toEqual([2, expect.stringContaining(why)])
      }
      await chown(flows, OTHER, OTHER)
      await refusal(`${flows} belongs to another user: the module that jobboard.yaml names is not run`)
      expect((await bare(['config', 'check'], { cwd: home })).stderr).toContain(`${flows} belongs to another user`)
      // Who names it, or the file, has decided.
      expect((await bare([...run, '--flows', './flows.mjs'], { cwd: home })).exitCode).toBe(0)
      expect((await bare(run, { env: { JOBBOARD_CONFIG: join(home, FILE_NAME) } })).exitCode).toBe(0)
      await chown(flows, 0, 0)
      await chmod(flows, 0o666)
      await refusal(`${flows} can be written by other users`)
      await chmod(flows, 0o644)
      await write('home/jobboard.yaml', `flows: ${join(cwd, 'open/flows.mjs')}\n`)
      await write('open/flows.mjs', FLOWS)
      await chmod(join(cwd, 'open'), 0o777)
      await refusal(`${join(cwd, 'open')} can be written by other users`)
    },
  )

  test.runIf(process.getuid?.() === 0)('also packages, which are seen from the working directory', async () => {
    const { cwd, run, bare, write } = await place('flows: planted\n')
    await write('home/below/node_modules/planted/index.js', EVIL)
    const planted = join(cwd, 'home/below/node_modules/planted/index.js')
    await chown(planted, OTHER, OTHER)
    const { exitCode, stderr } = await bare(run, { cwd: join(cwd, 'home/below') })
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(`${planted} belongs to another user`)])
  })
})
