/**
 * What a pooler of transactions does, and no more: each client is told a backend's number that is none, and whatever it
 * asks is done over the one connection to the server that is free, from a message to the next `ReadyForQuery`.
 */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface TransactionPooler extends AsyncDisposable {
  readonly port: number
}

/** `AuthenticationOk`, `BackendKeyData` (1, 1), `ReadyForQuery`. */
const WELCOME = Buffer.from('R\0\0\0\b\0\0\0\0K\0\0\0\f\0\0\0\x01\0\0\0\x01Z\0\0\0\x05I', 'latin1')
const READY = 0x5a

/** `Query` and `Sync`: the server answers them with `ReadyForQuery`. */
const LAST_OF_REQUEST = [0x51, 0x53]

/** Returns the end of the first request, which can be larger than what arrives at once; 0 where some of it is missing. */
function requestEnd(received: Buffer): number {
  for (let at = 0; at + 5 <= received.length; ) {
    const end = at + 1 + received.readUInt32BE(at + 1)
    if (end > received.length) return 0
    if (LAST_OF_REQUEST.includes(received[at] ?? 0)) return end
    at = end
  }
  return 0
}

export async function startTransactionPooler(server: number): Promise<TransactionPooler> {
  const upstream = connect({ port: server, host: '127.0.0.1' })
  await once(upstream, 'connect')
  const startup = Buffer.from('\0\x03\0\0user\0postgres\0database\0postgres\0\0', 'latin1')
  const length = Buffer.alloc(4)
  length.writeUInt32BE(startup.length + 4)
  upstream.write(Buffer.concat([length, startup]))
  const waiting: { readonly client: Socket; readonly asked: Buffer }[] = []
  const clients = new Set<Socket>()
  let current: Socket | undefined
  let answered: Buffer = Buffer.alloc(0)
  let welcomed = false

  const next = () => {
    const turn = waiting.shift()
    current = turn?.client
    if (turn) upstream.write(turn.asked)
  }
  upstream.on('data', (chunk) => {
    answered = Buffer.concat([answered, chunk])
    while (answered.length >= 5) {
      const size = answered.readUInt32BE(1) + 1
      if (answered.length < size) return
      const message = answered.subarray(0, size)
      answered = answered.subarray(size)
      if (welcomed) current?.write(message)
      if (message[0] !== READY) continue
      welcomed = true
      next()
    }
  })
  upstream.on('error', () => undefined)
  const listening = createServer((client) => {
    clients.add(client)
    let started = false
    let received: Buffer = Buffer.alloc(0)
    client.on('error', () => undefined)
    client.on('close', () => clients.delete(client))
    client.on('data', (chunk) => {
      if (!started) {
        started = true
        client.write(WELCOME)
        return
      }
      received = Buffer.concat([received, chunk])
      for (let end = requestEnd(received); end > 0; end = requestEnd(received)) {
        waiting.push({ client, asked: received.subarray(0, end) })
        received = received.subarray(end)
        if (!current && welcomed) next()
      }
    })
  })
  listening.listen(0, '127.0.0.1')
  await once(listening, 'listening')
  return {
    port: (listening.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      for (const client of clients) client.destroy()
      upstream.destroy()
      listening.close()
      await once(listening, 'close')
    },
  }
}
