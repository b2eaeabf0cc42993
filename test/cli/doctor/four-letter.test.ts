import { createServer } from 'node:net'
import { expect, test } from 'vitest'
import { askServers } from '../../../src/cli/doctor/four-letter.ts'

test('an answer without an end is not read to its end', async () => {
  const page = Buffer.alloc(32 * 1024, 'x')
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => undefined)
    const more = (failure?: Error | null) => {
      if (!failure) socket.write(page, more)
    }
    more()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = Object(server.address()) as { port: number }
  const [answer] = await askServers([{ host: '127.0.0.1', port }])
  expect(answer?.fault).toContain('its answer is longer than 65536 characters')
  await new Promise((resolve) => server.close(resolve))
})
