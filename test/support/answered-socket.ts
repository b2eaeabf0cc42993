/** Whether this process polls a socket that it opens now. */
import { connect } from 'node:net'

/**
 * Resolves with whether such a socket can send to a ZooKeeper server on this port, and gets its answer.
 *
 * @param options.after when it sends; at once by default
 */
export function isAnswered(port: number, options: { readonly after?: Promise<unknown> } = {}): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', async () => {
      await options.after
      socket.write('ruok')
    })
    socket.on('data', () => resolve(true))
    socket.on('close', () => resolve(false))
    socket.on('error', () => undefined)
  })
}
