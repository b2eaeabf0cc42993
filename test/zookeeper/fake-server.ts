/** A server that speaks the protocol as badly as a test wants. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { FrameReader } from '../../src/zookeeper/protocol/frames.ts'
import { JuteReader, JuteWriter } from '../../src/zookeeper/protocol/jute.ts'

/** One request as it came in. */
export interface Asked {
  /** Which one it came over, from 1. */
  readonly connection: number
  readonly xid: number
  readonly opcode: number
  /** What stands behind the header; of the first frame all of it. */
  readonly body: JuteReader
  /** Sends a frame. */
  send(payload: Uint8Array): void
  /** Sends bytes as they are. */
  raw(bytes: Uint8Array): void
  hangUp(): void
}

export interface FakeServer extends AsyncDisposable {
  readonly hosts: string
}

export interface Behaviour {
  /** The first frame of a connection; a usual answer by default. */
  readonly attach?: (asked: Asked) => void
  /** Every later one; what is not handled (false) is answered with success. */
  readonly answer?: (asked: Asked) => unknown
}

/** Operations that a client sends of itself. */
export const ARMING = 105
export const AUTH = 100
export const CLOSE_SESSION = -11
export const PING = 11

export async function startFakeServer(behaviour: Behaviour): Promise<FakeServer> {
  const sockets = new Set<Socket>()
  let connections = 0
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
    const frames = new FrameReader(1_048_576)
    const connection = ++connections
    let attached = false
    // As servers do, with what is no frame: who finds no words here may try whether TLS is spoken.
    const next = () => {
      try {
        return frames.next()
      } catch {
        socket.destroy()
        return undefined
      }
    }
    socket.on('data', (chunk: Buffer) => {
      frames.add(chunk)
      for (let frame = next(); frame; frame = next()) {
        const reader = new JuteReader(frame)
        const header = attached ? { xid: reader.int(), opcode: reader.int() } : { xid: 0, opcode: 0 }
        const asked = asking(socket, { connection, ...header, body: reader })
        if (!attached) (behaviour.attach ?? welcome)(asked)
        else if (!behaviour.answer?.(asked)) asked.send(reply(asked.xid))
        attached = true
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    hosts: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

function asking(socket: Socket, request: Pick<Asked, 'connection' | 'xid' | 'opcode' | 'body'>): Asked {
  return {
    ...request,
    send: (payload) => socket.write(new JuteWriter().bytes(payload).finish()),
    raw: (bytes) => socket.write(bytes),
    hangUp: () => socket.destroy(),
  }
}

/** @param options.timeout of the session; 0 says that it is over */
export function welcome({ send }: Asked, { timeout = 4_000, session = 7n } = {}): void {
  send(new JuteWriter().int(0).int(timeout).long(session).bytes(new Uint8Array(16)).boolean(false).finish())
}

/** An answer's header, and what the writer adds to it. */
export function reply(xid: number, options: { code?: number; body?: (writer: JuteWriter) => unknown } = {}): Buffer {
  const writer = new JuteWriter()
    .int(xid)
    .long(1n)
    .int(options.code ?? 0)
  options.body?.(writer)
  return writer.finish()
}

export function event(path: string): Buffer {
  return new JuteWriter().int(-1).long(-1n).int(0).int(1).int(3).text(path).finish()
}
