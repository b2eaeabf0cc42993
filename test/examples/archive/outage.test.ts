/** ZooKeeper goes away in the middle of the demo and comes back five seconds later. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as outage } from 'node:timers/promises'
import { openBoard } from 'jobboard'
import { expect, test } from 'vitest'
import { startZooKeeper } from '../../support/zookeeper.ts'
import { contentOf, Demo, manifestOf, temporaryFolder, untilRecorded, wrongEntries } from './demo.ts'

const FILES = 150

const DEMOS = [
  { path: '/outlived', conductors: [] },
  // Over before the server is back: every claim is lost, and what was being posted may be posted or not.
  { path: '/lost?sessionTimeout=3s', conductors: ['--conductors', '2'] },
]

test('nothing is lost, and it goes on by itself, whether sessions outlive it or not', async () => {
  const folder = await temporaryFolder()
  for (let index = 0; index < FILES; index += 1) await writeFile(join(folder, `file-${index}`), contentOf(index))
  await using server = await startZooKeeper()
  const runs = await Promise.all(DEMOS.map((options) => start({ folder, hosts: server.hosts, ...options })))
  await server.kill()
  for (const { demo } of runs) await demo.says(/does not answer; waiting for it$/m)
  await outage(5_000)
  await server.restart()
  for (const { demo, out, uri } of runs) {
    await demo.says(/is back$/m)
    expect(await demo.exitCode(), demo.output + demo.errors).toBe(0)
    const names = (await manifestOf(out)).map(({ name }) => name)
    expect(names).toHaveLength(FILES)
    expect(new Set(names).size).toBe(FILES)
    expect(await wrongEntries(folder, out)).toEqual([])
    await using board = await openBoard(uri)
    expect(await board.countJobs()).toBe(0)
  }
})

/** A demo that is in the middle of its work. */
async function start(options: { folder: string; hosts: string; path: string; conductors: readonly string[] }) {
  const out = join(await temporaryFolder(), 'out')
  const uri = `zookeeper://${options.hosts}${options.path}`
  const demo = new Demo([options.folder, '--out', out, '--board', uri, ...options.conductors])
  await demo.says(/^archiving/m)
  await untilRecorded(out, 10)
  return { demo, out, uri }
}
