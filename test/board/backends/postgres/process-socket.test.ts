/** Which processes are certainly over, as their sockets tell: by Linux, whose kernel has such sockets. */
import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { expect, onTestFinished, test } from 'vitest'
import { ProcessSocket } from '../../../../src/board/backends/postgres/connection/process-socket.ts'
import { createDeferred } from '../../../../src/core/async/abort.ts'
import { compiled } from '../../../support/compiled.ts'
import { startGuarded } from '../../../support/guarded-process.ts'
import { startNode } from '../../../support/node-process.ts'

const CHILD = new URL('./process-socket-child.ts', import.meta.url)

/** Returns whether this process may start others in namespaces of their own: containers may forbid it. */
const canUnshare = spawnSync('unshare', ['--net', '--pid', '--fork', 'true']).status === 0

async function openSocket(onLinkBroken: () => void = () => undefined): Promise<ProcessSocket> {
  const socket = await ProcessSocket.open(onLinkBroken)
  if (!socket) throw new Error('this kernel has no such sockets')
  onTestFinished(() => socket.close())
  return socket
}

/** Starts a process with a socket, in namespaces of its own. */
async function startChild(namespaces: readonly string[]) {
  const command = [process.execPath, await compiled(CHILD.pathname)]
  const child = await startGuarded(namespaces.length === 0 ? command : ['unshare', ...namespaces, ...command])
  onTestFinished(async () => {
    child.signal('SIGKILL')
    await child.ended
  })
  const [host = '', name = ''] = (await new Promise<string>((resolve) => child.onLine(resolve))).split(' ')
  return { child, host, name }
}

test('a name has the length that all releases of Node encode alike', async () => {
  const socket = await openSocket()
  const listed = (await readFile('/proc/net/unix', 'latin1')).split('\n')
  const [shown = ''] = listed.filter((line) => line.includes(socket.name))
  expect(shown.slice(shown.indexOf('@'))).toMatch(/^@jobboard-[-\da-f]{98}$/)
})

test('a process that lives has not ended, and a killed one has; what was never a process has, too', async () => {
  const socket = await openSocket()
  const child = await startNode(CHILD, [])
  const [host, name = ''] = (await child.says(/ /)).split(' ')
  expect(host).toBe(socket.host)
  expect([...(await socket.ended([socket.name, name]))]).toEqual([])
  child.signal('SIGSTOP')
  expect([...(await socket.ended([socket.name, name]))]).toEqual([])
  child.signal('SIGKILL')
  await child.ended
  const stranger = randomUUID()
  expect([...(await socket.ended([socket.name, name, stranger]))]).toEqual([name, stranger])
})

test('nothing has ended for a process whose own socket is not listed', async () => {
  const socket = await openSocket()
  socket.close()
  expect([...(await socket.ended([randomUUID()]))]).toEqual([])
})

test.skipIf(!canUnshare)('a process in another network namespace is on another host', async () => {
  const socket = await openSocket()
  expect((await startChild([])).host).toBe(socket.host)
  expect((await startChild(['--net'])).host).not.toBe(socket.host)
})

test.skipIf(!canUnshare)('a process in another namespace of process numbers lives until it is killed', async () => {
  const socket = await openSocket()
  // Its number is 1 there: another process has this number here.
  const { child, host, name } = await startChild(['--pid', '--fork', '--kill-child'])
  expect(host).toBe(socket.host)
  expect([...(await socket.ended([name]))]).toEqual([])
  child.signal('SIGKILL')
  await child.ended
  await expect.poll(async () => [...(await socket.ended([name]))]).toEqual([name])
})

test('both ends of a connection are notified when the process of the other end is over', async () => {
  const [first, second] = [createDeferred(), createDeferred()]
  const a = await openSocket(() => first.resolve())
  const b = await openSocket(() => second.resolve())
  b.linkTo([a.name])
  await expect.poll(async () => (await readFile('/proc/net/unix', 'latin1')).split(a.name).length).toBeGreaterThan(2)
  const c = await openSocket(() => first.resolve())
  expect([...(await c.ended([a.name, b.name]))]).toEqual([])
  a.close()
  await second.promise
  expect([...(await b.ended([a.name]))]).toEqual([a.name])
  b.linkTo([a.name, c.name])
  await expect.poll(async () => (await readFile('/proc/net/unix', 'latin1')).split(c.name).length).toBeGreaterThan(2)
  b.close()
  await first.promise
})
