/** The demo with `--isolate`: every task in a child process of its conductor. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'
import { contentOf, Demo, manifestOf, temporaryFolder, untilRecorded, wrongEntries } from './demo.ts'

async function folderWith(files: number): Promise<string> {
  const folder = await temporaryFolder()
  for (let index = 0; index < files; index += 1) await writeFile(join(folder, `file-${index}`), contentOf(index))
  return folder
}

test('archives every file, with a conductor in its own process', async () => {
  const folder = await folderWith(10)
  const out = join(await temporaryFolder(), 'out')
  const demo = new Demo([folder, '--out', out, '--isolate'], { way: 'tsx' })
  expect(await demo.exitCode(), demo.output).toBe(0)
  expect(await manifestOf(out)).toHaveLength(10)
  expect(await wrongEntries(folder, out)).toEqual([])
})

test('archives every file exactly once, when a conductor is killed, and its children end with it', async () => {
  const folder = await folderWith(100)
  const out = join(await temporaryFolder(), 'out')
  const uri = `zookeeper://${zookeeperHosts}${namespace('demo')}?sessionTimeout=3s`
  const demo = new Demo([folder, '--out', out, '--board', uri, '--conductors', '2', '--isolate'], { way: 'tsx' })
  const [victim = 0] = await demo.conductorPids()
  await untilRecorded(out, 10)
  const children = await childrenOf(victim)
  process.kill(victim, 'SIGKILL')
  expect(await demo.exitCode(), demo.output).toBe(0)
  expect(await manifestOf(out)).toHaveLength(100)
  expect(await wrongEntries(folder, out)).toEqual([])
  expect(children.length).toBeGreaterThan(0)
  for (const pid of children) expect(() => process.kill(pid, 0)).toThrow('ESRCH')
})

async function childrenOf(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return text.trim().split(' ').filter(Boolean).map(Number)
}
