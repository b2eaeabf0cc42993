import { expect, test } from 'vitest'
import { freePort } from './ports.ts'
import { usualSettings, ZOOKEEPER, ZooKeeperProgram } from './zookeeper-program.ts'

test('no port is returned twice, and each is in the range of its worker', async () => {
  const ports: number[] = []
  for (let count = 0; count < 50; count++) ports.push(await freePort())
  expect(new Set(ports).size).toBe(50)
  const worker = Number(process.env['VITEST_POOL_ID'])
  const [lowest, highest] = [10_000 + worker * 3_000, 10_000 + (worker + 1) * 3_000 - 1]
  expect(ports.filter((port) => port < lowest || port > highest)).toEqual([])
})

// Where ZooKeeper runs in containers, there is no program to start.
test.skipIf(!(await ZOOKEEPER.installed()))('a ZooKeeper whose port is taken says so', async () => {
  const port = await freePort()
  const settings = { ...usualSettings({}), clientPort: port, clientPortAddress: '127.0.0.1' }
  const first = await ZooKeeperProgram.prepare({ port, settings })
  const second = await ZooKeeperProgram.prepare({ port: await freePort(), settings })
  try {
    await first.start()
    await expect(second.start()).rejects.toThrow('Address already in use')
  } finally {
    await first.stop()
    await second.stop()
  }
})
