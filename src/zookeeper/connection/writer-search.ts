/** Searches for a server that writes while the attached one only reads. */
import { NotConnected } from '../../core/errors.ts'
import { sleep } from '../../core/time.ts'
import { formatEndpoint } from '../protocol/connect-string.ts'
import type { Connection } from './connection.ts'
import { ConnectionFault } from './faults.ts'
import type { Hosts, Server } from './hosts.ts'
import { openSocket, type TlsOptions } from './socket.ts'

const FIRST_PAUSE_MS = 100
const MAX_PAUSE_MS = 60_000

export interface WriterSearchOptions {
  readonly hosts: Hosts
  readonly tls?: TlsOptions | undefined
  /** Time limit for a server's answer in milliseconds. */
  readonly connectTimeout: number
}

export class WriterSearch {
  readonly #options: WriterSearchOptions
  #stop: AbortController | undefined

  constructor(options: WriterSearchOptions) {
    this.#options = options
  }

  /** Searches without a time limit, and closes the connection when it has found a server. */
  start(connection: Connection): void {
    this.#stop = new AbortController()
    const { signal } = this.#stop
    const unsuccessful = (error: unknown) =>
      connection.destroy(new NotConnected('no writer was found', { cause: error }))
    this.#find(signal).then((server) => {
      if (!server || signal.aborted) return
      this.#options.hosts.prefer(server)
      connection.destroy(new ConnectionFault('moved', `${formatEndpoint(server)} writes, and this server does not`))
    }, unsuccessful)
  }

  stop(): void {
    this.#stop?.abort()
  }

  async #find(signal: AbortSignal): Promise<Server | undefined> {
    const { hosts, tls, connectTimeout } = this.#options
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(MAX_PAUSE_MS, pause * 2)) {
      try {
        await sleep(pause, { signal })
      } catch {
        return undefined
      }
      for (const server of await hosts.all()) {
        if (signal.aborted) return undefined
        if (await isReadWrite(server, { tls, timeout: connectTimeout, signal })) return server
      }
    }
  }
}

/** Command that servers answer without a session. */
const READ_WRITE_PROBE = 'isro'
const READ_WRITE_ANSWER = 'rw'

interface ProbeOptions {
  readonly tls: TlsOptions | undefined
  readonly timeout: number
  readonly signal: AbortSignal
}

function isReadWrite(server: Server, { tls, timeout, signal }: ProbeOptions): Promise<boolean> {
  return new Promise((resolve) => {
    let answer = ''
    const socket = openSocket(server, tls, () => socket.write(READ_WRITE_PROBE))
    const giveUp = () => socket.destroy()
    signal.addEventListener('abort', giveUp, { once: true })
    socket.setTimeout(timeout, giveUp)
    socket.on('data', (chunk: Buffer) => {
      answer += chunk.toString('latin1')
      if (answer.length > READ_WRITE_ANSWER.length) socket.destroy()
    })
    socket.on('error', giveUp)
    socket.on('close', () => {
      signal.removeEventListener('abort', giveUp)
      resolve(answer.startsWith(READ_WRITE_ANSWER))
    })
  })
}
