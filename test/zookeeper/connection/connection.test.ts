import { describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/core/time.ts'
import { Connection } from '../../../src/zookeeper/connection/connection.ts'
import { Counters } from '../../../src/zookeeper/connection/counters.ts'
import type { TlsOptions } from '../../../src/zookeeper/connection/socket.ts'
import { NO_PASSWORD } from '../../../src/zookeeper/protocol/records.ts'
import { RequestNumbers } from '../../../src/zookeeper/protocol/requests.ts'

const REQUEST = { lastZxid: 0n, timeout: 10_000, session: 0n, password: NO_PASSWORD }

/** A connection to nowhere. */
function connection(tls?: TlsOptions) {
  const ends: Error[] = []
  const made = new Connection(
    {
      server: { host: '127.0.0.1', port: 1, address: '127.0.0.1' },
      connectTimeout: 1_000,
      maxReplyBytes: 1_000,
      clock: systemClock,
      counters: new Counters(),
      numbers: new RequestNumbers(),
      tls,
    },
    {
      isAlive: () => true,
      events: () => undefined,
      replyReceived: () => undefined,
      quorumAcknowledged: () => undefined,
      drained: () => undefined,
      mayRetry: () => true,
      closed: (cause) => ends.push(cause),
    },
  )
  return { made, ends }
}

// Whatever is rejected and not looked at fails the run: that is what ended processes.
describe('a connection that cannot even be tried', () => {
  test.each([
    ['its TLS options are none', { cert: 'this is no pem', key: 'nor this' }, REQUEST, /PEM/],
    ['it asks for what there is no room for', undefined, { ...REQUEST, timeout: 2 ** 40 }, /out of range/],
  ])('because %s is reported to the caller that attaches, and to no other', async (_, tls, request, message) => {
    const { made, ends } = connection(tls)
    await expect(made.attach(request)).rejects.toThrow(message)
    made.destroy(new Error('it is of no use'))
    expect(ends).toHaveLength(1)
    await expect(made.attach(REQUEST)).rejects.toMatchObject({ name: 'NotConnected' })
  })
})
