/** A relay that understands frames: it knows what a client asks for, and can keep from it what its watches tell. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { FrameReader } from '../../src/zookeeper/protocol/frames.ts'
import { XID } from '../../src/zookeeper/protocol/opcodes.ts'

const LARGEST_FRAME = 16 * 1_048_576

export interface FrameRecorder extends AsyncDisposable {
  readonly hosts: string
  /** Whether events of watches are dropped, from now on. */
  dropsWatchEvents: boolean
  /** How many were dropped. */
  readonly missed: number
  /** The opcodes of what was asked since the connection was made, oldest first; pings too. */
  readonly asked: number[]
  /** Resolves at the next request of this kind. */
  nextAsked(opcode: number): Promise<void>
}

export async function recordFrames(target: { readonly port: number }): Promise<FrameRecorder> {
  const sockets = new Set<Socket>()
  const asked: number[] = []
  const waiting = new Set<(opcode: number) => void>()
  let dropsWatchEvents = false
  let missed = 0

  const server = createServer((client) => {
    const upstream = connect({ host: '127.0.0.1', port: target.port, noDelay: true })
    client.setNoDelay(true)
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => other.destroy())
    }
    const requests = frames((frame, { first }) => {
      if (first) return
      const opcode = frame.readInt32BE(4)
      asked.push(opcode)
      for (const tell of waiting) tell(opcode)
    })
    client.on('data', (chunk: Buffer) => {
      requests(chunk)
      upstream.write(chunk)
    })
    const answers = frames((frame, { first }) => {
      if (dropsWatchEvents && !first && frame.readInt32BE(0) === XID.watchEvent) {
        missed += 1
        return
      }
      const length = Buffer.alloc(4)
      length.writeInt32BE(frame.length)
      client.write(Buffer.concat([length, frame]))
    })
    upstream.on('data', answers)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    hosts: `127.0.0.1:${port}`,
    get dropsWatchEvents() {
      return dropsWatchEvents
    },
    set dropsWatchEvents(next) {
      dropsWatchEvents = next
    },
    get missed() {
      return missed
    },
    asked,
    nextAsked: (opcode) =>
      new Promise((resolve) => {
        const tell = (heard: number) => {
          if (heard !== opcode) return
          waiting.delete(tell)
          resolve()
        }
        waiting.add(tell)
      }),
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

/** The first frame of each side, by which they meet, has no header. */
function frames(handle: (frame: Buffer, at: { readonly first: boolean }) => void): (chunk: Buffer) => void {
  const reader = new FrameReader(LARGEST_FRAME)
  let first = true
  return (chunk) => {
    reader.add(chunk)
    for (let frame = reader.next(); frame; frame = reader.next()) {
      handle(frame, { first })
      first = false
    }
  }
}
