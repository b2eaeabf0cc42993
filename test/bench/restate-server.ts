/** A Restate server for a benchmark, from npm's registry: on free loopback ports, with its defaults (it fsyncs its log). */
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../support/ports.ts'
import { ServerProgram } from '../support/server-program.ts'
import { DURABLE_PEERS } from './peers-folder.ts'

export interface RestateServer extends AsyncDisposable {
  readonly pid: number
  /** Where services are called. */
  readonly ingress: string
  /** Makes the server call the services that answer at a port of this machine. */
  register(port: number): Promise<void>
}

export async function startRestate(): Promise<RestateServer> {
  const folder = await mkdtemp(join(tmpdir(), 'jobboard-restate-'))
  const [ingress, admin, fabric] = [await freePort(), await freePort(), await freePort()].map(
    (port) => `127.0.0.1:${port}`,
  )
  const settings = {
    RESTATE_INGRESS__BIND_ADDRESS: ingress,
    RESTATE_ADMIN__BIND_ADDRESS: admin,
    RESTATE_BIND_ADDRESS: fabric,
    RESTATE_DISABLE_TELEMETRY: 'true',
    RESTATE_LOG_FILTER: 'error',
  }
  const variables = Object.entries(settings).map(([name, value]) => `${name}=${value}`)
  const flags = ['--no-logo', '--listen-mode', 'tcp', '--base-dir', folder]
  const server = new ServerProgram({
    name: 'Restate',
    command: ['env', ...variables, program(), ...flags],
    folder,
    ready: async () =>
      (await isHealthy(`http://${admin}/health`)) && (await isHealthy(`http://${ingress}/restate/health`)),
  })
  await server.start()
  return {
    get pid() {
      return server.pid
    },
    ingress: `http://${ingress}`,
    register: async (port) => {
      const body = JSON.stringify({ uri: `http://127.0.0.1:${port}`, force: true })
      const headers = { 'content-type': 'application/json' }
      const answer = await fetch(`http://${admin}/deployments`, { method: 'POST', headers, body })
      if (!answer.ok) throw new Error(`Restate does not take the service at port ${port}: ${await answer.text()}`)
      await answer.body?.cancel()
    },
    [Symbol.asyncDispose]: () => server.stop(),
  }
}

/** The package for this machine; npm installs no other. */
function program(): string {
  const name = `restate-server-${process.platform}-${process.arch}`
  return join(DURABLE_PEERS, 'node_modules/@restatedev', name, 'bin/restate-server')
}

async function isHealthy(url: string): Promise<boolean> {
  const answer = await fetch(url).catch(() => undefined)
  await answer?.body?.cancel()
  return answer?.ok ?? false
}
