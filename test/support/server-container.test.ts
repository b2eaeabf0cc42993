import { expect, test } from 'vitest'
import { type Container, type RunContainer, ServerContainer, shellCommand } from './server-container.ts'

const definition = { name: 'Server', image: 'server:1', command: ['server', '--port', '1'] }

/** An engine that keeps a record of what is asked of it. */
function fakeEngine(options: { readonly endsAtOnce?: boolean } = {}) {
  const calls: string[] = []
  let running = false
  const call = (name: string, runs: boolean) => async () => {
    calls.push(name)
    running = runs
  }
  const container: Container = {
    isRunning: async () => running,
    output: async () => 'bind: address already in use\n',
    kill: call('kill', false),
    start: call('start', true),
    pause: call('pause', true),
    resume: call('resume', true),
    remove: call('remove', false),
  }
  const run: RunContainer = async ({ image }) => {
    calls.push(`run ${image}`)
    running = !options.endsAtOnce
    return container
  }
  return { calls, run, ready: async () => running }
}

test('a container is started, crashed, brought back as the same one, and removed', async () => {
  const { calls, ...engine } = fakeEngine()
  const server = new ServerContainer({ definition, ...engine })
  await server.start()
  await server.pause()
  await server.resume()
  await server.restart()
  await server.kill()
  await server.stop()
  expect(calls).toEqual(['run server:1', 'pause', 'resume', 'kill', 'start', 'kill', 'remove'])
})

test('what does not run is not killed again, and stopping twice removes once', async () => {
  const { calls, ...engine } = fakeEngine()
  const server = new ServerContainer({ definition, ...engine })
  await server.stop()
  await server.start()
  await server.kill()
  await server.kill()
  await server.restart()
  await server.stop()
  await server.stop()
  expect(calls).toEqual(['run server:1', 'kill', 'start', 'remove'])
})

test('a container that ends before it serves is removed, and the error has what it printed', async () => {
  const { calls, ...engine } = fakeEngine({ endsAtOnce: true })
  const server = new ServerContainer({ definition, ...engine })
  await expect(server.start()).rejects.toThrow('Server did not start: bind: address already in use')
  expect(calls).toEqual(['run server:1', 'remove'])
})

test('a container with lines of set-up runs them first, and then is the server', () => {
  expect(shellCommand(definition)).toEqual(definition.command)
  expect(shellCommand({ ...definition, setup: 'echo 1 > /id' })).toEqual([
    ...['sh', '-c', 'set -e\necho 1 > /id\nexec "$@"', 'sh'],
    ...definition.command,
  ])
})
